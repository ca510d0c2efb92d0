// Ways on after an answer, below the message box: what to ask next, from what was answered and what the agent can do.

import { setUp } from "../../lib/connect.js";
import { showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";

const SHOWN_MAX = 3;
/** Letters from which on an answer is long. */
const LONG = 900;
const HIDDEN = "agentsvc-no-suggestions";

/** Each is offered where it fits: `fits` gets the text of the answer and the names of the tools that were called; `tool` is one that the agent needs. */
const WAYS = [
  { label: "Explain the code", text: "Explain this code step by step.", fits: (text) => text.includes("```") },
  { label: "Which sources?", text: "Which sources did you use? List them with links.", fits: (_, tools) => tools.some((name) => name.startsWith("web_")) },
  { label: "Shorter, please", text: "Summarize this in three sentences.", fits: (text) => text.length > LONG },
  { label: "Save this to a file", text: "Save this to a Markdown file with a fitting name.", tool: "file_write", fits: (text, tools) => text.length > 200 && !tools.includes("file_write") },
  { label: "Do this every morning", text: "Do this every morning at 8:00 and tell me the result.", tool: "schedule_create", fits: (_, tools) => tools.length > 0 && !tools.includes("schedule_create") },
  { label: "Give an example", text: "Give a concrete example.", fits: (text) => text.length > 80 && !text.includes("```") },
  { label: "Remember this", text: "Remember what matters of this for later.", tool: "memory_store", fits: (_, tools) => !tools.includes("memory_store") },
  { label: "What else can you do?", text: "What else can you help me with, and which tools do you have?", fits: () => true },
];

/** Shows them for the newest of `turns`, oldest first; none while an answer runs or the box holds something. `chat` is the page. */
export function followUps(chat, turns) {
  const place = chat.composer.follow;
  const last = turns.at(-1);
  const isOff = !last || chat.isBusy() || !can("chat") || sessionStorage.getItem(HIDDEN) !== null;
  const isAnswered = last?.steps.some(({ role, content }) => role === "Assistant" && content) && last.trace?.status !== "failed";
  const ways = isOff || !isAnswered ? [] : chat.welcome.isOffline() ? offline(chat) : fitting(chat, last);
  place.hidden = ways.length === 0;
  fill(place, ways.map(({ label, run }) => h("button", { type: "button", class: "small", onclick: () => { place.hidden = true; Promise.resolve(run()).catch(showError); } }, label)),
    ways.length === 0 ? null : h("button", { type: "button", class: "quiet small only-icon", "aria-label": "Hide suggestions in this tab", title: "Hide suggestions in this tab", onclick: () => { sessionStorage.setItem(HIDDEN, "1"); place.hidden = true; chat.composer.focus(); } }, icon("close", 13)));
  // They take a line of the conversation.
  if (ways.length > 0 && chat.log.isAtEnd) chat.log.toEnd();
}

function fitting(chat, { steps }) {
  const text = steps.filter(({ role }) => role === "Assistant").map(({ content }) => content ?? "").join("\n");
  const tools = steps.flatMap(({ tool_calls: calls }) => calls ?? []).map(({ name }) => name);
  return WAYS.filter(({ fits, tool }) => chat.welcome.has(tool) && fits(text, tools)).slice(0, SHOWN_MAX).map(({ label, text: message }) => ({ label, run: () => chat.send(message) }));
}

/** The built-in model cannot go on; a language model can. */
function offline(chat) {
  if (!can("admin") || !seesAll()) return [];
  return [{ label: "Set up a language model", run: async () => {
    if (!(await setUp())) return;
    toast("The model is ready. Say something.");
    await chat.changedAgent();
    await chat.reload();
  } }];
}
