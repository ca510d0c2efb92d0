// Words and marks that the parts of an agent's page share.

import { withQuery } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { titleOf } from "../../lib/titles.js";

const OUTCOMES = { done: ["good", "done"], failed: ["bad", "failed"], stopped: ["warn", "stopped"], interrupted: ["warn", "interrupted"], ok: ["good", "ok"], error: ["bad", "error"], refused: ["bad", "refused"], unknown: ["warn", "unknown"] };

/** How a run or a step ended, as a badge. */
export function outcomeBadge(status) {
  const [style, word] = OUTCOMES[status] ?? ["", String(status).replaceAll("_", " ")];
  return h("span", { class: `badge ${style}` }, word);
}

/** The address of a run's trace; `run` has `turn_id` and `session_id`. */
export const runAddress = (agentId, run) => withQuery(`#/agent/${encodeURIComponent(agentId)}/runs/${run.turn_id}`, { session: run.session_id });

const STATES = { queued: "queued", reserving: "waiting for its turn", calling: "calling the model", waiting_for_tools: "running tools", waiting_for_approval: "waiting for approval", stopping: "stopping" };
/** What an open run does, in words. */
export const stateText = (state) => STATES[state] ?? String(state).replaceAll("_", " ");

const ORIGINS = { api: "API", websocket: "WebSocket", openai: "OpenAI API", agent: "another agent", trigger: "trigger", schedule: "schedule", workflow: "workflow", channel: "channel" };
/** Where a message came from, in words. */
export const originText = (origin) => ORIGINS[origin] ?? String(origin).replaceAll("_", " ");

/** The session of a run, as titles of sessions take it. */
export const sessionOf = (run) => ({ session_id: run.session_id, created_at: run.started_at });

/** The title of the conversation of a run; that of a workflow's step is gone with its run. */
export const titleText = (run) => (run.origin === "workflow" ? "Step of a workflow" : titleOf(sessionOf(run)));

/** The tools that a run called, in their order, each once; "" for none. */
export const toolsOf = (run) => [...new Set((run.steps ?? []).filter(({ kind }) => kind === "tool").map(({ name }) => name))].join(", ");
