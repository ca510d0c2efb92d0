// Events as sentences: "coder answered: …". What an event says beside its kind and its agent.

import { CLOCK, count, money } from "../../lib/format.js";
import { errorText } from "../../lib/trouble.js";

const quoted = (text) => (text ? `“${text}”` : "");
const due = (slot) => (slot ? ` (due ${new Date(slot).toLocaleTimeString(undefined, CLOCK)})` : "");
const budget = ({ scope, period }) => `${period ?? ""} limit of ${scope === "global" ? "the global budget" : "the agent’s budget"}`.trim();

const usage = (used) => {
  if (!used) return "";
  const tokens = (used.input_tokens ?? 0) + (used.output_tokens ?? 0);
  return [tokens > 0 ? count(tokens, "token") : "", used.cost_micros > 0 ? money(used.cost_micros / 1_000_000) : ""].filter(Boolean).join(", ");
};

const SENTENCES = {
  agent_spawned: (event) => `Created as ${quoted(event.name)}${event.by_turn_id ? " by another agent" : ""}`,
  agent_started: () => "Started",
  agent_stopped: () => "Stopped",
  agent_updated: () => "Settings changed",
  agent_terminated: (event) => `Deleted: ${quoted(event.name)}`,
  message_received: (event) => `Received ${quoted(event.text)}`,
  turn_started: () => "Started a turn",
  turn_completed: (event) => `Answered${usage(event.usage) ? ` (${usage(event.usage)})` : ""}: ${event.text ?? ""}`,
  turn_failed: (event) => `Failed: ${errorText({ error: event.error })}`,
  session_compacted: (event) => `Compacted ${event.messages_before} messages to ${event.messages_after}`,
  tool_called: (event) => `Called ${event.tool}${event.is_error ? ", which failed" : ""}`,
  tool_refused: (event) => `Was refused ${event.tool}${event.breaker ? ": the same call failed too often" : ""}`,
  tool_unknown: (event) => `Asked for ${event.tool}; its outcome is unknown after a restart`,
  task_posted: (event) => `Task ${quoted(event.title)} posted${event.assignee ? ` for ${event.assignee}` : ""}`,
  task_claimed: (event) => `Claimed the task ${quoted(event.title)}`,
  task_completed: (event) => `Completed the task ${quoted(event.title)}${event.result ? `: ${event.result}` : ""}`,
  task_failed: (event) => `Failed the task ${quoted(event.title)}${event.error ? `: ${event.error}` : ""}`,
  schedule_fired: (event) => `Schedule fired${due(event.slot)}`,
  cron_fired: (event) => `Cron job ${quoted(event.name)} fired${due(event.slot)}`,
  workflow_started: (event) => `Workflow ${quoted(event.name)} started`,
  workflow_completed: (event) => `Workflow ${quoted(event.name)} completed${event.output ? `: ${event.output}` : ""}`,
  workflow_failed: (event) => `Workflow ${quoted(event.name)} failed: ${event.error}`,
  approval_requested: (event) => `Waits for approval of ${event.tool}`,
  approval_resolved: (event) => `Approval ${event.decision}`,
  budget_warning: (event) => `Most of the ${budget(event)} is used`,
  budget_exceeded: (event) => `The ${budget(event)} is reached`,
  memory_updated: (event) => `${event.deleted ? "Deleted" : "Stored"} the memory key ${quoted(event.key)}`,
  knowledge_updated: (event) => `Knowledge: ${[[event.entities, "entity", "entities"], [event.relations, "relation"]].filter(([number]) => number > 0).map(([number, one, many]) => `${count(number, one, many)} stored`).concat(event.deleted > 0 ? [`${event.deleted} deleted`] : []).join(", ")}`,
  custom: (event) => `${event.event_type}${event.payload && event.payload !== "{}" && event.payload !== "null" ? `: ${typeof event.payload === "string" ? event.payload : JSON.stringify(event.payload)}` : ""}`,
};

/** An event on one line, without its agent. Kinds that this page does not know are shown as their fields. */
export function sentenceOf(event) {
  const known = SENTENCES[event.kind];
  const text = known ? known(event) : fieldsOf(event);
  return text.replace(/\s+/g, " ").trim();
}

function fieldsOf(event) {
  const skipped = ["kind", "agent_id", "turn_id", "session_id", "by_turn_id"];
  return Object.entries(event).filter(([key, value]) => !skipped.includes(key) && value !== "" && value !== null)
    .map(([key, value]) => `${key.replaceAll("_", " ")} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ");
}

/** Which of the kinds of events names its agent in `name`: in others that is the name of something else. */
const NAMES_AGENT = new Set(["agent_spawned", "agent_terminated"]);

/** The name of the agent of an event, where the event itself says it. */
export const agentNamedBy = (event) => (NAMES_AGENT.has(event.kind) ? event.name : null);
