// The settings of an agent as a form.

import { choice, numberInput, numberOf, textBox, textInput, toggle } from "../../lib/controls.js";
import { diffNode } from "../../lib/diff.js";
import { field, fill, h } from "../../lib/dom.js";
import { modelText } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { serverChoice, skillChoice, toolChoice } from "../../lib/offers.js";
import { rightsNode, rightsOf } from "../../lib/rights.js";
import { wordsField } from "../../lib/words.js";
import { modelField } from "../chat/model-field.js";
import { LABELS, LIMITS } from "./values.js";

/** The fields whose values are lists of words. */
const LISTS = ["tags", "tools", "network", "shell", "tool_allowlist", "tool_blocklist", "skills", "mcp_servers"];
const SWITCHES = ["file_system", "agent_spawn"];
const NUMBERS = ["temperature", "max_tokens", "max_history_messages", ...LIMITS];

export class SettingsForm {
  /** `agent()` is the agent as it is; `offers` is what fields offer; `onchange` is called with each change. */
  constructor({ agent, offers, onchange: changed }) {
    this.agent = agent;
    this.offers = offers;
    const onchange = () => {
      this.drawRights();
      changed();
    };
    const text = (key, { hint = "", ...props }) => field(LABELS[key], textInput("", { spellcheck: "false", ...props }), { hint });
    const list = (key, hint, choose) => wordsField(LABELS[key], [], { hint, offers: choose?.rows.map(({ name }) => name) ?? [], choose, onchange });
    const tools = (options) => toolChoice(offers.tools, offers.servers, options);
    const right = (text) => Object.assign(toggle(text, false), { fault: () => {} });
    const number = (key, hint, props) => field(LABELS[key], numberInput("", props), { hint });
    this.fields = {
      name: text("name", { required: true }),
      description: text("description", {}),
      tags: list("tags", "", null),
      system_prompt: field(LABELS.system_prompt, textBox("", 12, { class: "prompt-text" }), { hint: "Sent at the start of every prompt." }),
      model: modelField({ title: () => `Model of ${agent().name}`, fallback: () => `Default: ${modelText(agent().model.provider, agent().model.model)}`, onchange }),
      temperature: number("temperature", "0 to 2. Empty: the provider's default.", { min: 0, max: 2, step: 0.1 }),
      max_tokens: number("max_tokens", "Longest response. Empty: the model's default.", { min: 1, step: 1 }),
      max_history_messages: number("max_history_messages", "Messages sent with a prompt. Empty: as many as fit.", { min: 1, step: 1 }),
      tools: list("tools", "Granted tools, by name or pattern such as file_*. * grants all.", tools({})),
      network: list("network", "Hosts for web tools, such as example.com or *.example.com. * allows all; empty allows none.", null),
      shell: list("shell", "Programs, such as git or python3*. * allows all that this machine allows; empty allows none.", null),
      file_system: right("Read and change files in its workspace"),
      agent_spawn: right("Create agents with at most its own permissions"),
      tool_allowlist: list("tool_allowlist", "Narrows the granted tools to these. Empty: all that are granted.", tools({ all: false, button: "Choose the only tools" })),
      tool_blocklist: list("tool_blocklist", "Never available, even if granted.", tools({ all: false, button: "Choose blocked tools" })),
      skills: list("skills", "Empty: all skills.", skillChoice(offers.skills)),
      mcp_servers: list("mcp_servers", "Servers whose tools it may call.", serverChoice(offers.servers)),
      daily_limit_usd: number("daily_limit_usd", " ", { min: 0, step: "any", placeholder: "no limit" }),
      monthly_limit_usd: number("monthly_limit_usd", " ", { min: 0, step: "any", placeholder: "no limit" }),
      hourly_token_limit: number("hourly_token_limit", " ", { min: 0, step: 1, placeholder: "no limit" }),
      avatar: text("avatar", { hint: "An emoji or a URL." }),
      persona: text("persona", { hint: "A short description of its tone." }),
      mode: field(LABELS.mode, choice([["Normal", "Normal"], ["Stable", "Stable: model and skills are pinned"]], "Normal")),
    };
    const { fields } = this;
    this.rights = h("div");
    this.exceptions = h("details", { class: "changes" }, h("summary", {}, icon("chevron", 14), "Exceptions"), h("div", { class: "form-row" }, fields.tool_allowlist, fields.tool_blocklist));
    const group = (title, ...parts) => h("section", { class: "card stack", "aria-label": `${title} settings` }, h("h2", {}, title), parts);
    this.node = h("div", { class: "stack settings-form", oninput: onchange },
      group("Prompt", h("div", { class: "form-row" }, fields.name, fields.description), fields.system_prompt, fields.tags),
      group("Model", fields.model, h("div", { class: "form-row three" }, fields.temperature, fields.max_tokens, fields.max_history_messages), fields.mode),
      group("Tools", fields.tools, h("div", { class: "form-row" }, fields.skills, fields.mcp_servers), this.exceptions),
      group("Permissions", h("div", { class: "form-row" }, fields.network, fields.shell), fields.file_system, fields.agent_spawn),
      h("section", { class: "card stack", "aria-label": "What this agent may do" }, h("h2", {}, "What this agent may do"), this.rights),
      this.budget = group("Budget", h("div", { class: "form-row three" }, LIMITS.map((key) => fields[key]))),
      group("Identity", h("div", { class: "form-row" }, fields.avatar, fields.persona)));
  }

