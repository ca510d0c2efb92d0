// Tools of an MCP server that are new or were changed since they were accepted, and what the daemon found suspicious in them.

import { h } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";

const ACTIONS = { marked: "Models read its texts as data.", description_withheld: "Models do not read its description.", left_out: "It is not offered to agents." };

/** What is said of a tool in which the daemon found what looks like a prompt injection; `flags` are its `flagged_tools`. */
export function flagOf(flags, name) {
  const flag = (flags ?? []).find((one) => one.name === name);
  if (!flag) return null;
  const reasons = flag.reasons.length > 0 ? ` (${flag.reasons.join(", ")})` : "";
  return h("p", { class: "danger-text flag" }, icon("alert", 16), h("span", {}, `May be a prompt injection${reasons}. ${ACTIONS[flag.action] ?? ""}`));
}

/** The hints of a tool that decide whether its calls are repeated; null when the server gives none. */
function hintsOf(tool) {
  const hints = Object.entries(tool.annotations ?? {}).map(([name, value]) => `${name}: ${value}`);
  return hints.length > 0 ? h("p", { class: "hint" }, `Hints: ${hints.join(", ")}`) : null;
}

/** The tools that wait, each with its change; `accept()` is called with none of them left out, and null for who may not. Null when none wait. */
export function reviewCard(server, accept) {
  const review = server.tools_review;
  if (!review) return null;
  const { new: added = [], changed = [], removed = [] } = review;
  const waiting = added.length + changed.length;
  const line = (word, style, tool) => h("li", {},
    h("div", { class: "bar-row tight" }, h("span", { class: `badge ${style}` }, word), h("code", {}, tool.name)),
    tool.description ? h("p", { class: "server-text" }, tool.description) : null, flagOf(server.flagged_tools, tool.name), hintsOf(tool),
    tool.input_schema ? h("details", {}, h("summary", {}, "Input"), h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": `Input of ${tool.name}` }, JSON.stringify(tool.input_schema, null, 2))) : null);
  return h("section", { class: "card stack review", "aria-label": "Tools to accept" },
    h("div", { class: "bar-row" }, h("h3", { class: "grow" }, "Tools to accept"), accept && h("button", { type: "button", class: "primary", onclick: accept }, icon("check", 18), waiting > 0 ? `Accept ${count(waiting, "tool")}` : "Accept the list")),
    h("p", { class: "hint" }, "The server has changed its tools since you accepted them. Agents cannot call new and changed tools until you accept them. Read what models would read:"),
    h("ul", { class: "tool-list", "aria-label": "Changed tools" }, added.map((tool) => line("new", "accent", tool)), changed.map((tool) => line("changed", "warn", tool)),
      removed.map((name) => line("removed", "", { name }))));
}
