// The time line of next runs: one line for each schedule, a dot for each run, from now to 24 hours or 7 days ahead.

import { get, withQuery } from "../../lib/api.js";
import { h, refill, s } from "../../lib/dom.js";
import { brief, CLOCK, moment, when } from "../../lib/format.js";
import { nameOf } from "../../lib/agents.js";
import { inLanes, perFrame } from "../../lib/poll.js";

const HOUR_MS = 3_600_000;
const ROW = 26;
const TOP = 26;
/** Runs asked for each rule; where they end before the range does, the line goes on as a band. */
const RUNS = 100;
/** Dots nearer than this, in pixels, become one bar. */
const NEAR = 9;
/** How long the runs of a rule are kept. */
const FRESH_MS = 60_000;

/** The length of the unit of an interval rule such as "every 1h30m", in milliseconds; 0 for another rule. */
export function intervalOf(rule) {
  const text = /^every\s+(.+)$/i.exec(rule.trim())?.[1];
  if (!text) return 0;
  const units = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
  let seconds = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)\s*([a-z]+)/gi)) seconds += Number(count) * (units[unit[0].toLowerCase()] ?? 0);
  return seconds * 1000;
}

export class Axis {
  constructor({ signal, open }) {
    Object.assign(this, { signal, open });
    this.items = [];
    this.total = 0;
    this.hours = 24;
    this.runs = new Map();
    /** Keys of the rules whose runs are asked for. */
    this.reading = new Set();
    this.canvas = h("div", { class: "axis-canvas" });
    this.note = h("p", { class: "hint" });
    this.node = h("div", { class: "axis" }, this.canvas, this.note);
    this.draw = perFrame(() => this.paint(), signal);
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.canvas);
    signal.addEventListener("abort", () => sizes.disconnect());
  }

  setRange(hours) {
    this.hours = hours;
    this.draw();
  }

  /** Shows `items`, of `total` that are due. */
  set(items, total) {
    this.items = items;
    this.total = total;
    this.draw();
    const now = Date.now();
    const missing = items.filter((item) => !this.reading.has(this.keyOf(item)) && !((this.runs.get(this.keyOf(item))?.until ?? 0) > now));
    for (const item of missing) this.reading.add(this.keyOf(item));
    inLanes(missing, 4, (item) => this.readRuns(item)).catch(() => {});
  }

  keyOf(item) {
    return `${item.rule}|${item.timezone}|${item.next_run}`;
  }

  /** The next runs of one rule. An interval is counted from its next run, which the daemon says. */
  async readRuns(item) {
    const key = this.keyOf(item);
    const step = intervalOf(item.rule);
    let times = [Date.parse(item.next_run)];
    if (step > 0) {
      times = Array.from({ length: RUNS }, (_, n) => times[0] + n * step);
    } else if (!/^(in|at)\s/i.test(item.rule)) {
      try {
        const found = await get(withQuery("/api/schedules/preview", { cron: item.rule, timezone: item.timezone, count: RUNS }), { signal: this.signal });
        times = found.next_runs.map((text) => Date.parse(text));
      } catch {
        // Its next run is known all the same.
      }
    }
    this.reading.delete(key);
    if (this.runs.size > 500) this.runs.clear();
    this.runs.set(key, { times, until: Date.now() + FRESH_MS, goesOn: times.length >= RUNS });
    this.draw();
  }

  paint() {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const { items, hours } = this;
    const side = width < 560 ? 96 : 180;
    const now = Date.now();
    const end = now + hours * HOUR_MS;
    const x = (time) => side + ((time - now) / (end - now)) * (width - side - 12);
    const height = TOP + Math.max(1, items.length) * ROW + 6;
    const rows = items.map((item, at) => this.row(item, TOP + at * ROW + ROW / 2, { x, end, side, width }));
    refill(this.canvas, s("svg", { class: "axis-svg", width, height, role: "group", "aria-label": `Next runs within ${hours === 24 ? "24 hours" : "7 days"}` },
      this.grid(now, end, x, height, side, width - side), s("line", { class: "axis-now", x1: side, x2: side, y1: TOP - 8, y2: height - 4 }), rows));
    const left = this.total - items.length;
    this.note.textContent = items.length === 0 ? "No enabled schedules." : left > 0 ? `The ${items.length} that run first; ${left} more are in the list.` : "";
  }

  /** Lines at full hours or days, with their names. */
  grid(now, end, x, height, side, room) {
    const step = this.hours === 24 ? (room < 420 ? 6 : 3) : 24;
    const first = new Date(now);
    first.setMinutes(0, 0, 0);
    first.setHours(Math.ceil((first.getHours() + 1) / step) * step);
    const marks = [];
    for (const at = first; at.getTime() < end; at.setHours(at.getHours() + step)) marks.push(new Date(at));
    return marks.map((at) => {
      const text = this.hours === 24 && at.getHours() !== 0 ? at.toLocaleTimeString(undefined, { timeStyle: "short", ...CLOCK })
        : at.toLocaleDateString(undefined, room < 420 ? { weekday: "short" } : { weekday: "short", day: "numeric" });
      return s("g", { class: "axis-mark" }, s("line", { x1: x(at), x2: x(at), y1: TOP - 8, y2: height - 4 }), s("text", { x: Math.min(x(at), side + room - 18), y: 12, "text-anchor": "middle" }, text));
    });
  }

  row(item, y, { x, end, side, width }) {
    const known = this.runs.get(this.keyOf(item)) ?? { times: [Date.parse(item.next_run)], goesOn: false };
    const times = known.times.filter((time) => time <= end);
    const label = item.label.replace(/\s+/g, " ");
    const room = Math.floor(side / 7.2);
    const marks = [];
    // Runs that would touch are one bar from the first to the last of them.
    for (let at = 0; at < times.length; at += 1) {
      const from = x(times[at]);
      let last = at;
      while (last + 1 < times.length && x(times[last + 1]) - x(times[last]) < NEAR) last += 1;
      if (last === at) {
        marks.push(s("circle", { cx: from, cy: y, r: 4 }, s("title", {}, when(new Date(times[at]).toISOString()))));
      } else {
        const isEnd = last === times.length - 1 && known.goesOn && times.length === known.times.length;
        const upto = isEnd ? width - 12 : x(times[last]);
        marks.push(s("rect", { x: from - 3, y: y - 3, width: Math.max(6, upto - from + 6), height: 6, rx: 3 }, s("title", {}, `Every ${brief(new Date(times[at]).toISOString())} and on: ${item.rule}`)));
        at = last;
      }
    }
    const summary = `${label}, ${nameOf(item.agent_id)}: next ${when(moment(item.next_run)?.toISOString())}, ${times.length >= RUNS ? "100 or more" : times.length} in range`;
    return s("g", {
      class: `axis-row axis-${item.kind}`, tabindex: "0", role: "button", "aria-label": summary, data: { key: item.id },
      onclick: () => this.open(item), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.open(item); } },
    }, s("rect", { class: "axis-hit", x: 0, y: y - ROW / 2 + 1, width, height: ROW - 2, rx: 5 }),
    s("text", { x: 6, y: y + 4 }, label.length > room ? `${label.slice(0, room - 1)}…` : label),
    s("line", { class: "axis-rail", x1: side, x2: width - 12, y1: y, y2: y }), marks);
  }
}
