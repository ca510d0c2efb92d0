// A run of a workflow: what its head says, what each step got and gave, and the list of all runs. Each run has an address of its own.

import { copyText } from "../../lib/code.js";
import { showError } from "../../lib/dialogs.js";
import { h } from "../../lib/dom.js";
import { duration, stamp, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { stepText } from "./workflow-form.js";

const STATES = { Completed: "good", Failed: "bad", Running: "accent", Pending: "accent", Retrying: "warn", Cancelled: "warn" };

export const stateBadge = (state) => h("span", { class: `badge ${STATES[state] ?? ""}` }, state);
/** Has a run not ended? */
export const isOpen = (run) => ["Pending", "Running", "Retrying"].includes(run.state);
export const runAddress = (workflow, run) => `#/automation/workflows/${workflow}/runs/${run}`;

const lasted = ({ started_at: from, completed_at: to }) => (from && to ? duration(Date.parse(to) - Date.parse(from)) : "");

/** The lines of the list of runs; `chosen` is the id of the one that is shown. */
export function runLines(runs, { workflow, steps, chosen }) {
  return runs.map((item) => h("li", {}, h("a", { class: "run-item", href: runAddress(workflow, item.id), data: { key: item.id }, "aria-current": item.id === chosen ? "true" : null },
    stateBadge(item.state), h("span", { class: "grow two" }, h("span", { class: "cut" }, when(item.started_at)), item.error ? h("small", { class: "faint cut" }, item.error) : null),
    h("small", { class: "faint" }, lasted(item) || `${item.steps_completed} of ${steps} steps`))));
}

/** What stands above the graph of a run. */
export function runHead(run, { workflow, cancel, again }) {
  return [
    h("div", { class: "bar-row run-head" }, stateBadge(run.state), h("strong", {}, `Run of ${stamp(run.started_at)}`), h("span", { class: "dim" }, lasted(run)), h("span", { class: "grow" }),
      isOpen(run) ? h("button", { type: "button", class: "small", onclick: cancel }, icon("stop", 16), "Cancel") : can("chat") ? h("button", { type: "button", class: "small", onclick: again }, icon("retry", 16), "Run again") : null,
      h("a", { class: "button small quiet", href: `#/automation/workflows/${workflow}` }, "Show the definition")),
    run.error ? h("p", { class: "notice bad" }, run.error) : null,
  ];
}

/** A text that went into or came out of a step, with a button that copies it. */
function textPart(title, text, none) {
  const copy = text ? h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Copy the ${title.toLowerCase()}`, title: "Copy", onclick: () => copyText(text).catch(showError) }, icon("copy", 15)) : null;
  return h("section", { class: "step-part", "aria-label": title }, h("div", { class: "bar-row tight" }, h("h3", { class: "grow" }, title), copy),
    text ? h("pre", { class: "code-box" }, text) : h("p", { class: "hint" }, none));
}

/** What `run` as a whole got and gave: the input and the output of the graph. */
export function endsOf(run) {
  return [
    h("h2", {}, "The run"),
    textPart("Input", run.input, "It was started without input."),
    textPart("Output", run.output, isOpen(run) ? "It has not ended." : "It gave no output."),
    h("p", { class: "hint" }, "Select a step in the graph to see what it did."),
  ];
}

/** One step: what it did in a run (`done`, or null), and how it is set up. `close` goes back to the run as a whole. */
export function stepNode(step, index, done, close) {
  const rows = stepText(step).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  const times = done?.started_at ? [lasted(done), done.attempts > 1 ? `${done.attempts} attempts` : "", done.iterations > 1 ? `${done.iterations} rounds` : "", `began ${when(done.started_at)}`].filter(Boolean).join(" · ") : "";
  return [
    h("header", { class: "bar-row" }, h("h2", { class: "grow cut" }, `${index + 1}. ${step.name || `Step ${index + 1}`}`), done ? stateBadge(done.state) : null,
      h("button", { type: "button", class: "quiet small only-icon", "aria-label": "Close the step", title: "Close", onclick: close }, icon("close", 16))),
    times ? h("p", { class: "hint" }, times) : null,
    done?.error ? h("p", { class: "notice bad" }, done.error) : null,
    done ? textPart("Output", done.output, isOpen(done) ? "It has not ended." : done.state === "Skipped" ? "Its condition was not met, or it was left out after an error." : "It gave no output.") : null,
    h("section", { class: "step-part", "aria-label": "Settings" }, done ? h("h3", {}, "Settings") : null, h("dl", { class: "pairs" }, rows)),
  ];
}
