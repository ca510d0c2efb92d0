// A list that shows only the rows in sight, and reads its pages as they are needed: made for lists of 10,000 and more.

import { fill, h, uniqueId } from "./dom.js";

/** Rows that are built beyond each edge of the window. */
const OVERSCAN = 6;

/**
 * A virtual list of rows of one height.
 *
 * - `label`: what the list is, for screen readers
 * - `rowHeight`: pixels of a row
 * - `row(item, index)`: gives the nodes of a row (an array or one node)
 * - `read(cursor, filter)`: gives a page `{ items, next }`; `next` is null at the end
 * - `keyOf(item)`: names an item; the row of `selected` is marked
 * - `open(item)`: what a click or Enter does. With it the list is a listbox: one stop for the Tab key, arrows,
 *   Home, End and Page keys inside. Without it, rows may hold buttons and links of their own.
 * - `empty(filter)`: what to show where nothing is found
 * - `onCount(count, isWhole)`: told when rows came in
 * - `onError(error)`: told when a page could not be read
 *
 * `list.node` is the element; it fills its parent and scrolls by itself. `list.reload(filter)` starts over.
 */
export class VirtualList {
  constructor({ label, rowHeight, row, read, keyOf = (item) => item.id, open = null, empty = () => "", onCount = () => {}, onError = () => {} }) {
    Object.assign(this, { rowHeight, row, read, keyOf, open, empty, onCount, onError });
    this.id = uniqueId("list");
    this.items = [];
    this.cursor = null;
    this.isWhole = false;
    this.reading = null;
    this.round = 0;
    this.active = -1;
    this.selected = null;
    this.rows = new Map();
    this.space = h("div", { class: "rows", role: "presentation" });
    this.note = h("div", { class: "list-note" });
    this.box = h("div", {
      class: "virtual", role: open ? "listbox" : "list", "aria-label": label, tabindex: "0", id: this.id,
      onscroll: () => this.draw(), onkeydown: (event) => this.onKey(event), onclick: (event) => this.onClick(event),
      onfocus: () => this.onFocus(),
    }, this.space);
    this.node = h("div", { class: "virtual-frame" }, this.box, this.note);
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  /** Starts over; `filter` goes to `read`. Old rows stay until new ones are there, and whoever walks over them stays where they are. */
  async reload(filter = this.filter) {
    this.isSame = filter === this.filter;
    this.filter = filter;
    this.round += 1;
    this.reading = null;
    this.cursor = null;
    await this.more(true);
  }

  /** Reads the next page, and on, until there is something new to see. */
  async more(fresh = false) {
    if (this.reading || (this.isWhole && !fresh)) return;
    const round = this.round;
    this.reading = (async () => {
      try {
        let found = [];
        do {
          const { items, next } = await this.read(this.cursor, this.filter);
          if (round !== this.round) return;
          found = found.concat(items);
          this.cursor = next;
        } while (found.length === 0 && this.cursor);
        if (fresh && !(this.isSame && document.activeElement === this.box)) this.active = -1;
        this.take(fresh ? found : this.items.concat(found));
        this.isWhole = !this.cursor;
        this.changed();
      } catch (error) {
        if (round === this.round) this.onError(error);
      }
    })();
    const mine = this.reading;
    await mine;
    if (this.reading === mine) this.reading = null;
    // A page may be shorter than the window.
    if (round === this.round && !this.isWhole) this.draw();
  }

  /** Puts an item at the front, or in the place of the one with its key. */
  put(item) {
    const at = this.items.findIndex((other) => this.keyOf(other) === this.keyOf(item));
    this.take(at >= 0 ? this.items.with(at, item) : [item, ...this.items]);
    this.changed();
  }

  /** Takes out the item with this key. */
  remove(key) {
    this.take(this.items.filter((item) => this.keyOf(item) !== key));
    this.changed();
  }

  /** Has these items; where the arrows of the keyboard are does not change by what comes before it. */
  take(items) {
    const active = this.items[this.active];
    this.items = items;
    this.active = active === undefined ? -1 : items.findIndex((item) => this.keyOf(item) === this.keyOf(active));
    if (this.active >= 0) this.box.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  /** Marks the item with this key. */
  select(key) {
    this.selected = key;
    for (const row of this.rows.values()) this.mark(row);
  }

  changed() {
    this.rows.clear();
    this.space.replaceChildren();
    this.space.style.setProperty("height", `${this.items.length * this.rowHeight}px`);
    const isEmpty = this.items.length === 0;
    this.node.classList.toggle("is-empty", isEmpty);
    fill(this.note, isEmpty ? this.empty(this.filter) : null);
    this.onCount(this.items.length, this.isWhole);
    this.draw();
  }

  /** Builds the rows in sight and drops the others. */
  draw() {
    const { scrollTop, clientHeight } = this.box;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - OVERSCAN);
    const last = Math.min(this.items.length, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + OVERSCAN);
    for (const [index, row] of this.rows) {
      if ((index < first || index >= last) && index !== this.active) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) if (!this.rows.has(index)) this.build(index);
    // The active one is there also where it is not in sight: a screen reader is told of it.
    if (this.items[this.active] !== undefined && !this.rows.has(this.active)) this.build(this.active);
    const isNear = (this.items.length - last) * this.rowHeight < clientHeight * 2;
    if (isNear && !this.isWhole && this.items.length > 0) this.more();
  }

  build(index) {
    const item = this.items[index];
    const row = h("div", {
      class: "row", role: this.open ? "option" : "listitem", id: `${this.id}-${index}`, data: { index },
      "aria-setsize": this.isWhole ? this.items.length : -1, "aria-posinset": index + 1,
      style: { transform: `translateY(${index * this.rowHeight}px)`, height: `${this.rowHeight}px` },
    }, this.row(item, index));
    this.mark(row);
    this.rows.set(index, row);
    // In the order of the list, which is what a screen reader reads.
    const after = [...this.space.children].find((other) => Number(other.dataset.index) > index);
    this.space.insertBefore(row, after ?? null);
  }

  mark(row) {
    const index = Number(row.dataset.index);
    const item = this.items[index];
    const isSelected = item !== undefined && this.selected !== null && this.keyOf(item) === this.selected;
    if (this.open) row.setAttribute("aria-selected", String(isSelected));
    row.classList.toggle("selected", isSelected);
    row.classList.toggle("active", index === this.active);
  }

  onClick(event) {
    const row = event.target.closest(".row");
    if (!row || !this.open || event.target.closest("button, a")) return;
    this.move(Number(row.dataset.index));
    this.open(this.items[this.active]);
  }

  onFocus() {
    if (!this.open || this.items.length === 0) return;
    const at = this.items.findIndex((item) => this.keyOf(item) === this.selected);
    const to = this.active >= 0 ? this.active : Math.max(0, at);
    // A row that moved while it is pressed would not be clicked.
    if (this.box.matches(":focus-visible")) this.move(to);
    else this.active = to;
  }

  onKey(event) {
    if (!this.open || event.target !== this.box) return;
    const leap = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
    const end = this.items.length - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, Home: 0, End: end, PageDown: this.active + leap, PageUp: this.active - leap }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.move(Math.min(end, Math.max(0, to)));
    } else if ((event.key === "Enter" || event.key === " ") && this.items[this.active]) {
      event.preventDefault();
      this.open(this.items[this.active]);
    }
  }

  /** Makes the item at `index` the active one and brings it in sight. */
  move(index) {
    this.active = index;
    const top = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.box.scrollTop = top + this.rowHeight - clientHeight;
    this.draw();
    for (const row of this.rows.values()) this.mark(row);
    if (index >= 0) this.box.setAttribute("aria-activedescendant", `${this.id}-${index}`);
  }
}
