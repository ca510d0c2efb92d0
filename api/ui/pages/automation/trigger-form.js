// The form of a trigger, patterns in words, and the form that publishes a custom event.

import { call } from "../../lib/api.js";
import { agentField } from "../../lib/agents.js";
import { checkAll, faultAt, needed } from "../../lib/checks.js";
import { choice, numberInput, numberOf, textBox, textInput, toggle } from "../../lib/controls.js";
import { ask } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { count, duration } from "../../lib/format.js";
import { triggerTest } from "./trigger-test.js";

/** Kinds of patterns with their words. */
const KINDS = [
  ["all", "Everything"], ["lifecycle", "Agent created, changed or deleted"], ["system", "Schedules, workflows, approvals, budgets"],
  ["agent_spawned", "Agent created"], ["agent_started", "Agent started"], ["agent_stopped", "Agent stopped"],
  ["agent_updated", "Agent updated"], ["agent_terminated", "Agent deleted"],
  ["message_received", "Message received"], ["turn_started", "Turn started"], ["turn_completed", "Turn completed"], ["turn_failed", "Turn failed"],
  ["session_compacted", "Session compacted"], ["tool_called", "Tool called"], ["tool_refused", "Tool call refused"], ["tool_unknown", "Tool call with unknown effect"],
  ["task_posted", "Task created"], ["task_claimed", "Task claimed"], ["task_completed", "Task completed"], ["task_failed", "Task failed"],
  ["schedule_fired", "Schedule fired"], ["cron_fired", "Cron job fired"],
  ["workflow_started", "Workflow started"], ["workflow_completed", "Workflow completed"], ["workflow_failed", "Workflow failed"],
  ["approval_requested", "Approval requested"], ["approval_resolved", "Approval decided"],
  ["budget_warning", "Budget 80% used"], ["budget_exceeded", "Budget exceeded"], ["memory_updated", "Memory updated"],
  ["knowledge_updated", "Knowledge updated"],
  ["custom", "Custom event"], ["content_match", "Text that contains..."],
];
const WORDS = new Map(KINDS);
/** The same by what they are about, in the order of the form. */
const GROUPS = [
  ["Messages and turns", ["turn_completed", "turn_failed", "turn_started", "message_received", "content_match", "session_compacted"]],
  ["Your own", ["custom"]],
  ["Tasks", ["task_posted", "task_claimed", "task_completed", "task_failed"]],
  ["Automation", ["schedule_fired", "cron_fired", "workflow_started", "workflow_completed", "workflow_failed"]],
  ["Approvals and budgets", ["approval_requested", "approval_resolved", "budget_warning", "budget_exceeded"]],
  ["Tools and memory", ["tool_called", "tool_refused", "tool_unknown", "memory_updated", "knowledge_updated"]],
  ["Agents", ["agent_spawned", "agent_started", "agent_stopped", "agent_updated", "agent_terminated"]],
  ["Several", ["lifecycle", "system", "all"]],
];

/** Kinds that take no name of an agent. */
const NAMELESS = new Set(["all", "lifecycle", "system", "custom", "content_match", "task_posted"]);

/** A pattern in words: `{"turn_failed": {"name_pattern": "web-*"}}` is "Turn failed, agent web-*". */
export function patternText(pattern) {
  if (typeof pattern === "string") return WORDS.get(pattern) ?? pattern;
  const [kind, values] = Object.entries(pattern ?? {})[0] ?? ["?", {}];
  const words = WORDS.get(kind) ?? kind;
  if (values?.event_type) return `Event ${values.event_type}`;
  if (values?.substring) return `Text with “${values.substring}”`;
  if (values?.name_pattern) return `${words}, agent ${values.name_pattern}`;
  if (values?.assignee_match) return `${words}, ${{ self: "for this agent", unassigned: "for no agent" }[values.assignee_match] ?? `for ${values.assignee_match}`}`;
  return words;
}

