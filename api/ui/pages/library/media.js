// The gallery of media: what providers made for agents and clients, by kind, agent and state, with a preview and what it cost. The
// choice is part of the address.

import { agentField, learnAll, nameOf } from "../../lib/agents.js";
import { call, download, get, page } from "../../lib/api.js";
import { choice } from "../../lib/controls.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, bytes, count, duration, money, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";
import { imageNode, playerNode } from "../../lib/media.js";
import { poll } from "../../lib/poll.js";

const PAGE = 24;
/** Items of one call. */
const CALL_MAX = 200;
const EVERY_MS = 5000;
const KINDS = { image: "Image", speech: "Speech", video: "Video", music: "Music", transcription: "Transcript" };
const STATES = { pending: "", queued: "accent", processing: "accent", completed: "good", failed: "bad" };
const FILTERS = ["kind", "agent", "status"];

export async function mount(root, ctx) {
  const gallery = new Gallery(root, ctx);
  await gallery.route(ctx.query);
  ctx.onRoute((path, query) => gallery.route(query).catch(showError));
}

class Gallery {
  constructor(root, ctx) {
    Object.assign(this, { ctx, wanted: null, rows: [], next: null, total: null, round: 0, most: PAGE });
    /** The card of each task, and what it was built from: one that has not changed stays, and goes on playing. */
    this.cards = new Map();
    const pick = (name) => () => this.go({ [name]: this[name].control.value });
    this.kind = field("Kind", choice([["", "any kind"], ...Object.entries(KINDS)], "", { onchange: pick("kind") }));
    this.status = field("Status", choice([["", "any status"], ...Object.keys(STATES).map((name) => [name, name])], "", { onchange: pick("status") }));
    this.agentPlace = h("div", {});
    this.note = h("p", { class: "dim", role: "status" });
    this.list = h("ul", { class: "media-cards", "aria-label": "Media" });
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.readMore().catch(showError) }, "Show more");
    this.nothing = h("div", {});
    fill(root, h("div", { class: "stack" }, h("div", { class: "media-filters", role: "search" }, this.kind, this.agentPlace, this.status), this.note, this.nothing, this.list, h("div", { class: "buttons" }, this.more)));
  }

  go(change) {
    this.ctx.go(["library", "media"], { ...this.wanted, ...change }, { replace: true });
  }

  async route(query) {
    const wanted = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
    if (this.wanted && FILTERS.every((name) => wanted[name] === this.wanted[name])) return;
    const isOtherAgent = this.wanted?.agent !== wanted.agent;
    this.wanted = wanted;
    this.kind.control.value = wanted.kind;
    this.status.control.value = wanted.status;
    if (isOtherAgent) this.showAgent();
    this.most = PAGE;
    await this.read();
    this.again ??= poll(() => (this.isOpen() ? this.read() : null), EVERY_MS, { signal: this.ctx.signal });
  }

  showAgent() {
    const made = agentField("Agent", { id: this.wanted.agent || null, optional: true });
    made.control.placeholder = "any agent";
    made.control.addEventListener("change", async () => {
      try {
        this.go({ agent: (await made.read()) ?? "" });
      } catch {
        // The field says that there is no such agent.
      }
    });
    fill(this.agentPlace, made);
  }

  /** Is anything still to come? */
  isOpen() {
    return this.rows.some(({ ended_at: ended }) => !ended);
  }

  /** Reads as many as are to be seen, from the newest on. */
  async read() {
    const mine = (this.round += 1);
    const { kind, agent, status } = this.wanted;
    const rows = [];
    let [cursor, total] = [null, null];
    do {
      const values = { kind, status, agent_id: agent, order: "newest", limit: Math.min(CALL_MAX, this.most - rows.length), cursor };
      const found = await page("/api/media/tasks", "tasks", values, { signal: this.ctx.signal });
      if (mine !== this.round) return;
      rows.push(...found.items);
      cursor = found.next;
      total = found.total;
    } while (cursor && rows.length < this.most);
    Object.assign(this, { rows, next: cursor, total });
    this.show();
  }

  async readMore() {
    const count = this.rows.length;
    this.most = count + PAGE;
    this.more.disabled = true;
    try {
      await this.read();
      this.cards.get(this.rows[count]?.id)?.node.focus({ preventScroll: true });
    } finally {
      this.more.disabled = false;
    }
  }

  show() {
    const { rows, next, total } = this;
    const known = new Set(rows.map(({ id }) => id));
    for (const [id, { node }] of this.cards) {
      if (known.has(id)) continue;
      node.remove();
      this.cards.delete(id);
    }
    rows.forEach((row, at) => {
      const node = this.cardOf(row);
      if (this.list.children[at] !== node) this.list.insertBefore(node, this.list.children[at] ?? null);
    });
    this.list.hidden = rows.length === 0;
    this.more.hidden = !next;
    const isFiltered = FILTERS.some((name) => this.wanted[name]);
    const sum = rows.reduce((all, row) => all + row.cost_usd, 0);
    const shown = next ? `The newest ${number(rows.length)}${total === null ? "" : ` of ${number(total)}`}` : count(rows.length, "item");
    if (rows.length > 0) this.note.textContent = `${shown}; together ${money(sum)}`;
    else this.note.textContent = isFiltered ? "Nothing matches the filters." : "";
    if (rows.length === 0 && !isFiltered) this.showNothing().catch(showError);
    else fill(this.nothing);
    learnAll(rows.map((row) => row.agent_id), () => {
      for (const node of this.list.querySelectorAll("[data-agent]")) node.textContent = nameOf(node.dataset.agent);
    }, { signal: this.ctx.signal });
  }

  async showNothing() {
    const { providers } = await get("/api/media/providers", { signal: this.ctx.signal });
    if (this.rows.length > 0) return;
    const isSetUp = providers.some(({ configured }) => configured);
    const names = providers.map(({ name }) => name).join(", ");
    const text = isSetUp
      ? "Give an agent tools such as image_generate or text_to_speech, then ask it for a picture or a recording."
      : `Set the key of a provider that offers media: ${names}.`;
    const actions = !isSetUp && seesAll() ? [h("a", { class: "button primary", href: "#/settings" }, "Open providers")] : [];
    fill(this.nothing, emptyState({ icon: icon("image", 28), title: "No media yet", text, actions }));
  }

  cardOf(row) {
    const text = JSON.stringify(row);
    const known = this.cards.get(row.id);
    if (known?.text === text) return known.node;
    const hadFocus = known?.node.contains(document.activeElement);
    const node = card(row, { remove: () => this.remove(row).catch(showError) });
    known?.node.replaceWith(node);
    this.cards.set(row.id, { text, node });
    if (hadFocus) node.focus({ preventScroll: true });
    return node;
  }

  async remove(row) {
    const text = "Its files are deleted too, also where a chat shows them. This cannot be undone.";
    const run = () => call("DELETE", `/api/media/tasks/${encodeURIComponent(row.id)}`);
    if (!(await confirm({ title: `Delete this ${KINDS[row.kind].toLowerCase()}?`, text, run }))) return;
    toast("Deleted");
    const at = this.rows.findIndex(({ id }) => id === row.id);
    this.rows = this.rows.filter(({ id }) => id !== row.id);
    this.round += 1;
    if (this.total !== null) this.total -= 1;
    this.show();
    const near = this.rows[Math.min(at, this.rows.length - 1)];
    (this.cards.get(near?.id)?.node ?? this.kind.control).focus({ preventScroll: true });
  }
}

