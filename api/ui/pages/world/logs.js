// What the daemon logs, as it is written: filtered by level and text, with all fields of a line.

import { codeBlock } from "../../lib/code.js";
import { choice } from "../../lib/controls.js";
import { show } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { followAlways } from "../../lib/stream.js";
import { Table } from "../../lib/table.js";

/** Lines that are kept; the oldest go. */
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
  let missed = 0;
  let planned = 0;
  let isPaused = false;

  const state = h("span", { class: "badge", role: "status" }, "connecting");
  const counts = h("p", { class: "dim num" });
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => { isPaused = !isPaused; pause.setAttribute("aria-pressed", String(isPaused)); fill(pause, icon(isPaused ? "play" : "pause", 18), isPaused ? "Resume" : "Pause"); look(); } }, icon("pause", 18), "Pause");
  const search = h("input", { type: "search", placeholder: "Contains text", "aria-label": "Contains text", oninput: () => look() });
  const least = choice([["TRACE", "All levels"], ["INFO", "Info and above"], ["WARN", "Warnings and errors"], ["ERROR", "Errors"]], "TRACE", { "aria-label": "Level", onchange: () => look() });
  const table = new Table({
    label: "Log lines, newest first", signal, rowHeight: 44, slimHeight: 76, fit: true, empty: "No lines yet. What the daemon logs from now on appears here; earlier lines are in the files that agentsvc logs prints.",
    open: (line) => show({ title: textOf(line), body: [h("p", { class: "dim" }, `${line.level}, ${when(line.timestamp)}`), codeBlock(JSON.stringify(line, null, 2), "json")] }),
    columns: [
      { label: "Level", width: "84px", slim: "24px", cell: (line) => h("span", { class: `badge ${TONES[line.level] ?? ""}` }, String(line.level).toLowerCase()) },
      { label: "Message", width: "minmax(0, 3fr)", cell: (line) => h("span", { class: "two" }, h("span", { class: "cut" }, textOf(line)), h("small", { class: "faint cut" }, restOf(line))) },
      { label: "From", width: "minmax(0, 1fr)", side: true, cell: (line) => h("span", { class: "faint mono cut" }, String(line.target ?? "").replace(/^agentsvc(_\w+)?::/, "")) },
      { label: "When", width: "104px", slim: "78px", end: true, cell: (line) => h("time", { datetime: line.timestamp, title: when(line.timestamp) }, new Date(line.timestamp).toLocaleTimeString(undefined, { hourCycle: "h23" })) },
    ],
  });
  table.view.classList.add("events-view");
  fill(ctx.actions, state, h("button", { type: "button", onclick: () => { kept = []; look(); } }, "Clear"), pause);
  fill(root, h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), h("div", {}, least), counts), table.root));

  function look() {
    const [text, level] = [search.value.toLowerCase(), LEVELS.indexOf(least.value)];
    const rows = kept.filter((line) => LEVELS.indexOf(line.level) <= level && (text === "" || JSON.stringify(line).toLowerCase().includes(text))).slice(-KEPT_MAX);
    if (!isPaused || rows.length === 0) table.set(rows.reverse());
    counts.textContent = `${count(rows.length, "line")}${missed > 0 ? `, ${number(missed)} dropped` : ""}${isPaused ? "; the list is paused" : ""}`;
  }

  function plan() {
    if (planned || isPaused || document.hidden) return;
    planned = setTimeout(() => { planned = 0; look(); }, LOOK_MS);
  }

  look();
  document.addEventListener("visibilitychange", () => document.hidden || look(), { signal });
  signal.addEventListener("abort", () => clearTimeout(planned));
  ctx.key("p", "Pause the log", () => pause.click());
  followAlways(() => "/api/logs/stream", {
    signal,
    onEvent: (name, line) => {
      if (name === "lagged") missed += line.missed ?? 0;
      if (name !== "log") return;
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
