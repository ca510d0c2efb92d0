// A table of any length: only the rows that can be seen are in the document. Rows have one height.

import { isCompact } from "./density.js";
import { h } from "./dom.js";
import { perFrame } from "./poll.js";

/** Rows above and below the visible ones that are kept, so that scrolling shows no gaps. */
const MARGIN_ROWS = 8;
/** A compact row: so much of its usual height, and not less than a line with a button needs. */
const COMPACT = { part: 0.78, min: 34 };
/** How often rows are built anew, in milliseconds: they say how long ago something was. */
const FRESH_MS = 30_000;
/** A phone, as styles/parts.css has it. */
const SLIM = matchMedia("(max-width: 720px)");
/** What in a row can have the focus. */
const CONTROLS = "button, a[href], input, select";

/**
 * `new Table({ label, columns, signal })`, then `table.root` and `table.set(rows)`.
 *
 * A column has `label`, `cell(row)` (a node or text), `width` (of a CSS grid, default `minmax(0, 1fr)`), `side: true`
 * when it may be left out on a phone, `end: true` for numbers, `sort(row)` (a number or text) when it can be sorted by.
 * With `slimHeight`, the height of a row on a phone, the lines of `class: "two"` have two lines each there, for long names.
 * `open(row)` is called when a row is chosen; its first column is then a button. `more()` is called near the end.
 * `name(row)` is how a screen reader calls the button. `keyOf(row)` tells rows apart: a row with the key of one before takes
 * its place with the focus. A row whose menu is open stays as it is and where it is until that is closed.
 */
export class Table {
  constructor({ label, columns, signal, open = null, more = null, empty = "No entries.", rowHeight = 44, slimHeight = null, fit = false, keyOf = (row) => row.id ?? row }) {
    Object.assign(this, { columns, open, more, empty, keyOf, wideHeight: isCompact() ? Math.min(rowHeight, Math.max(COMPACT.min, Math.round(rowHeight * COMPACT.part))) : rowHeight, slimHeight: slimHeight ?? rowHeight, fit });
    this.rows = [];
    this.shown = [];
    this.order = null;
    this.isKnown = false;
    this.made = new Map();
    /** The row that an element shows as it is. */
    this.rowOf = new WeakMap();
    this.draw = perFrame(() => this.paint(), signal);
    /** A menu was closed: its row goes where it belongs. */
    this.release = () => this.arrange();
    const wide = columns.map((column) => column.width ?? "minmax(0, 1fr)").join(" ");
    const slim = columns.filter((column) => !column.side).map((column) => column.slim ?? column.width ?? "minmax(0, 1fr)").join(" ");
    this.head = h("div", { class: "t-row t-head", role: "row" }, columns.map((column, index) => this.headCell(column, index)));
    this.body = h("div", { class: "t-body", role: "rowgroup" });
    this.note = h("p", { class: "t-empty", role: "status" });
    this.view = h("div", {
      class: `t-view${fit ? " t-fit" : ""}${slimHeight ? " t-tall" : ""}`, role: "table", "aria-label": label, tabindex: "0",
      style: { "--cols": wide, "--slim": slim, "--row": `${this.wideHeight}px`, "--slim-row": `${this.slimHeight}px` },
    }, h("div", { role: "rowgroup", class: "t-heads" }, this.head), this.body);
    this.root = h("div", { class: "t" }, this.view, this.note);
    this.view.addEventListener("scroll", this.draw, { passive: true, signal });
    const sizes = new ResizeObserver(this.draw);
    sizes.observe(this.view);
    const timer = setInterval(() => this.freshen(), FRESH_MS);
    signal?.addEventListener("abort", () => {
      sizes.disconnect();
      clearInterval(timer);
    });
  }

  /** The height of a row in this window. */
  get rowHeight() {
    return SLIM.matches ? this.slimHeight : this.wideHeight;
  }

  /** Builds the rows anew, unless they are not seen, or somebody is in them. */
  freshen() {
    if (document.hidden || !this.view.isConnected || this.body.contains(document.activeElement) || this.body.querySelector(":popover-open")) return;
    this.redraw();
  }

  headCell(column, index) {
    const style = `t-cell${column.side ? " t-side" : ""}${column.end ? " t-end" : ""}`;
    if (!column.sort) return h("div", { class: style, role: "columnheader" }, column.label);
    const button = h("button", { type: "button", class: "t-sort", onclick: () => this.sortBy(index) }, column.label);
    return h("div", { class: style, role: "columnheader", "aria-sort": "none" }, button);
  }

  /** Sorts by a column; a second time the other way round. */
  sortBy(index) {
    const column = this.columns[index];
    const first = column.end ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    this.order = { index, way: this.order?.index === index && this.order.way === first ? other : first };
    [...this.head.children].forEach((cell, at) => {
      if (this.columns[at].sort) cell.setAttribute("aria-sort", at === index ? this.order.way : "none");
    });
    this.arrange();
  }

