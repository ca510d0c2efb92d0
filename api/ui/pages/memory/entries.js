// The list of entries: by agent, user, level and category, or searched. What is chosen is part of the address.

import { call, get, page, withQuery } from "../../lib/api.js";
import { agentField, learnAll, nameOf } from "../../lib/agents.js";
import { choice, offered, textInput, tick } from "../../lib/controls.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { debounce, emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { examples, MEMORIES } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { Table } from "../../lib/table.js";
import { failed } from "../../lib/tabs.js";
import { addEntry, entryView } from "./entry.js";
import { LEVELS, categoryText, confidenceText, followChanges, matchText, taintText } from "./words.js";

const PAGE = 100;
/** Pages without a single match that are read on in one go; then a button goes on. */
const EMPTY_PAGES_MAX = 5;
/** Rows of a list that is read anew after a change; a longer one says that it has changed. */
const FRESH_MAX = 300;
const MODES = { lexical: "by words (lexical)", hybrid: "by words and meaning (hybrid)" };
const FILTERS = ["agent", "user", "level", "category", "q"];

export async function mount(root, ctx) {
  const view = new Entries(root, ctx);
  await view.route(ctx.query);
  ctx.onRoute((path, query) => view.route(query).catch(showError));
  followChanges("memory_updated", () => view.wanted.agent, { signal: ctx.signal, changed: (ids) => view.changed(ids).catch(showError) });
}

class Entries {
  constructor(root, ctx) {
    const { signal } = ctx;
    Object.assign(this, { ctx, wanted: null, entry: null, rows: [], next: null, total: null, mode: "", best: 0, round: 0, reading: null, emptyPages: 0 });
    this.selected = new Set();
    const filter = (name) => debounce(() => this.go({ [name]: this[name].control.value.trim() }), 250);
    this.q = field("Search", h("input", { type: "search", placeholder: "Words to search for", oninput: filter("q") }));
    this.user = field("User", textInput("", { placeholder: "any user", oninput: filter("user") }));
    this.level = field("Level", choice([["", "any level"], ...LEVELS], "", { onchange: () => this.go({ level: this.level.control.value }) }));
    this.category = field("Category", textInput("", { placeholder: "any category", oninput: filter("category") }));
    this.category.append(offered(this.category.control, []));
    this.agentPlace = h("div", {});
    this.status = h("p", { class: "dim", role: "status" });
    this.refresh = h("button", { type: "button", class: "small", hidden: true, onclick: () => this.read().catch(showError) }, icon("retry", 16), "The list has changed: refresh");
    this.onward = h("button", { type: "button", class: "small", hidden: true, onclick: () => { this.emptyPages = 0; this.more(); } }, "Continue");
    this.bulk = h("button", { type: "button", class: "small danger-text", hidden: true, onclick: () => this.removeSelected().catch(showError) });
    this.table = new Table({
      label: "Memory entries", signal, rowHeight: 56, slimHeight: 84, empty: "", open: (row) => this.go({ entry: row.id }), more: () => this.more(),
      columns: [
        { label: "Content", width: "minmax(0, 3fr)", cell: (row) => this.contentCell(row) },
        { label: "Category", width: "minmax(0, 1fr)", side: true, cell: (row) => h("span", { class: "badge" }, categoryText(row.category)) },
        { label: "Level", width: "70px", side: true, cell: (row) => row.level },
        { label: "Confidence", width: "120px", side: true, cell: (row) => (row.score === undefined ? confidenceText(row.confidence) : h("span", { title: `Score ${row.score.toFixed(4)}; confidence ${confidenceText(row.confidence)}` }, `${matchText(row.score, this.best)} match`)) },
        { label: "Changed", width: "110px", side: true, end: true, cell: (row) => h("time", { datetime: row.updated_at, title: when(row.updated_at) }, ago(row.updated_at)) },
        ...(can("write") ? [{ label: "Select", width: "52px", slim: "44px", end: true, cell: (row) => tick(`Select: ${row.content.slice(0, 60)}`, this.selected.has(row.id), (event) => this.select(row.id, event.target.checked)) }] : []),
      ],
    });
    this.add = h("button", { class: "primary", type: "button", onclick: () => this.addOne().catch(showError) }, icon("plus", 18), "Add an entry");
    fill(ctx.actions, can("write") && this.add);
    this.nothing = emptyState({ icon: icon("database", 28), title: "No entries yet", text: "Agents remember facts from their conversations. You can also add one by hand.", actions: [h("button", { type: "button", onclick: () => this.add.click() }, icon("plus", 18), "Add the first entry")] });
    this.nothing.append(examples(MEMORIES, (draft) => this.addOne(draft).catch(showError), { title: "Or start from an example", sign: "database" }));
    this.fault = h("div", { role: "status" });
    this.list = h("div", { class: "stack" },
      h("div", { class: "memory-filters", role: "search" }, this.q, this.agentPlace, this.user, this.level, this.category),
      h("div", { class: "bar-row" }, h("div", { class: "grow" }, this.status), this.refresh, this.onward, this.bulk), this.fault, this.table.root);
    this.detail = h("div", { hidden: true });
    fill(root, this.list, this.detail);
    ctx.key("/", "Search the entries", () => this.q.control.focus());
  }

