// The fields of a workflow's step, and its words for people.

import { agentField, learn, nameOf } from "../../lib/agents.js";
import { choice, numberInput, numberOf, textBox, textInput } from "../../lib/controls.js";
import { field, h, refill } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

const MODES = [["sequential", "After the previous step"], ["fan_out", "In parallel with adjacent steps"], ["collect", "Join the outputs"], ["conditional", "Only if a condition is true"], ["loop", "Repeat until a condition is true"]];
const ERRORS = [["fail", "The run fails"], ["skip", "Continue without it"], ["retry", "Try again"]];

/** What a step is made of, as pairs of words for people. */
export function stepText(step) {
  const agent = step.agent_name || (step.agent_id ? nameOf(step.agent_id) : "");
  const pairs = [
    ["Mode", MODES.find(([mode]) => mode === step.mode)?.[1] ?? step.mode], ["Agent", agent], ["Prompt", step.prompt ? h("pre", { class: "code-box" }, step.prompt) : ""],
    ["Condition", step.condition && h("code", {}, step.condition)], ["Until", step.until && h("code", {}, step.until)],
    ["Output variable", step.output_var && h("code", {}, `{{${step.output_var}}}`)], ["On an error", ERRORS.find(([mode]) => mode === step.error_mode)?.[1]],
    ["Timeout", step.timeout_secs ? `${step.timeout_secs} s` : ""],
  ];
  return pairs.filter(([, value]) => value);
}

/** Names that a template asks for, in their order, each once. */
export const namesOf = (template) => [...new Set([...template.matchAll(/\{\{\s*([^{}]+?)\s*\}\}/g)].map(([, name]) => name))];

/**
 * The fields of one step. `read()` gives what the API takes; `sketch()` the same without checks, for the graph. `changed` is called with
 * each change. `form.offer(names)` shows the variables that the prompt may use.
 */
export function stepForm(step, changed) {
  const name = field("Name", textInput(step.name));
  const mode = field("Runs", choice(MODES, step.mode ?? "sequential"));
  if (step.agent_id && step.agent_name) learn(step.agent_id, step.agent_name);
  const agent = agentField("Agent", { optional: true });
  agent.control.value = step.agent_name || (step.agent_id ? nameOf(step.agent_id) : "");
  agent.control.placeholder = "Choose an agent";
  const prompt = field("Prompt", textBox(step.prompt ?? "{{input}}", 6));
  const offered = h("div", { class: "variables", role: "group", "aria-label": "Insert a variable" });
  prompt.append(offered);
  const condition = field("Condition", textInput(step.condition, { class: "code", placeholder: "output contains \"yes\"", spellcheck: "false" }));
  const until = field("Until", textInput(step.until, { class: "code", placeholder: "output contains \"done\"", spellcheck: "false" }));
  const rounds = field("Max iterations", numberInput(step.max_iterations, { min: 1, max: 50, placeholder: "5" }));
  const output = field("Output variable", textInput(step.output_var, { spellcheck: "false", placeholder: "no name" }), { hint: "Later steps use it as {{name}}." });
  const errors = field("On an error", choice(ERRORS, step.error_mode ?? "fail"));
  const retries = field("Retries", numberInput(step.max_retries, { min: 0, max: 100, placeholder: "3" }));
  const timeout = field("Timeout in seconds", numberInput(step.timeout_secs, { min: 1, max: 86_400, placeholder: "120" }));
  const arrange = () => {
    const word = mode.control.value;
    agent.hidden = prompt.hidden = word === "collect";
    condition.hidden = word !== "conditional";
    until.hidden = rounds.hidden = word !== "loop";
    retries.hidden = errors.control.value !== "retry";
  };
  const more = h("details", { class: "step-more", open: Boolean(step.timeout_secs || (step.error_mode && step.error_mode !== "fail")) }, h("summary", {}, icon("chevron", 14), "Output name, errors and timeout"),
    h("div", { class: "stack" }, output, h("div", { class: "form-row" }, errors, retries), timeout));
  const node = h("div", { class: "stack", oninput: () => { arrange(); changed(); } }, h("div", { class: "form-row" }, name, mode), agent, prompt, condition,
    h("div", { class: "form-row" }, until, rounds), more);
  arrange();
  const text = (made) => made.control.value.trim();
  const insert = (word) => {
    const { control } = prompt;
    control.setRangeText(`{{${word}}}`, control.selectionStart, control.selectionEnd, "end");
    control.focus();
    changed();
  };
  const offer = (names) => refill(offered, h("span", { class: "hint" }, "Insert"), names.map((word) => h("button", { type: "button", class: "small variable mono", data: { key: word }, onclick: () => insert(word) }, `{{${word}}}`)));
  const sketch = () => ({ name: text(name), mode: mode.control.value, agent_name: text(agent), max_iterations: numberOf(rounds.control) ?? 5, output_var: text(output) });
  const read = () => {
    const word = mode.control.value;
    const body = { mode: word, error_mode: errors.control.value };
    if (text(name)) body.name = text(name);
    if (word !== "collect") {
      if (step.agent_id && !step.agent_name && text(agent) === nameOf(step.agent_id)) body.agent_id = step.agent_id;
      else if (text(agent)) body.agent_name = text(agent);
      body.prompt = prompt.control.value;
    }
    if (word === "conditional") body.condition = text(condition);
    if (word === "loop" && text(until)) body.until = text(until);
    if (word === "loop" && numberOf(rounds.control) !== null) body.max_iterations = numberOf(rounds.control);
    if (text(output)) body.output_var = text(output);
    if (numberOf(timeout.control) !== null) body.timeout_secs = numberOf(timeout.control);
    if (body.error_mode === "retry" && numberOf(retries.control) !== null) body.max_retries = numberOf(retries.control);
    return body;
  };
  /** Marks what is missing; gives the first field of it, or null. */
  const check = () => {
    const word = mode.control.value;
    const missing = [[agent, word !== "collect", "Choose an agent."], [prompt, word !== "collect", "Enter the prompt."], [condition, word === "conditional", "Enter the condition."]]
      .filter(([made, isAsked]) => isAsked && text(made) === "");
    for (const [made, , words] of missing) made.fault(words);
    return missing[0]?.[0] ?? null;
  };
  // What is refused is seen.
  for (const made of [output, errors, retries, timeout]) {
    const { fault } = made;
    made.fault = (words) => {
      if (words) more.open = true;
      fault(words);
    };
  }
  const fields = { name, mode, agent_name: agent, agent_id: agent, prompt, condition, until, max_iterations: rounds, output_var: output, error_mode: errors, max_retries: retries, timeout_secs: timeout };
  return { node, agent, sketch, read, offer, fields, check };
}
