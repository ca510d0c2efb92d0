// The settings of an agent as a form.

import { choice, numberInput, numberOf, offered, textBox, textInput } from "../../lib/controls.js";
import { diffNode } from "../../lib/diff.js";
import { field, h } from "../../lib/dom.js";
import { wordsField } from "../../lib/words.js";
import { LABELS } from "./values.js";

/** The fields whose values are lists of words. */
const LISTS = ["tags", "tools", "tool_allowlist", "tool_blocklist", "skills", "mcp_servers"];
const NUMBERS = ["temperature", "max_tokens", "max_history_messages"];

export class SettingsForm {
  /** `agent()` is the agent as it is; `offers` are names that fields offer; `onchange` is called with each change. */
  constructor({ agent, offers, onchange }) {
    this.agent = agent;
    const text = (key, { hint = "", ...props }) => field(LABELS[key], textInput("", { spellcheck: "false", ...props }), { hint });
    const list = (key, hint, names) => wordsField(LABELS[key], [], { hint, offers: names, onchange });
    const number = (key, hint, props) => field(LABELS[key], numberInput("", props), { hint });
    const providers = [...new Set(offers.models.map(({ provider }) => provider))].sort();
    this.fields = {
      name: text("name", { required: true }),
      description: text("description", {}),
      tags: list("tags", "", []),
      system_prompt: field(LABELS.system_prompt, textBox("", 12, { class: "prompt-text" }), { hint: "Sent at the start of every prompt." }),
      provider: text("provider", { hint: "Leave empty for the default model of the daemon." }),
      model: text("model", { hint: "A model id or an alias." }),
      temperature: number("temperature", "0 to 2. Empty: the provider's default.", { min: 0, max: 2, step: 0.1 }),
      max_tokens: number("max_tokens", "Longest response. Empty: the model's default.", { min: 1, step: 1 }),
      max_history_messages: number("max_history_messages", "Messages sent with a prompt. Empty: as many as fit.", { min: 1, step: 1 }),
      tools: list("tools", "Granted tools, by name or pattern. * grants all.", ["*", ...offers.tools]),
      tool_allowlist: list("tool_allowlist", "If not empty, only these.", offers.tools),
      tool_blocklist: list("tool_blocklist", "Never these.", offers.tools),
      skills: list("skills", "Empty: all skills.", offers.skills),
      mcp_servers: list("mcp_servers", "Servers whose tools it may call.", offers.servers),
      avatar: text("avatar", { hint: "An emoji or a URL." }),
      persona: text("persona", { hint: "A short description of its tone." }),
      mode: field(LABELS.mode, choice([["Normal", "Normal"], ["Stable", "Stable: model and skills are pinned"]], "Normal")),
    };
    const { fields } = this;
    fields.provider.append(offered(fields.provider.control, providers));
    const models = h("datalist", { id: `${fields.model.control.id}-offers` });
    fields.model.append(models);
    fields.model.control.setAttribute("list", models.id);
    const offerModels = () => {
      const provider = fields.provider.control.value.trim();
      models.replaceChildren(...offers.models.filter((model) => provider === "" || model.provider === provider).slice(0, 200).map(({ id }) => h("option", { value: id })));
    };
    fields.provider.control.addEventListener("input", offerModels);
    this.offerModels = offerModels;
    const group = (title, ...parts) => h("section", { class: "card stack", "aria-label": `${title} settings` }, h("h2", {}, title), parts);
    this.node = h("div", { class: "stack settings-form", oninput: onchange },
      group("Prompt", h("div", { class: "form-row" }, fields.name, fields.description), fields.system_prompt, fields.tags),
      group("Model", h("div", { class: "form-row" }, fields.provider, fields.model), h("div", { class: "form-row three" }, fields.temperature, fields.max_tokens, fields.max_history_messages), fields.mode),
      group("Tools", fields.tools, h("div", { class: "form-row" }, fields.tool_allowlist, fields.tool_blocklist)),
      group("Skills and servers", h("div", { class: "form-row" }, fields.skills, fields.mcp_servers)),
      group("Identity", h("div", { class: "form-row" }, fields.avatar, fields.persona)));
  }

  /** Shows `values`. */
  set(values) {
    this.values = values;
    for (const [key, made] of Object.entries(this.fields)) {
      made.fault("");
      if (LISTS.includes(key)) made.set(values[key]);
      else made.control.value = values[key] ?? "";
    }
    const { provider, model } = this.agent().model;
    this.fields.provider.control.placeholder = values.provider ? "" : provider;
    this.fields.model.control.placeholder = values.model ? "" : model;
    this.offerModels();
  }

  read() {
    return Object.fromEntries(Object.entries(this.fields).map(([key, made]) => {
      if (LISTS.includes(key)) return [key, made.read()];
      if (NUMBERS.includes(key)) return [key, numberOf(made.control)];
      return [key, ["system_prompt", "description", "persona"].includes(key) ? made.control.value : made.control.value.trim()];
    }));
  }

  /** Shows a refusal at its field; false where it names none. */
  fault(error) {
    const key = Object.keys(this.fields).find((name) => error.field && error.field.replace(/^(identity|capabilities|model)\./, "").split("[")[0] === name);
    if (!key) return false;
    this.fields[key].fault(error.message);
    this.fields[key].querySelector("input, textarea, select").focus();
    return true;
  }

  /** One change, in words. */
  diff({ key, before, after }) {
    const text = (value) => (Array.isArray(value) ? value.join("\n") : value === null || value === "" ? "" : String(value));
    return h("div", {}, h("h3", {}, LABELS[key]), diffNode(text(before), text(after), `Change of ${LABELS[key]}`));
  }
}
