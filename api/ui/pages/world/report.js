// The report of a rehearsal: its cost with the interval, its time line of fires and skips, budgets, skips, sources, fires.

import { page } from "../../lib/api.js";
import { showError } from "../../lib/dialogs.js";
import { h } from "../../lib/dom.js";
import { count, duration, money, number, short, stamp, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { Table } from "../../lib/table.js";
import { Picture } from "./picture.js";

const PAGE = 500;
const OUTCOMES = { fired: "good", overlapped: "warn", missed: "warn", refused: "bad", over_budget: "bad", agent_stopped: "warn", waiting: "accent" };
const badge = (word) => h("span", { class: `badge ${OUTCOMES[word] ?? ""}` }, String(word).replaceAll("_", " "));
const stat = (name, value, note) => h("div", { class: "stat" }, h("span", {}, name), h("strong", {}, value), h("small", {}, note ?? ""));
const part = (title, ...inner) => h("section", { class: "card stack", "aria-label": title }, h("h2", {}, title), inner);

/** The elements of a report. */
export function reportOf(item, signal) {
  const { report } = item;
  const { cost, turns, overlaps, budgets = [], skips = [], approvals } = report;
  const fired = report.outcomes.fired ?? 0;
  const others = Object.entries(report.outcomes).filter(([name]) => name !== "fired").reduce((sum, [, times]) => sum + times, 0);
  const busiest = report.busiest_minute;
  return [
    h("div", { class: "stat-row" },
      stat("Fires", number(fired), others > 0 ? `${number(others)} ended without a fire` : "every slot fired"),
      stat("Turns", number(turns.completed), `${number(turns.failed)} failed, ${number(turns.over_budget)} over budget`),
      stat("Tokens", short(report.tokens.input + report.tokens.output), `${count(report.calls, "model call")}`),
      stat("Busiest minute", busiest ? number(busiest.fires) : "–", busiest ? when(busiest.at) : "no fires")),
    costCard(cost),
    part("Timeline", new Picture({ report, item, signal }).node),
    budgets.length > 0 ? part("Exceeded budgets", table(["When", "Agent", "Period", "What", "Limit"], budgets.slice(0, 100).map((one) => [when(one.at), one.agent_name ?? one.scope, one.period,
      h("span", { class: `badge ${one.event === "exceeded" ? "bad" : "warn"}` }, one.event), (one.limit_usd ?? null) === null ? `${short(one.limit_tokens)} tokens` : money(one.limit_usd)]))) : null,
    h("div", { class: "live-grid" },
      part("Overlaps", h("dl", { class: "pairs" }, [["Waited for the previous run", overlaps.queued], ["Skipped", overlaps.skipped], ["Refused, queue full", overlaps.refused], ["Still waiting at the end", overlaps.waiting]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, number(value))]),
        h("dt", {}, "Longest wait"), h("dd", {}, duration((overlaps.longest_wait_secs ?? 0) * 1000)))),
      part("Not fired", skips.length > 0 ? table(["Kind", "Outcome", "Count"], skips.map((one) => [one.kind, h("span", { class: "two" }, h("span", {}, badge(one.outcome)), h("small", { class: "faint" }, one.reason)), number(one.count)])) : h("p", { class: "dim" }, "Everything fired."))),
    approvals?.requested > 0 ? h("p", { class: "notice warn" }, icon("alert"), `${count(approvals.requested, "tool call")} would wait for approval. A rehearsal decides nothing, so ${number(approvals.expired)} expire.`) : null,
    report.events?.refused?.length > 0 ? part("Rejected events", table(["Event", "Reason"], report.events.refused.map((one) => [number(one.number), one.reason]))) : null,
    part("Agents", agents(report, signal)),
    part("Fires", fires(item, signal)),
    h("p", { class: "hint" }, `Rehearsed until ${when(report.rehearsed_until)} in ${duration(report.seconds * 1000)}.`),
  ];
}

