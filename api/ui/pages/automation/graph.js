// A workflow as a graph: steps from top to bottom, those of a fan-out side by side, loops and conditions marked.

import { h, refill, s, uniqueId } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { perFrame } from "../../lib/poll.js";

const BOX = { height: 62, gapX: 22, gapY: 48, top: 56 };
/** Pixels that the pointer goes before a step is dragged. */
const DRAG_FROM = 6;
/** A box is as wide as there is room for the widest row; narrower than that the graph scrolls. */
const WIDTH = { min: 118, max: 210 };

/** The steps as rows: a fan-out is one row of several. */
function rowsOf(steps) {
  const rows = [];
  for (const [at, step] of steps.entries()) {
    const beside = step.mode === "fan_out" && rows.length > 0 && rows.at(-1).isFan;
    if (beside) rows.at(-1).steps.push([at, step]);
    else rows.push({ isFan: step.mode === "fan_out", steps: [[at, step]] });
  }
  return rows;
}

/** Lets a part of the drawing be clicked, and pressed with the keyboard. */
function act(node, run) {
  node.addEventListener("click", run);
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    run();
  });
  return node;
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** What stands below a step's name. */
function noteOf(step, run) {
  if (run) {
    const parts = [run.state];
    if (run.attempts > 1) parts.push(`attempt ${run.attempts}`);
    if (run.iterations > 1) parts.push(`round ${run.iterations}`);
    if (run.started_at && run.completed_at) parts.push(duration(Date.parse(run.completed_at) - Date.parse(run.started_at)));
    return parts.join(", ");
  }
  if (step.output) return `“${step.output.replace(/\s+/g, " ").trim()}”`;
  if (step.mode === "collect") return "joins the outputs";
  const agent = step.agent_name || (step.agent_id ? step.agent_id.slice(0, 8) : "no agent");
  return { conditional: `${agent}, if…`, loop: `${agent}, up to ${step.max_iterations ?? 5}×`, fan_out: agent }[step.mode] ?? agent;
}

/**
 * `new Graph({ signal, open(index), add(index), move(index, to) })`; `graph.set(steps, runSteps)` draws it, with states when a run is given. With `add` it has
 * places for a new step before `index`; with `move` steps can be dragged there. `graph.chosen` is the index of the step that is marked, or null.
 */
