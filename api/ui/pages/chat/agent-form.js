// A new agent as a form. It writes into the text of the manifest, which is what is sent, and is filled from what the daemon read of it.

import { choice, numberInput, numberOf, textBox, textInput } from "../../lib/controls.js";
import { field, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { serverChoice, skillChoice, toolChoice } from "../../lib/offers.js";
import { wordsField } from "../../lib/words.js";
import { modelField } from "./model-field.js";
import { hasValue, keysOf, textAt, withValue } from "./agent-toml.js";

/** Where the manifest has the values of the fields; those after the first are other ways to write the same. */
const PATHS = {
  name: [["name"]],
  description: [["description"]],
  system_prompt: [["system_prompt"], ["model", "system_prompt"]],
  provider: [["model", "provider"]],
  model: [["model", "model"]],
  profile: [["profile"]],
  tools: [["capabilities", "tools"], ["tools"]],
  network: [["capabilities", "network"]],
  shell: [["capabilities", "shell"]],
  skills: [["skills"]],
  mcp_servers: [["mcp_servers"]],
  memory: [["proactive_memory", "enabled"]],
  daily_limit_usd: [["limits", "daily_limit_usd"]],
  monthly_limit_usd: [["limits", "monthly_limit_usd"]],
  hourly_token_limit: [["limits", "hourly_token_limit"], ["resources", "max_llm_tokens_per_hour"]],
};
const SHOWN = new Set(Object.values(PATHS).flat().map((path) => path.join(".")));

/** The choices of tools that are no profile. */
const ALL = ":all";
const SOME = ":some";
const NONE = ":none";
const TOOLS_TEXT = {
  [ALL]: "Every tool. Hosts and commands are allowed under Permissions below.",
  [SOME]: "Only the tools that you list, by name or pattern.",
  [NONE]: "The agent answers with text only.",
};

/** The path of a key that the daemon names, such as "capabilities.tools[2]". */
const pathOf = (key) => key.replace(/\[\d+\].*$/, "");

export class AgentForm {
  /** `offers` has the names that fields offer and the profiles of tools; `name` is the field of the name; `onchange(text => text)` gets how the text changes. */
  constructor({ offers, name, onchange }) {
    Object.assign(this, { offers, onchange, values: {} });
    const write = (key, read) => (control) => { control.addEventListener("input", () => this.write(key, read(control))); return control; };
    const text = (key, control) => write(key, ({ value }) => value)(control);
    const limit = (key, label, step) => field(label, write(key, numberOf)(numberInput("", { min: 0, step, placeholder: "no limit" })));
    const list = (key, label, hint, choose) => {
      const made = wordsField(label, [], { hint, offers: choose?.rows.map(({ name }) => name) ?? [], choose, onchange: () => this.write(key, made.read()) });
      return made;
    };
    this.fields = {
      name,
      description: field("Description", text("description", textInput("", { placeholder: "What the agent is for" }))),
      system_prompt: field("System prompt", text("system_prompt", textBox("", 6, { class: "prompt-box", placeholder: "You are a helpful assistant." })), { hint: "How the agent should act. Sent at the start of every prompt." }),
      model: modelField({
        title: () => "Model of the new agent", fallback: () => "Default model of the daemon",
        onchange: ({ provider, model }) => { this.write("provider", provider); this.write("model", model); },
      }),
      profile: field("Tools", choice([[ALL, "All tools"], ...offers.profiles.map(({ name }) => [name, `Profile: ${name}`]), [SOME, "Only chosen tools"], [NONE, "No tools"]], ALL, { onchange: () => this.choseTools() }), { hint: " " }),
      tools: list("tools", "Chosen tools", "* grants all, file_* all whose names begin with file_.", toolChoice(offers.tools, offers.servers)),
      network: list("network", "Internet", "Hosts for web tools, such as *.example.com; * allows all.", null),
      shell: list("shell", "Commands", "Programs, such as git; * allows all that this machine allows.", null),
      skills: list("skills", "Skills", "Empty: all skills.", skillChoice(offers.skills)),
      mcp_servers: list("mcp_servers", "MCP servers", "Servers whose tools it may call.", serverChoice(offers.servers)),
      memory: field("Memory", choice([["", "As configured"], ["true", "On: it remembers facts from its conversations"], ["false", "Off: it remembers nothing by itself"]], "", { onchange: (event) => this.write("memory", event.target.value === "" ? null : event.target.value === "true") })),
      daily_limit_usd: limit("daily_limit_usd", "Daily limit (USD)", "any"),
      monthly_limit_usd: limit("monthly_limit_usd", "Monthly limit (USD)", "any"),
      hourly_token_limit: limit("hourly_token_limit", "Hourly limit (tokens)", 1),
    };
    const { fields } = this;
    this.others = h("p", { class: "hint" });
    this.fault = h("p", { class: "fault", role: "alert" });
    this.more = h("details", { class: "create-more" }, h("summary", {}, icon("chevron", 14), "Permissions, skills, memory and budget"), h("div", { class: "stack" },
      h("div", { class: "form-row" }, fields.network, fields.shell),
      h("div", { class: "form-row" }, fields.skills, fields.mcp_servers),
      fields.memory,
      h("div", { class: "form-row three" }, fields.daily_limit_usd, fields.monthly_limit_usd, fields.hourly_token_limit)));
    this.node = h("div", { class: "stack" }, fields.description, fields.system_prompt, h("div", { class: "form-row" }, fields.model, fields.profile), fields.tools, this.more, this.others, this.fault);
  }

  /** Another choice of tools: a profile stands alone, for tools that are named take its place. */
  choseTools() {
    const chosen = this.fields.profile.control.value;
    const isProfile = !chosen.startsWith(":");
    const tools = { [ALL]: ["*"], [SOME]: this.fields.tools.read().filter((name) => name !== "*") }[chosen] ?? [];
    this.write("profile", isProfile ? chosen : "");
    this.write("tools", tools);
    this.fields.tools.set(tools);
    this.drawTools();
    if (chosen === SOME) this.fields.tools.querySelector("input").focus();
  }

  drawTools() {
    const { fields, offers } = this;
    const chosen = fields.profile.control.value;
    fields.profile.querySelector(".hint").textContent = TOOLS_TEXT[chosen] ?? offers.profiles.find(({ name }) => name === chosen)?.description ?? "";
    fields.tools.hidden = chosen !== SOME;
  }

  /** The field where a fault of `made` can be seen: chosen tools are shown only while there are some. */
  seen(made) {
    return made.hidden ? this.fields.profile : made;
  }

  /** Writes a value into the text. */
  write(key, value) {
    this.values[key] = value;
    const made = this.seen(this.fields[key === "provider" ? "model" : key]);
    made.fault("");
    this.onchange((text) => {
      const next = withValue(text, PATHS[key], value);
      if (next === null) made.fault("The form cannot change how this is written. Change it as TOML.");
      return next ?? text;
    });
  }

  /** Shows what the daemon read of `text`. */
  set(manifest, text) {
    const { model, capabilities, limits = {} } = manifest;
    const dollars = (micros) => (micros ? micros / 1e6 : "");
    const profile = textAt(text, ["profile"]);
    const isProfile = this.offers.profiles.some(({ name }) => name === profile) && !PATHS.tools.some((path) => hasValue(text, path));
    this.values = {
      ...manifest, provider: model.provider, model: model.model, tools: isProfile ? [] : capabilities.tools, network: capabilities.network, shell: capabilities.shell,
      daily_limit_usd: dollars(limits.daily), monthly_limit_usd: dollars(limits.monthly), hourly_token_limit: limits.hourly_tokens || "",
    };
    const { fields, values } = this;
    for (const key of ["description", "system_prompt", "daily_limit_usd", "monthly_limit_usd", "hourly_token_limit"]) fields[key].control.value = values[key];
    for (const key of ["tools", "network", "shell", "skills", "mcp_servers"]) fields[key].set(values[key]);
    fields.memory.control.value = String(manifest.proactive_memory?.enabled ?? "");
    fields.profile.control.value = isProfile ? profile : values.tools.length === 0 ? NONE : values.tools.includes("*") && values.tools.length === 1 ? ALL : SOME;
    this.more.open ||= ["network", "shell", "skills", "mcp_servers"].some((key) => values[key].length > 0) || fields.memory.control.value !== "" || Boolean(values.daily_limit_usd || values.monthly_limit_usd || values.hourly_token_limit);
    fields.model.set(model);
    this.drawTools();
    this.clearFaults();
    const others = keysOf(text).filter((key) => !SHOWN.has(key));
    this.others.hidden = others.length === 0;
    this.others.textContent = `The TOML also sets ${others.join(", ")}. The form keeps these.`;
  }

  clearFaults() {
    for (const [key, made] of Object.entries(this.fields)) if (key !== "name") made.fault("");
    this.fault.textContent = "";
  }

  /** The field of a key that the daemon names, or undefined. */
  fieldOf(key) {
    const path = pathOf(key);
    const found = Object.keys(PATHS).find((name) => PATHS[name].some((one) => one.join(".") === path)) ?? (path === "model" ? "model" : undefined);
    return this.fields[found === "provider" ? "model" : found];
  }

  /** Shows an error of the daemon: at the field of `key`, or else below the form. */
  refuse(key, text) {
    const made = key ? this.fieldOf(key) : undefined;
    this.clearFaults();
    if (!made) {
      this.fault.textContent = key ? `${key}: ${text} Change it as TOML.` : text;
      return;
    }
    if (this.more.contains(made)) this.more.open = true;
    this.seen(made).fault(text);
  }
}
