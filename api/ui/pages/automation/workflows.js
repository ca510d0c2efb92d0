// Workflows: the list, the graph of the open one, and its runs with the states of their steps, live.

import { call, get, page } from "../../lib/api.js";
import { textBox } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill, skeleton } from "../../lib/dom.js";
import { count, duration, stamp, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { editDeliveries } from "./deliveries.js";
import { Graph } from "./graph.js";
import { openEditor } from "./workflow-editor.js";
import { stepText } from "./workflow-form.js";

const PAGE = 1000;
const RUNS = 100;
const LIVE_MS = 1000;
const IDLE_MS = 4000;
const STATES = { Completed: "good", Failed: "bad", Running: "accent", Pending: "accent", Retrying: "warn", Cancelled: "warn" };

export const stateBadge = (state) => h("span", { class: `badge ${STATES[state] ?? ""}` }, state);
const isOpen = (run) => ["Pending", "Running", "Retrying"].includes(run.state);

export async function mount(root, ctx) {
  const { signal } = ctx;
  let all = [];
  let open = null;
  let runs = [];
  let run = null;
  /** What the head of the run says. */
  let toldOf = "";
  let round = 0;

  const names = h("ul", { class: "side-list", "aria-label": "Workflows" });
  const detail = h("div", { class: "stack" });
  const split = h("div", { class: "split" }, h("div", { class: "split-side" }, names), detail);
  const graph = new Graph({ signal, open: showStep });
  const runList = h("ul", { class: "run-list", "aria-label": "Runs" });
  const runHead = h("div", { class: "stack tight-stack", "aria-live": "polite" });
  const newButton = h("button", { class: "primary", type: "button", onclick: () => create() }, icon("plus", 18), "New workflow");
  fill(ctx.actions, newButton);
  /** Ends with the editor, or null. */
  let editing = null;

  async function readAll() {
    if (editing) return;
    all = (await page("/api/workflows", "workflows", { limit: PAGE }, { signal })).items;
    if (all.length === 0) {
      fill(root, emptyState({
        icon: icon("branch", 28), title: "No workflows yet", text: "A workflow runs several agents in sequence or in parallel and passes their outputs on.",
        actions: [h("button", { class: "primary", type: "button", onclick: () => create() }, icon("plus", 18), "New workflow")],
      }));
      return;
    }
    if (split.parentNode !== root) fill(root, split);
    const wanted = ctx.path[0] && all.some((item) => item.id === ctx.path[0]) ? ctx.path[0] : all[0].id;
    if (open?.id !== wanted) await select(wanted);
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
    run = null;
    runs = [];
    refill(detail,
      h("div", { class: "card stack" },
        h("div", { class: "bar-row" },
          h("div", { class: "grow" }, h("h2", {}, open.name), open.description ? h("p", { class: "dim" }, open.description) : null),
          can("chat") ? h("button", { type: "button", class: "primary", onclick: () => start().catch(showError) }, icon("play", 18), "Run") : null,
          menuButton({ label: `More for ${open.name}`, key: "more", items: () => [
            { label: "Edit", icon: "edit", run: change },
            { label: "Deliveries", icon: "send", all: true, run: () => editDeliveries(`/api/workflows/${open.id}`, open.name) },
            { label: "Delete", icon: "trash", danger: true, run: remove },
          ] })),
        runHead, graph.node),
      h("section", { class: "card stack", "aria-label": "Runs" }, h("h2", {}, "Runs"), runList));
    graph.set(open.steps, null);
    await readRuns();
    showNames();
  }

  async function readRuns() {
    if (!open) return;
    const of = open.id;
    // Oldest first: the last page is the newest, and at most 100 ended runs are kept.
    const { items } = await page(`/api/workflows/${of}/runs`, "runs", { limit: PAGE }, { signal });
    if (open?.id !== of) return;
    runs = items.reverse().slice(0, RUNS);
    const wanted = run ? run.id : runs.find(isOpen)?.id;
    if (wanted) {
      const found = await get(`/api/workflows/runs/${wanted}`, { signal }).catch((error) => {
        if (error.status === 404) return null;
        throw error;
      });
      if (open?.id !== of) return;
      run = found;
    }
    showRuns();
  }

  function showRuns() {
    if (runs.length === 0) fill(runList, h("li", { class: "dim" }, "No runs yet."));
    else {
      refill(runList, runs.map((item) => h("li", {}, h("button", { type: "button", class: "run-item", data: { key: item.id }, "aria-pressed": String(item.id === run?.id), onclick: () => pick(item).catch(showError) },
        stateBadge(item.state), h("span", { class: "grow cut" }, when(item.started_at)),
        h("small", { class: "faint" }, item.completed_at ? duration(Date.parse(item.completed_at) - Date.parse(item.started_at)) : `${item.steps_completed} of ${open.steps.length} steps`)))));
    }
    if (!run) {
      toldOf = "";
      fill(runHead);
      graph.set(open.steps, null);
      return;
    }
    graph.set(stepsOf(run), run.steps);
    // It is read out with each change: nothing is told twice.
    const told = JSON.stringify([run.id, run.state, run.error, Boolean(run.output)]);
    if (told === toldOf) return;
    toldOf = told;
    refill(runHead, h("div", { class: "bar-row run-head" }, stateBadge(run.state), h("span", {}, `Run of ${stamp(run.started_at)}`),
      h("span", { class: "grow" }),
      isOpen(run) ? h("button", { type: "button", class: "small", onclick: () => cancel().catch(showError) }, icon("stop", 16), "Cancel") : null,
      run.output ? h("button", { type: "button", class: "small", onclick: () => showText("Output", run.output) }, "Output") : null,
      h("button", { type: "button", class: "small quiet", onclick: () => { run = null; showRuns(); } }, "Definition")),
    run.error ? h("p", { class: "notice bad" }, run.error) : null);
  }

  /** A run keeps the steps as they were when it began: they are shown with what the definition knows beside it. */
  function stepsOf(item) {
    return item.steps.map((step, at) => ({ ...(open.steps[at]?.name === step.name ? open.steps[at] : {}), name: step.name, mode: step.mode }));
  }

  async function pick(item) {
    run = await get(`/api/workflows/runs/${item.id}`, { signal });
    showRuns();
    runHead.scrollIntoView({ block: "nearest" });
  }

  const showText = (title, text) => ask({ title, body: [h("pre", { class: "code-box tall" }, text)], action: "Close", cancel: null, wide: true });

  function showStep(index) {
    const step = (run ? stepsOf(run) : open.steps)[index];
    const done = run?.steps[index];
    const rows = stepText(step).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
    return ask({
      title: step.name || `Step ${index + 1}`, action: "Close", cancel: null, wide: true,
      body: [
        done ? h("div", { class: "bar-row" }, stateBadge(done.state), done.started_at ? h("span", { class: "dim" }, `began ${when(done.started_at)}`) : null,
          done.completed_at && done.started_at ? h("span", { class: "dim" }, duration(Date.parse(done.completed_at) - Date.parse(done.started_at))) : null) : null,
        done?.error ? h("p", { class: "notice bad" }, done.error) : null,
        done?.output ? h("div", { class: "field" }, h("strong", {}, "Output"), h("pre", { class: "code-box" }, done.output)) : null,
        h("dl", { class: "pairs" }, rows),
      ],
    });
  }

  async function start() {
    const input = field("Input", textBox("", 6), { hint: "Value of {{input}} in the first step." });
    const made = await ask({
      title: `Run ${open.name}`, action: "Run", body: [input], fields: { input },
      submit: () => call("POST", `/api/workflows/${open.id}/run`, { input: input.control.value, async: true }),
    });
    if (!made) return;
    run = { id: made.run_id };
    toast("Run started");
    await again();
  }

  async function cancel() {
    await call("POST", `/api/workflows/runs/${run.id}/cancel`);
    toast("Cancelled");
    await again();
  }

  const create = () => ctx.go(["automation", "workflows", "new"]);
  const change = () => ctx.go(["automation", "workflows", open.id, "edit"]);

  /** Shows what the address names: the editor of a workflow or of a new one, or the list with the open one. */
  async function show([first, second]) {
    editing?.abort();
    editing = null;
    newButton.hidden = false;
    if (first !== "new" && second !== "edit") {
      // What was in the editor is read anew.
      if (split.parentNode !== root) open = null;
      return readAll();
    }
    editing = new AbortController();
    signal.addEventListener("abort", () => editing?.abort(), { once: true });
    newButton.hidden = true;
    fill(root, skeleton(6));
    const mine = editing;
    const item = first === "new" ? null : await get(`/api/workflows/${encodeURIComponent(first)}`, { signal: mine.signal });
    if (mine.signal.aborted) return;
    await openEditor(root, {
      item, signal: mine.signal, left: () => ctx.go(["automation", "workflows", ...(item ? [item.id] : [])]),
      saved: (id) => { toast(item ? "Saved" : "Created"); ctx.go(["automation", "workflows", id]); },
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

  ctx.onRoute((path) => {
    if (editing || path[0] === "new" || path[1] === "edit") show(path).catch(showError);
    else if (path[0] && path[0] !== open?.id) select(path[0]).catch(showError);
  });
  await show(ctx.path);
  let wait = 0;
  const again = poll(async () => {
    // A run under way is read each second, the rest now and then.
    if (editing) return;
    wait += LIVE_MS;
    if (!(run && (!run.state || isOpen(run))) && wait < IDLE_MS) return;
    wait = 0;
    await readRuns();
  }, LIVE_MS, { signal });
}
