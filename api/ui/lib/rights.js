// What an agent may do, in words: from its capabilities, its tools and its limits.

import { get } from "./api.js";
import { h } from "./dom.js";
import { money } from "./format.js";
import { icon } from "./icons.js";
import { can } from "./me.js";

/** Does a pattern such as `file_*` fit a name? */
export function fits(pattern, name) {
  if (!/[*?]/.test(pattern)) return pattern === name;
  const source = pattern.split("").map((letter) => ({ "*": ".*", "?": "." }[letter] ?? letter.replace(/[.+^${}()|[\]\\]/, "\\$&"))).join("");
  return new RegExp(`^${source}$`).test(name);
}

const isOf = (patterns, name) => patterns.some((pattern) => fits(pattern, name));
const listed = (words, last = "and") => (words.length > 1 ? `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}` : words.join(""));
/** Names that are said one by one. */
const NAMED_MAX = 4;
const some = (words) => (words.length > NAMED_MAX ? `${words.slice(0, NAMED_MAX).join(", ")} and ${words.length - NAMED_MAX} more` : listed(words));

/** `[exec_policy]`, where this key may read it. */
let policy = null;

/** Reads which commands this machine lets agents run, once; without it, only what the agent was granted is said. */
export async function learnPolicy({ signal } = {}) {
  if (policy || !can("admin")) return;
  policy = await get("/api/config", { signal }).then((config) => config.exec_policy ?? null, () => null);
}

/** What an agent that was granted the commands `shell` can run here. */
function commandsText(shell) {
  const { mode, allowed_commands: allowed = [] } = policy ?? {};
  if (mode === "deny" || (mode === "allowlist" && allowed.length === 0)) return "Run no commands: they are off on this machine";
  if (!shell.includes("*")) return `Run the commands ${some(shell)}`;
  if (mode === "allowlist") return `Run the commands ${some(allowed)}`;
  return mode === "full" ? "Run any command" : "Run any command that the policy of this machine allows";
}

/**
 * What tools are for, in the order of what they reach: the icon, the tools, how they are called where one chooses among them, and the
 * sentence for those that are granted: null where a capability that they need is missing. `risk` marks what reaches beyond the agent. `deny` says what
 * an agent without them cannot do; with `isWide`, commands, servers and skills may do it for the agent, and nothing is said.
 */
const FAMILIES = [
  { key: "commands", title: "Commands", icon: "terminal", tools: /^shell_/, risk: true, deny: "run commands",
    say: (_, { shell }) => (shell.length === 0 ? null : commandsText(shell)) },
  { key: "agents", title: "Creating agents", icon: "agents", tools: /^agent_(spawn|kill)$/, risk: true, deny: "create agents",
    say: (_, { agent_spawn: spawn }) => (spawn ? "Create agents with at most its own rights, and delete them" : null) },
  { key: "web", title: "Web", icon: "globe", tools: /^(web|browser)_/, risk: true, deny: "reach the internet", isWide: true,
    say: (names, { network }) => {
      if (network.length === 0) return null;
      const what = names.some((name) => name.startsWith("browser_")) ? "Use websites in a browser" : names.includes("web_search") ? "Search and read the web" : "Open web pages";
      return network.includes("*") ? what : `${what}, on ${some(network)} only`;
    } },
  { key: "files", title: "Files", icon: "file", tools: /^(file_|apply_patch$)/, deny: "use files", isWide: true,
    say: (names, { file_system: files }) => (files === false ? null : names.some((name) => /write|delete|patch/.test(name)) ? "Read and change files in its own workspace" : "Read files in its own workspace") },
  { key: "talk", title: "Other agents", icon: "chat", tools: /^(agent_|a2a_)/, say: (names) => (names.some((name) => name.endsWith("_send")) ? (names.includes("a2a_send") ? "Message other agents, here and on external systems" : "Message other agents") : "See which other agents there are") },
  { key: "chats", title: "Chats and notes", icon: "send", tools: /^(channel_|notify_)/, say: (names) => (names.some((name) => name.startsWith("channel_")) ? "Send messages to chats" : "Send you notes") },
  { key: "memory", title: "Memory", icon: "database", tools: /^(memory|knowledge)_/,
    say: (names, { memory_read: read, memory_write: write }) => (write.length > 0 && names.some((name) => !/recall|list|search|query/.test(name)) ? "Remember things, and look them up later" : read.length > 0 ? "Look up what it remembers" : null) },
  { key: "automation", title: "Automation", icon: "calendar", tools: /^(schedule|cron|workflow|event)_/,
    say: (names) => {
      const parts = [names.some((name) => /^(schedule|cron)_create$/.test(name)) && "schedule its own runs", names.includes("workflow_run") && "run workflows", names.includes("event_publish") && "publish events"].filter(Boolean);
      return parts.length > 0 ? capital(listed(parts)) : "See its own schedules";
    } },
  { key: "tasks", title: "Tasks and goals", icon: "flag", tools: /^(task|goal)_/, say: (names) => capital(listed([names.some((name) => name.startsWith("task_")) && "work with the task queue", names.includes("goal_update") && "keep goals"].filter(Boolean))) },
  { key: "media", title: "Media", icon: "image", tools: /^(image|video|music|text_to|transcribe)/, say: () => "Make or transcribe images, speech, video or music, which costs money" },
  { key: "self", title: "Itself", icon: "clock", tools: /^(system_time|session_search|result_read|tool_|skill_)/, say: (names) => (names.includes("session_search") ? "Search its own past conversations" : null) },
];
const OTHERS = { key: "other", title: "Other tools", icon: "tool", tools: /./, say: (names) => `Use ${some(names)}` };

