// What the daemon logged and logs: the newest lines of its files, older ones on demand, and those that come. Filtered by level and text, with
// all fields of a line.

import { get, withQuery } from "../../lib/api.js";
import { codeBlock } from "../../lib/code.js";
import { choice } from "../../lib/controls.js";
import { show, showError } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { followAlways } from "../../lib/stream.js";
import { Table } from "../../lib/table.js";

/** Stored lines of one page. */
const PAGE = 200;
/** Lines of the stream that are kept; the oldest go. */
const KEPT_MAX = 2000;
/** Time between two looks of the list, however much is written. */
const LOOK_MS = 200;
const LEVELS = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];
const TONES = { ERROR: "bad", WARN: "warn", INFO: "accent" };
/** Fields that stand in columns of their own. */
const COLUMNS = new Set(["timestamp", "level", "message", "target", "kind"]);

/** The other fields of a line in a row. */
const restOf = (line) => Object.entries(line).filter(([key, value]) => !COLUMNS.has(key) && value !== null).map(([key, value]) => `${key.replaceAll("_", " ")} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
const textOf = (line) => line.message ?? String(line.kind ?? "").replaceAll("_", " ");

export async function mount(root, ctx) {
  const { signal } = ctx;
  let kept = [];
  /** Lines from the files, oldest first, and where the older ones are: null where there are none. */
  let stored = [];
  let cursor;
  let missed = 0;
  let planned = 0;
  let isPaused = false;

  const state = h("span", { class: "badge", role: "status" }, "connecting");
  const counts = h("p", { class: "dim num" });
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => { isPaused = !isPaused; pause.setAttribute("aria-pressed", String(isPaused)); fill(pause, icon(isPaused ? "play" : "pause", 18), isPaused ? "Resume" : "Pause"); look(); } }, icon("pause", 18), "Pause");
  const search = h("input", { type: "search", placeholder: "Contains text", "aria-label": "Contains text", oninput: () => look() });
  const least = choice([["TRACE", "All levels"], ["INFO", "Info and above"], ["WARN", "Warnings and errors"], ["ERROR", "Errors"]], "TRACE", { "aria-label": "Level", onchange: () => look() });
  const table = new Table({
    label: "Log lines, newest first", signal, rowHeight: 44, slimHeight: 76, fit: true, empty: "No matching lines. What the daemon logs from now on appears here.",
    open: (line) => show({ title: textOf(line), body: [h("p", { class: "dim" }, `${line.level}, ${when(line.timestamp)}`), codeBlock(JSON.stringify(line, null, 2), "json")] }),
    columns: [
      { label: "Level", width: "84px", slim: "24px", cell: (line) => h("span", { class: `badge ${TONES[line.level] ?? ""}` }, String(line.level).toLowerCase()) },
      { label: "Message", width: "minmax(0, 3fr)", cell: (line) => h("span", { class: "two" }, h("span", { class: "cut" }, textOf(line)), h("small", { class: "faint cut" }, restOf(line))) },
      { label: "From", width: "minmax(0, 1fr)", side: true, cell: (line) => h("span", { class: "faint mono cut" }, String(line.target ?? "").replace(/^agentsvc(_\w+)?::/, "")) },
      { label: "When", width: "104px", slim: "78px", end: true, cell: (line) => h("time", { datetime: line.timestamp, title: when(line.timestamp) }, new Date(line.timestamp).toLocaleTimeString(undefined, { hourCycle: "h23" })) },
    ],
  });
  table.view.classList.add("events-view");
  fill(ctx.actions, state, h("button", { type: "button", onclick: () => { [kept, stored, cursor] = [[], [], undefined]; older.hidden = false; look(); } }, "Clear"), pause);
  const older = h("button", { type: "button", hidden: true, onclick: () => {
    older.disabled = true;
    loadOlder().catch(showError).finally(() => { older.disabled = false; });
  } }, "Load older lines");
  fill(root, h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), h("div", {}, least), counts, h("span", { class: "grow" }), older), table.root));

  /** The newest lines of the files, or those before the ones that are there. A line can be in the stream before it is in a file. */
  async function loadOlder() {
    const { logs, next_cursor: next } = await get(withQuery("/api/logs", { limit: PAGE, cursor }), { signal });
    const known = cursor === undefined ? new Set(kept.map((line) => JSON.stringify(line))) : null;
    const lines = logs.reverse();
    stored = [...(known ? lines.filter((line) => !known.has(JSON.stringify(line))) : lines), ...stored];
    cursor = next;
    older.hidden = next === null;
    look();
  }

  function look() {
    const [text, level] = [search.value.toLowerCase(), LEVELS.indexOf(least.value)];
    const isShown = (line) => LEVELS.indexOf(line.level) <= level && (text === "" || JSON.stringify(line).toLowerCase().includes(text));
    const rows = [...stored, ...kept.slice(-KEPT_MAX)].filter(isShown);
    if (!isPaused || rows.length === 0) table.set(rows.reverse());
    counts.textContent = `${count(rows.length, "line")}${missed > 0 ? `, ${number(missed)} dropped` : ""}${isPaused ? "; the list is paused" : ""}`;
  }

  function plan() {
    if (planned || isPaused || document.hidden) return;
    planned = setTimeout(() => { planned = 0; look(); }, LOOK_MS);
  }

  look();
  loadOlder().catch(showError);
  document.addEventListener("visibilitychange", () => document.hidden || look(), { signal });
  signal.addEventListener("abort", () => clearTimeout(planned));
  ctx.key("p", "Pause the log", () => pause.click());
  followAlways(() => "/api/logs/stream", {
    signal,
    onEvent: (name, line) => {
      if (name === "lagged") missed += line.missed ?? 0;
      if (name !== "log") return;
      const isStored = stored.length > 0 && line.timestamp <= stored.at(-1).timestamp && stored.some((one) => JSON.stringify(one) === JSON.stringify(line));
      if (isStored) return;
      kept.push(line);
      // Cut now and then, not with each line.
      if (kept.length > KEPT_MAX * 1.5) kept = kept.slice(-KEPT_MAX);
      plan();
    },
    onState: (how) => {
      state.className = `badge ${{ live: "good", waiting: "warn", refused: "bad" }[how]}`;
      state.textContent = { live: "live", waiting: "reconnecting", refused: "refused" }[how];
    },
  }).catch(() => {});
}
