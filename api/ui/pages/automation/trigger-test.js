// What the prompt of a trigger would be: with the newest event that it matches, and sent to the agent where one wants to see the answer.

import { call, get, withQuery } from "../../lib/api.js";
import { learnAll, nameOf } from "../../lib/agents.js";
import { faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { ago } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";
import { fits } from "../../lib/rights.js";

/** Events among which one that matches is looked for. */
const LOOKED = 200;
/** The kinds of patterns that stand for several kinds of events; null is any. */
const GROUPS = {
  all: null, content_match: null,
  lifecycle: ["agent_spawned", "agent_started", "agent_stopped", "agent_updated", "agent_terminated"],
  system: ["schedule_fired", "cron_fired", "workflow_started", "workflow_completed", "workflow_failed", "approval_requested", "approval_resolved", "budget_warning", "budget_exceeded", "memory_updated", "knowledge_updated"],
};

/** The newest stored event that `pattern` matches, or null. */
async function lastMatch(pattern) {
  const [kind, { name_pattern: name, event_type: type, substring, assignee_match: assignee }] = Object.entries(pattern)[0];
  const kinds = kind in GROUPS ? GROUPS[kind] : [kind];
  const { events } = await get(withQuery("/api/events", { kind: kinds?.join(",") ?? null, limit: LOOKED }));
  if (name) await learnAll(events.map(({ agent_id: id }) => id), () => {});
  return events.find(({ agent_id: agent, event }) => (!name || fits(name, nameOf(agent))) && (!type || event.event_type === type)
    && (!substring || JSON.stringify(event).toLowerCase().includes(substring.toLowerCase())) && (assignee !== "unassigned" || !event.assignee)) ?? null;
}

/** The part of the form that tries the prompt. `read()` gives `{ pattern, prompt, target }`, and throws for what is missing; `target` is the id of the agent. */
export function triggerTest(read) {
  if (!seesAll()) return null;
  const place = h("div", { class: "stack tight-stack", role: "status" });
  const button = h("button", { type: "button", class: "small", onclick: () => test().catch((error) => say(h("p", { class: "fault" }, faultText(error)))) }, icon("play", 15), "Test with the last event");
  const say = (...nodes) => fill(place, nodes);

  async function test() {
    const { pattern, prompt, target } = await read();
    const found = await lastMatch(pattern);
    if (!found) return say(h("p", { class: "hint" }, "None of the latest events matches. Come back when one has happened, or publish an event of your own."));
    const text = prompt.replaceAll("{{event}}", () => JSON.stringify(found.event));
    const send = h("button", { type: "button", class: "small", onclick: () => sendTo(target, text, send).catch((error) => say(h("p", { class: "fault" }, faultText(error)))) }, icon("send", 15), `Send this to ${nameOf(target)} now`);
    return say(h("p", { class: "hint" }, `The prompt for the last event that matches, ${ago(found.at)}:`), h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Prompt for the last event" }, text), can("chat") ? h("div", { class: "buttons" }, send) : null);
  }

  async function sendTo(agent, message, send) {
    fill(send, h("span", { class: "spinner" }), "Running…");
    send.disabled = true;
    const { session_id: session } = await call("POST", `/api/agents/${agent}/sessions`, {});
    const { response } = await call("POST", `/api/agents/${agent}/message`, { message, session_id: session });
    say(h("p", { class: "hint" }, `${nameOf(agent)} answered:`), h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Answer to the test" }, response));
  }

  return h("div", { class: "stack tight-stack" }, h("div", { class: "buttons" }, button), place);
}
