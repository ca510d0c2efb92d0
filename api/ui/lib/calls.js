// What waits for an approval, in words: who wants to do what, with what, and the message that led to it.

import { get, send, withQuery } from "./api.js";
import { diffNode } from "./diff.js";
import { fill, h, useStyles } from "./dom.js";
import { learnSaid, saidOf } from "./said.js";

const DOES = {
  shell_exec: "run a command", file_write: "write a file", file_delete: "delete a file", apply_patch: "change files", web_fetch: "open a web page",
  web_search: "search the web", memory_store: "remember something", memory_update: "change a memory", memory_forget: "forget a memory",
  agent_send: "message another agent", agent_spawn: "create an agent", agent_kill: "delete an agent", a2a_send: "message an external agent",
  schedule_create: "create a schedule", cron_create: "create a schedule", schedule_delete: "delete a schedule", cron_cancel: "delete a schedule",
  event_publish: "publish an event", task_post: "post a task", workflow_run: "run a workflow", image_generate: "make an image", channel_send: "send a message to a chat",
};
/** The sentence that says no more than the title does. */
const PLAIN = /^(The agent requests to call the tool|A client requests to call the tool) \S+?( on behalf of the agent)?\.\s*/;
/** Files that are larger are not compared. */
const FILE_BYTES_MAX = 256 << 10;

/** "ops wants to run a command"; `name` is that of the agent. What no tool asks for says its action. */
export function callTitle({ action, call_hash: hash }, name) {
  if (DOES[action]) return `${name} wants to ${DOES[action]}`;
  return hash ? `${name} wants to use ${action}` : `${name}: ${action}`;
}

/** What the description says beyond the title; "" for nothing. */
export const callNote = ({ description }) => (description ?? "").replace(PLAIN, "");

/** A command with its arguments, as it is typed in a shell. */
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Is it one command? The model wrote the input: it may hold anything, also both ways to say a command. */
const isCommand = ({ command, argv }) => (typeof command === "string" ? argv === undefined : command === undefined && Array.isArray(argv));
const commandOf = ({ command, argv }) => command ?? argv.map((word) => quoted(typeof word === "string" ? word : JSON.stringify(word))).join(" ");

/** What the call would do in one line, for lists; "" where it says nothing. */
export function callLine({ action, payload }) {
  if (!payload || typeof payload !== "object") return payload ? String(payload) : "";
  const { path, url } = payload;
  if (action === "shell_exec" && isCommand(payload)) return `$ ${commandOf(payload)}`;
  if (action.startsWith("file_") && typeof path === "string") return path;
  if (action === "web_fetch" && typeof url === "string") return url;
  return Object.entries(payload).map(([key, value]) => `${key.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
}

const style = () => Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/calls.css", import.meta.url))]);
const code = (text) => h("pre", { class: "call-code", tabindex: "0", role: "group", "aria-label": "What it would do" }, text);
const pairs = (values) => h("dl", { class: "pairs" }, Object.entries(values).map(([key, value]) => [h("dt", {}, key.replaceAll("_", " ")), h("dd", { class: "plain" }, typeof value === "string" ? value : JSON.stringify(value))]));

/** What the call would do, as elements: a command, a file with what changes in it, or the values by name. */
export function callBody({ action, payload, agent_id: agent }, { signal } = {}) {
  if (!payload || (typeof payload === "object" && Object.keys(payload).length === 0)) return null;
  style();
  if (typeof payload !== "object") return code(String(payload));
  const { command, argv, path, content, mode, patch, ...rest } = payload;
  const more = (values) => (Object.keys(values).length > 0 ? pairs(values) : null);
  if (action === "shell_exec" && isCommand(payload)) return h("div", { class: "call-body" }, code(`$ ${commandOf(payload)}`), more(rest));
  if (action === "file_write" && typeof path === "string" && typeof content === "string") return h("div", { class: "call-body" }, fileChange({ agent, path, content, mode }, signal), more(rest));
  if (action === "apply_patch" && typeof patch === "string") return h("div", { class: "call-body" }, code(patch), more(rest));
  return pairs(payload);
}

/** A file with the lines that would change, once the present one was read. */
function fileChange({ agent, path, content, mode = "overwrite" }, signal) {
  const place = h("div", {}, code(content));
  const what = h("span", { class: "faint" });
  const made = h("div", { class: "call-file" }, h("p", { class: "call-path" }, h("b", {}, path), " ", what), place);
  const read = async () => {
    const { files, truncated } = await get(`/api/agents/${encodeURIComponent(agent)}/files`, { signal });
    const name = path.split("/").filter((part) => part !== "" && part !== ".").join("/");
    const present = files.find((file) => file.path === name);
    if (!present) return void (what.textContent = truncated ? "" : "is a new file");
    if (present.size > FILE_BYTES_MAX) return void (what.textContent = mode === "append" ? "is added to" : "is replaced");
    const response = await send("GET", `/api/agents/${encodeURIComponent(agent)}/files/${name.split("/").map(encodeURIComponent).join("/")}`, { signal, accept: "*/*" });
    const before = await response.text();
    const node = diffNode(before, mode === "append" ? before + content : content, `Change of ${path}`);
    what.textContent = node ? (mode === "append" ? "is added to" : "changes") : "no changes";
    if (node) fill(place, node);
  };
  // Without the present file, the new content says what there is to say.
  read().catch(() => {});
  return made;
}

/** The turns that ask, with their sessions: `turn_id` → `{ turn_id, session_id }`, or null where it has ended. */
const turns = new Map();
const TURNS_MAX = 500;

/** Where an approval comes from: an element with the message that led to it and a link to the conversation, filled when it is known. */
export function callOrigin({ turn_id: turn, agent_id: agent }, { signal } = {}) {
  if (!turn) return null;
  style();
  const place = h("p", { class: "call-origin dim" });
  const show = (run) => {
    const text = saidOf(run);
    fill(place, text ? h("q", { class: "cut" }, text) : null, h("a", { href: `#/chat/${encodeURIComponent(agent)}/${run.session_id}`, data: { key: `conversation ${turn}` } }, "Open the conversation"));
  };
  const learn = async () => {
    if (!turns.has(turn)) {
      const { running = [] } = await get(withQuery(`/api/agents/${encodeURIComponent(agent)}/traces`, { limit: 1 }), { signal });
      if (turns.size >= TURNS_MAX) turns.clear();
      for (const run of running) turns.set(run.turn_id, run);
    }
    const run = turns.get(turn);
    if (!run) return void place.remove();
    show(run);
    return learnSaid([run], () => show(run), { signal });
  };
  // Without it the approval is as good.
  learn().catch(() => place.remove());
  return place;
}
