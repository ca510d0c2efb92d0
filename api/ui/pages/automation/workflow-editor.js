// The editor of a workflow: the graph, which steps are added to and chosen in, and beside it the chosen step with a test of it.

import { call, get, page } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { faultText, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h, useStyles } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { holdPage } from "../../lib/unsaved.js";
import { Graph } from "./graph.js";
import { Tested, testPart } from "./step-test.js";
import { stepForm } from "./workflow-form.js";

const STEPS_MAX = 64;
/** Workflows to begin with: label, description, steps. The agents are chosen in the steps. */
export const TEMPLATES = [
  ["One step", "One agent answers", [{ mode: "sequential" }]],
  ["Draft and review", "One agent drafts, another reviews, the first revises", [
    { name: "Draft", prompt: "Write a draft about: {{input}}", output_var: "draft" },
    { name: "Review", prompt: "Review this draft. List what to correct.\n\n{{draft}}", output_var: "review" },
    { name: "Revise", prompt: "Revise the draft.\n\nDraft:\n{{draft}}\n\nReview:\n{{review}}" }]],
  ["Ask several", "Several agents answer in parallel, one sums up", [
    { name: "First answer", mode: "fan_out" }, { name: "Second answer", mode: "fan_out" }, { name: "All answers", mode: "collect" },
    { name: "Summary", prompt: "Compare these answers and sum them up.\n\n{{input}}" }]],
  ["Repeat until good", "One agent improves its answer until it says DONE", [
    { name: "Improve", mode: "loop", prompt: "Improve this text. End with DONE when nothing is left to improve.\n\n{{input}}", until: "output contains \"DONE\"", max_iterations: 5 }]],
];

/**
 * Opens the editor in `root` for `item`, or for a new workflow (null) that begins with one of the `TEMPLATES`. `saved(id, { isRun })` is called when it is stored, `left()` when it is closed
 * without. `signal` ends with the part of the page.
 */
