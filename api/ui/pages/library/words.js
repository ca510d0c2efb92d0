// What is said of skills and hands: what they may do, what they need, how they run.

import { h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

const RUNTIMES = { PromptOnly: "Instructions only", Python: "Python program", Node: "Node.js program", Shell: "Shell script", Wasm: "WebAssembly module", Builtin: "Built in" };

/** How a skill runs: `PromptOnly` is "Instructions only". */
export const runtimeText = (runtime) => RUNTIMES[runtime] ?? runtime;

/** Capabilities by the word before their bracket, and what they let code do. */
const CAPABILITIES = {
  NetConnect: (to) => (to === "*" ? "Connect to any address on the internet" : `Connect to ${to}`),
  FileRead: (path) => `Read files: ${path}`,
  FileWrite: (path) => `Write files: ${path}`,
  ShellExec: (command) => (command === "*" ? "Run any command" : `Run ${command}`),
  EnvRead: (name) => `Read the environment variable ${name}`,
  AgentMessage: (agent) => (agent === "*" ? "Send messages to any agent" : `Send messages to ${agent}`),
  AgentSpawn: () => "Start agents",
  MemoryRead: () => "Read the agent's memory",
  MemoryWrite: () => "Change the agent's memory",
};

/** A capability in words: `NetConnect(*)` is "Connect to any address on the internet". What is not known stays as it is. */
export function capabilityText(text) {
  const [, kind, value] = /^(\w+)\((.*)\)$/.exec(text) ?? [null, text, "*"];
  return CAPABILITIES[kind]?.(value) ?? text;
}

/** What code of a skill can do, one sentence a line. */
export function permissionLines({ runtime, required_capabilities: capabilities = [], required_tools: tools = [], env_passthrough: variables = [] }) {
  const lines = variables.map((name) => `Read the environment variable ${name} of the daemon`);
  const wishes = capabilities.map(capabilityText);
  if (tools.length > 0) lines.push(`Needs the tools ${tools.join(", ")}`);
  if (runtime === "PromptOnly") return ["Adds text to conversations; runs no code of its own", ...lines];
  // Only modules are held to what they declare; programs get what the agent has.
  if (runtime === "Wasm") return [...wishes, ...lines];
  if (runtime !== "Builtin") lines.unshift("Run its code in the sandbox of commands, with the agent's workspace and, if the agent may use all of the network, the network");
  return [...lines, ...wishes.map((wish) => `Says that it needs: ${wish[0].toLowerCase()}${wish.slice(1)}`)];
}

/** When an agent acts by itself: one sentence a line. Each time is a turn that costs money. */
function wakeLines(name, wakes = {}) {
  const { schedule, autonomous } = wakes;
  const lines = [];
  if (schedule?.periodic) lines.push(`${name} acts by itself: ${schedule.periodic.cron ?? "at set times"}`);
  if (schedule?.continuous) lines.push(`${name} acts by itself every ${schedule.continuous.check_interval_secs ?? 300} seconds`);
  if (schedule?.proactive) lines.push(`${name} acts by itself at events: ${(schedule.proactive.conditions ?? []).join(", ")}`);
  if (autonomous) lines.push(`${name} acts by itself every ${autonomous.heartbeat_interval_secs ?? 30} seconds${autonomous.quiet_hours ? `, not ${autonomous.quiet_hours} UTC` : ""}`);
  return lines;
}

/** What the agents of a hand can do and when they act by themselves, one sentence a line. */
export function handLines({ tools = [], agents = [], environment = [] }) {
  const several = agents.length > 1;
  const lines = agents.flatMap((agent) => wakeLines(several ? agent.name || agent.role : "The agent", agent.wakes));
  for (const name of environment) lines.push(`Commands may get the environment variable ${name}`);
  for (const tool of tools) lines.push(`Use the tool ${tool}`);
  for (const agent of agents) {
    const who = several ? `${agent.name || agent.role}: ` : "";
    if (tools.length === 0) for (const tool of agent.tools ?? []) lines.push(`${who}use the tool ${tool}`);
    for (const [kind, granted] of Object.entries(agent.capabilities ?? {})) {
      if (kind !== "tools") lines.push(`${who}capability ${kind}: ${[granted].flat().map(String).join(", ")}`);
    }
    if (agent.base) lines.push(`${who}has also what the agent type ${agent.base} may do`);
  }
  return lines;
}

/** A list with a mark before each line, or `none`. */
export function lineList(lines, { label, none, sign = "check" }) {
  if (lines.length === 0) return h("p", { class: "dim" }, none);
  return h("ul", { class: "sign-list", "aria-label": label }, lines.map((line) => h("li", {}, icon(sign, 16), h("span", {}, line))));
}

/** Requirements of a hand or a skill: `{ label, satisfied, optional, description }`. */
export function needList(needs, label) {
  if (needs.length === 0) return h("p", { class: "dim" }, "Needs nothing that has to be installed.");
  return h("ul", { class: "sign-list", "aria-label": label }, needs.map((need) => h("li", { class: need.satisfied ? "is-good" : "is-missing" },
    icon(need.satisfied ? "check" : "alert", 16),
    h("span", {}, h("strong", {}, need.label || need.key), need.satisfied ? " is there" : need.optional ? " is missing (optional)" : " is missing",
      need.description && !need.satisfied ? h("small", { class: "dim" }, ` ${need.description}`) : null))));
}

/** The findings of the scan and other warnings of an installation. */
export function warningList(warnings = []) {
  return warnings.map((warning) => {
    if (typeof warning === "string") return warning;
    const place = [warning.file, warning.line].filter(Boolean).join(":");
    return [place, warning.message ?? warning.rule].filter(Boolean).join(": ");
  });
}

/** An emoji of the content, or an icon of ours: names of other icon sets are not shown. */
export function sign(text, fallback) {
  return text && !/[:\w]/.test(text) ? h("span", { class: "card-sign", "aria-hidden": "true" }, [...text].slice(0, 2).join("")) : icon(fallback, 20);
}
