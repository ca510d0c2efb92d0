// The query box: a text with completion from the schema, its answer as a table, live where one wants it, and as CSV.

import { get, saveAs, withQuery } from "../../lib/api.js";
import { faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count, duration, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { Table } from "../../lib/table.js";
import { cellText, csvOf, rowsOf } from "./answer.js";
import { Completion } from "./complete.js";
import { followAlways } from "../../lib/stream.js";

const LATEST = "agentsvc-queries";
const LATEST_MAX = 8;

export async function mount(root, ctx) {
  const { signal } = ctx;
  const schema = await get("/api/world/query/schema", { signal });
  const examples = schema.examples ?? [];
  let answer = null;
  let asking = null;
  /** The table of the answer. It stays while its columns do: a live answer must not cost its reader the place and the order. */
  let drawn = null;

  const box = h("textarea", { class: "code query-box", rows: 3, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-label": "Query", placeholder: examples[0] ?? "agents group by state count" });
  const completion = new Completion(box, schema, { signal });
  const fault = h("div", { class: "fault query-fault", role: "alert" });
  const run = h("button", { type: "submit", class: "primary" }, icon("play", 18), "Run");
  const live = h("input", { type: "checkbox", role: "switch", onchange: () => ask() });
  const csv = h("button", { type: "button", disabled: true, onclick: () => saveAs(new Blob([csvOf(answer)], { type: "text/csv" }), "query.csv") }, icon("download", 18), "CSV");
  const note = h("p", { class: "dim", role: "status", "aria-live": "polite" });
  const result = h("div", { class: "query-result" });
  const latest = h("div", { class: "chips in-line", "aria-label": "Queries", role: "group" });
  const form = h("form", { class: "card stack", onsubmit: (event) => { event.preventDefault(); ask(); } },
    h("div", { class: "query-frame" }, box, completion.node), fault, latest,
    h("div", { class: "bar-row" }, run, h("label", { class: "switch" }, live, h("span", {}, "Live")), h("span", { class: "hint keys-hint" }, h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), " runs, ", h("kbd", {}, "Tab"), " completes"), h("span", { class: "grow" }), csv));
  fill(root, h("div", { class: "stack" }, form, note, result, kinds()));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
  });
  showLatest();

  /** What can be asked for, to unfold. */
  function kinds() {
    return h("details", { class: "card" }, h("summary", {}, `Kinds and fields: ${count(completion.kinds.length, "kind")}`), h("div", { class: "stack kinds" }, completion.kinds.map((kind) => h("details", {},
      h("summary", {}, h("code", {}, kind.name), " ", h("span", { class: "dim" }, kind.text ?? "")),
      h("dl", { class: "pairs" }, kind.fields.map((field) => [h("dt", {}, h("code", {}, field.name), " ", h("span", { class: "badge" }, field.type ?? "")), h("dd", { class: "dim" }, field.text ?? "")]))))));
  }

  function told() {
    try {
      return JSON.parse(sessionStorage.getItem(LATEST)) ?? [];
    } catch {
      return [];
    }
  }

  function showLatest() {
    const all = [...new Set([...told(), ...examples])].slice(0, LATEST_MAX);
    fill(latest, all.map((text) => h("button", { type: "button", class: "small", onclick: () => { box.value = text; ask(); } }, text.length > 60 ? `${text.slice(0, 59)}…` : text)));
  }

  async function ask() {
    const q = box.value.trim();
    asking?.abort();
    completion.close();
    fault.textContent = "";
    if (q === "") return;
    asking = new AbortController();
    const mine = asking;
    signal.addEventListener("abort", () => mine.abort(), { signal: mine.signal });
    ctx.go(["world", "query"], { q, live: live.checked ? "1" : "" }, { replace: true });
    note.textContent = "Running…";
    const began = performance.now();
    try {
      show(await get(withQuery("/api/world/query", { q }), { signal: mine.signal }), performance.now() - began);
      sessionStorage.setItem(LATEST, JSON.stringify([q, ...told().filter((text) => text !== q)].slice(0, LATEST_MAX)));
      showLatest();
    } catch (error) {
      if (error.name === "AbortError") return;
      note.textContent = "";
      showFault(error, q);
      return;
    }
    if (!live.checked) return;
    await followAlways(() => withQuery("/api/world/query/stream", { q }), {
      signal: mine.signal,
      onEvent: (name, body) => (body?.rows || body?.columns) && show(body, null),
      onState: (how, error) => { if (how === "refused") { live.checked = false; showFault(error, q); } },
    });
  }

  /** The error, with a mark below the place that it names. */
  function showFault(error, q) {
    const column = error.body?.column ?? /column (\d+)/.exec(error.message ?? "")?.[1];
    const line = q.split("\n").length === 1 && column ? `${q}\n${" ".repeat(Math.max(0, Number(column) - 1))}^\n` : "";
    const kind = completion.kinds.find(({ name }) => name === /unknown field .* of (\w+)/.exec(error.message ?? "")?.[1]);
    fill(fault, line === "" ? null : h("pre", { tabindex: "0" }, line), h("p", {}, faultText(error).replace(/^q: /, "")),
      kind ? h("p", { class: "hint" }, `Fields of ${kind.name}: ${kind.fields.map(({ name }) => name).join(", ")}.`) : null);
    box.setAttribute("aria-invalid", "true");
  }

  function show(body, ms) {
    box.removeAttribute("aria-invalid");
    answer = rowsOf(body);
    csv.disabled = answer.rows.length === 0;
    const parts = [count(answer.rows.length, "row")];
    if (body.total !== undefined && body.total > answer.rows.length) parts.push(`of ${number(body.total)}`);
    if (body.looked_at !== undefined) parts.push(`${number(body.looked_at)} scanned`);
    if (body.complete === false) parts.push("incomplete: the query reached a limit");
    parts.push(ms === null ? "live" : duration(ms));
    note.textContent = parts.join(", ");
    const isNumber = answer.columns.map((_, at) => answer.rows.slice(0, 50).some((row) => typeof row[at] === "number"));
    const top = answer.columns.length === 2 && isNumber[1] && !isNumber[0] ? Math.max(0, ...answer.rows.map((row) => row[1])) : 0;
    const shape = JSON.stringify([answer.columns, isNumber]);
    if (drawn?.shape !== shape) {
      drawn?.life.abort();
      drawn = tableOf(shape, isNumber);
      fill(result, drawn.table.root);
    }
    drawn.top = top;
    drawn.table.set(answer.rows);
  }

  /** A table for the columns of the answer; `top` is what a bar is a part of. */
  function tableOf(shape, isNumber) {
    const life = new AbortController();
    signal.addEventListener("abort", () => life.abort(), { signal: life.signal });
    const made = { shape, life, top: 0 };
    made.table = new Table({
      label: "Result", signal: life.signal, rowHeight: 36, empty: "No results.",
      columns: answer.columns.map((column, at) => ({
        label: column.name, end: isNumber[at], side: at > 2, width: isNumber[at] ? "minmax(80px, .7fr)" : "minmax(90px, 1fr)", sort: (row) => row[at] ?? "",
        cell: (row) => cell(row[at], at === 1 && made.top > 0 ? row[at] / made.top : null, column.type),
      })),
    });
    return made;
  }

  function cell(value, share, type) {
    if (value === null || value === undefined) return h("span", { class: "faint" }, "–");
    if (share !== null) return h("span", { class: "cell-bar" }, h("span", { class: "meter" }, h("i", { style: { "--part": `${share * 100}%` } })), number(value));
    if (type === "duration") return duration(value * 1000);
    if (type === "time") return h("time", { datetime: value, title: value }, when(value));
    if (typeof value === "number") return Number.isInteger(value) ? number(value) : String(Number(value.toPrecision(8)));
    const text = cellText(value);
    return h("span", { class: "cut", title: text.length > 20 ? text : null }, text);
  }

  if (ctx.query.get("q")) {
    box.value = ctx.query.get("q");
    live.checked = ctx.query.get("live") === "1";
    ask();
  }
  // Another address, as of a link or the way back, is another question.
  ctx.onRoute((_, query) => {
    const q = query.get("q") ?? "";
    if (q === box.value.trim()) return;
    box.value = q;
    live.checked = query.get("live") === "1";
    ask();
  });
  box.focus({ preventScroll: true });
}
