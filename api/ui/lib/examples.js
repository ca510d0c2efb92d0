// What to begin with where there is nothing yet: schedules, triggers, servers, skills, entries of the memory. Each fills the form, where it is changed
// before it is created.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { mark } from "./marks.js";

/** Drafts of schedules, with the keys of a record. */
export const SCHEDULES = [
  { title: "Summary every weekday morning", text: "What happened since yesterday, and what needs you.", name: "Morning summary", rule: "0 8 * * MON-FRI", prompt: "Summarize what happened since yesterday, and list what needs my attention." },
  { title: "Check every hour", text: "Looks at the open tasks, and says only what changed.", name: "Hourly check", rule: "every 1h", prompt: "Check the open tasks. Answer only if something changed." },
  { title: "Report every Friday", text: "A short report of the week, on Fridays at 16:00.", name: "Weekly report", rule: "0 16 * * FRI", prompt: "Write a short report of this week's work." },
];

/** Drafts of triggers. */
export const TRIGGERS = [
  { title: "A turn failed", text: "An agent finds out why, and says what to do.", pattern: { turn_failed: {} }, prompt_template: "A turn failed: {{event}}\nFind out why, and say what to do." },
  { title: "A task has no assignee", text: "An agent claims the task if it can do it.", pattern: { task_posted: { assignee_match: "unassigned" } }, prompt_template: "A new task has no assignee: {{event}}\nClaim it if you can do it." },
  { title: "A budget is 80 % used", text: "An agent says what costs most.", pattern: { budget_warning: {} }, prompt_template: "A budget is 80 % used: {{event}}\nSay what costs most." },
];

/** Drafts of MCP servers: well-known ones, and each way to reach one. */
export const SERVERS = [
  { title: "Files", text: "Read and change the files of a folder.", mark: "files", name: "files", transport: { type: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/docs"] } },
  { title: "Web pages", text: "Fetch pages and read them as Markdown.", mark: "web", name: "fetch", transport: { type: "stdio", command: "uvx", args: ["mcp-server-fetch"] }, network: true },
  { title: "Git repository", text: "Read the history, differences and branches of a repository.", mark: "git", name: "git", transport: { type: "stdio", command: "uvx", args: ["mcp-server-git", "--repository", "/srv/project"] } },
  { title: "Browser", text: "Open pages, click and fill in forms in a real browser.", mark: "browser", name: "browser", transport: { type: "stdio", command: "npx", args: ["-y", "@playwright/mcp@latest", "--headless"] }, network: true },
  { title: "Time", text: "The time in any time zone, and conversions.", mark: "time", name: "time", transport: { type: "stdio", command: "uvx", args: ["mcp-server-time"] } },
  { title: "A server over HTTP", text: "Any server by its address, with a sign-in where it asks for one.", mark: "http", name: "docs", transport: { type: "http", url: "https://mcp.example.com/mcp" } },
];

/** Drafts of skills, with the keys of a request. */
export const SKILLS = [
  { title: "Release notes", text: "Turns a list of changes into notes for users.", name: "release-notes", tags: ["writing"], description: "Use when release notes or a changelog are asked for.",
    prompt_context: "# Release notes\n\n1. Group the changes: new, changed, fixed, removed.\n2. Begin each line with a verb, and say what it means for users.\n3. Leave out what users do not notice.\n4. Put changes that need an action first, with the action." },
  { title: "Code review", text: "What to look at in a change, and how to say it.", name: "code-review", tags: ["development"], description: "Use when a change of code is to be reviewed.",
    prompt_context: "# Code review\n\nLook for, in this order: wrong results, lost data, security, missing tests, unclear names.\n\nFor each finding give the file and line, what goes wrong, an example that shows it, and a fix. Say when there is nothing to find." },
  { title: "Meeting minutes", text: "Decisions and tasks out of notes or a transcript.", name: "meeting-minutes", tags: ["writing"], description: "Use when notes or a transcript of a meeting are to be summarized.",
    prompt_context: "# Meeting minutes\n\n1. Decisions, one line each.\n2. Tasks as a table: what, who, by when. Write “open” where no name was given.\n3. Open questions.\n\nAdd nothing that was not said." },
];

/** Drafts of entries of the memory. */
export const MEMORIES = [
  { title: "A preference", text: "“Answers in German, in at most five sentences.”", content: "Prefers answers in German, in at most five sentences.", category: "preference" },
  { title: "A fact about your work", text: "“The release is every second Tuesday.”", content: "The release is every second Tuesday.", category: "project" },
  { title: "A rule", text: "“Never write to customers without asking.”", content: "Never write to customers without asking first.", category: "instruction" },
];

/** Spans of rehearsals. */
export const REHEARSALS = [
  { title: "The next day", text: "Which schedules run until tomorrow, and in which order.", span: "1d" },
  { title: "The next week", text: "What a usual week costs, and which runs overlap.", span: "7d" },
  { title: "The next month", text: "Whether the budgets last until the end of the month.", span: "30d" },
];

/** Drafts of goals. */
export const GOALS = [
  { title: "Something with a date", text: "“Publish the letter by Friday.”", goal: { title: "Publish the letter by Friday", description: "The letter is written, reviewed and sent to all readers." } },
  { title: "Something that grows", text: "“Answer every ticket within a day.”", goal: { title: "Answer every ticket within a day", description: "No ticket waits longer than 24 hours. Report each day how many did." } },
  { title: "Something to find out", text: "“Why do imports fail on Mondays?”", goal: { title: "Find out why imports fail on Mondays", description: "The cause is known, with an example that shows it, and a fix is proposed." } },
];

/** Platforms that most people ask for, by their ids. */
export const PLATFORMS = [
  { title: "Telegram", text: "A bot that answers in private chats and groups.", mark: "telegram", id: "telegram" },
  { title: "Slack", text: "An app that answers in channels and direct messages.", mark: "slack", id: "slack" },
  { title: "Discord", text: "A bot that answers on your server.", mark: "discord", id: "discord" },
  { title: "E-mail", text: "A mailbox whose messages agents answer.", mark: "email", id: "mail" },
  { title: "Notifications to a phone", text: "Messages over ntfy, without an account.", mark: "ntfy", id: "ntfy" },
  { title: "Matrix", text: "A user that answers in rooms.", mark: "matrix", id: "matrix" },
];

/** Cards that begin with one of `drafts`, for where there is nothing yet. A draft has a `title`, and perhaps a `text` and the name of a `mark`. */
export const examples = (drafts, begin, { title = "Start from an example", sign = "plus" } = {}) => h("div", { class: "examples" }, h("h3", {}, title),
  h("ul", { class: "ways" }, drafts.map((draft) => h("li", {}, h("button", { type: "button", class: "way", onclick: () => begin(draft) }, draft.mark ? mark(draft.mark, 32) : icon(sign, 18), h("span", {}, h("strong", {}, draft.title), draft.text ? h("small", {}, draft.text) : null))))));
