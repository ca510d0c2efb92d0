// A new agent: from an agent type or another agent, as a form or as its manifest, which is checked while it is written.

import { Failure, withQuery } from "../../lib/api.js";
import { debounce, field, fill, h, useStyles } from "../../lib/dom.js";
import { ask, faultText, showError } from "../../lib/dialogs.js";
import { modelText } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";
import { readOffers } from "../../lib/offers.js";
import { rightsNode, rightsOf } from "../../lib/rights.js";
import { AgentForm } from "./agent-form.js";
import { textAt, withValue } from "./agent-toml.js";

const CHECK_PAUSE_MS = 300;
const SEARCH_PAUSE_MS = 150;
/** Types and agents come in one list: few pages of it have all types. */
const PAGE_TYPES = 1000;
const PAGE_AGENTS = 100;
/** Names that are tried. */
const TRIES = 50;

/** A phone, as styles/create.css has it. */
const NARROW = matchMedia("(max-width: 720px)");

/** What a new manifest begins with. */
const MANIFEST = `name = "my-agent"
description = "A friendly helper"
system_prompt = """
You are a helpful assistant. Answer briefly and say so when you do not know.
"""

[capabilities]
tools = ["*"]
`;

/** Asks for a new agent, beginning with `toml` where it is given; gives `{ agent_id, name }`, or null when it was given up. */
export async function createAgent(api, { toml = null, name = null } = {}) {
  const [offers] = await Promise.all([readOffers(["tools", "skills", "servers", "profiles"]), useStyles(new URL("../../styles/parts.css", import.meta.url)), useStyles(new URL("../../styles/create.css", import.meta.url))]);
  const editor = new Editor(api, offers);
  if (toml === null) editor.set(MANIFEST);
  else {
    editor.show("toml");
    editor.set(toml, name);
  }
  const picker = new Picker(api, (toml, name) => editor.set(toml, name));
  return ask({
    title: "New agent",
    wide: true,
    action: "Create agent",
    body: [h("div", { class: "create" }, picker.node, editor.node, editor.rights)],
    submit: () => editor.store(),
  });
}

/** `base`, or the first of `base-2`, `base-3` and so on that no agent has. */
async function freeName(api, base) {
  for (let n = 1; n <= TRIES; n += 1) {
    const name = n === 1 ? base : `${base}-${n}`;
    const { items } = await api.page("/api/agents", "agents", { name, limit: 1 });
    if (items.length === 0) return name;
  }
  return base;
}

/** What a new agent begins with: the agent types, an empty manifest, or an agent that there is. `use(toml, name)` takes it. */
class Picker {
  constructor(api, use) {
    Object.assign(this, { api, use, round: 0 });
    const blank = { name: "", description: "Start from scratch", isBlank: true };
    const like = (q) => ({ name, description }) => !q || `${name} ${description ?? ""}`.toLowerCase().includes(q.toLowerCase());
    this.types = this.newList({
      label: "Agent types", sign: "agents", none: "type",
      read: async (cursor, q) => {
        const found = await api.page("/api/templates", "templates", { limit: PAGE_TYPES, cursor });
        const items = found.items.filter(({ source }) => source !== "agent");
        return { ...found, items: (cursor ? items : [blank, ...items]).filter(like(q)) };
      },
      about: (type) => type.description || "Agent type",
      open: async (type) => {
        if (type.isBlank) return [MANIFEST, await freeName(api, "my-agent")];
        return [await this.toml(type.name, "type"), await freeName(api, type.name)];
      },
    });
    this.agents = this.newList({
      label: "Agents to copy", sign: "copy", none: "agent",
      read: (cursor, q) => api.page("/api/agents", "agents", { limit: PAGE_AGENTS, cursor, q: q || null }),
      about: (agent) => modelText(agent.model_provider, agent.model_name),
      open: async (agent) => [await this.toml(agent.name, "agent"), await freeName(api, `${agent.name}-copy`)],
    });
    const lists = [this.types, this.agents];
    const search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search templates and agents", autocomplete: "off", spellcheck: "false", "aria-controls": lists.map(({ id }) => id).join(" ") });
    search.addEventListener("input", debounce(() => lists.forEach((list) => list.reload(search.value.trim())), SEARCH_PAUSE_MS));
    this.switches = h("div", { class: "segments", role: "group", "aria-label": "Start from" }, [["Templates", "types"], ["My agents", "agents"]].map(([label, key]) => h("button", {
      type: "button", data: { key }, onclick: () => this.turn(key),
    }, label)));
    this.places = h("div", { class: "type-list" }, this.types.node, this.agents.node);
    // On a phone the lists would stand between the title and the form.
    this.node = h("details", { class: "create-start", open: !NARROW.matches }, h("summary", {}, icon("chevron", 14), "Start from a template or another agent"),
      h("div", { class: "create-types" }, h("div", { class: "search" }, icon("search", 16), search),
        this.switches, this.places));
    this.turn("types");
    this.types.reload("").then(() => this.types.select(this.types.keyOf(blank)));
    this.agents.reload("");
  }