  /** Shows `values` of `manifest`. */
  set(values, manifest) {
    Object.assign(this, { values, manifest });
    for (const [key, made] of Object.entries(this.fields)) {
      made.fault("");
      if (key === "model") made.set(values);
      else if (LISTS.includes(key)) made.set(values[key]);
      else if (SWITCHES.includes(key)) made.box.checked = values[key];
      else made.control.value = values[key] ?? "";
    }
    this.exceptions.open ||= values.tool_allowlist.length > 0 || values.tool_blocklist.length > 0;
    this.drawRights();
  }

  /** What was spent of the limits, as `{ key: text }`; null hides the card: this key may not see it. They are those of `isMine` to change. */
  spent(texts, isMine) {
    this.budget.hidden = texts === null;
    for (const key of texts === null ? [] : LIMITS) {
      this.fields[key].querySelector(".hint").textContent = texts[key];
      this.fields[key].control.disabled = !isMine;
    }
  }

  /** What the agent may do with what stands in the form. */
  drawRights() {
    if (!this.manifest) return;
    const { tools, network, shell, file_system, agent_spawn, ...rest } = this.read();
    const capabilities = { ...this.manifest.capabilities, tools, network, shell, file_system, agent_spawn };
    fill(this.rights, rightsNode(rightsOf({ ...this.manifest, ...rest, capabilities }, this.offers.tools)));
  }

  read() {
    const values = Object.fromEntries(Object.entries(this.fields).map(([key, made]) => {
      if (key === "model") return [key, made.read().model];
      if (LISTS.includes(key)) return [key, made.read()];
      if (SWITCHES.includes(key)) return [key, made.box.checked];
      if (NUMBERS.includes(key)) return [key, numberOf(made.control)];
      return [key, ["system_prompt", "description", "persona"].includes(key) ? made.control.value : made.control.value.trim()];
    }));
    return { ...values, provider: this.fields.model.read().provider };
  }

  /** Shows a refusal at its field; false where it names none. */
  fault(error) {
    const key = Object.keys(this.fields).find((name) => error.field && error.field.replace(/^(identity|capabilities|model)\./, "").split("[")[0].replace(/^provider$/, "model") === name);
    if (!key) return false;
    this.fields[key].fault(error.message);
    this.fields[key].querySelector("input, textarea, select, button").focus();
    return true;
  }

  /** One change, in words. */
  diff({ key, before, after }) {
    const text = (value) => (Array.isArray(value) ? value.join("\n") : value === null || value === "" ? "" : String(value));
    return h("div", {}, h("h3", {}, LABELS[key]), diffNode(text(before), text(after), `Change of ${LABELS[key]}`));
  }
}