  /** Replaces all rows. Rows that are the same objects keep their elements. */
  set(rows) {
    this.isKnown = true;
    this.rows = rows;
    this.arrange();
  }

  /** Adds rows at the end. */
  append(rows) {
    this.set([...this.rows, ...rows]);
  }

  arrange() {
    const { order } = this;
    const used = this.used();
    if (order) {
      const key = this.columns[order.index].sort;
      const sign = order.way === "ascending" ? 1 : -1;
      const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a ?? "").localeCompare(String(b ?? "")));
      this.shown = this.rows.map((row) => [key(row), row]).sort((a, b) => sign * compare(a[0], b[0])).map(([, row]) => row);
    } else {
      this.shown = this.rows;
    }
    if (used) this.leave(used);
    this.draw();
  }

  /** Leaves the row of this element where it is, whatever the order says. */
  leave(line) {
    const [old] = [...this.made].find(([, made]) => made === line);
    const at = this.shown.findIndex((row) => this.keyOf(row) === this.keyOf(old));
    if (at < 0) return;
    const others = this.shown.toSpliced(at, 1);
    this.shown = others.toSpliced(Number(line.getAttribute("aria-rowindex")) - 2, 0, this.shown[at]);
  }

  paint() {
    const { view, body, shown, rowHeight } = this;
    const count = shown.length;
    // Before the first rows are known, nothing is said about them.
    this.note.textContent = count === 0 && this.isKnown ? this.empty : "";
    view.hidden = count === 0;
    view.setAttribute("aria-rowcount", String(count + 1));
    body.style.setProperty("height", `${count * rowHeight}px`);
    const seen = view.clientHeight || 600;
    const from = Math.max(0, Math.floor(view.scrollTop / rowHeight) - MARGIN_ROWS);
    const upto = Math.min(count, Math.ceil((view.scrollTop + seen) / rowHeight) + MARGIN_ROWS);
    const used = this.used();
    const held = document.activeElement;
    const heldIn = [...this.made.values()].find((line) => line.contains(held));
    const heldAt = heldIn ? [...heldIn.querySelectorAll(CONTROLS)].indexOf(held) : -1;
    let heldOn = heldIn;
    const before = new Map([...this.made].map(([row, line]) => [this.keyOf(row), line]));
    const wanted = new Map();
    const kept = new Set();
    for (let at = from; at < upto; at += 1) {
      const row = shown[at];
      const old = this.made.get(row) ?? before.get(this.keyOf(row));
      const line = old && !kept.has(old) && (this.rowOf.get(old) === row || old === used) ? old : this.line(row);
      kept.add(line);
      if (heldIn && old === heldIn) heldOn = line;
      line.style.setProperty("transform", `translateY(${at * rowHeight}px)`);
      line.setAttribute("aria-rowindex", String(at + 2));
      wanted.set(row, line);
    }
    for (const line of this.made.values()) if (!kept.has(line)) line.remove();
    // In the order of the table, which is what a screen reader reads and the Tab key follows; what stands right is not moved, nor what
    // has an open menu: what stands before it makes way.
    let next = body.firstChild;
    for (const line of wanted.values()) {
      while (line === used && next !== line) {
        const away = next;
        next = away.nextSibling;
        body.append(away);
      }
      if (line === next) next = line.nextSibling;
      else body.insertBefore(line, next);
    }
    this.made = wanted;
    // What has the focus was moved, or another element has taken its place; where the row is gone, the list has it.
    if (heldAt >= 0 && document.activeElement !== held) {
      const next = heldOn.isConnected ? heldOn.querySelectorAll(CONTROLS)[heldAt] : view;
      next?.focus({ preventScroll: true });
    }
    if (this.more && upto >= count - MARGIN_ROWS && count > 0) this.more();
  }

  line(row) {
    const cells = this.columns.map((column, index) => {
      let inner = column.cell(row);
      if (index === 0 && this.open) {
        inner = h("button", { type: "button", class: "t-open", onclick: () => this.open(row) }, inner);
      }
      return h("div", { class: `t-cell${column.side ? " t-side" : ""}${column.end ? " t-end" : ""}`, role: "cell" }, inner);
    });
    const key = this.keyOf(row);
    // By this the end of a dialog finds the row that took the place of the one it was opened from.
    const data = typeof key === "object" ? {} : { row: key };
    const made = h("div", { class: `t-row${this.open ? " t-click" : ""}`, role: "row", data }, cells);
    this.rowOf.set(made, row);
    return made;
  }

  /** The element of the row whose menu is open, or null. The menu would be gone with it: it is built anew, and moved, when that is closed. */
  used() {
    const menu = this.body.querySelector(":popover-open");
    menu?.addEventListener("toggle", this.release, { once: true });
    return menu?.closest(".t-row") ?? null;
  }

  /** Builds the rows anew, when what their cells show has changed. */
  redraw() {
    this.rowOf = new WeakMap();
    this.draw();
  }
}
