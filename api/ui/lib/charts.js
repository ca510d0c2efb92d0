// Small charts in SVG, drawn with the colours of the theme. Each is an image with a label that says what it shows.

import { fill, h, s } from "./dom.js";
import { short } from "./format.js";

const PAD = { right: 8, top: 8, bottom: 22 };
/** The color of what failed: that of faults everywhere. */
export const FAILED = "failed";
/** The class of a series that stands at a place. */
const seriesOf = (color, at) => `series-${color === FAILED ? FAILED : (color ?? at) % 6}`;
/** Between the names of an axis and its lines. */
const GAP = 8;
/** As much room as the names of an axis have at least. */
const NAMES_MIN = 28;

/** How wide the widest of some texts is in an element with the style of a chart. */
function widest(texts, node) {
  const { fontStyle, fontWeight, fontSize, fontFamily } = getComputedStyle(node);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
  return Math.ceil(Math.max(...texts.map((text) => pen.measureText(text).width)));
}

/** A round number not below `value`: 1, 2 or 5 times a power of ten. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

/** A line without axes: `sparkline([1, 4, 2], { label: "Turns a second" })`. */
export function sparkline(values, { label, width = 120, height = 32 } = {}) {
  const max = Math.max(1e-9, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / max) * (height - 4)).toFixed(1)}`);
  return s("svg", { class: "chart spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("polygon", { class: "area", points: `0,${height} ${points.join(" ")} ${width},${height}` }),
    s("polyline", { class: "line", points: points.join(" ") }));
}

/**
 * A chart of bars or lines over a row of places.
 *
 * - `label`: what it shows, as a sentence
 * - `series`: `[{ name, values }]`, each with one value for each of `ticks`; bars are stacked. `color` is a number from 0 to 5
 *   where it is not that of the place, such as `FAILED`
 * - `ticks`: the names below, such as days; not all are written when there is no room
 * - `none`: what it says where all values are 0
 * - `kind`: "bars" or "lines"; `format(value)` writes the values, `mark(value)` those at the axis
 *
 * `chart.node` is the element; `chart.set({ series, ticks })` draws anew. The values stand in a table for screen readers.
 */
export class Chart {
  constructor({ label, series = [], ticks = [], kind = "bars", height = 200, format = short, mark = null, none = "None" }) {
    Object.assign(this, { none, label, series, ticks, kind, height, format, mark });
    this.canvas = h("div", { class: "chart-canvas", style: { height: `${height}px` } });
    this.legend = h("div", { class: "legend" });
    this.tip = h("div", { class: "chart-tip", hidden: true, "aria-hidden": "true" });
    this.node = h("figure", { class: "chart-frame", "aria-label": label, role: "group" }, this.legend, this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.onPoint(event));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** New values; what is left out stays. */
  set(values) {
    Object.assign(this, values);
    this.draw();
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const { height, ticks, series, kind } = this;
    fill(this.legend, series.length > 1 && series.map(({ name, color }, at) => h("span", { class: `key ${seriesOf(color, at)}` }, name)));
    // An axis without values says nothing: what it would show is said in a line.
    const isEmpty = series.every(({ values }) => values.every((value) => !(value > 0)));
    this.node.classList.toggle("is-empty", isEmpty);
    this.slot = 0;
    if (isEmpty) return void fill(this.canvas, h("p", { class: "chart-none" }, this.none), this.table());
    const sums = ticks.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
    const top = ceiling(Math.max(...(kind === "bars" ? sums : series.flatMap(({ values }) => values)), 0));
    const marks = [0, 0.5, 1].map((part) => [part, (this.mark ?? this.format)(top * part)]);
    this.left = GAP + Math.max(NAMES_MIN, widest(marks.map(([, text]) => text), this.canvas));
    const inner = { width: width - this.left - PAD.right, height: height - PAD.top - PAD.bottom };
    const y = (value) => PAD.top + inner.height * (1 - value / top);
    const slot = inner.width / Math.max(1, ticks.length);
    const x = (at) => this.left + slot * (at + 0.5);
    const grid = marks.map(([part, text]) => s("g", { class: "grid" },
      s("line", { x1: this.left, x2: width - PAD.right, y1: y(top * part), y2: y(top * part) }),
      s("text", { x: this.left - GAP, y: y(top * part) + 4, "text-anchor": "end" }, text)));
    const every = Math.max(1, Math.ceil(72 / slot));
    const names = ticks.map((tick, at) => at % every === 0 && s("text", { class: "tick", x: x(at), y: height - 6, "text-anchor": "middle" }, tick));
    const shapes = kind === "bars" ? this.bars(x, y, slot) : this.lines(x, y);
    fill(this.canvas, s("svg", { class: "chart", width, height, role: "img", "aria-label": this.label }, grid, shapes, names), this.table());
    this.slot = slot;
  }

  bars(x, y, slot) {
    const wide = Math.max(1, Math.min(32, slot * 0.66));
    return this.ticks.map((_, at) => {
      let below = 0;
      return this.series.map(({ values, color }, n) => {
        const value = values[at] ?? 0;
        const from = below;
        below += value;
        if (value <= 0) return null;
        const height = Math.max(1, y(from) - y(below));
        return s("rect", { class: `bar ${seriesOf(color, n)}`, x: x(at) - wide / 2, y: y(from) - height, width: wide, height, rx: Math.min(3, wide / 3) });
      });
    });
  }

  lines(x, y) {
    return this.series.map(({ values, color }, n) => {
      const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
      return s("polyline", { class: `line ${seriesOf(color, n)}`, points });
    });
  }

  /** The same values as a table that is not seen, and takes no room: a table alone is as high as its rows. */
  table() {
    const head = h("tr", {}, h("th", { scope: "col" }, "Place"), this.series.map(({ name }) => h("th", { scope: "col" }, name)));
    const rows = this.ticks.map((tick, at) => h("tr", {}, h("th", { scope: "row" }, tick),
      this.series.map(({ values }) => h("td", {}, this.format(values[at] ?? 0)))));
    return h("div", { class: "sr" }, h("table", {}, h("caption", {}, this.label), h("thead", {}, head), h("tbody", {}, rows)));
  }

  onPoint(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = Math.floor((event.clientX - box.left - this.left) / this.slot);
    if (!(this.slot > 0 && at >= 0 && at < this.ticks.length)) {
      this.tip.hidden = true;
      return;
    }
    fill(this.tip, h("strong", {}, this.ticks[at]), this.series.map(({ name, values }) => h("span", {}, `${name}: ${this.format(values[at] ?? 0)}`)));
    this.tip.hidden = false;
    const left = Math.min(box.width - this.tip.offsetWidth, Math.max(0, event.clientX - box.left - this.tip.offsetWidth / 2));
    this.tip.style.setProperty("left", `${left}px`);
  }
}