  /** Shows the templates or the agents. */
  turn(which) {
    for (const button of this.switches.children) button.setAttribute("aria-pressed", String(button.dataset.key === which));
    for (const key of ["types", "agents"]) this[key].node.hidden = key !== which;
  }

  async toml(name, source) {
    return (await this.api.send("GET", withQuery(`/api/templates/${encodeURIComponent(name)}/toml`, { source }), { accept: "*/*" })).text();
  }

  /** A list of what there is to begin with; `open(item)` gives its manifest and a free name. */
  newList({ label, sign, none, read, about, open }) {
    const list = new VirtualList({
      label, rowHeight: 54, keyOf: ({ name }) => name, read,
      row: (item) => h("div", { class: "item" }, icon(item.isBlank ? "edit" : sign, 18),
        h("div", { class: "grow" }, h("div", { class: "cut name" }, item.isBlank ? "Blank agent" : item.name), h("div", { class: "cut note" }, about(item)))),
      empty: (q) => h("p", { class: "hint" }, q ? `No ${none} matches “${q}”.` : `There is no ${none} yet.`),
      open: async (item) => {
        const round = (this.round += 1);
        for (const one of [this.types, this.agents]) one.select(one === list ? list.keyOf(item) : null);
        try {
          const [toml, name] = await open(item);
          if (round === this.round) this.use(toml, name);
        } catch (error) {
          fill(list.note, h("p", { class: "fault" }, faultText(error)));
        }
      },
      onError: (error) => fill(list.note, h("p", { class: "fault" }, faultText(error))),
    });
    return list;
  }
}

