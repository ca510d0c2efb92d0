// Words and marks that the parts of an agent's page share.

import { withQuery } from "../../lib/api.js";
import { h } from "../../lib/dom.js";

const OUTCOMES = { done: ["good", "done"], failed: ["bad", "failed"], stopped: ["warn", "stopped"], interrupted: ["warn", "interrupted"], ok: ["good", "ok"], error: ["bad", "error"], refused: ["bad", "refused"], unknown: ["warn", "unknown"] };

/** How a run or a step ended, as a badge. */
export function outcomeBadge(status) {
  const [style, word] = OUTCOMES[status] ?? ["", String(status).replaceAll("_", " ")];
  return h("span", { class: `badge ${style}` }, word);
}

/** The address of a run's trace; `run` has `turn_id` and `session_id`. */
export const runAddress = (agentId, run) => withQuery(`#/agent/${encodeURIComponent(agentId)}/runs/${run.turn_id}`, { session: run.session_id });

const ORIGINS = { api: "API", websocket: "WebSocket", openai: "OpenAI API", agent: "another agent", trigger: "trigger", schedule: "schedule", workflow: "workflow", channel: "channel" };
/** Where a message came from, in words. */
export const originText = (origin) => ORIGINS[origin] ?? String(origin).replaceAll("_", " ");
