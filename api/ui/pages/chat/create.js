// A new agent: from an agent type, or from a manifest that is checked while it is written.

import { debounce, field, fill, h } from "../../lib/dom.js";
import { ask, faultText } from "../../lib/dialogs.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";

const CHECK_PAUSE_MS = 300;
const SEARCH_PAUSE_MS = 150;
const PAGE_TYPES = 100;

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
  const picker = new TypePicker(api, (toml, name) => editor.set(toml, name));
  const made = await ask({
    title: "New agent",
    wide: true,
    action: "Create agent",
    body: [
      h("div", { class: "create" },
        h("div", { class: "create-types" }, h("h3", {}, "Template"), picker.node),
        h("div", { class: "create-editor" }, editor.nameField, editor.manifestField, editor.verdict)),
    ],
    fields: { manifest_toml: editor.manifestField },
    submit: () => api.call("POST", "/api/agents", { manifest_toml: editor.text() }),
  });
  return made;
}

/** The agent types, and an empty manifest. */
class TypePicker {
  constructor(api, use) {
    const blank = { source: "blank", name: "", description: "Custom manifest", isBlank: true };
    this.list = new VirtualList({
      label: "Agent types",
      rowHeight: 54,
      keyOf: (type) => `${type.source} ${type.name}`,
      row: (type) => h("div", { class: "item" }, icon(type.isBlank ? "edit" : type.source === "agent" ? "copy" : "agents", 18),
        h("div", { class: "grow" }, h("div", { class: "cut name" }, type.isBlank ? "Empty manifest" : type.name), h("div", { class: "cut note" }, [type.source === "agent" ? "Copy of this agent" : null, type.description].filter(Boolean).join(": ") || "Agent type"))),
      empty: (q) => (q ? h("p", { class: "hint" }, `No type or agent has “${q}” in its name or description.`) : ""),
      read: async (cursor, q) => {
        const found = await api.page("/api/templates", "templates", { limit: PAGE_TYPES, cursor });
        // An agent that was made from a type of its name is that type.
        const types = new Set(found.items.filter(({ source }) => source !== "agent").map(({ name }) => name));
        const items = found.items.filter(({ source, name }) => source !== "agent" || !types.has(name));
        const fits = ({ name, description }) => !q || `${name} ${description ?? ""}`.toLowerCase().includes(q.toLowerCase());
        return { ...found, items: (cursor ? items : [blank, ...items]).filter(fits) };
      },
      open: async (type) => {
        this.list.select(this.list.keyOf(type));
        if (type.isBlank) return use(MANIFEST);
        const text = await (await api.send("GET", `/api/templates/${encodeURIComponent(type.name)}/toml`, { accept: "*/*" })).text();
        return use(text, type.source === "agent" ? `${type.name}-copy` : null);
      },
      onError: (error) => fill(this.list.note, h("p", { class: "fault" }, faultText(error))),
    });
    const search = h("input", { type: "search", placeholder: "Search templates", "aria-label": "Search templates", autocomplete: "off", spellcheck: "false", "aria-controls": this.list.id });
    search.addEventListener("input", debounce(() => this.list.reload(search.value.trim()), SEARCH_PAUSE_MS));
    this.node = h("div", { class: "type-frame" }, h("div", { class: "search" }, icon("search", 16), search), h("div", { class: "type-list" }, this.list.node));
    this.list.reload("").then(() => this.list.select(this.list.keyOf(blank)));
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
