// The form of a trigger, patterns in words, and the form that publishes a custom event.

import { call } from "../../lib/api.js";
import { agentField, faultAt } from "../../lib/agents.js";
import { choice, numberInput, numberOf, textBox, textInput, toggle } from "../../lib/controls.js";
import { ask } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";

/** Kinds of patterns with their words. */
const KINDS = [
  ["all", "Everything"], ["lifecycle", "Any agent comes, goes or changes"], ["system", "Schedules, workflows, approvals, budgets"],
  ["agent_spawned", "An agent was created"], ["agent_started", "An agent was started"], ["agent_stopped", "An agent was stopped"],
  ["agent_updated", "An agent was changed"], ["agent_terminated", "An agent was removed"],
  ["message_received", "A message came in"], ["turn_started", "A turn began"], ["turn_completed", "A turn was answered"], ["turn_failed", "A turn failed"],
  ["session_compacted", "A session was summarised"], ["tool_called", "A tool was called"], ["tool_refused", "A tool call was refused"], ["tool_unknown", "A tool's effect is unknown"],
  ["task_posted", "A task was posted"], ["task_claimed", "A task was claimed"], ["task_completed", "A task was completed"], ["task_failed", "A task failed"],
  ["schedule_fired", "A schedule fired"], ["cron_fired", "A cron job fired"],
  ["workflow_started", "A workflow began"], ["workflow_completed", "A workflow was completed"], ["workflow_failed", "A workflow failed"],
  ["approval_requested", "An approval is asked for"], ["approval_resolved", "An approval was decided"],
  ["budget_warning", "Most of a budget is spent"], ["budget_exceeded", "A budget is spent"], ["memory_updated", "Memory was changed"],
  ["custom", "A custom event"], ["content_match", "Text that contains..."],
];
const WORDS = new Map(KINDS);

/** Kinds that take no name of an agent. */
const NAMELESS = new Set(["all", "lifecycle", "system", "custom", "content_match", "task_posted"]);

/** A pattern in words: `{"turn_failed": {"name_pattern": "web-*"}}` is "A turn failed, of web-*". */
export function patternText(pattern) {
  if (typeof pattern === "string") return WORDS.get(pattern) ?? pattern;
  const [kind, values] = Object.entries(pattern ?? {})[0] ?? ["?", {}];
  const words = WORDS.get(kind) ?? kind;
  if (values?.event_type) return `Event ${values.event_type}`;
  if (values?.substring) return `Text with “${values.substring}”`;
  if (values?.name_pattern) return `${words}, of ${values.name_pattern}`;
  if (values?.assignee_match) return `${words}, for ${values.assignee_match}`;
  return words;
}

/** Asks for a new trigger, or for changes of `item`; null when it was left. */
export function editTrigger(item) {
  const [known, values] = typeof item?.pattern === "string" ? [item.pattern, {}] : (Object.entries(item?.pattern ?? {})[0] ?? ["turn_failed", {}]);
  const agent = agentField("Agent", { id: item?.agent_id ?? null, hint: item ? "The owner of a trigger stays." : "Owns the trigger and is told." });
  const target = agentField("Tell another agent instead", { id: item?.target_agent_id ?? null, optional: true });
  const kind = field("When", choice(KINDS, known));
  const name = field("Only of agents called", textInput(values?.name_pattern, { placeholder: "any, or a glob such as web-*", spellcheck: "false" }));
  const assignee = field("Only for", choice([["", "Anyone"], ["self", "This agent"], ["unassigned", "Nobody: unassigned tasks"]], values?.assignee_match ?? ""));
  const type = field("Event type", textInput(values?.event_type, { placeholder: "report.ready", spellcheck: "false" }), { hint: "As it was given to POST /api/events." });
  const part = field("Text", textInput(values?.substring, { placeholder: "invoice" }), { hint: "Messages, answers, errors, tasks, results and payloads; whatever the case." });
  const prompt = field("Prompt", textBox(item?.prompt_template ?? "This happened: {{event}}", 4), { hint: "{{event}} stands for the event as JSON." });
  const fires = field("At most", numberInput(item?.max_fires || "", { min: 0, placeholder: "without bound" }), { hint: "Times in all." });
  const cooldown = field("Cooldown", numberInput(item?.cooldown_secs ?? "", { min: 0, placeholder: "default" }), { hint: "Seconds." });
  const session = field("Session", choice([["", "As the agent says"], ["persistent", "The current one"], ["new", "A new one each time"]], item?.session_mode ?? ""));
  const enabled = toggle("Enabled", item?.enabled ?? true);
  const arrange = () => {
    const word = kind.control.value;
    name.hidden = NAMELESS.has(word);
    assignee.hidden = word !== "task_posted";
    type.hidden = word !== "custom";
    part.hidden = word !== "content_match";
  };
  kind.control.addEventListener("change", arrange);
  arrange();
  if (item) for (const made of [agent, kind, name, assignee, type, part]) made.control.disabled = true;

  const pattern = () => {
    const word = kind.control.value;
    const text = (made) => made.control.value.trim();
    if (word === "custom") {
      if (text(type) === "") throw faultAt(type, "Say which events.");
      return { custom: { event_type: text(type) } };
    }
    if (word === "content_match") {
      if (text(part) === "") throw faultAt(part, "Say which text.");
      return { content_match: { substring: text(part) } };
    }
    if (word === "task_posted") return { task_posted: text(assignee) === "" ? {} : { assignee_match: text(assignee) } };
    return { [word]: NAMELESS.has(word) || text(name) === "" ? {} : { name_pattern: text(name) } };
  };
  return ask({
    title: item ? "Edit trigger" : "New trigger", wide: true, action: item ? "Save" : "Create",
    fields: { agent_id: agent, target_agent_id: target, pattern: kind, prompt_template: prompt, max_fires: fires, cooldown_secs: cooldown, session_mode: session },
    body: [
      h("div", { class: "form-row" }, kind, h("div", {}, name, assignee, type, part)),
      item ? h("p", { class: "hint" }, "What a trigger waits for cannot be changed: make another one for that.") : null,
      h("div", { class: "form-row" }, agent, target), prompt, h("div", { class: "form-row three" }, fires, cooldown, session), enabled,
    ],
    submit: async () => {
      const body = {
        prompt_template: prompt.control.value, enabled: enabled.box.checked, max_fires: numberOf(fires.control) ?? 0,
        cooldown_secs: numberOf(cooldown.control), session_mode: session.control.value || null, target_agent_id: await target.read(),
      };
      if (item) return call("PATCH", `/api/triggers/${item.id}`, body);
      return call("POST", "/api/triggers", { ...body, agent_id: await agent.read(), pattern: pattern() });
    },
  });
}

/** Asks for a custom event and publishes it. */
export function publishEvent() {
  const type = field("Event type", textInput("", { spellcheck: "false", placeholder: "report.ready" }), { hint: "Lower case letters, digits, dots, dashes." });
  const payload = field("Payload", textBox("{}", 5, { class: "code", spellcheck: "false" }), { hint: "Any JSON." });
  const agent = agentField("About", { optional: true });
  return ask({
    title: "Publish an event", action: "Publish", fields: { event_type: type, payload, agent_id: agent }, body: [type, payload, agent],
    submit: async () => {
      let value = null;
      try {
        value = payload.control.value.trim() === "" ? null : JSON.parse(payload.control.value);
      } catch (error) {
        throw faultAt(payload, `This is no JSON: ${error.message}.`);
      }
      const about = await agent.read();
      return call("POST", "/api/events", { event_type: type.control.value.trim(), payload: value, ...(about ? { agent_id: about } : {}) });
    },
  });
}
