// One hand: what it is for, its agents, what it needs, and its settings.

import { call, get } from "../../lib/api.js";
import { choice, textInput, toggle } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { handLines, lineList, needList } from "./words.js";

/**
 * Fields for the settings of a hand. `values` are the present ones. `nodes` stand in a form, `fields` take faults by key, and `read()`
 * gives the values that differ from the present ones.
 */
export function settingFields(settings, values = {}) {
  const fields = {};
  const nodes = [];
  const reads = [];
  for (const setting of settings) {
    const value = values[setting.key] ?? setting.default ?? "";
    const label = setting.label || setting.key;
    if (setting.setting_type === "toggle") {
      const box = toggle(label, value === true || value === "true");
      nodes.push(h("div", { class: "field" }, box, setting.description ? h("p", { class: "hint" }, setting.description) : null));
      reads.push([setting.key, String(value === true || value === "true"), () => String(box.box.checked)]);
      continue;
    }
    const options = (setting.options ?? []).map((option) => [option.value, option.available === false ? `${option.label || option.value} (not set up)` : option.label || option.value]);
    const isSelect = setting.setting_type === "select";
    const control = isSelect ? choice(options, String(value)) : textInput(value, setting.env_var ? { type: "password", placeholder: value ? "" : setting.env_var } : {});
    const made = field(label, control, { hint: setting.description ?? "" });
    fields[setting.key] = made;
    nodes.push(made);
    reads.push([setting.key, isSelect && value === "" ? null : String(value), () => control.value]);
  }
  const read = () => Object.fromEntries(reads.map(([key, before, now]) => [key, before, now()]).filter(([, before, now]) => before !== now && !(before === null && now === "")).map(([key, , now]) => [key, now]));
  return { nodes, fields, read };
}

/** Asks for the settings of a hand and starts an instance; gives the reply, or null. */
export async function activateHand(hand) {
  const { nodes, fields, read } = settingFields(hand.settings ?? []);
  const missing = (hand.requirements ?? []).filter((need) => !need.satisfied && !need.optional);
  const told = await ask({
    title: `Start ${hand.name || hand.id}`, action: "Start", wide: nodes.length > 3, fields,
    body: [
      hand.metadata?.activation_warning ? h("p", { class: "notice warn" }, icon("alert", 18), h("span", {}, hand.metadata.activation_warning)) : null,
      missing.length > 0 ? h("p", { class: "notice warn" }, icon("alert", 18), h("span", {}, `Missing: ${missing.map((need) => need.label || need.key).join(", ")}. The hand starts, but parts of it will not work.`)) : null,
      h("details", { open: (hand.agents ?? []).some((agent) => Object.keys(agent.wakes ?? {}).length > 0) }, h("summary", {}, "What it may do"),
        lineList(handLines(hand), { label: "Permissions", none: "Its agents have no tools and act when they get a message." })),
      nodes.length > 0 ? nodes : h("p", {}, "It has no settings."),
    ],
    submit: () => call("POST", `/api/hands/${encodeURIComponent(hand.id)}/activate`, { config: read() }),
  });
  if (told) toast(`${hand.name || hand.id} is running`);
  return told;
}

export class HandView {
  constructor({ id, signal, gone, started }) {
    Object.assign(this, { id, signal, gone, started });
    this.node = h("div", { class: "stack" });
    this.path = `/api/hands/${encodeURIComponent(id)}`;
  }

  async read() {
    this.hand = await get(this.path, { signal: this.signal });
    this.show();
  }

  focus() {
    this.node.querySelector("h2")?.focus({ preventScroll: true });
  }

  show() {
    const { hand } = this;
    const agents = hand.agents ?? [];
    fill(this.node,
      h("a", { class: "back-link", href: "#/library/hands" }, icon("chevron", 18), "All hands"),
      h("section", { class: "card stack", "aria-label": hand.name || hand.id },
        h("div", { class: "bar-row" }, h("h2", { class: "grow", tabindex: "-1" }, hand.name || hand.id),
          can("admin") && h("div", { class: "buttons" },
            h("button", { type: "button", class: "danger-text", onclick: () => this.remove().catch(showError) }, icon("trash", 18), "Remove"),
            h("button", { type: "button", class: "primary", onclick: () => this.start().catch(showError) }, icon("play", 18), "Start"))),
        h("p", {}, hand.description),
        hand.metadata?.token_consumption ? h("p", { class: "dim" }, `Use of tokens: ${hand.metadata.token_consumption}`) : null),
      h("section", { class: "card stack", "aria-label": "Agents" }, h("h2", {}, agents.length === 1 ? "Its agent" : "Its agents"),
        h("ul", { class: "tool-list" }, agents.map((agent) => h("li", {},
          h("div", { class: "bar-row tight" }, h("strong", { class: "grow" }, agent.name || agent.role), agent.coordinator && agents.length > 1 ? h("span", { class: "badge accent" }, "coordinator") : null),
          h("p", { class: "server-text" }, agent.description),
          h("small", { class: "faint" }, [agent.provider, agent.model].filter(Boolean).join(" / ")))))),
      h("section", { class: "card stack", "aria-label": "Permissions" }, h("h2", {}, "What it may do"),
        lineList(handLines(hand), { label: "Permissions", none: "Its agents have no tools and act when they get a message." })),
      h("section", { class: "card stack", "aria-label": "Needs" },
        h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "What it needs"), can("admin") && h("button", { type: "button", class: "small", onclick: () => this.check().catch(showError) }, icon("retry", 16), "Check again")),
        needList(hand.requirements ?? [], "Needs"),
        hand.missing_tools?.length > 0 ? [h("p", {}, "Tools that this daemon does not have:"), lineList(hand.missing_tools, { label: "Missing tools", none: "", sign: "alert" })] : null));
  }

  async check() {
    await call("POST", `${this.path}/check-deps`, {});
    await this.read();
  }

  async start() {
    if (await activateHand(this.hand)) this.started();
  }

  async remove() {
    const text = "Its definition is deleted. This is refused while it runs.";
    if (!(await confirm({ title: `Remove ${this.hand.name || this.id}?`, text, action: "Remove", run: () => call("DELETE", this.path) }))) return;
    toast("Removed");
    this.gone();
  }
}
