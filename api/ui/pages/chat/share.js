// A conversation as Markdown, to pass on: what was said and answered, without tool calls and thoughts.

import { saveAs } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { when } from "../../lib/format.js";

/** Pages of messages that are read; what is older is left out, and said to be. */
const PAGES_MAX = 40;
const MESSAGES = 200;

/** Puts the open conversation on the clipboard. `chat` is the page. */
export async function copyConversation(chat) {
  await copyText(await conversationText(chat));
}

/** Saves the open conversation as a file. */
export async function saveConversation(chat) {
  saveAs(new Blob([await conversationText(chat)], { type: "text/markdown" }), `${chat.agent.name}-${chat.sessionId.slice(0, 8)}.md`);
}

async function conversationText(chat) {
  const { agent, sessionId, ctx } = chat;
  let messages = [];
  let cursor = null;
  let pages = 0;
  do {
    const page = await ctx.api.get(ctx.api.withQuery(`/api/sessions/${sessionId}/messages`, { limit: MESSAGES, cursor }), { signal: ctx.signal });
    messages = [...page.messages, ...messages];
    cursor = page.next_cursor;
    pages += 1;
  } while (cursor !== null && pages < PAGES_MAX);
  const title = chat.label ?? `Conversation with ${agent.name}`;
  const [first] = messages;
  const parts = [`# ${title}`, first ? `${agent.name}, ${when(first.created_at)}` : "", cursor === null ? "" : "*Earlier messages are left out.*"];
  for (const { role, content } of inForce(messages)) {
    if (content && role === "User") parts.push(`## You\n\n${content}`);
    if (content && role === "Assistant") parts.push(`## ${agent.name}\n\n${content}`);
  }
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/** The messages without those of turns that a later one repeats. */
function inForce(messages) {
  const newest = new Map();
  for (const { turn_id: turn, repeats } of messages) if (repeats) newest.set(repeats, turn);
  const group = new Map(messages.filter(({ repeats }) => repeats).map(({ turn_id: turn, repeats }) => [turn, repeats]));
  return messages.filter(({ turn_id: turn }) => {
    const of = group.get(turn) ?? turn;
    return !newest.has(of) || newest.get(of) === turn;
  });
}