/** Kinds as what happens. */
const MOMENTS = {
  all: "anything happens", lifecycle: "an agent is created, changed or deleted", system: "a schedule, workflow, approval or budget changes",
  agent_spawned: "{agent} is created", agent_started: "{agent} is started", agent_stopped: "{agent} is stopped", agent_updated: "{agent} is changed", agent_terminated: "{agent} is deleted",
  message_received: "{agent} receives a message", turn_started: "{agent} starts a turn", turn_completed: "{agent} completes a turn", turn_failed: "a turn of {agent} fails", session_compacted: "a session of {agent} is compacted",
  tool_called: "{agent} calls a tool", tool_refused: "a tool call of {agent} is refused", tool_unknown: "the effect of a tool call of {agent} is unknown",
  task_claimed: "{agent} claims a task", task_completed: "{agent} completes a task", task_failed: "{agent} fails a task",
  schedule_fired: "a schedule of {agent} fires", cron_fired: "a cron job of {agent} fires", workflow_started: "a workflow starts", workflow_completed: "a workflow completes", workflow_failed: "a workflow fails",
  approval_requested: "{agent} asks for an approval", approval_resolved: "an approval of {agent} is decided", budget_warning: "80 % of a budget is used", budget_exceeded: "a budget is exceeded",
  memory_updated: "the memory of {agent} changes", knowledge_updated: "the knowledge of {agent} changes",
};

/** When a trigger fires: "When a turn of any agent fails". */
function momentText(kind, { name_pattern: name, assignee_match: assignee, event_type: type, substring }) {
  if (kind === "custom") return `When the event ${type || "…"} is published`;
  if (kind === "content_match") return `When a text contains “${substring || "…"}”`;
  if (kind === "task_posted") return `When a task is created${{ self: " for this agent", unassigned: " for no agent" }[assignee] ?? ""}`;
  const who = !name ? "any agent" : /[*?]/.test(name) ? `an agent named ${name}` : name;
  return `When ${(MOMENTS[kind] ?? `${kind} happens`).replace("{agent}", who)}`;
}