/** The manifest as a form and as its text, and what the daemon says to it. The text is what is sent. */
class Editor {
  constructor(api, offers) {
    Object.assign(this, { api, tools: offers.tools, round: 0, view: "form", isFilled: false });
    this.name = h("input", { type: "text", autocomplete: "off", spellcheck: "false", required: true, data: { first: "" }, oninput: () => this.form.write("name", this.name.value) });
    this.nameField = field("Name", this.name);
    this.area = h("textarea", { class: "code", rows: "18", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", oninput: () => this.typed() });
    this.manifestField = field("Manifest", this.area, { hint: "TOML. Only the name is required." });
    this.form = new AgentForm({ offers, name: this.nameField, onchange: (change) => this.change(change) });
    this.verdict = h("div", { class: "verdict", role: "status" });
    this.switches = h("div", { class: "segments", role: "group", "aria-label": "Write the agent as" }, [["Form", "form"], ["TOML", "toml"]].map(([label, key]) => h("button", {
      type: "button", data: { key }, onclick: () => this.turn(key).catch(showError),
    }, label)));
    this.place = h("div");
    this.rights = h("section", { class: "create-rights", "aria-label": "What this agent may do", hidden: true });
    this.node = h("div", { class: "create-editor" }, h("div", { class: "create-name" }, this.nameField, this.switches), this.place, this.verdict);
    this.soon = debounce(() => this.check(), CHECK_PAUSE_MS);
    this.show("form");
  }

  /** Shows a manifest, with another name where one is given. */
  set(toml, name = null) {
    this.area.value = (name === null ? null : withValue(toml, [["name"]], name)) ?? toml;
    this.isFilled = false;
    this.readName();
    this.check();
  }

  show(view) {
    this.view = view;
    for (const button of this.switches.children) button.setAttribute("aria-pressed", String(button.dataset.key === view));
    fill(this.place, view === "form" ? this.form.node : this.manifestField);
  }

  /** Text that the daemon cannot read stays text: a form would lose it. */
  async turn(view) {
    if (view === this.view) return;
    if (view === "form") await this.check();
    if (view === "form" && !this.isFilled) return;
    this.show(view);
    if (view === "toml") await this.check();
  }

  /** The form changes the text. */
  change(change) {
    const next = change(this.area.value);
    if (next === this.area.value) return;
    this.area.value = next;
    this.round += 1;
    this.soon();
  }

  typed() {
    this.isFilled = false;
    this.readName();
    this.soon();
  }

  readName() {
    this.name.value = textAt(this.area.value, ["name"]) ?? this.name.value;
  }

  async store() {
    try {
      return await this.api.call("POST", "/api/agents", { manifest_toml: this.area.value });
    } catch (error) {
      if (error.status === 0 || !this.refuse(error)) throw error;
      this.node.querySelector('[aria-invalid="true"]')?.focus();
      // It stands at its field.
      throw new Failure("", error.status);
    }
  }

  async check() {
    const round = ++this.round;
    const text = this.area.value;
    try {
      const found = await this.api.call("POST", "/api/agents/check", { manifest_toml: text });
      if (round !== this.round) return;
      this.manifestField.fault("");
      if (!this.isFilled) this.form.set(found.manifest, text);
      this.isFilled = true;
      this.form.clearFaults();
      this.nameField.fault(found.name_taken ? `An agent named “${found.name}” already exists. Choose another name.` : "");
      this.rights.hidden = false;
      fill(this.rights, h("h3", {}, "What this agent may do"), rightsNode(rightsOf(found.manifest, this.tools)));
      fill(this.verdict, found.name_taken ? null : [icon("check", 16), h("span", {}, `Valid. ${summary(found)}`)]);
    } catch (error) {
      if (round !== this.round) return;
      fill(this.verdict);
      // What the form cannot be filled from is shown as it is.
      if (!this.isFilled && this.view === "form") this.show("toml");
      this.refuse(error);
    }
  }

  /** Shows an error of the daemon where it belongs; false where that is nowhere. */
  refuse(error) {
    const { line, column, key } = error.body ?? {};
    const text = faultText(error).replace(/^manifest_toml: /, "");
    const plain = text.replace(/^(line \d+(, column \d+)?: )?(`[^`]*`: )?/, "");
    const isName = key === "name" || error.field === "name";
    this.nameField.fault(isName ? sentence(plain) : "");
    this.manifestField.fault(this.view === "form" || isName ? "" : line && !/line \d/.test(text) ? `Line ${line}, column ${column}: ${text}` : text);
    if (this.view === "form") this.form.refuse(isName ? null : key, isName ? "" : sentence(plain));
    return isName || error.field === "manifest_toml";
  }
}

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

/** What a valid manifest gives, in a few words. */
function summary({ provider, model, tools, triggers }) {
  const name = modelText(provider, model) || "the default model";
  return `${name[0].toUpperCase()}${name.slice(1)}, ${tools.includes("*") ? "all tools that its permissions allow" : listed(tools)}${triggers > 0 ? `, ${triggers} triggers` : ""}.`;
}

/** A few names, and how many others there are. */
function listed(tools) {
  if (tools.length === 0) return "no tools";
  const [shown, others] = [tools.slice(0, 4).join(", "), tools.length - 4];
  return others > 0 ? `${shown} and ${others} other tools` : shown;
}
