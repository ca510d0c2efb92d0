// Workflows: the list, the graph of the open one with the chosen step beside it, and its runs with the states of their steps, live.

import { call, get, page } from "../../lib/api.js";
import { textBox } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill, skeleton } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { examples } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { editDeliveries } from "./deliveries.js";
import { Graph } from "./graph.js";
import { openEditor, TEMPLATES } from "./workflow-editor.js";
import { endsOf, isOpen, runHead, runLines, stepNode } from "./workflow-runs.js";

const PAGE = 1000;
const RUNS = 100;
const LIVE_MS = 1000;
const IDLE_MS = 4000;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let all = [];
  let open = null;
  let runs = [];
  let run = null;
  /** The id of the run that the address names, or null for the definition. */
  let wanted = null;
  /** The step that is chosen in the graph, or null. */
  let step = null;
  /** What the head of the run and the panel beside the graph say. */
  let told = { head: "", panel: "" };
  let round = 0;

  const names = h("ul", { class: "side-list", "aria-label": "Workflows" });
  const detail = h("div", { class: "stack" });
  const split = h("div", { class: "split" }, h("div", { class: "split-side" }, names), detail);
  const graph = new Graph({ signal, open: (index) => choose(index === step ? null : index) });
  const panel = h("aside", { class: "run-panel stack", "aria-label": "Step", hidden: true });
  const runList = h("ul", { class: "run-list", "aria-label": "Runs" });
  const head = h("div", { class: "stack tight-stack", "aria-live": "polite" });
  const newButton = h("button", { class: "primary", type: "button", onclick: () => create() }, icon("plus", 18), "New workflow");
  fill(ctx.actions, newButton);
  /** Ends with the editor, or null. */
  let editing = null;

  async function readAll() {
    if (editing) return;
    all = (await page("/api/workflows", "workflows", { limit: PAGE }, { signal })).items;
    if (all.length === 0) {
      const nothing = emptyState({
        icon: icon("branch", 28), title: "No workflows yet", text: "A workflow runs several agents in sequence or in parallel and passes their outputs on.",
        actions: [h("button", { class: "primary", type: "button", onclick: () => create() }, icon("plus", 18), "New workflow")],
      });
      nothing.append(examples(TEMPLATES.slice(1).map(([title, text], at) => ({ title, text, from: at + 1 })), ({ from }) => ctx.go(["automation", "workflows", "new"], { from }), { sign: "branch" }));
      fill(root, nothing);
      return;
    }
    if (split.parentNode !== root) fill(root, split);
    const id = ctx.path[0] && all.some((item) => item.id === ctx.path[0]) ? ctx.path[0] : all[0].id;
    if (open?.id !== id) await select(id);
    showNames();
  }

  function showNames() {
    refill(names, all.map((item) => h("li", {}, h("a", { data: { key: item.id }, href: `#/automation/workflows/${item.id}`, "aria-current": item.id === open?.id ? "true" : null },
      h("strong", { class: "cut" }, item.name), h("small", { class: "faint cut" }, `${count(item.steps, "step")}${item.description ? ` · ${item.description}` : ""}`)))));
  }

  async function select(id) {
    const mine = (round += 1);
    // One that was changed stays as it was until it is read anew.
    if (open?.id !== id) fill(detail, skeleton(6));
    const found = await get(`/api/workflows/${id}`, { signal });
    if (mine !== round) return;
    open = found;
    runs = [];
    step = null;
    look();
    refill(detail,
      h("div", { class: "card stack" },
        h("div", { class: "bar-row detail-head" },
          h("div", { class: "grow" }, h("h2", {}, open.name), open.description ? h("p", { class: "dim" }, open.description) : null),
          can("chat") ? h("button", { type: "button", class: "primary", onclick: () => start().catch(showError) }, icon("play", 18), "Run") : null,
          can("write") ? h("a", { class: "button", href: `#/automation/workflows/${open.id}/edit` }, icon("edit", 17), "Edit") : null,
          menuButton({ label: `More for ${open.name}`, key: "more", items: () => [
            { label: "Deliveries", icon: "send", all: true, run: () => editDeliveries(`/api/workflows/${open.id}`, open.name) },
            { label: "Delete", icon: "trash", danger: true, run: remove },
          ] })),
        head, h("div", { class: "run-body" }, graph.node, panel)),
      h("section", { class: "card stack", "aria-label": "Runs" }, h("h2", {}, "Runs"), runList));
    show();
    await readRuns();
    // A run that is open is shown.
    const live = runs.find(isOpen);
    if (mine === round && wanted === null && live) ctx.go(["automation", "workflows", open.id, "runs", live.id], {}, { replace: true });
    showNames();
  }

  /** Takes the run from the address. */
  function look() {
    const [id, part, of] = ctx.path;
    const next = id === open?.id && part === "runs" && of ? of : null;
    if (next === wanted && (run === null || run.id === next)) return false;
    wanted = next;
    run = null;
    step = null;
    return true;
  }

  async function readRuns() {
    if (!open) return;
    const [of, asked] = [open.id, wanted];
    // Oldest first: the last page is the newest, and at most 100 ended runs are kept.
    const [{ items }, found] = await Promise.all([
      page(`/api/workflows/${of}/runs`, "runs", { limit: PAGE }, { signal }),
      asked && !(run?.state && !isOpen(run)) ? get(`/api/workflows/runs/${encodeURIComponent(asked)}`, { signal }).catch((error) => {
        if (error.status === 404 || error.status === 400) return null;
        throw error;
      }) : run,
    ]);
    if (open?.id !== of || asked !== wanted) return;
    runs = items.reverse().slice(0, RUNS);
    run = found;
    if (wanted && !run) {
      toast("That run is no longer stored.", { kind: "bad" });
      ctx.go(["automation", "workflows", open.id], {}, { replace: true });
      return;
    }
    show();
  }

  /** Shows the open workflow, or its run. */
  function show() {
    refill(runList, runs.length === 0 ? h("li", { class: "dim" }, "No runs yet. Run sends an input through all steps; each run is kept here with what its steps gave.") : runLines(runs, { workflow: open.id, steps: open.steps.length, chosen: wanted }));
    graph.chosen = step;
    graph.set(run ? stepsOf(run) : open.steps, run?.steps ?? null);
    // It is read out with each change: nothing is told twice.
    const said = run ? JSON.stringify([run.id, run.state, run.error]) : "";
    if (said !== told.head) refill(head, run ? runHead(run, { workflow: open.id, cancel: () => cancel().catch(showError), again: () => start(run.input).catch(showError) }) : null);
    told.head = said;
    showPanel();
  }

  function showPanel() {
    const done = run?.steps[step] ?? null;
    const said = JSON.stringify([open.id, run?.id, step, step === null ? [run?.state, run?.output] : done ?? open.steps[step]]);
    if (said === told.panel) return;
    told.panel = said;
    panel.hidden = step === null && !run;
    refill(panel, step !== null ? stepNode((run ? stepsOf(run) : open.steps)[step], step, done, () => choose(null)) : run ? endsOf(run) : null);
  }

  function choose(index) {
    step = index;
    show();
    if (index !== null) panel.scrollIntoView({ block: "nearest" });
  }

  /** A run keeps the steps as they were when it began: they are shown with what the definition knows beside it. */
  function stepsOf(item) {
    return item.steps.map((one, at) => ({ ...(open.steps[at]?.name === one.name ? open.steps[at] : {}), name: one.name, mode: one.mode }));
  }

  async function start(text = "") {
    const input = field("Input", textBox(text, 6), { hint: "Value of {{input}} in the first step." });
    const made = await ask({
      title: `Run ${open.name}`, action: "Run", body: [input], fields: { input },
      submit: () => call("POST", `/api/workflows/${open.id}/run`, { input: input.control.value, async: true }),
    });
    if (!made) return;
    toast("Run started");
    ctx.go(["automation", "workflows", open.id, "runs", made.run_id]);
  }

  async function cancel() {
    await call("POST", `/api/workflows/runs/${run.id}/cancel`);
    toast("Cancelled");
    await again();
  }

  const create = () => ctx.go(["automation", "workflows", "new"]);

  /** Shows what the address names: the editor of a workflow or of a new one, or the list with the open one. */
  async function follow([first, second], query) {
    editing?.abort();
    editing = null;
    newButton.hidden = false;
    if (first !== "new" && second !== "edit") {
      // What was in the editor is read anew.
      if (split.parentNode !== root) open = null;
      await readAll();
      if (query?.has("run") && open) {
        ctx.go(["automation", "workflows", open.id], {}, { replace: true });
        await start();
      }
      return;
    }
    editing = new AbortController();
    signal.addEventListener("abort", () => editing?.abort(), { once: true });
    newButton.hidden = true;
    fill(root, skeleton(6));
    const mine = editing;
    const item = first === "new" ? null : await get(`/api/workflows/${encodeURIComponent(first)}`, { signal: mine.signal });
    if (mine.signal.aborted) return;
    await openEditor(root, {
      item, template: TEMPLATES[query?.get("from")] ?? null, signal: mine.signal, left: () => ctx.go(["automation", "workflows", ...(item ? [item.id] : [])]),
      saved: (id, { isRun }) => { toast(item ? "Saved" : "Created"); ctx.go(["automation", "workflows", id], isRun ? { run: 1 } : {}); },
    });
  }

  async function remove() {
    const text = `“${open.name}” and its runs are deleted; open runs are cancelled.`;
    if (!(await confirm({ title: "Delete this workflow?", text, run: () => call("DELETE", `/api/workflows/${open.id}`) }))) return;
    toast("Deleted");
    open = null;
    ctx.go(["automation", "workflows"], {}, { replace: true });
    await readAll();
  }

  ctx.onRoute((path, query) => {
    if (editing || path[0] === "new" || path[1] === "edit") follow(path, query).catch(showError);
    else if (path[0] && path[0] !== open?.id) select(path[0]).catch(showError);
    else if (open && look()) {
      show();
      head.scrollIntoView({ block: "nearest" });
      readRuns().catch(showError);
    }
  });
  await follow(ctx.path, ctx.query);
  let wait = 0;
  const again = poll(async () => {
    // A run under way is read each second, the rest now and then.
    if (editing) return;
    wait += LIVE_MS;
    if (!(wanted && (!run || isOpen(run))) && wait < IDLE_MS) return;
    wait = 0;
    await readRuns();
  }, LIVE_MS, { signal });
}
