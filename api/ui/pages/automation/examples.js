// Schedules, triggers and servers to begin with: each fills the form, where it is changed before it is created.

import { h } from "../../lib/dom.js";

/** Drafts of schedules, with the keys of a record. */
export const SCHEDULES = [
  { title: "Summary every weekday morning", name: "Morning summary", rule: "0 8 * * MON-FRI", prompt: "Summarise what happened since yesterday, and list what needs my attention." },
  { title: "Check every hour", name: "Hourly check", rule: "every 1h", prompt: "Check the open tasks. Answer only if something changed." },
  { title: "Report every Friday", name: "Weekly report", rule: "0 16 * * FRI", prompt: "Write a short report of this week's work." },
];

/** Drafts of triggers. */
export const TRIGGERS = [
  { title: "A turn failed", pattern: { turn_failed: {} }, prompt_template: "A turn failed: {{event}}\nFind out why, and say what to do." },
  { title: "A task has no assignee", pattern: { task_posted: { assignee_match: "unassigned" } }, prompt_template: "A new task has no assignee: {{event}}\nClaim it if you can do it." },
  { title: "A budget is 80 % used", pattern: { budget_warning: {} }, prompt_template: "A budget is 80 % used: {{event}}\nSay what costs most." },
];

/** Drafts of MCP servers, one for each way to reach them. */
export const SERVERS = [
  { title: "A program of npm", name: "files", transport: { type: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"] } },
  { title: "A program of Python", name: "time", transport: { type: "stdio", command: "uvx", args: ["mcp-server-time"] } },
  { title: "A server over HTTP", name: "docs", transport: { type: "http", url: "https://mcp.example.com/mcp" } },
];

/** Buttons that begin with one of `drafts`, for where there is nothing yet. */
export const examples = (drafts, begin) => h("div", { class: "examples" }, h("p", { class: "hint" }, "Or start from an example:"),
  h("div", { class: "buttons" }, drafts.map((draft) => h("button", { type: "button", class: "small", onclick: () => begin(draft) }, draft.title))));
