// Which sessions people write in, and which only triggers, schedules and other agents do.

import { Failure, get, withQuery } from "./api.js";
import { inLanes } from "./poll.js";

const LANES = 3;
/** Runs of an agent that are looked at. */
const RUNS = 20;
/** Sessions that are kept; beyond that the oldest go. */
const SESSIONS_MAX = 2000;
/** Origins of messages that people write. */
export const PEOPLE = new Set(["api", "websocket", "openai", "channel"]);

/** Whether people write in a session, by its id. */
const known = new Map();

/** Does a person write in this session? One of which nothing is known counts as such. */
export const isOfPeople = (session) => known.get(session.session_id) ?? true;

/** Looks at the runs of those `sessions` that are not known; each has `session_id` and `agent_id`. */
export async function learnOrigins(sessions, { signal } = {}) {
  const agents = new Set(sessions.filter(({ session_id: id }) => !known.has(id)).map((session) => session.agent_id));
  await inLanes(agents, LANES, async (agent) => {
    try {
      const { traces, running } = await get(withQuery(`/api/agents/${encodeURIComponent(agent)}/traces`, { limit: RUNS }), { signal });
      for (const { session_id: id, origin } of [...traces, ...running]) {
        if (known.size >= SESSIONS_MAX) known.delete(known.keys().next().value);
        known.set(id, known.get(id) || PEOPLE.has(origin));
      }
    } catch (error) {
      // The order is only a help: it stays by time.
      if (!(error instanceof Failure)) throw error;
    }
  });
}
