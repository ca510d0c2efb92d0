// The runs of an agent: its turns, newest first, and the trace of the one that the address names.

import { get, withQuery } from "../../lib/api.js";
import { showError } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, count, duration, money, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { learnSaid, saidOf } from "../../lib/said.js";
import { learnTitles } from "../../lib/titles.js";
import { Trace } from "./trace.js";
import { originText, outcomeBadge, sessionOf, stateText, titleText, toolsOf } from "./words.js";

const PAGE = 100;
const EVERY_MS = 5000;
/** What a run is called: the message that it answers, or until that is known its conversation. */
export const runText = (run) => saidOf(run) || titleText(run);

/** How a run ended, or what it does. */
const outcome = (run) => (run.status ? outcomeBadge(run.status) : h("span", { class: "badge accent" }, stateText(run.state)));

export async function mount(root, ctx) {
  const { signal } = ctx;
  const path = `/api/agents/${encodeURIComponent(ctx.agent.id)}/traces`;
  let older = [];
  let first = { traces: [], running: [], next_cursor: null, total: 0 };
  let cursor = null;
  let isReading = false;
  let trace = null;
  const counts = h("p", { class: "dim", role: "status" });
  const open = (run) => ctx.go(["agent", ctx.agent.id, "runs", run.turn_id], { session: run.session_id });
  const table = new Table({
    label: "Runs", signal, rowHeight: 52, fit: true, open, keyOf: (run) => run.turn_id, empty: "This agent has not run yet.", more: () => more().catch(showError),
    columns: [
      { label: "Started", width: "minmax(0, 1.2fr)", slim: "116px", cell: (run) => h("span", { class: "two" }, h("time", { class: "cut", datetime: run.started_at, title: when(run.started_at) }, ago(run.started_at)), h("small", { class: "faint cut wide-only" }, originText(run.origin)), h("span", { class: "narrow-only" }, outcome(run))) },
      { label: "Outcome", width: "150px", side: true, cell: outcome },
      { label: "Message", width: "minmax(0, 2.4fr)", slim: "minmax(0, 1.8fr)", cell: (run) => h("span", { class: "two" }, h("span", { class: "cut" }, runText(run)), h("small", { class: `cut ${run.error ? "danger-text" : "faint"}` }, run.error || [titleText(run) === runText(run) ? "" : `in “${titleText(run)}”`, toolsOf(run)].filter(Boolean).join(" · "))) },
      { label: "Time", width: "90px", slim: "62px", end: true, cell: (run) => (run.status ? duration(run.duration_ms) : "–") },
      { label: "Calls", width: "110px", side: true, end: true, cell: (run) => h("span", { title: `${count(run.iterations, "model call")}, ${count(run.tool_calls, "tool call")}` }, run.tool_calls > 0 ? `${number(run.iterations)} + ${count(run.tool_calls, "tool")}` : number(run.iterations)) },
      { label: "Tokens", width: "80px", side: true, end: true, cell: (run) => short(run.input_tokens + run.output_tokens) },
      { label: "Cost", width: "80px", side: true, end: true, cell: (run) => money(run.cost_usd) },
    ],
  });
  const nothing = emptyState({ icon: icon("automation", 28), title: "No runs yet", text: "Every message that the agent answers is a run, with its model and tool calls." });
  const list = h("div", { class: "stack" }, counts, table.root);

  async function read() {
    if (trace) return;
    first = await get(withQuery(path, { limit: PAGE }), { signal });
    if (older.length === 0) cursor = first.next_cursor;
    show();
  }

  /** The rows behind those that are known. */
  async function more() {
    if (cursor === null || isReading) return;
    isReading = true;
    try {
      const found = await get(withQuery(path, { limit: PAGE, cursor }), { signal });
      older.push(...found.traces);
      cursor = found.next_cursor;
      show();
    } finally {
      isReading = false;
    }
  }

  function show() {
    const known = new Map([...(first.running ?? []), ...first.traces, ...older].map((run) => [run.turn_id, run]));
    if (known.size === 0) return void fill(root, nothing);
    if (list.parentNode !== root) fill(root, list);
    counts.textContent = [count(first.total ?? known.size, "run"), first.running?.length > 0 ? `${number(first.running.length)} open` : ""].filter(Boolean).join(", ");
    const before = new Map(table.rows.map((run) => [run.turn_id, run]));
    table.set([...known.values()].map((run) => {
      const old = before.get(run.turn_id);
      return old && JSON.stringify(old) === JSON.stringify(run) ? old : run;
    }));
    const redraw = () => table.redraw();
    learnTitles([...new Map([...known.values()].filter(({ origin }) => origin !== "workflow").map((run) => [run.session_id, sessionOf(run)])).values()].slice(0, 20), redraw, { signal });
    learnSaid([...known.values()], redraw, { signal });
  }

  async function route([turn], query) {
    trace?.end();
    trace = null;
    if (!turn) {
      ctx.setTitle("Runs");
      await read();
      return;
    }
    ctx.setTitle("Trace");
    trace = new Trace(ctx, { turnId: turn, sessionId: query.get("session"), compareWith: query.get("with") });
    fill(root, trace.node);
    await trace.load();
  }

  ctx.onRoute((to, query) => route(to, query).catch(showError));
  await route(ctx.path, ctx.query);
  poll(read, EVERY_MS, { signal, isRead: true });
  return () => trace?.end();
}

