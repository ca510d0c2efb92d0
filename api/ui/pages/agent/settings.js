// The settings of an agent, as a form and as TOML. Both change the same things; what is changed is shown before it is saved.

import { get, send, withQuery } from "../../lib/api.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { money, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { readOffers } from "../../lib/offers.js";
import { holdPage } from "../../lib/unsaved.js";
import { SettingsForm } from "./form.js";
import { SettingsText } from "./text.js";
import { bodyOf, changesOf, LABELS, LIMITS, valuesOf } from "./values.js";

export async function mount(root, ctx) {
  const { signal } = ctx;
  const path = `/api/agents/${encodeURIComponent(ctx.agent.id)}`;
  let base = null;
  let isSaving = false;
  const offers = await readOffers(["tools", "models", "skills", "servers"], { signal });
  const check = (toml) => ctx.api.call("POST", "/api/agents/check", { manifest_toml: toml });
  const limitsPath = `/api/budget/agents/${encodeURIComponent(ctx.agent.id)}`;
  const form = new SettingsForm({ agent: () => ctx.agent, offers, onchange: () => show() });
  const text = new SettingsText({ check, onchange: () => show() });
  const views = { form, toml: text };
  let view = "form";

  const switches = h("div", { class: "segments", role: "group", "aria-label": "Show the settings as" }, [["Form", "form"], ["TOML", "toml"]].map(([label, key]) => h("button", {
    type: "button", "aria-pressed": String(key === view), data: { key }, onclick: () => turn(key).catch(showError),
  }, label)));
  const place = h("div");
  const summary = h("p", { class: "grow", role: "status" });
  const diff = h("details", { class: "changes" });
  const discard = h("button", { type: "button", onclick: () => reset() }, "Discard");
  const create = h("button", { type: "button", hidden: true, onclick: () => createOther().catch(showError) }, "Create a new agent");
  const save = h("button", { type: "submit", class: "primary" }, "Save");
  const bar = h("div", { class: "save-bar", hidden: true }, diff, h("div", { class: "bar-row" }, summary, discard, create, save));
  const frame = h("form", { class: "stack", novalidate: true, onsubmit: (event) => { event.preventDefault(); store().catch(showError); } }, place, bar);
  fill(root, frame);
  fill(ctx.actions, switches);

  /** Reads the settings anew, and shows them. */
  async function load() {
    const agent = await get(path, { signal });
    ctx.changed(agent);
    const toml = await (await send("GET", withQuery(`/api/templates/${encodeURIComponent(agent.name)}/toml`, { source: "agent" }), { signal, accept: "*/*" })).text();
    const { manifest } = await check(toml);
    const limits = await readBudget();
    base = { name: agent.name, manifest, toml, limits, values: { ...valuesOf(agent.name, manifest, agent.mode), ...limits } };
    form.set(base.values, base.manifest);
    text.set(toml);
    fill(place, views[view].node);
    show();
  }

  /** The limits of the agent as the form has them, and what was spent of them; where this key may not see them, there are none. */
  async function readBudget() {
    try {
      const found = await get(limitsPath, { signal });
      form.spent({ daily_limit_usd: `Spent today: ${money(found.today_spent_usd)}.`, monthly_limit_usd: `Spent this month: ${money(found.month_spent_usd)}.`, hourly_token_limit: `Used this hour: ${number(found.hourly_tokens_used)}.` }, can("admin"));
      return Object.fromEntries(LIMITS.map((key) => [key, found[key] > 0 ? found[key] : null]));
    } catch (error) {
      if (error.status !== 403) throw error;
      form.spent(null);
      return {};
    }
  }

  async function turn(key) {
    if (key === view) return;
    if (isChanged()) {
      if (!(await confirm({ title: "Discard the changes?", text: "The form and the TOML text start from the saved settings.", action: "Discard", run: async () => true }))) return;
      reset();
    }
    view = key;
    for (const button of switches.children) button.setAttribute("aria-pressed", String(button.dataset.key === view));
    fill(place, views[view].node);
    show();
  }

  /** What differs from the saved settings: `[{ key, before, after }]`. */
  function changed() {
    if (!base) return [];
    const now = view === "form" ? form.read() : text.checked ? { ...valuesOf(text.checked.name, text.checked.manifest, base.values.mode), ...base.limits } : null;
    return now ? changesOf(base.values, now) : [];
  }

  const isChanged = () => changed().length > 0 || (view === "toml" && text.isChanged());

  /** What stands in the text, but belongs to an agent from its creation on. */
  const fixed = () => (view === "toml" && text.checked ? text.fixedBy(base.manifest) : []);

  function show() {
    if (!base) return;
    const all = changed();
    const stuck = fixed();
    const isText = view === "toml" && text.isChanged();
    bar.hidden = all.length === 0 && !isText;
    save.disabled = isSaving || all.length === 0 || stuck.length > 0 || (view === "toml" && !text.isValid);
    summary.textContent = stuck.length > 0 ? `${stuck.join(", ")} cannot be changed on an existing agent.`
      : all.length === 0 ? (view === "toml" && !text.isValid ? "Fix the text to save it." : "No setting differs.")
        : `${all.length === 1 ? "1 change" : `${all.length} changes`}: ${all.map(({ key }) => LABELS[key].toLowerCase()).join(", ")}`;
    summary.classList.toggle("fault", stuck.length > 0);
    create.hidden = stuck.length === 0;
    const nodes = view === "toml" ? [text.diff(base.toml)] : all.map((change) => form.diff(change));
    diff.hidden = !nodes.some(Boolean);
    const isOpen = diff.open;
    fill(diff, h("summary", {}, icon("chevron", 14), "Show the difference"), h("div", { class: "stack" }, nodes));
    diff.open = isOpen;
  }

  /** What this agent has for good is that of a new one. */
  async function createOther() {
    const { createAgent } = await import("../chat/create.js");
    const made = await createAgent(ctx.api, { toml: text.area.value, name: `${ctx.agent.name}-copy` });
    if (!made) return;
    toast(`${made.name} was created.`);
    reset();
    ctx.go(["agent", made.agent_id, "settings"]);
  }

  function reset() {
    form.set(base.values, base.manifest);
    text.set(base.toml);
    show();
  }

  async function store() {
    const all = changed();
    if (save.disabled || all.length === 0) return;
    isSaving = true;
    show();
    // What is typed while the saved settings are read would be lost.
    const held = document.activeElement;
    frame.inert = true;
    try {
      const { patch, mode, isBudget } = bodyOf(all);
      // A pinned agent refuses another model: it is released first, and pinned last.
      if (mode === "Normal") await ctx.api.call("PUT", `${path}/mode`, { mode });
      if (Object.keys(patch).length > 0) await ctx.api.call("PATCH", path, patch);
      const now = form.read();
      if (isBudget) await ctx.api.call("PUT", limitsPath, Object.fromEntries(LIMITS.map((key) => [key, now[key]])));
      if (mode === "Stable") await ctx.api.call("PUT", `${path}/mode`, { mode });
      await load();
      toast("Saved");
    } catch (error) {
      if (!views[view].fault(error)) throw error;
    } finally {
      isSaving = false;
      frame.inert = false;
      if (document.activeElement === document.body) (held?.isConnected && held !== save ? held : switches.querySelector('[aria-pressed="true"]')).focus({ preventScroll: true });
      show();
    }
  }

  if (!can("write")) return void fill(root, h("p", { class: "dim" }, "Your key may not change agents."));
  await load();
  holdPage({ isChanged, text: `What you changed in the settings of ${ctx.agent.name} is not saved.`, signal });
  ctx.key("Mod+S", "Save the settings", () => store().catch(showError));
}
