// Titles of sessions: the name that a person gave, else the beginning of the first message, else when it began.

import { get } from "./api.js";
import { brief, CLOCK, moment } from "./format.js";
import { inLanes } from "./poll.js";

/** Titles that are kept; beyond that the oldest go. */
const TITLES_MAX = 2000;
const LANES = 3;
const LENGTH_MAX = 90;
/** What the summary of a compacted session begins with (docs/api.md). */
const SUMMARY = /^\[Summary of the earlier conversation\]\s*/;

/** A message with the event that fired a trigger (docs/automation.md). */
const EVENT = /\{"kind":"([a-z_]+)"(?:,"event_type":"([^"\\]{1,80})")?[,}]/;

/** What fired a trigger, in the words of its event; null where the text has none. */
export function eventOf(text) {
  const found = EVENT.exec(text);
  return found && (found[2] ?? found[1]).replaceAll("_", " ");
}

/** A message that calls a tool of the offline model. */
const TOOL_LINE = /^\s*\/tool (\w+)/;

const titles = new Map();

/** When a session began. */
function began(at) {
  const date = moment(at);
  if (!date) return "New session";
  const time = date.toLocaleTimeString(undefined, { timeStyle: "short", ...CLOCK });
  return date.toDateString() === new Date().toDateString() ? `New session, ${time}` : `${brief(at)}, ${time}`;
}

const idOf = (session) => session.session_id ?? session.id;

/** The title of a session, as far as it is known. */
export const titleOf = (session) => session.label || titles.get(idOf(session)) || began(session.created_at);

/** What a message of a trigger says: its event, or else its first line. */
export function triggerLine(text) {
  const event = eventOf(text);
  return event ? `Trigger: ${event}` : lineOf(text);
}

/** The first line of a message that says something, without marks of Markdown. */
export function lineOf(text) {
  // The offline model calls a tool by its name.
  const tool = TOOL_LINE.exec(text);
  if (tool) return `Run ${tool[1].replaceAll("_", " ")}`;
  const line = text.replace(SUMMARY, "").split("\n").map((one) => one.replace(/^[#>*\-\s]+/, "").replace(/[*`]{1,3}|(?<![^\s(])_{1,3}|_{1,3}(?![^\s.,;:!?)])/g, "").trim()).find((one) => one !== "") ?? "";
  return line.length > LENGTH_MAX ? `${line.slice(0, LENGTH_MAX - 1)}…` : line;
}

/** Letters that an excerpt has before and after what was found: it is cut there, where there was more. */
const EXCERPT = 60;

/** An excerpt around `typed` in whole words, with dots where it was cut. */
export function excerptText(text, typed) {
  const at = text.toLowerCase().indexOf(typed.toLowerCase());
  if (at < 0) return text;
  const before = at < EXCERPT ? text.slice(0, at) : `… ${text.slice(0, at).replace(/^\S*\s+/, "")}`;
  const after = text.slice(at);
  return before + (after.length - typed.length < EXCERPT ? after : `${after.replace(/\s+\S*$/, "")} …`);
}

/** Reads the titles of `sessions` that have messages and no name, and calls `then(id, title)` for each. */
export async function learnTitles(sessions, then, { signal } = {}) {
  const missing = sessions.filter((session) => !session.label && session.message_count !== 0 && !titles.has(idOf(session)));
  await inLanes(missing, LANES, async (session) => {
    const id = idOf(session);
    try {
      const { messages } = await get(`/api/sessions/${encodeURIComponent(id)}?limit=1`, { signal });
      const title = triggerLine(messages[0]?.content ?? "");
      if (title === "") return;
      if (titles.size >= TITLES_MAX) titles.delete(titles.keys().next().value);
      titles.set(id, title);
      then(id, title);
    } catch {
      // The moment it began is title enough.
    }
  });
}