/** Asks for a new trigger, which begins as `draft`, or for changes of `item`; null when it was left. */
export function editTrigger(item, draft = null) {
  const from = item ?? draft;
  const [known, values] = typeof from?.pattern === "string" ? [from.pattern, {}] : (Object.entries(from?.pattern ?? {})[0] ?? ["turn_failed", {}]);
  const target = agentField("Send to", { id: item?.target_agent_id ?? from?.agent_id ?? null });
  const owner = agentField("Owner", { id: item?.agent_id ?? null, optional: true, hint: item ? "The owner cannot be changed." : "The agent that the trigger is deleted with. Leave empty for the agent that receives the prompt." });
  const kind = field("When", choice([], known));
  for (const [label, names] of GROUPS) kind.control.append(h("optgroup", { label }, names.map((name) => h("option", { value: name, selected: name === known }, WORDS.get(name)))));
  const name = field("Only agents named", textInput(values?.name_pattern, { placeholder: "any, or a glob such as web-*", spellcheck: "false" }));
  const assignee = field("Only for", choice([["", "Any agent"], ["self", "This agent"], ["unassigned", "Unassigned tasks"]], values?.assignee_match ?? ""));
  const type = field("Event type", textInput(values?.event_type, { placeholder: "report.ready", spellcheck: "false" }), { hint: "The event_type given to POST /api/events." });
  const part = field("Text", textInput(values?.substring, { placeholder: "invoice" }), { hint: "Searches messages, responses, errors, tasks, results and payloads, case-insensitively." });
  const prompt = field("Prompt", textBox(from?.prompt_template ?? "This happened: {{event}}", 4), { hint: "{{event}} stands for the event as JSON, with its kind, its agent and what it says." });
  const fires = field("Max fires", numberInput(item?.max_fires || "", { min: 0, placeholder: "unlimited" }), { hint: "Leave empty for no limit." });
  const cooldown = field("Cooldown", numberInput(item?.cooldown_secs ?? "", { min: 0, placeholder: "default" }), { hint: "Minimum seconds between two fires." });
  const session = field("Session", choice([["", "Agent default"], ["persistent", "Current session"], ["new", "New session each time"]], item?.session_mode ?? ""));
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
  /** What the trigger does, in one sentence. */
  const told = h("p", { class: "preview", role: "status" });
  const tell = () => {
    const text = (made) => (made.hidden ? "" : made.control.value.trim());
    const values = { name_pattern: text(name), assignee_match: text(assignee), event_type: text(type), substring: text(part) };
    const limits = [numberOf(fires.control) > 0 ? `at most ${count(numberOf(fires.control), "time")}` : "", numberOf(cooldown.control) > 0 ? `at most every ${duration(numberOf(cooldown.control) * 1000)}` : ""].filter(Boolean).join(", ");
    told.textContent = `${momentText(kind.control.value, values)}, send the prompt to ${text(target) || "the agent"}${limits ? `, ${limits}` : ""}.`;
  };
  if (item) for (const made of [owner, kind, name, assignee, type, part]) made.control.disabled = true;

  const pattern = () => {
    const word = kind.control.value;
    const text = (made) => made.control.value.trim();
    if (word === "custom") {
      if (text(type) === "") throw faultAt(type, "Enter the event type.");
      return { custom: { event_type: text(type) } };
    }
    if (word === "content_match") {
      if (text(part) === "") throw faultAt(part, "Enter the text.");
      return { content_match: { substring: text(part) } };
    }
    if (word === "task_posted") return { task_posted: text(assignee) === "" ? {} : { assignee_match: text(assignee) } };
    return { [word]: NAMELESS.has(word) || text(name) === "" ? {} : { name_pattern: text(name) } };
  };
  for (const made of [kind, name, assignee, type, part, target, fires, cooldown]) made.addEventListener("input", tell);
  tell();
  const tried = triggerTest(async () => {
    const [to, matched] = await checkAll(() => target.read(), () => pattern(), () => needed(prompt, "Enter the prompt."));
    return { pattern: matched, prompt: prompt.control.value, target: to };
  });
  return ask({
    title: item ? "Edit trigger" : "New trigger", wide: true, action: item ? "Save" : "Create",
    fields: { agent_id: owner, target_agent_id: target, pattern: kind, "pattern.custom": type, "pattern.content_match": part, prompt_template: prompt, max_fires: fires, cooldown_secs: cooldown, session_mode: session },
    body: [
      h("div", { class: "form-row" }, kind, h("div", {}, name, assignee, type, part)),
      item ? h("p", { class: "hint" }, "The event of a trigger cannot be changed. Create a new trigger instead.") : null,
      target, prompt, told, tried, enabled,
      h("details", { open: item !== null && (item.max_fires > 0 || item.cooldown_secs || item.session_mode || item.target_agent_id) }, h("summary", {}, "Limits, session and owner"), h("div", { class: "stack" }, h("div", { class: "form-row three" }, fires, cooldown, session), owner)),
    ],
    submit: async () => {
      const [to, chosen, matched] = await checkAll(() => target.read(), () => (item ? item.agent_id : owner.read()), () => (item ? null : pattern()), () => needed(prompt, "Enter the prompt."));
      const agent_id = chosen ?? to;
      const body = {
        prompt_template: prompt.control.value, enabled: enabled.box.checked, max_fires: numberOf(fires.control) ?? 0,
        cooldown_secs: numberOf(cooldown.control), session_mode: session.control.value || null, target_agent_id: to === agent_id ? null : to,
      };
      if (item) return call("PATCH", `/api/triggers/${item.id}`, body);
      return call("POST", "/api/triggers", { ...body, agent_id, pattern: matched });
    },
  });
}

/** Asks for a custom event, of the type `known` where it is given, and publishes it. */
export function publishEvent(known = "") {
  const type = field("Event type", textInput(known, { spellcheck: "false", placeholder: "report.ready" }), { hint: "Lower case letters, digits, dots, dashes." });
  const payload = field("Payload", textBox("{}", 5, { class: "code", spellcheck: "false" }), { hint: "Any JSON." });
  const agent = agentField("About", { optional: true });
  return ask({
    title: "Publish an event", action: "Publish", fields: { event_type: type, payload, agent_id: agent }, body: [type, payload, agent],
    submit: async () => {
      let value = null;
      try {
        value = payload.control.value.trim() === "" ? null : JSON.parse(payload.control.value);
      } catch (error) {
        throw faultAt(payload, `Invalid JSON: ${error.message}.`);
      }
      const about = await agent.read();
      return call("POST", "/api/events", { event_type: type.control.value.trim(), payload: value, ...(about ? { agent_id: about } : {}) });
    },
  });
}