function table(names, rows) {
  return h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": names.join(", ") }, h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}

/** The forecast as a bar from low to high, with the middle marked. */
function costCard(cost) {
  const top = Math.max(cost.high_usd, cost.rehearsed_usd, 1e-9) * 1.08;
  const at = (value) => `${((value / top) * 100).toFixed(1)}%`;
  return h("section", { class: "card stack", "aria-label": "Cost" },
    h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Forecast cost"), h("span", { class: "dim" }, `${Math.round(cost.interval * 100)} % interval: ${money(cost.low_usd)} to ${money(cost.high_usd)}`)),
    h("div", { class: "cost-line" }, h("strong", { class: "cost-figure" }, money(cost.forecast_usd)),
      h("div", { class: "cost-bar", role: "img", "aria-label": `Forecast ${money(cost.forecast_usd)}, from ${money(cost.low_usd)} to ${money(cost.high_usd)}` },
        h("i", { class: "cost-range", style: { left: at(cost.low_usd), right: `${(100 - (cost.high_usd / top) * 100).toFixed(1)}%` } }), h("i", { class: "cost-mark", style: { left: at(cost.forecast_usd) } }))),
    h("p", { class: "hint" }, `From the history of ${count(cost.agents_with_history, "agent")}${cost.agents_estimated > 0 ? `; ${number(cost.agents_estimated)} without history are estimated` : ""}${cost.unpriced_calls > 0 ? `; ${number(cost.unpriced_calls)} calls of models without a price count as 0` : ""}. Simulated cost: ${money(cost.rehearsed_usd)}.`));
}

function agents(report, signal) {
  const made = new Table({
    label: "Agents by forecast", signal, rowHeight: 44, empty: "No agent was active.",
    columns: [
      { label: "Agent", width: "minmax(0, 1.6fr)", sort: (row) => row.name, cell: (row) => row.name },
      { label: "Fires", width: "80px", end: true, sort: (row) => row.fires, cell: (row) => short(row.fires) },
      { label: "Turns", width: "80px", side: true, end: true, sort: (row) => row.turns, cell: (row) => short(row.turns) },
      { label: "Forecast", width: "100px", slim: "90px", end: true, sort: (row) => row.forecast_usd, cell: (row) => money(row.forecast_usd) },
      { label: "Between", width: "170px", side: true, end: true, cell: (row) => `${money(row.low_usd)} – ${money(row.high_usd)}` },
      { label: "From", width: "130px", side: true, cell: (row) => (row.basis === "history" ? count(row.history_turns, "turn") : "estimate") },
    ],
  });
  made.set(report.agents ?? []);
  return made.root;
}

/** The lines of fires, page by page as one scrolls. */
function fires(item, signal) {
  let cursor = null;
  let reading = false;
  let isWhole = false;
  const made = new Table({
    label: "Fires in order", signal, rowHeight: 40, empty: "No fires.", more: () => more().catch(showError),
    columns: [
      { label: "Time", width: "minmax(0, 1.2fr)", slim: "104px", cell: (row) => h("time", { datetime: row.nominal_at, title: when(row.nominal_at) }, stamp(row.nominal_at)) },
      { label: "Agent", width: "minmax(0, 1fr)", cell: (row) => row.agent_name },
      { label: "What", width: "minmax(0, 1.2fr)", side: true, cell: (row) => row.name ?? row.event ?? row.kind },
      { label: "Outcome", width: "120px", slim: "100px", cell: (row) => badge(row.outcome) },
      { label: "Why", width: "minmax(0, 1.4fr)", side: true, cell: (row) => h("span", { class: "dim" }, row.reason ?? (row.queued ? "after the previous run" : "")) },
    ],
  });
  async function more() {
    if (reading || isWhole) return;
    reading = true;
    try {
      const found = await page(`/api/world/rehearsals/${item.id}/fires`, "fires", { limit: PAGE, cursor }, { signal });
      made.append(found.items);
      cursor = found.next;
      isWhole = cursor === null;
    } finally {
      reading = false;
    }
  }
  more().catch(showError);
  return made.root;
}