  /** Changes the address; filters leave no step in the history, an entry does. */
  go(change) {
    const values = { ...this.wanted, ...change };
    this.ctx.go(["memory"], values, { replace: !("entry" in change) });
  }

  async route(query) {
    const wanted = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
    const isNew = this.wanted === null || FILTERS.some((name) => wanted[name] !== this.wanted[name]);
    const isOtherAgent = this.wanted?.agent !== wanted.agent;
    this.wanted = wanted;
    const entry = query.get("entry") ?? "";
    if (isOtherAgent) this.showAgent();
    for (const name of ["q", "user", "level", "category"]) {
      const { control } = this[name];
      if (control !== document.activeElement || control.nodeName === "SELECT") control.value = wanted[name];
    }
    if (entry !== (this.entry ?? "")) await this.open(entry);
    if (isNew) await this.read();
  }

  showAgent() {
    const { agent } = this.wanted;
    const made = agentField("Agent", { id: agent || null, optional: true });
    made.control.placeholder = "all agents";
    made.control.addEventListener("change", async () => {
      try {
        this.go({ agent: (await made.read()) ?? "" });
      } catch {
        // The field says that there is no such agent.
      }
    });
    fill(this.agentPlace, made);
    this.readCategories().catch(() => {});
  }

  /** Offers the categories that there are. */
  async readCategories() {
    const { agent } = this.wanted;
    const { categories } = await get(agent ? `/api/memory/agents/${encodeURIComponent(agent)}/stats` : "/api/memory/stats", { signal: this.ctx.signal });
    fill(this.category.querySelector("datalist"), Object.keys(categories).filter((name) => name !== "uncategorized").map((value) => h("option", { value })));
  }

  /** Opens an entry, or the list for "". */
  async open(id) {
    const was = this.entry;
    this.entry = id || null;
    this.list.hidden = id !== "";
    this.add.hidden = id !== "";
    this.detail.hidden = id === "";
    if (id === "") {
      fill(this.detail);
      this.table.draw();
      const row = [...this.table.body.querySelectorAll("[data-row]")].find((line) => line.dataset.row === was);
      (row?.querySelector(".t-open") ?? this.table.view).focus({ preventScroll: true });
      return;
    }
    await this.readEntry(true);
  }

  async readEntry(isFirst = false) {
    const id = this.entry;
    const back = withQuery("#/memory", this.wanted);
    try {
      const entry = await get(`/api/memory/items/${encodeURIComponent(id)}`, { signal: this.ctx.signal });
      if (this.entry !== id) return;
      const hadFocus = this.detail.contains(document.activeElement);
      fill(this.detail, entryView(entry, { back, edited: () => this.readEntry(), deleted: () => this.removed([id]) }));
      if (isFirst || hadFocus) this.detail.querySelector("h2").focus({ preventScroll: true });
      learnAll([entry.agent_id], () => { for (const node of this.detail.querySelectorAll("[data-agent]")) node.textContent = nameOf(node.dataset.agent); }, { signal: this.ctx.signal });
    } catch (error) {
      if (error.name === "AbortError" || this.entry !== id) return;
      const isGone = error.status === 404;
      const link = h("a", { class: "back-link", href: back }, icon("chevron", 18), "All entries");
      fill(this.detail, h("div", { class: "stack" }, link, isGone ? h("p", { class: "notice", role: "status" }, "This entry no longer exists. It was deleted, has expired, or was replaced by a newer one.") : failed(error, () => this.readEntry(true).catch(showError))));
    }
  }

  /** Where the list is read from. */
  source() {
    const { agent, user, level, category, q } = this.wanted;
    const scope = { level, agent_id: agent, user_id: user };
    if (q) return ["/api/memory/search", { ...scope, q, limit: PAGE }];
    if (user) return [`/api/memory/user/${encodeURIComponent(user)}`, { agent_id: agent, level, category, limit: PAGE }];
    return [agent ? `/api/memory/agents/${encodeURIComponent(agent)}` : "/api/memory", { level, category, limit: PAGE }];
  }

  /** Reads the list from its beginning: `rows` of them where that many are known. */
  async read(rows = PAGE) {
    const mine = (this.round += 1);
    this.refresh.hidden = true;
    this.emptyPages = 0;
    if (this.rows.length === 0) this.status.textContent = "Loading…";
    try {
      const [path, values] = this.source();
      const found = await page(path, "memories", { ...values, limit: this.wanted.q ? PAGE : rows }, { signal: this.ctx.signal });
      if (mine !== this.round) return;
      const { category, q } = this.wanted;
      this.rows = q && category ? found.items.filter((row) => row.category === category) : found.items;
      Object.assign(this, { next: found.next, total: found.total, mode: q ? found.body.mode : "", best: found.items[0]?.score ?? 0 });
      for (const id of this.selected) if (!this.rows.some((row) => row.id === id)) this.selected.delete(id);
      this.show();
      if (this.rows.length === 0 && this.next) this.more();
    } catch (error) {
      if (error.name === "AbortError" || mine !== this.round) return;
      this.rows = [];
      this.next = null;
      this.table.set([]);
      this.table.root.hidden = true;
      this.status.textContent = "";
      fill(this.fault, failed(error, () => this.read().catch(showError)));
    }
  }