export async function openEditor(root, { item, template = null, signal, saved, left }) {
  await useStyles(new URL("../../styles/chat.css", import.meta.url));
  const name = field("Name", textInput(item?.name, { required: true }));
  const about = field("Description", textInput(item?.description ?? template?.[1]));
  const graph = new Graph({ signal, open: (index) => choose(index), add: (index) => add(index), move: (from, to) => moveTo(from, to) });
  const panel = h("aside", { class: "flow-panel card stack", "aria-label": "Step" });
  const fault = h("p", { class: "fault", role: "alert" });
  const save = h("button", { type: "submit", class: "primary" }, item ? "Save" : "Create");
  const run = can("chat") && h("button", { type: "button", onclick: () => store(true) }, icon("play", 17), item ? "Save and run" : "Create and run");
  const note = h("p", { class: "hint grow", role: "status" });
  const tested = new Tested();
  tested.changed = () => changed();
  /** `{ form, test }` of each step. */
  let steps = (item?.steps ?? template?.[2] ?? [{ mode: "sequential" }]).map(made);
  let chosen = 0;
  /** Steps that lack something, since it was tried to save them. */
  let faulty = new Set();
  let kept = JSON.stringify(body());

  const frame = h("form", { class: "flow-editor stack", novalidate: true, onsubmit: (event) => { event.preventDefault(); store(); } },
    h("div", { class: "bar-row" }, h("button", { type: "button", class: "quiet", "aria-label": "Back", title: "All workflows", onclick: () => left() }, icon("back", 17), "Workflows"), h("strong", { class: "flow-name cut" }), note, run, save),
    h("div", { class: "form-row", oninput: () => changed() }, name, about), item ? null : templates(), fault,
    h("div", { class: "flow-body" }, h("div", { class: "flow-canvas" }, graph.node), panel));

  /** What a new workflow can begin with. */
  function templates() {
    return h("div", { class: "bar-row tight", role: "group", "aria-label": "Start from" }, h("span", { class: "dim" }, "Start from"), TEMPLATES.map(([label, text, list]) => h("button", {
      type: "button", class: "small", title: text, onclick: () => { steps = list.map(made); if (!about.control.value) about.control.value = text; choose(0, { focus: false }); },
    }, label)));
  }

  function made(step) {
    const form = stepForm(step, () => changed());
    return { form, test: can("chat") && testPart(form, tested, signal) };
  }

  function body() {
    return { name: name.control.value.trim(), description: about.control.value.trim(), steps: steps.map(({ form }) => form.read()) };
  }

  const isChanged = () => JSON.stringify(body()) !== kept;

  function changed() {
    const sketches = steps.map(({ form }) => form.sketch());
    graph.chosen = chosen;
    graph.set(sketches.map((sketch, at) => ({ ...sketch, output: tested.outputs.get(steps[at].form), isFaulty: faulty.has(steps[at].form) })));
    frame.querySelector(".flow-name").textContent = name.control.value.trim() || "New workflow";
    note.textContent = isChanged() ? "Unsaved changes." : item ? "Open runs keep the steps they started with." : "";
    steps[chosen]?.form.offer(["input", "run_input", ...new Set(sketches.slice(0, chosen).map((sketch) => sketch.output_var).filter(Boolean))]);
    const title = panel.querySelector("h2");
    if (title) title.textContent = titleOf(chosen);
  }

  const titleOf = (index) => `${index + 1}. ${steps[index].form.sketch().name || `Step ${index + 1}`}`;

  /** Shows the step of `index` in the panel. */
  function choose(index, { focus = true } = {}) {
    chosen = Math.max(0, Math.min(index, steps.length - 1));
    const { form, test } = steps[chosen];
    const button = (label, glyph, run, disabled = false) => h("button", { type: "button", class: "quiet small only-icon", "aria-label": label, title: label, disabled, onclick: run }, icon(glyph, 16));
    fill(panel, h("header", { class: "bar-row" }, h("h2", { class: "grow cut" }, titleOf(chosen)),
      button("Move up", "chevron", () => move(-1), chosen === 0), button("Move down", "chevron", () => move(1), chosen === steps.length - 1),
      button("Copy this step", "copy", () => insert(chosen + 1, made(form.read())), steps.length >= STEPS_MAX), button("Remove this step", "trash", remove, steps.length === 1)),
    form.node, test);
    form.fields.name.control.placeholder = `Step ${chosen + 1}`;
    if (test) test.hidden = form.sketch().mode === "collect";
    changed();
    if (focus) form.fields.name.control.focus({ preventScroll: matchMedia("(min-width: 901px)").matches });
  }

  function insert(index, step) {
    steps.splice(index, 0, step);
    choose(index);
  }

  function add(index) {
    if (steps.length >= STEPS_MAX) toast(`A workflow can have at most ${STEPS_MAX} steps.`, { kind: "bad" });
    else insert(index, made({ mode: "sequential" }));
  }

  function moveTo(from, to) {
    steps.splice(to, 0, ...steps.splice(from, 1));
    choose(to, { focus: false });
  }

  function move(by) {
    moveTo(chosen, chosen + by);
    const again = panel.querySelector(`[aria-label="${by < 0 ? "Move up" : "Move down"}"]`);
    (again.disabled ? panel.querySelector("header button:enabled") : again)?.focus();
  }

  function remove() {
    const at = chosen;
    const [gone] = steps.splice(at, 1);
    choose(at);
    toast("Step removed.", { action: { label: "Undo", run: () => frame.isConnected && insert(Math.min(at, steps.length), gone) } });
  }

  /** Marks all that is missing, in the fields and in the graph; false where there is something. */
  function check() {
    if (name.control.value.trim() === "") name.fault("Enter a name.");
    const missing = steps.map(({ form }) => form.check());
    faulty = new Set(steps.filter((_, at) => missing[at]).map(({ form }) => form));
    const first = missing.findIndex(Boolean);
    if (first >= 0) {
      choose(missing[chosen] ? chosen : first, { focus: false });
      missing[chosen].control.focus();
    } else changed();
    if (name.control.value.trim() === "") name.control.focus();
    fault.textContent = faulty.size > 1 ? `${faulty.size} steps lack something; they are marked in the graph.` : "";
    return first < 0 && name.control.value.trim() !== "";
  }

  async function store(isRun = false) {
    fault.textContent = "";
    const all = { name, description: about };
    steps.forEach(({ form }, at) => Object.entries(form.fields).forEach(([key, one]) => { all[`steps[${at}].${key}`] = one; }));
    for (const one of Object.values(all)) one.fault("");
    if (!check()) return;
    save.disabled = true;
    try {
      const found = await (item ? call("PUT", `/api/workflows/${item.id}`, body()) : call("POST", "/api/workflows", body()));
      kept = JSON.stringify(body());
      close();
      saved(item?.id ?? found.workflow_id, { isRun });
    } catch (error) {
      const at = /^steps\[(\d+)\]/.exec(error.field ?? "")?.[1];
      if (at !== undefined && steps[at]) choose(Number(at), { focus: false });
      const place = all[error.field];
      if (place) {
        place.fault(error.message);
        place.control.focus();
      } else fault.textContent = faultText(error);
    } finally {
      save.disabled = false;
    }
  }

  const close = holdPage({ isChanged, text: "What you changed in this workflow is not saved.", signal });
  fill(root, frame);
  choose(0, { focus: false });
  if (!item) name.control.focus();
  else learnRun().catch(showError);

  /** What the steps gave in the newest run that was completed: tests begin with it. */
  async function learnRun() {
    const { items } = await page(`/api/workflows/${item.id}/runs`, "runs", {}, { signal });
    const newest = items.findLast(({ state }) => state === "Completed");
    if (!newest) return;
    const done = await get(`/api/workflows/runs/${newest.id}`, { signal });
    const names = done.steps.map((step) => step.name);
    // Another step may stand in that place by now.
    if (steps.some(({ form }, at) => (form.sketch().name || `step-${at + 1}`) !== names[at])) return;
    tested.learn(done.input, steps.map(({ form }, at) => ({ form, variable: form.sketch().output_var, output: done.steps[at].output })));
  }
}
