// The editor of a workflow: its name and its steps, with the graph as it becomes.

import { call } from "../../lib/api.js";
import { agentField, learn, nameOf } from "../../lib/agents.js";
import { choice, numberInput, numberOf, textBox, textInput } from "../../lib/controls.js";
import { ask } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { Graph } from "./graph.js";

const MODES = [["sequential", "After the previous step"], ["fan_out", "In parallel with adjacent steps"], ["collect", "Join the outputs"], ["conditional", "Only if a condition is true"], ["loop", "Repeat until a condition is true"]];
const ERRORS = [["fail", "The run fails"], ["skip", "Continue without it"], ["retry", "Try again"]];
const STEPS_MAX = 64;

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

/** The fields of one step. `read()` gives what the API takes; `sketch()` the same without checks, for the graph. */
function stepForm(step, { changed, move, remove, copy }) {
  const name = field("Name", textInput(step.name, { placeholder: "by position" }));
  const mode = field("When", choice(MODES, step.mode ?? "sequential"));
  if (step.agent_id && step.agent_name) learn(step.agent_id, step.agent_name);
  const agent = agentField("Agent", { optional: true });
  agent.control.value = step.agent_name || (step.agent_id ? nameOf(step.agent_id) : "");
  agent.control.placeholder = "Type a name";
  const prompt = field("Prompt", textBox(step.prompt ?? "{{input}}", 3), { hint: "{{input}} is the previous output; {{name}} is the output variable of a step." });
  const condition = field("Condition", textInput(step.condition, { class: "code", placeholder: "output contains \"yes\"", spellcheck: "false" }));
  const until = field("Until", textInput(step.until, { class: "code", placeholder: "output contains \"done\"", spellcheck: "false" }));
  const rounds = field("Max iterations", numberInput(step.max_iterations, { min: 1, max: 50, placeholder: "5" }));
  const output = field("Output variable", textInput(step.output_var, { spellcheck: "false", placeholder: "no name" }));
  const errors = field("On an error", choice(ERRORS, step.error_mode ?? "fail"));
  const timeout = field("Timeout in seconds", numberInput(step.timeout_secs, { min: 1, max: 86_400, placeholder: "120" }));
  const title = h("strong", { class: "cut" });
  const arrange = () => {
    const word = mode.control.value;
    agent.hidden = prompt.hidden = word === "collect";
    condition.hidden = word !== "conditional";
    until.hidden = rounds.hidden = word !== "loop";
    changed();
  };
  const button = (label, name, run) => h("button", { type: "button", class: "quiet small only-icon", "aria-label": label, title: label, onclick: () => run(made) }, icon(name, 16));
  const details = h("details", { open: !step.name }, h("summary", {}, title),
    h("div", { class: "stack" }, h("div", { class: "form-row" }, name, mode), agent, prompt, condition, h("div", { class: "form-row" }, until, rounds), h("div", { class: "form-row three" }, output, errors, timeout)));
  const node = h("div", { class: "step-form" }, details, h("span", { class: "row-actions" }, button("Move up", "chevron", (one) => move(one, -1)), button("Move down", "chevron", (one) => move(one, 1)), button("Copy this step", "copy", copy), button("Remove this step", "trash", remove)));
  const text = (made) => made.control.value.trim();
  const sketch = () => ({ name: text(name), mode: mode.control.value, agent_name: text(agent), max_iterations: numberOf(rounds.control) ?? 5 });
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
    if (step.max_retries !== undefined && body.error_mode === "retry") body.max_retries = step.max_retries;
    return body;
  };
  const made = { node, details, sketch, read, fields: { name, mode, agent_name: agent, agent_id: agent, prompt, condition, until, max_iterations: rounds, output_var: output, error_mode: errors, timeout_secs: timeout }, title };
  mode.control.addEventListener("change", arrange);
  for (const control of [name.control, agent.control, rounds.control]) control.addEventListener("input", changed);
  agent.hidden = prompt.hidden = mode.control.value === "collect";
  condition.hidden = mode.control.value !== "conditional";
  until.hidden = rounds.hidden = mode.control.value !== "loop";
  return made;
}

/** Asks for a new workflow, or for changes of `item`; null when it was left. */
export function editWorkflow(item, signal) {
  const name = field("Name", textInput(item?.name, { required: true }));
  const about = field("Description", textInput(item?.description));
  // The graph goes with the dialog, not with the page.
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { signal: life.signal });
  const graph = new Graph({ signal: life.signal, open: (index) => { forms[index].details.open = true; forms[index].node.scrollIntoView({ block: "nearest" }); } });
  const place = h("div", { class: "stack tight-stack" });
  const fields = { name, description: about };
  let forms = [];

  const changed = () => {
    forms.forEach((form, at) => { form.title.textContent = `${at + 1}. ${form.sketch().name || `step-${at + 1}`}`; });
    graph.set(forms.map((form) => form.sketch()));
    for (const key of Object.keys(fields)) if (key.startsWith("steps[")) delete fields[key];
    forms.forEach((form, at) => {
      for (const [key, made] of Object.entries(form.fields)) fields[`steps[${at}].${key}`] = made;
    });
  };
  const actions = {
    changed: () => changed(),
    move: (form, by) => {
      const at = forms.indexOf(form);
      if (at + by < 0 || at + by >= forms.length) return;
      forms.splice(at, 1);
      forms.splice(at + by, 0, form);
      arrange();
    },
    remove: (form) => { forms = forms.filter((other) => other !== form); arrange(); },
    copy: (form) => { forms.splice(forms.indexOf(form) + 1, 0, stepForm(form.read(), actions)); arrange(); },
  };
  const arrange = () => { fill(place, forms.map((form) => form.node)); changed(); };
  const add = () => { forms.push(stepForm({ mode: "sequential" }, actions)); arrange(); };
  forms = (item?.steps ?? [{ mode: "sequential" }]).map((step) => stepForm(step, actions));
  arrange();
  return ask({
    title: item ? `Edit ${item.name}` : "New workflow", wide: true, action: item ? "Save" : "Create", fields,
    body: [
      h("div", { class: "form-row" }, name, about),
      item ? h("p", { class: "hint" }, "Open runs keep the steps they started with.") : null,
      h("div", { class: "graph-frame" }, graph.node), h("h3", {}, "Steps"), place,
      h("button", { type: "button", onclick: () => forms.length < STEPS_MAX && add() }, icon("plus", 18), "Add a step"),
    ],
    submit: async () => {
      const body = { name: name.control.value.trim(), description: about.control.value.trim(), steps: forms.map((form) => form.read()) };
      try {
        return await (item ? call("PUT", `/api/workflows/${item.id}`, body) : call("POST", "/api/workflows", body));
      } catch (error) {
        // The step at fault may be folded up.
        const at = /^steps\[(\d+)\]/.exec(error.field ?? "")?.[1];
        if (at !== undefined && forms[at]) forms[at].details.open = true;
        throw error;
      }
    },
  }).finally(() => life.abort());
}
