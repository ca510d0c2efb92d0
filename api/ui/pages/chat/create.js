// A new agent: from an agent type, or from a manifest that is checked while it is written.

import { withQuery } from "../../lib/api.js";
import { debounce, field, fill, h } from "../../lib/dom.js";
import { ask, faultText } from "../../lib/dialogs.js";
import { modelText } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";

const CHECK_PAUSE_MS = 300;
const SEARCH_PAUSE_MS = 150;
/** Types and agents come in one list: few pages of it have all types. */
const PAGE_TYPES = 1000;
const PAGE_AGENTS = 100;
/** Names that are tried. */
const TRIES = 50;

/** What a new manifest begins with. */
const MANIFEST = `name = "my-agent"
description = "A friendly helper"
system_prompt = """
You are a helpful assistant. Answer briefly and say so when you do not know.
"""

# Without a model, the daemon's default answers.
# [model]
# provider = "builtin"

[capabilities]
tools = ["*"]
`;

/** Asks for a new agent, beginning with `toml` where it is given; gives `{ agent_id, name }`, or null when it was given up. */
export async function createAgent(api, { toml = null, name = null } = {}) {
  const editor = new Editor(api);
  if (toml !== null) editor.set(toml, name);
  const picker = new Picker(api, (toml, name) => editor.set(toml, name));
  const made = await ask({
    title: "New agent",
    wide: true,
    action: "Create agent",
    body: [
      h("div", { class: "create" },
        picker.node,
        h("div", { class: "create-editor" }, editor.nameField, editor.manifestField, editor.verdict)),
    ],
    fields: { manifest_toml: editor.manifestField },
    submit: () => api.call("POST", "/api/agents", { manifest_toml: editor.text() }),
  });
  return made;
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
    this.node = h("div", { class: "create-types" }, h("div", { class: "search" }, icon("search", 16), search),
      h("h3", {}, "Templates"), h("div", { class: "type-list" }, this.types.node), h("h3", {}, "Copy an agent"), h("div", { class: "type-list" }, this.agents.node));
    this.types.reload("").then(() => this.types.select(this.types.keyOf(blank)));
    this.agents.reload("");
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

/** The manifest, its name apart, and what the daemon says to it. */
class Editor {
  constructor(api) {
    this.api = api;
    this.round = 0;
    this.name = h("input", { type: "text", autocomplete: "off", spellcheck: "false", required: true, data: { first: "" }, oninput: () => this.nameTyped() });
    this.area = h("textarea", { class: "code", rows: "16", spellcheck: "false", autocomplete: "off", wrap: "off", oninput: () => { this.readName(); this.soon(); } });
    this.nameField = field("Name", this.name);
    this.manifestField = field("Manifest", this.area, { hint: "TOML. Only the name is required." });
    this.verdict = h("div", { class: "verdict", role: "status" });
    this.soon = debounce(() => this.check(), CHECK_PAUSE_MS);
    this.set(MANIFEST);
  }

  text() {
    return this.area.value;
  }

  /** Shows a manifest, with another name where one is given. */
  set(toml, name = null) {
    this.area.value = toml;
    if (name !== null) {
      this.name.value = name;
      this.nameTyped();
    }
    this.readName();
    this.check();
  }

  /** The first `name = "..."` of the text is the agent's name. */
  readName() {
    this.name.value = /^\s*name\s*=\s*"((?:[^"\\]|\\.)*)"/m.exec(this.area.value)?.[1] ?? "";
  }

  nameTyped() {
    const line = `name = ${JSON.stringify(this.name.value)}`;
    const hasName = /^\s*name\s*=.*$/m;
    this.area.value = hasName.test(this.area.value) ? this.area.value.replace(hasName, () => line) : `${line}\n${this.area.value}`;
    this.soon();
  }

  async check() {
    const round = ++this.round;
    try {
      const found = await this.api.call("POST", "/api/agents/check", { manifest_toml: this.text() });
      if (round !== this.round) return;
      this.manifestField.fault("");
      this.nameField.fault(found.name_taken ? `An agent named “${found.name}” already exists. Choose another name.` : "");
      if (found.name_taken) return fill(this.verdict);
      const model = [found.provider, found.model].filter(Boolean).join(" / ") || "the default model";
      const tools = found.tools.includes("*") ? "all tools" : listed(found.tools);
      fill(this.verdict, icon("check", 16), h("span", {}, `Valid. ${model[0].toUpperCase()}${model.slice(1)}, ${tools}${found.triggers > 0 ? `, ${found.triggers} triggers` : ""}.`));
    } catch (error) {
      if (round !== this.round) return;
      const { line, column } = error.body ?? {};
      fill(this.verdict);
      const text = faultText(error).replace(/^manifest_toml: /, "");
      this.manifestField.fault(line && !/line \d/.test(text) ? `Line ${line}, column ${column}: ${text}` : text);
    }
  }
}

/** A few names, and how many others there are. */
function listed(tools) {
  if (tools.length === 0) return "no tools";
  const [shown, others] = [tools.slice(0, 4).join(", "), tools.length - 4];
  return others > 0 ? `${shown} and ${others} other tools` : shown;
}