const capital = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/** The family of a tool: its `title` and `icon`. */
export const familyOf = (name) => FAMILIES.find(({ tools }) => tools.test(name)) ?? OTHERS;

/** The titles of the families, in their order. */
export const FAMILY_TITLES = [...FAMILIES, OTHERS].map(({ title }) => title);

/**
 * What `manifest` lets its agent do. `tools` are rows of `GET /api/tools`. Gives `{ may: [{ icon, text, risk, asks }], not: [text] }`: `asks` says
 * that a person approves, `not` is what it cannot do.
 */
export function rightsOf(manifest, tools) {
  const { capabilities, tool_allowlist: only = [], tool_blocklist: never = [], require_approval: approved = [], skills = [], skills_disabled: noSkills = false, mcp_servers: servers = [], limits = {} } = manifest;
  const isGranted = (name) => isOf(capabilities.tools, name) && (only.length === 0 || isOf(only, name)) && !isOf(never, name);
  const granted = tools.filter(({ name }) => isGranted(name));
  const asks = ({ name, requires_approval: always }) => always || isOf(approved, name);
  const may = [];
  const not = [];
  const hasHelp = servers.length > 0 || (skills.length > 0 && !noSkills) || (capabilities.shell.length > 0 && isGranted("shell_exec"));
  for (const family of [...FAMILIES, OTHERS]) {
    const own = granted.filter(({ name }) => familyOf(name) === family);
    const text = own.length > 0 ? family.say(own.map(({ name }) => name), capabilities) : null;
    if (text) may.push({ icon: family.icon, text, risk: Boolean(family.risk), asks: own.every(asks) ? "asks you first" : own.some(asks) ? `asks before ${some(own.filter(asks).map(({ name }) => name))}` : "" });
    else if (family.deny && !(family.isWide && hasHelp)) not.push(family.deny);
  }
  if (servers.length > 0) may.push({ icon: "link", text: `Use tools of the MCP ${servers.length === 1 ? "server" : "servers"} ${some(servers)}`, risk: true, asks: "" });
  if (skills.length > 0 && !noSkills) may.push({ icon: "book", text: `Use the ${skills.length === 1 ? "skill" : "skills"} ${some(skills)}`, asks: "" });
  else if (!noSkills) may.push({ icon: "book", text: "Use all installed skills", asks: "" });
  const spend = spending(limits);
  if (spend) may.push({ icon: "money", text: spend, asks: "" });
  return { may, not };
}

/** What it may spend; "" where that is not known. `limits` are micros, as a manifest has them. */
function spending({ hourly, daily, monthly, hourly_tokens: tokens }) {
  const parts = [[hourly, "an hour"], [daily, "a day"], [monthly, "a month"]].filter(([value]) => value > 0).map(([value, per]) => `${money(value / 1e6)} ${per}`);
  if (tokens > 0) parts.push(`${tokens.toLocaleString("en")} tokens an hour`);
  return parts.length > 0 ? `Spend at most ${listed(parts)}` : "";
}

/** The rights of `rightsOf` as elements. */
export function rightsNode({ may, not }) {
  return h("div", { class: "rights" },
    may.length > 0 ? h("ul", { class: "right-list" }, may.map(({ icon: name, text, risk, asks }) => h("li", { class: risk ? "is-wide" : null }, icon(name, 17), h("span", { class: "grow" }, text), asks ? h("span", { class: "badge warn" }, asks) : null))) : h("p", { class: "dim" }, "It answers with text only."),
    not.length > 0 ? h("p", { class: "hint" }, `It cannot ${listed(not, "or")}.`) : null);
}
