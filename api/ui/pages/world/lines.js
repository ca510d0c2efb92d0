// A chart of lines over the last minutes that grows by a point a second: nothing is built anew, only paths are set.

import { h, s } from "../../lib/dom.js";
import { perFrame } from "../../lib/poll.js";

/** Points that are kept: two minutes. */
export const POINTS = 120;
/** The least seconds that a chart is wide, while little is known. */
const SPAN_MIN = 20;
/** Fewer points than that are no line yet. */
const FEW = 5;
const PAD = { left: 46, right: 10, top: 10, bottom: 20 };

/** A round number not below `value`. */
function ceiling(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

/** Was something read there? A null among the values is one that is not known. */
const isKnown = (values, n) => Boolean(values) && values[n] !== null;

/** The points of each chart, by its title, while the page is left for another: `{ points, at }`. */
const kept = new Map();

/**
 * The points that a chart begins with: those of the last visit, and a gap for each second since. An earlier load of the page left them
 * in the session storage.
 */
function pointsOf(title) {
  let before = kept.get(title);
  try {
    before ??= JSON.parse(sessionStorage.getItem(`agentsvc-lines-${title}`));
  } catch {
    // Nothing is known of it.
  }
  if (!before) return [];
  const gap = Math.round((Date.now() - before.at) / 1000);
  return gap >= POINTS || gap < 0 ? [] : [...before.points, ...Array.from({ length: gap }, () => null)].slice(-POINTS);
}

/** `new Lines({ title, names, format, signal })`; `push([1, 2])` adds a value for each name, null for one that is not known. */
export class Lines {
  constructor({ title, names, format, signal, height = 150 }) {
    Object.assign(this, { names, format, height, title });
    this.points = pointsOf(title);
    this.area = s("path", { class: "lines-area" });
    this.paths = names.map((_, at) => s("path", { class: `line series-${at}` }));
    this.grid = [0, 0.5, 1].map(() => ({ line: s("line", {}), text: s("text", { "text-anchor": "end" }) }));
    this.cursor = s("line", { class: "lines-cursor", visibility: "hidden" });
    this.start = s("text", { class: "tick" }, "2 min ago");
    this.end = s("text", { class: "tick", "text-anchor": "end" }, "now");
    this.few = s("text", { class: "lines-few", "text-anchor": "middle" }, "Recorded while this page is open");
    this.svg = s("svg", { class: "chart lines", height, role: "img", "aria-label": title },
      s("g", { class: "grid" }, this.grid.flatMap(({ line, text }) => [line, text])), this.area, this.paths, this.cursor, this.start, this.end, this.few);
    this.figures = names.map((name, at) => h("span", { class: `key series-${at}` }, name, " ", h("b", {}, "–")));
    this.canvas = h("div", { class: "lines-canvas" }, this.svg);
    this.node = h("section", { class: "card lines-card", "aria-label": title }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, title), h("div", { class: "legend" }, this.figures)), this.canvas);
    this.draw = perFrame(() => this.paint(), signal);
    this.hover = -1;
    this.canvas.addEventListener("pointermove", (event) => { this.hover = event.clientX - this.canvas.getBoundingClientRect().left; this.draw(); });
    this.canvas.addEventListener("pointerleave", () => { this.hover = -1; this.draw(); });
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.canvas);
    const keep = () => {
      const last = { points: this.points, at: this.at ?? Date.now() };
      kept.set(title, last);
      sessionStorage.setItem(`agentsvc-lines-${title}`, JSON.stringify(last));
    };
    addEventListener("pagehide", keep, { signal });
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      keep();
    });
    this.draw();
  }

  push(values) {
    this.points.push(values);
    this.at = Date.now();
    if (this.points.length > POINTS) this.points.shift();
    this.draw();
  }

  /** Puts points in front of those that there are: what was before the page was opened. */
  before(points) {
    this.points = [...points, ...this.points].slice(-POINTS);
    this.draw();
  }

  paint() {
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const { points, height } = this;
    const inner = { width: width - PAD.left - PAD.right, height: height - PAD.top - PAD.bottom };
    const top = ceiling(Math.max(0, ...points.flatMap((values) => values ?? [])));
    // What was before the first reading takes no room.
    const first = points.findIndex((values) => values !== null);
    const span = Math.min(POINTS, Math.max(SPAN_MIN, first < 0 ? 0 : points.length - first));
    const x = (at) => PAD.left + inner.width * ((span - points.length + at) / (span - 1));
    const y = (value) => PAD.top + inner.height * (1 - value / top);
    this.svg.setAttribute("width", width);
    this.grid.forEach(({ line, text }, at) => {
      const value = top * at / 2;
      const place = y(value).toFixed(1);
      for (const [name, to] of [["x1", PAD.left], ["x2", width - PAD.right], ["y1", place], ["y2", place]]) line.setAttribute(name, to);
      text.setAttribute("x", PAD.left - 8);
      text.setAttribute("y", Number(place) + 4);
      text.textContent = this.format(value);
    });
    // Where nothing was read the line has a gap.
    const path = (n) => points.map((values, at) => (isKnown(values, n) ? `${at > 0 && isKnown(points[at - 1], n) ? "L" : "M"}${x(at).toFixed(1)} ${y(values[n] ?? 0).toFixed(1)}` : "")).join("");
    this.paths.forEach((line, n) => line.setAttribute("d", path(n)));
    this.area.setAttribute("d", points.length > 1 && !points.includes(null) ? `${path(0)}L${x(points.length - 1).toFixed(1)} ${y(0)}L${x(0).toFixed(1)} ${y(0)}z` : "");
    this.start.textContent = span === POINTS ? "2 min ago" : `${span} s ago`;
    this.start.setAttribute("x", PAD.left);
    this.end.setAttribute("x", width - PAD.right);
    for (const text of [this.start, this.end]) text.setAttribute("y", height - 5);
    this.few.setAttribute("visibility", points.filter(Boolean).length < FEW ? "visible" : "hidden");
    this.few.setAttribute("x", PAD.left + inner.width / 2);
    this.few.setAttribute("y", PAD.top + inner.height / 4 + 4);
    const at = this.hover < 0 ? points.length - 1 : Math.round(((this.hover - PAD.left) / inner.width) * (span - 1)) - (span - points.length);
    const shown = points[Math.min(points.length - 1, Math.max(0, at))];
    this.figures.forEach((figure, n) => { figure.lastChild.textContent = isKnown(shown, n) ? this.format(shown[n] ?? 0) : "–"; });
    const isIn = this.hover >= 0 && at >= 0 && at < points.length && points[at] !== null;
    this.cursor.setAttribute("visibility", isIn ? "visible" : "hidden");
    if (isIn) for (const [name, to] of [["x1", x(at)], ["x2", x(at)], ["y1", PAD.top], ["y2", height - PAD.bottom]]) this.cursor.setAttribute(name, to);
    const last = points.at(-1);
    if (last) this.svg.setAttribute("aria-label", `${this.title}: ${this.names.map((name, n) => `${name} ${this.format(last[n] ?? 0)}`).join(", ")}`);
  }
}
