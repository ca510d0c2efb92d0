// The picture of a rehearsal: fires and skips over the time, the cost as it grows, and where budgets end.

import { fill, h, s } from "../../lib/dom.js";
import { CLOCK, duration, money, number, short, when } from "../../lib/format.js";
import { perFrame } from "../../lib/poll.js";

const PAD = { left: 46, right: 52, top: 14, bottom: 24 };
const HEIGHT = 240;
/** Pixels of a bar at least; buckets are joined until they are that wide. */
const BAR_MIN = 4;

export class Picture {
  constructor({ report, item, signal }) {
    Object.assign(this, { report, item });
    this.canvas = h("div", { class: "picture-canvas", tabindex: "0", role: "group", "aria-label": "Timeline; use the arrow keys to move" });
    this.tip = h("p", { class: "dim picture-tip", role: "status", "aria-live": "polite" });
    this.node = h("figure", { class: "picture" }, this.legend(), this.canvas, this.tip);
    this.at = -1;
    this.draw = perFrame(() => this.paint(), signal);
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.canvas);
    signal.addEventListener("abort", () => sizes.disconnect());
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.point(Math.floor(((event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right)) * (this.parts?.length ?? 1)));
    });
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.point(this.at + step);
    });
  }

  /** What the picture has, and nothing that it lacks. */
  legend() {
    const { timeline, budgets = [] } = this.report;
    const skips = (timeline?.buckets ?? []).some((one) => one.skips > 0);
    return h("div", { class: "legend" }, h("span", { class: "key series-0" }, "Fires"), skips ? h("span", { class: "key series-2" }, "Skipped") : null,
      h("span", { class: "key series-3" }, "Cost so far"), budgets.some((one) => one.event === "exceeded") ? h("span", { class: "key budget-key" }, "Budget exceeded") : null);
  }

  /** Buckets joined so that each can be seen. */
  joined(width) {
    const { buckets = [], bucket_secs: secs = 1 } = this.report.timeline ?? {};
    const each = Math.max(1, Math.ceil(buckets.length / Math.max(1, Math.floor(width / BAR_MIN))));
    const parts = [];
    let cost = 0;
    for (let at = 0; at < buckets.length; at += each) {
      const some = buckets.slice(at, at + each);
      const sum = (key) => some.reduce((total, one) => total + one[key], 0);
      cost += sum("cost_usd");
      parts.push({ at: some[0].at, secs: secs * some.length, fires: sum("fires"), skips: sum("skips"), turns: sum("turns"), cost });
    }
    return parts;
  }

  paint() {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const inner = { width: width - PAD.left - PAD.right, height: HEIGHT - PAD.top - PAD.bottom };
    const parts = this.joined(inner.width);
    this.parts = parts;
    const most = Math.max(1, ...parts.map((part) => part.fires + part.skips));
    const dearest = Math.max(1e-9, parts.at(-1)?.cost ?? 0);
    const slot = inner.width / Math.max(1, parts.length);
    const x = (at) => PAD.left + slot * at;
    const y = (value) => PAD.top + inner.height * (1 - value / most);
    const from = Date.parse(this.item.from_at);
    const whole = Math.max(1, Date.parse(this.item.until) - from);
    const place = (time) => PAD.left + inner.width * Math.min(1, Math.max(0, (Date.parse(time) - from) / whole));
    const bars = parts.map((part, at) => {
      const wide = Math.max(1, slot - 1);
      const top = y(part.fires);
      return [part.fires > 0 && s("rect", { class: "bar", x: x(at), y: top, width: wide, height: Math.max(1, y(0) - top) }),
        part.skips > 0 && s("rect", { class: "bar series-2", x: x(at), y: y(part.fires + part.skips), width: wide, height: Math.max(1, top - y(part.fires + part.skips)) })];
    });
    const line = parts.map((part, at) => `${at === 0 ? "M" : "L"}${(x(at) + slot / 2).toFixed(1)} ${(PAD.top + inner.height * (1 - part.cost / dearest)).toFixed(1)}`).join("");
    const grid = [0, 0.5, 1].map((share) => s("g", { class: "grid" }, s("line", { x1: PAD.left, x2: width - PAD.right, y1: y(most * share), y2: y(most * share) }),
      s("text", { x: PAD.left - 8, y: y(most * share) + 4, "text-anchor": "end" }, short(most * share)), s("text", { x: width - PAD.right + 8, y: y(most * share) + 4 }, dearest > 1e-6 ? money(dearest * share) : "")));
    const names = (inner.width < 360 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((share) => s("text", { class: "tick", x: PAD.left + inner.width * share, y: HEIGHT - 6, "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" },
      new Date(from + whole * share).toLocaleString(undefined, whole > 86_400_000 * 5 ? { weekday: "short", day: "numeric" } : whole > 86_400_000 ? { weekday: "short", hour: "2-digit", minute: "2-digit", ...CLOCK } : { timeStyle: "short", ...CLOCK })));
    const budgets = (this.report.budgets ?? []).filter((one) => one.event === "exceeded").slice(0, 50).map((one) => s("g", { class: "budget-mark" }, s("line", { x1: place(one.at), x2: place(one.at), y1: PAD.top - 6, y2: y(0) }), s("title", {}, `${one.agent_name ?? "Global"}: ${one.period} budget exceeded ${when(one.at)}`)));
    this.cursor = s("rect", { class: "picture-cursor", y: PAD.top, height: inner.height, width: Math.max(2, slot), visibility: "hidden" });
    fill(this.canvas, s("svg", { class: "chart", width, height: HEIGHT, role: "img", "aria-label": this.summary(parts) }, grid, this.cursor, bars, dearest > 1e-6 ? s("path", { class: "line series-3", d: line }) : null, budgets, names));
    this.slot = slot;
    if (this.at < 0) this.tip.textContent = this.summary(parts);
  }

  summary(parts) {
    const fires = parts.reduce((sum, part) => sum + part.fires, 0);
    const skips = parts.reduce((sum, part) => sum + part.skips, 0);
    return `${number(fires)} fires and ${number(skips)} skips; ${money(parts.at(-1)?.cost ?? 0)} at the end.`;
  }

  point(at) {
    const part = this.parts?.[at];
    if (!part) return;
    this.at = at;
    this.cursor.setAttribute("x", PAD.left + this.slot * at);
    this.cursor.setAttribute("visibility", "visible");
    this.tip.textContent = `${when(part.at)}, ${duration(part.secs * 1000)}: ${number(part.fires)} fires, ${number(part.skips)} skips, ${number(part.turns)} turns, ${money(part.cost)} so far.`;
  }
}
