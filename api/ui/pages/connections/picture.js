// The picture of the graph: agents as circles, relations as lines that light up with each message. One stop of the Tab key: arrows
// go from agent to agent.

import { h, refill, s, uniqueId } from "../../lib/dom.js";
import { perFrame } from "../../lib/poll.js";
import { arrange, capacity } from "./layout.js";

/** Lines that are drawn; those that were used longest ago are left out. */
const EDGES_DRAWN = 200;
/** Lines that light up in one frame, however much happens. */
const LIT_PER_FRAME = 30;
const LIT_MS = 1600;
const NAME_MAX = 15;
const RADIUS = 11;
const MOVES = !matchMedia("(prefers-reduced-motion: reduce)").matches;

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** `new Picture({ signal, relations, open })`; `draw()` after changes, `light(keys)` for relations that were used, `select(id)`. */
export class Picture {
  constructor({ signal, relations, open, onShown }) {
    Object.assign(this, { relations, open, onShown });
    this.places = new Map();
    this.shown = [];
    this.size = { width: 0, height: 0 };
    this.active = null;
    this.selected = null;
    this.arrow = uniqueId("arrow");
    this.lines = new Map();
    this.circles = new Map();
    this.lit = new Map();
    this.canvas = s("svg", { class: "talk-svg", role: "group", "aria-label": "Agents. Use the arrow keys to go from one to another." });
    this.node = h("div", { class: "talk-frame" }, this.canvas);
    this.draw = perFrame(() => this.paint(), signal);
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.node);
    signal.addEventListener("abort", () => sizes.disconnect());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("click", (event) => {
      const id = event.target.closest("[data-key]")?.dataset.key;
      if (id) this.open(id);
    });
    this.canvas.addEventListener("focusin", (event) => {
      const id = event.target.closest("[data-key]")?.dataset.key;
      if (id) this.enter(id);
    });
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.node;
    if (width === 0 || height === 0) return;
    if (width !== this.size.width || height !== this.size.height) {
      const { size } = this;
      for (const place of this.places.values()) {
        place.x *= width / (size.width || width);
        place.y *= height / (size.height || height);
      }
      this.size = { width, height };
    }
    const { nodes, edges } = this.relations;
    this.shown = this.relations.ranked().slice(0, capacity(width, height));
    const ids = new Set(this.shown.map(({ id }) => id));
    const drawn = [...edges.values()].filter(({ from, to }) => ids.has(from) && ids.has(to)).sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, EDGES_DRAWN);
    arrange(this.places, this.shown, drawn.map(({ from, to }) => [from, to]), this.size);
    if (!ids.has(this.active)) this.active = this.shown[0]?.id ?? null;
    if (this.selected !== null && !nodes.has(this.selected)) this.selected = null;
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.lines = new Map(drawn.map((edge) => [edge.key, this.line(edge)]));
    this.circles = new Map(this.shown.map((node) => [node.id, this.circle(node)]));
    refill(this.canvas,
      s("defs", {}, s("marker", { id: this.arrow, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0 8 4 0 8z" }))),
      s("g", { "aria-hidden": "true" }, [...this.lines.values()]), [...this.circles.values()]);
    this.mark();
    this.onShown(this.shown.length);
  }

  line(edge) {
    const from = this.places.get(edge.from);
    const to = this.places.get(edge.to);
    const x = to.x - from.x;
    const y = to.y - from.y;
    const length = Math.hypot(x, y) || 1;
    const isChild = edge.kind === "parent_child";
    // A bow to one side: the way back has its own.
    const bow = isChild ? 0 : Math.min(22, length / 8);
    const middle = { x: (from.x + to.x) / 2 - (y / length) * bow * 2, y: (from.y + to.y) / 2 + (x / length) * bow * 2 };
    const edgeOf = (at, gap) => {
      const [dx, dy] = [middle.x - at.x, middle.y - at.y];
      const far = Math.hypot(dx, dy) || 1;
      return { x: at.x + (dx / far) * gap, y: at.y + (dy / far) * gap };
    };
    const [a, b] = [edgeOf(from, RADIUS + 3), edgeOf(to, RADIUS + 5)];
    const points = [a.x, a.y, middle.x, middle.y, b.x, b.y].map((value) => value.toFixed(1));
    return s("path", {
      class: `talk-edge${isChild ? " talk-child" : ""}`, d: `M${points[0]} ${points[1]}Q${points[2]} ${points[3]} ${points[4]} ${points[5]}`,
      "stroke-width": isChild ? 1.2 : Math.min(4, 1.2 + Math.log2(1 + edge.count) / 2), "marker-end": isChild ? null : `url(#${this.arrow})`, data: { from: edge.from, to: edge.to },
    });
  }

  circle(node) {
    const { x, y } = this.places.get(node.id);
    const label = `${node.name}${node.state ? `, ${node.state}` : ""}: ${node.sent} sent, ${node.received} received`;
    return s("g", { class: `talk-node${node.state === "Running" ? " is-running" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, role: "button", tabindex: "-1", "aria-label": label, "aria-pressed": "false", data: { key: node.id } },
      s("title", {}, label), s("rect", { class: "talk-hit", x: -46, y: -18, width: 92, height: 52, rx: 8 }),
      s("circle", { r: RADIUS }), s("text", { y: RADIUS + 16, "text-anchor": "middle" }, cut(node.name, NAME_MAX)));
  }

  /** Shows which agent is chosen, and which one the Tab key reaches. */
  mark() {
    const { selected } = this;
    this.canvas.classList.toggle("has-selected", selected !== null);
    for (const [id, node] of this.circles) {
      node.setAttribute("tabindex", id === this.active ? "0" : "-1");
      node.setAttribute("aria-pressed", String(id === selected));
      node.classList.toggle("is-near", selected !== null && (id === selected || this.relations.nodes.get(selected).with.has(id)));
    }
    for (const line of this.lines.values()) line.classList.toggle("is-near", selected !== null && [line.dataset.from, line.dataset.to].includes(selected));
  }

  select(id) {
    this.selected = id;
    this.mark();
  }

  enter(id) {
    this.active = id;
    for (const [other, node] of this.circles) node.setAttribute("tabindex", other === id ? "0" : "-1");
  }

  onKey(event) {
    const id = event.target.closest("[data-key]")?.dataset.key;
    if (!id) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open(id);
      return;
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    const next = way ? this.beside(id, way) : { Home: this.shown[0]?.id, End: this.shown.at(-1)?.id }[event.key];
    if (!way && next === undefined) return;
    event.preventDefault();
    this.circles.get(next)?.focus({ preventScroll: true });
  }

  /** The nearest agent in a direction. */
  beside(id, [right, down]) {
    const from = this.places.get(id);
    let best = id;
    let least = Infinity;
    for (const [other, at] of this.places) {
      const [x, y] = [at.x - from.x, at.y - from.y];
      const along = x * right + y * down;
      const aside = Math.abs(x * down) + Math.abs(y * right);
      if (other === id || along <= 0.5) continue;
      // What lies in the direction counts; what lies aside of it is far.
      const far = along + aside * 2;
      if (far < least) [best, least] = [other, far];
    }
    return best;
  }

  /** Lights the relations that were used, and the agents `ids`. */
  light(keys, ids) {
    for (const key of [...new Set(keys)].slice(-LIT_PER_FRAME)) this.flash(this.lines.get(key), key);
    for (const id of [...new Set(ids)].slice(-LIT_PER_FRAME)) this.flash(this.circles.get(id), id);
  }

  flash(node, key) {
    if (!node) return;
    node.classList.add("is-lit");
    if (MOVES && node.nodeName === "path" && !this.lit.has(key)) {
      const dot = s("circle", { class: "talk-dot", r: 4, "aria-hidden": "true" }, s("animateMotion", { dur: "0.9s", path: node.getAttribute("d"), begin: "indefinite", fill: "freeze" }));
      node.parentNode.append(dot);
      dot.firstChild.beginElement();
      setTimeout(() => dot.remove(), 900);
    }
    clearTimeout(this.lit.get(key));
    this.lit.set(key, setTimeout(() => {
      this.lit.delete(key);
      (this.lines.get(key) ?? this.circles.get(key))?.classList.remove("is-lit");
    }, LIT_MS));
  }
}
