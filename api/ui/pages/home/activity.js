// What the whole installation did, by hour or day, as the daemon keeps it: small charts of one range.

import { get } from "../../lib/api.js";
import { Chart, FAILED } from "../../lib/charts.js";
import { showError } from "../../lib/dialogs.js";
import { h, fill } from "../../lib/dom.js";
import { CLOCK, duration, money, moneyMark, number, short } from "../../lib/format.js";
import { poll } from "../../lib/poll.js";

const HOUR_MS = 3_600_000;
/** How often the last hour is read anew. */
const LIVE_MS = 5000;

/** Hours of each range, and the step that its points have. */
const RANGES = [
  { name: "60 minutes", hours: 1, step: "minute" },
  { name: "24 hours", hours: 24, step: "hour" },
  { name: "7 days", hours: 7 * 24, step: "hour" },
  { name: "30 days", hours: 30 * 24, step: "day" },
];

/** The charts: a title, the series with the value of a point and perhaps a color, and how values are written. */
const CHARTS = [
  { title: "Turns", series: [["Completed", (point) => point.turns_completed], ["Stopped", (point) => point.turns_stopped + point.turns_interrupted], ["Failed", (point) => point.turns_failed, FAILED]] },
  { title: "Time per turn", kind: "lines", format: duration, series: [["Average", (point) => point.turn_ms_average ?? 0], ["p95", (point) => point.turn_ms_p95 ?? 0]] },
  { title: "Messages", series: [["Clients", (point) => point.client_messages], ["Chats", (point) => point.chat_messages], ["Agents", (point) => point.agent_messages], ["Automation", (point) => point.automatic_messages]] },
  { title: "Model calls", series: [["Answered", (point) => point.model_calls - point.model_calls_failed], ["Failed", (point) => point.model_calls_failed, FAILED]] },
  { title: "Tool calls", series: [["Succeeded", (point) => point.tool_calls - point.tool_calls_failed], ["Failed", (point) => point.tool_calls_failed, FAILED]] },
  { title: "Longest queue", series: [["Waiting", (point) => point.turns_waiting_max]] },
  { title: "Tokens", series: [["Input", (point) => point.input_tokens], ["Output", (point) => point.output_tokens]] },
  { title: "Cost", format: money, mark: moneyMark, series: [["Cost", (point) => point.cost_usd]] },
];

/** When a point begins, for the axis: days are those of UTC, hours those of the browser. */
function tickOf({ from }, { hours, step }) {
  const date = new Date(from);
  if (step === "day") return date.toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
  if (hours <= 24) return date.toLocaleTimeString(undefined, { timeStyle: "short", ...CLOCK });
  return date.toLocaleString(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", ...CLOCK });
}

const isQuiet = (point) => CHARTS.every(({ series }) => series.every(([, value]) => value(point) === 0));

/** The section of the page, which begins with a range of so many hours, and what reads its values anew. */
export function activity({ signal, hours = 24 }) {
  let range = RANGES.find((one) => one.hours === hours);
  const charts = CHARTS.map(({ title, kind, format = number, mark = format }) => new Chart({ label: title, kind, height: 150, format, mark: mark === number ? short : mark }));
  const grid = h("div", { class: "activity-grid" }, charts.map((chart, at) => h("div", { class: "stack" }, h("h3", {}, CHARTS[at].title), chart.node)));
  const body = h("div", {});
  const switches = h("div", { class: "segments", role: "group", "aria-label": "Range" }, RANGES.map((one) => h("button", {
    type: "button", "aria-pressed": String(one === range), data: { key: one.name }, onclick: () => choose(one),
  }, one.name)));
  const node = h("section", { class: "card stack", "aria-label": "Activity" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Activity"), switches), body);

  function choose(one) {
    range = one;
    for (const button of switches.children) button.setAttribute("aria-pressed", String(button.dataset.key === one.name));
    read().catch(showError);
  }

  async function read() {
    const asked = range;
    const from = new Date(Date.now() - asked.hours * HOUR_MS).toISOString();
    const { points } = await get(`/api/history?from=${encodeURIComponent(from)}&step=${asked.step}`, { signal });
    // Another range was chosen meanwhile: its own answer comes.
    if (asked === range) show(points);
  }

  function show(points) {
    if (points.every(isQuiet)) {
      fill(body, h("p", { class: "dim" }, `Nothing happened in the last ${range.name}. What agents do from now on is shown here.`));
      return;
    }
    if (!grid.isConnected) fill(body, grid);
    const ticks = points.map((point) => tickOf(point, range));
    charts.forEach((chart, at) => {
      chart.label = `${CHARTS[at].title} by ${range.step}, the last ${range.name}`;
      chart.set({ ticks, series: CHARTS[at].series.map(([name, value, color]) => ({ name, color, values: points.map(value) })) });
    });
  }

  // A minute is over soon: its charts move while one looks at them.
  poll(async () => range.step === "minute" && read(), LIVE_MS, { signal, isRead: true });
  return { node, read };
}