export class Graph {
  constructor({ signal, open = () => {}, add = null, move = null }) {
    this.open = open;
    this.add = add;
    this.move = move;
    this.chosen = null;
    this.steps = [];
    /** The form of a workflow draws one too: each has an arrow head of its own. */
    this.arrow = uniqueId("arrow");
    this.node = h("div", { class: "graph", tabindex: "0", role: "region", "aria-label": "Steps" });
    this.draw = perFrame(() => this.paint(), signal);
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.node);
    signal?.addEventListener("abort", () => sizes.disconnect());
  }

  set(steps, runSteps = null) {
    this.steps = steps;
    this.run = runSteps;
    this.draw();
  }

  paint() {
    const rows = rowsOf(this.steps);
    const most = Math.max(1, ...rows.map((row) => row.steps.length));
    const styles = getComputedStyle(this.node);
    const inside = this.node.clientWidth - parseFloat(styles.paddingLeft) - parseFloat(styles.paddingRight);
    const each = inside > 0 ? (inside - 4 - (most - 1) * BOX.gapX) / most : WIDTH.max;
    this.wide = Math.floor(Math.min(WIDTH.max, Math.max(WIDTH.min, each)));
    const width = most * this.wide + (most - 1) * BOX.gapX + 4;
    const height = BOX.top + rows.length * (BOX.height + BOX.gapY) + 12;
    const middle = width / 2;
    const place = (row, at) => {
      const span = row.steps.length * this.wide + (row.steps.length - 1) * BOX.gapX;
      return middle - span / 2 + at * (this.wide + BOX.gapX);
    };
    const parts = [this.end(middle, 14, "Input")];
    let above = [{ x: middle, y: 26 }];
    rows.forEach((row, n) => {
      const y = BOX.top + 14 + n * (BOX.height + BOX.gapY) - 14;
      const tops = row.steps.map((_, at) => ({ x: place(row, at) + this.wide / 2, y }));
      for (const from of above) for (const to of tops) parts.push(this.edge(from, to));
      if (this.add) parts.push(this.plus(middle, (above[0].y + y) / 2, row.steps[0][0]));
      row.steps.forEach(([index, step], at) => parts.push(this.box(index, step, place(row, at), y)));
      above = tops.map(({ x }) => ({ x, y: y + BOX.height }));
    });
    const last = { x: middle, y: height - 26 };
    for (const from of above) parts.push(this.edge(from, last));
    if (this.add) parts.push(this.plus(middle, (above[0].y + last.y) / 2, this.steps.length));
    parts.push(this.end(middle, height - 14, "Output"));
    refill(this.node, s("svg", { class: "graph-svg", width, height, role: "group", "aria-label": "The workflow's steps" },
      s("defs", {}, s("marker", { id: this.arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0 8 4 0 8z" }))), parts));
  }

  edge(from, to) {
    const half = (to.y - from.y) / 2;
    return s("path", { class: "graph-edge", d: `M${from.x} ${from.y}C${from.x} ${from.y + half} ${to.x} ${to.y - half} ${to.x} ${to.y - 1}`, "marker-end": `url(#${this.arrow})` });
  }

  /** A button that adds a step before the one of `index`. */
  plus(x, y, index) {
    return act(s("g", { class: "graph-plus", tabindex: "0", role: "button", "aria-label": `Add a step at position ${index + 1}`, data: { key: `plus-${index}` } },
      s("title", {}, "Add a step here"), s("circle", { cx: x, cy: y, r: 10 }), s("path", { d: `M${x - 5} ${y}h10M${x} ${y - 5}v10` })), () => this.add(index));
  }

  end(x, y, label) {
    return s("g", { class: "graph-end" }, s("rect", { x: x - 36, y: y - 12, width: 72, height: 24, rx: 12 }), s("text", { x, y: y + 4, "text-anchor": "middle" }, label));
  }

  box(index, step, x, y) {
    const run = this.run?.[index];
    const state = run ? `run-${run.state.toLowerCase()}` : step.isFaulty ? "run-failed" : step.output ? "run-completed" : "";
    const name = step.name || `Step ${index + 1}`;
    const note = step.isFaulty ? "Something is missing" : noteOf(step, run);
    const box = act(s("g", {
      class: `graph-step mode-${step.mode ?? "sequential"} ${state}`, tabindex: "0", role: "button", "aria-label": `Step ${index + 1}, ${name}: ${note}`, data: { key: index },
      "aria-pressed": String(index === this.chosen),
    }, s("title", {}, `${name}: ${note}`),
    s("rect", { x, y, width: this.wide, height: BOX.height, rx: 10 }),
    s("circle", { class: "graph-dot", cx: x + 18, cy: y + 24, r: 5 }),
    s("text", { class: "graph-name", x: x + 32, y: y + 28 }, cut(name, Math.floor((this.wide - 40) / 7.4))),
    s("text", { class: "graph-note", x: x + 14, y: y + 48 }, cut(note, Math.floor((this.wide - 22) / 6.2))),
    { loop: s("path", { class: "graph-mark", d: `M${x + this.wide - 26} ${y + 16}a7 7 0 1 1-1 8` }),
      conditional: s("path", { class: "graph-mark", d: `M${x + this.wide - 22} ${y + 12}l8 8-8 8-8-8z` }) }[step.mode] ?? null), () => this.isDragged || this.open(index));
    if (this.move) this.drag(box, index);
    return box;
  }

  /** Lets a step be dragged to a place where one could be added; the panel has buttons for the same. */
  drag(box, index) {
    let start = null;
    let target = null;
    const places = () => [...this.node.querySelectorAll(".graph-plus")];
    const mark = (place) => {
      target = place;
      for (const one of places()) one.classList.toggle("is-target", one === place);
    };
    box.addEventListener("pointerdown", (event) => {
      this.isDragged = false;
      if (event.button !== 0 || event.pointerType === "touch") return;
      start = { x: event.clientX, y: event.clientY };
      // A quick hand has left the step before the first move is told.
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      if (!this.isDragged && Math.hypot(x, y) < DRAG_FROM) return;
      this.isDragged = true;
      box.classList.add("is-dragged");
      box.style.setProperty("transform", `translate(${x}px, ${y}px)`);
      const away = (place) => { const at = place.getBoundingClientRect(); return Math.abs(at.top + at.height / 2 - event.clientY); };
      mark(places().reduce((best, place) => (best === null || away(place) < away(best) ? place : best), null));
    });
    const end = (event) => {
      if (!start) return;
      start = null;
      box.classList.remove("is-dragged");
      box.style.removeProperty("transform");
      const to = target ? Number(target.dataset.key.slice("plus-".length)) : index;
      mark(null);
      // The click that ends a drag comes right behind it.
      setTimeout(() => { this.isDragged = false; });
      if (this.isDragged && event.type === "pointerup" && to !== index && to !== index + 1) this.move(index, to > index ? to - 1 : to);
    };
    box.addEventListener("pointerup", end);
    box.addEventListener("pointercancel", end);
  }
}
