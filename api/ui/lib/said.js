// What runs were told: the message of each turn, read from its session.

import { get, withQuery } from "./api.js";
import { inLanes } from "./poll.js";
import { lineOf, triggerLine } from "./titles.js";

/** Messages that are kept; beyond that the oldest go. */
const SAID_MAX = 2000;
const LANES = 3;
/** Sessions, and pages of messages of each, that are read at a time. */
const SESSIONS_MAX = 20;
const PAGES_MAX = 4;
const MESSAGES = 200;

/** The first line of each message, by turn; "" where it is no longer stored. */
const said = new Map();

/** What a run was told, as far as that is known; "" else. */
export const saidOf = (run) => said.get(run.turn_id) ?? "";

function note(turn, text) {
  if (said.size >= SAID_MAX) said.delete(said.keys().next().value);
  said.set(turn, text);
}

/** Reads what `runs` (`turn_id`, `session_id`) were told, where it is not known, and calls `then()` for each session that was read. */
export async function learnSaid(runs, then, { signal } = {}) {
  const sessions = new Map();
  const origins = new Map(runs.map(({ turn_id: turn, origin }) => [turn, origin]));
  // What has begun just now may be stored a moment later.
  const open = new Set();
  for (const { turn_id: turn, session_id: session, status } of runs) {
    if (!said.has(turn)) sessions.set(session, (sessions.get(session) ?? new Set()).add(turn));
    if (!status) open.add(turn);
  }
  await inLanes([...sessions].slice(0, SESSIONS_MAX), LANES, async ([session, wanted]) => {
    try {
      let cursor = null;
      for (let n = 0; n < PAGES_MAX && wanted.size > 0; n += 1) {
        const page = await get(withQuery(`/api/sessions/${encodeURIComponent(session)}/messages`, { limit: MESSAGES, cursor }), { signal });
        for (const { turn_id: turn, role, content } of page.messages) {
          if (role === "User" && wanted.delete(turn)) note(turn, (origins.get(turn) === "trigger" ? triggerLine : lineOf)(content ?? ""));
        }
        cursor = page.next_cursor;
        if (cursor === null) break;
      }
      for (const turn of wanted) if (!open.has(turn)) note(turn, "");
    } catch (error) {
      if (error.status !== 404 && error.status !== 403) return;
      for (const turn of wanted) note(turn, "");
    }
    then();
  });
}