  /** Reads the next page behind what is known. */
  more() {
    if (this.reading || !this.next || this.emptyPages >= EMPTY_PAGES_MAX) return;
    const mine = this.round;
    const [path, values] = this.source();
    this.reading = page(path, "memories", { ...values, cursor: this.next }, { signal: this.ctx.signal }).then((found) => {
      if (mine !== this.round) return;
      this.next = found.next;
      this.emptyPages = found.items.length === 0 ? this.emptyPages + 1 : 0;
      this.rows = [...this.rows, ...found.items];
      this.show();
    }).catch(showError).finally(() => {
      this.reading = null;
      if (this.rows.length === 0) this.more();
    });
  }

  show() {
    const { q, category, agent, user, level } = this.wanted;
    const { rows, total, next } = this;
    const isFiltered = Boolean(agent || user || level || category);
    this.table.set(rows);
    this.table.root.hidden = rows.length === 0;
    const isEmpty = rows.length === 0 && !next && !q && !isFiltered;
    // A look that finds the same leaves what has the focus.
    if (!isEmpty || this.nothing.parentNode !== this.fault) fill(this.fault, isEmpty ? this.nothing : null);
    this.onward.hidden = !(next && this.emptyPages >= EMPTY_PAGES_MAX);
    if (rows.length === 0 && next) this.status.textContent = this.onward.hidden ? "Searching…" : "No entry matches so far.";
    else if (q) this.status.textContent = rows.length === 0 ? `No entry matches the search${isFiltered ? " and the filters" : ""}.` : `${count(rows.length, "result")}, ranked ${MODES[this.mode] ?? this.mode}${category ? `; the category is looked for among the best ${PAGE}` : ""}`;
    else if (rows.length === 0) this.status.textContent = isFiltered ? "No entry matches the filters." : "";
    else this.status.textContent = total === null ? `More than ${number(rows.length)} entries` : count(total, "entry", "entries");
    this.showSelection();
    learnAll(rows.map((row) => row.agent_id), () => this.table.redraw(), { signal: this.ctx.signal });
  }

  contentCell(row) {
    const taint = taintText(row.taint);
    return h("span", { class: "two" }, h("span", { class: "cut" }, row.content), h("small", { class: "faint cut" }, [nameOf(row.agent_id), row.user_id ? `about ${row.user_id}` : null, row.score === undefined ? null : `${matchText(row.score, this.best)} match`, taint || null].filter(Boolean).join(" · ")));
  }

  select(id, isOn) {
    if (isOn) this.selected.add(id);
    else this.selected.delete(id);
    this.showSelection();
  }

  showSelection() {
    this.bulk.hidden = this.selected.size === 0;
    fill(this.bulk, icon("trash", 16), `Delete ${count(this.selected.size, "selected entry", "selected entries")}`);
  }

  async removeSelected() {
    const ids = [...this.selected];
    const text = "The entries and their histories are deleted. This cannot be undone.";
    let done = null;
    const run = async () => { done = await call("POST", "/api/memory/bulk-delete", { ids }); };
    if (!(await confirm({ title: `Delete ${count(ids.length, "entry", "entries")}?`, text, run }))) return;
    toast(`Deleted ${count(done.deleted, "entry", "entries")}${done.failed > 0 ? `; ${number(done.failed)} no longer existed` : ""}`);
    this.selected.clear();
    this.removed(ids);
  }

  /** Takes entries out of the list that were deleted, and leaves the one that is open. */
  removed(ids) {
    const before = this.rows.length;
    this.rows = this.rows.filter((row) => !ids.includes(row.id));
    if (this.total !== null) this.total = Math.max(0, this.total - (before - this.rows.length));
    this.show();
    if (this.entry !== null) this.go({ entry: "" });
  }

  async addOne(draft = {}) {
    const added = await addEntry(this.wanted.agent || null, this.wanted.user, draft);
    if (!added) return;
    toast("Added");
    this.go({ entry: added.id });
    await this.read();
  }

  /** Entries changed somewhere; `ids` is null when it is not known which. */
  async changed(ids) {
    if (this.entry !== null && (ids === null || ids.includes(this.entry)) && !document.querySelector("dialog[open]")) await this.readEntry();
    if (this.rows.length <= FRESH_MAX) await this.read(Math.max(PAGE, this.rows.length));
    else this.refresh.hidden = false;
  }
}
