// Tries one step of a workflow: its prompt goes to its agent once, in a session of its own that is deleted afterwards.

import { call, get, stream } from "../../lib/api.js";
import { textBox } from "../../lib/controls.js";
import { showError } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { duration, money } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { LiveTurn } from "../chat/live.js";
import { namesOf } from "./workflow-form.js";

/** Values that a test begins with: what earlier tests gave, by the name of the variable. */
export class Tested {
  constructor() {
    this.values = new Map();
    /** What each step got in the newest run, by its form. */
    this.inputs = new Map();
    /** What each step gave in a test, by its form. */
    this.outputs = new Map();
    /** Called when a step was tested. */
    this.changed = () => {};
  }

  /** Takes what a run had, for tests before any: its input, and of each step the form, the name of its variable and its output. */
  learn(input, steps) {
    if (this.outputs.size > 0) return;
    this.values.set("run_input", input);
    steps.forEach(({ form, variable, output }, at) => {
      this.inputs.set(form, at === 0 ? input : steps[at - 1].output);
      if (variable) this.values.set(variable, output);
    });
  }

  /** What a test of `form` begins with for a variable. */
  valueOf(form, name) {
    return (name === "input" ? this.inputs.get(form) : null) ?? this.values.get(name) ?? "";
  }

  /** Notes the output of a step: the input of the next one, and of those that use its variable. */
  note(form, output, variable) {
    this.inputs.clear();
    this.values.set("input", output);
    if (variable) this.values.set(variable, output);
    this.outputs.set(form, output);
    this.changed();
  }
}

/** The part of the panel that tests `form`, a step. `tested` is shared by all steps. */
export function testPart(form, tested, signal) {
  const inputs = h("div", { class: "stack" });
  const answer = h("div", { class: "step-answer" });
  const run = h("button", { type: "button", onclick: () => begin().catch(showError) }, icon("play", 17), "Test this step");
  const node = h("details", { class: "step-test", ontoggle: () => { if (node.open) show(); } }, h("summary", {}, icon("play", 15), "Try this step alone"),
    h("div", { class: "stack" }, h("p", { class: "hint" }, "Sends the prompt to the agent once, in a session of its own. The call is paid for; conditions, loops and retries are left out."), inputs, run, answer));
  let fields = new Map();

  /** Asks for a value of each variable that the prompt uses. */
  function show() {
    const names = namesOf(form.read().prompt ?? "");
    const before = fields;
    fields = new Map(names.map((name) => [name, before.get(name) ?? field(`{{${name}}}`, textBox(tested.valueOf(form, name), 2))]));
    fill(inputs, fields.size > 0 ? h("h3", {}, "Input") : null, [...fields.values()]);
  }

  async function begin() {
    show();
    const agent = await form.agent.read();
    if (!agent) {
      form.agent.fault("Choose an agent.");
      form.agent.control.focus();
      return;
    }
    const step = form.read();
    const message = step.prompt.replace(/\{\{\s*([^{}]+?)\s*\}\}/g, (whole, name) => fields.get(name)?.control.value ?? whole);
    const began = Date.now();
    run.disabled = true;
    let session = null;
    try {
      session = (await call("POST", `/api/agents/${agent}/sessions`, {}, { signal })).session_id;
      const live = new LiveTurn(form.agent.control.value.trim(), null, (change) => change());
      fill(answer, live.node);
      await stream(`/api/agents/${agent}/message/stream`, { message, session_id: session }, (name, event) => live.event(name, event), { signal });
      if (!live.isOver) live.end(null);
      const { messages } = await get(`/api/sessions/${session}/messages?limit=100`, { signal });
      live.results(messages);
      const said = messages.filter(({ role }) => role === "Assistant");
      const output = said.at(-1)?.content ?? "";
      const cost = said.reduce((sum, { usage }) => sum + (usage?.cost_usd ?? 0), 0);
      tested.note(form, output, step.output_var);
      answer.prepend(h("h3", {}, "Output"));
      answer.append(h("p", { class: "hint", role: "status" }, `${duration(Date.now() - began)} · ${money(cost)}. Tests of later steps begin with this output.`));
      answer.scrollIntoView({ block: "nearest" });
    } finally {
      run.disabled = false;
      if (session) await call("DELETE", `/api/sessions/${session}`).catch(showError);
    }
  }

  return node;
}
