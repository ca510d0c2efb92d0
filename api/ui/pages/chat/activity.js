// Which agents were used last, and what those that work are doing: for the list of agents in the chat.

import { Failure, page } from "../../lib/api.js";
import { seesAll } from "../../lib/me.js";
import { queryRows } from "../../lib/query.js";

/** Agents that stand on top, because they were used last. */
const RECENT_MAX = 40;
const APPROVALS_MAX = 100;

/** What is refused, or busy with others, is left out: the list is as good without. */
const orNone = (found) => found.catch((error) => {
  if (error instanceof Failure && error.status !== 0) return [];
  throw error;
});

/** The agents that were used last, newest first, as in the list of agents, with `used_at`. */
export async function recentAgents({ signal } = {}) {
  if (!seesAll()) return [];
  const fields = "agent_id, agent.name, agent.state, agent.provider, agent.model";
  const rows = await orNone(queryRows(`sessions where messages > 0 group by ${fields} select ${fields}, max(updated_at) sort by max(updated_at) desc limit ${RECENT_MAX}`, { signal }));
  return rows.filter((row) => row["agent.name"]).map((row) => ({ id: row.agent_id, name: row["agent.name"], state: row["agent.state"], model_provider: row["agent.provider"], model_name: row["agent.model"], used_at: row["max(updated_at)"] }));
}

/** What agents are doing, by id: "waiting" for an approval, or "running". */
export async function marksOf({ signal } = {}) {
  if (!seesAll()) return new Map();
  const [working, asking] = await Promise.all([
    orNone(queryRows(`agents where open_turns > 0 select id limit ${RECENT_MAX}`, { signal })),
    orNone(page("/api/approvals", "approvals", { status: "pending", limit: APPROVALS_MAX }, { signal }).then(({ items }) => items)),
  ]);
  return new Map([...working.map(({ id }) => [id, "running"]), ...asking.map(({ agent_id: id }) => [id, "waiting"])]);
}