/** What a file is, in a few words. */
function aboutFile(file) {
  const size = file.width ? `${file.width} × ${file.height}` : null;
  return [size, file.duration_ms === null ? null : duration(file.duration_ms), bytes(file.bytes)].filter(Boolean).join(" · ");
}

function preview(row, name) {
  const { files } = row;
  if (row.status === "failed") return h("p", { class: "fault" }, row.error || "The provider failed.");
  if (!row.ended_at) return h("p", { class: "dim bar-row tight" }, h("span", { class: "spinner" }), "In progress …");
  if (files.length === 0) return h("blockquote", { class: "clamp plain" }, row.text || "No words were recognized.");
  return h("div", { class: "media-files" }, files.map((file) => {
    const [kind] = file.content_type.split("/");
    return kind === "image" ? imageNode({ path: file.url, filename: name, lazy: true }) : playerNode(file.url, kind, name);
  }));
}

function card(row, { remove }) {
  const name = row.prompt || `${KINDS[row.kind]} of ${when(row.created_at)}`;
  const hasChat = row.agent_id !== null;
  const label = name.length > 60 ? `${name.slice(0, 60)}…` : name;
  const save = (file, at) => h("button", { type: "button", class: "small", "aria-label": `Download${row.files.length > 1 ? ` file ${at + 1}` : ""}: ${label}`, onclick: () => download(file.url, `${row.kind}-${row.id.slice(-8)}${row.files.length > 1 ? `-${at + 1}` : ""}.${endingOf(file.content_type)}`).catch(showError) }, icon("download", 15), "Download");
  return h("li", { class: "card stack media-card", tabindex: "-1" },
    h("div", { class: "bar-row tight" }, h("h2", { class: "grow cut", title: name }, name), h("span", { class: `badge ${STATES[row.status]}` }, row.status)),
    preview(row, label),
    h("p", { class: "faint" }, [`${KINDS[row.kind]} by ${row.provider} / ${row.model}`, ...row.files.map(aboutFile)].join(" · ")),
    h("p", { class: "faint bar-row tight" },
      h("span", { title: "What it cost at most" }, money(row.cost_usd)),
      hasChat ? h("a", { href: `#/chat/${encodeURIComponent(row.agent_id)}`, data: { agent: row.agent_id } }, nameOf(row.agent_id)) : h("span", {}, "API client"),
      h("time", { datetime: row.created_at, title: when(row.created_at) }, ago(row.created_at))),
    h("div", { class: "buttons" }, row.files.map(save),
      can("write") && row.ended_at ? h("button", { type: "button", class: "small danger-text", "aria-label": `Delete: ${label}`, onclick: remove }, icon("trash", 15), "Delete") : null));
}

/** The usual ending of the name of such a file. */
function endingOf(type) {
  const name = type.split("/")[1] ?? "bin";
  return { jpeg: "jpg", mpeg: type.startsWith("audio") ? "mp3" : "mpg", "x-wav": "wav" }[name] ?? name;
}
