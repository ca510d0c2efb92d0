// The conversation: stored turns by pages, and those that are being answered.

import { emptyState, fill, h, skeleton } from "../../lib/dom.js";
import { showError } from "../../lib/dialogs.js";
import { icon } from "../../lib/icons.js";
import { hold } from "./carry.js";
import { storedTurn } from "./turn.js";
import { groupOf, Variants } from "./variants.js";

const PAGE_MESSAGES = 60;
const TRACES = 60;
/** Pixels from an edge that still count as being there. */
const NEAR = 90;

/** A message that named a skill, without what the daemon told the model of it: so it was written, and so it is sent again. */
const asWritten = (content) => content?.replace(/^(\/\S[^]*?)\n\n\[The user invokes the skill "[^\n]*\]$/, "$1");

/** The turns of a page of messages, oldest first: `{ id, ordinal, said, steps, trace }`. */
export function turnsOf(messages, traces = [], running = []) {
  const origins = new Map([...traces, ...running].map((run) => [run.turn_id, run.origin]));
  const ended = new Map(traces.map((trace) => [trace.turn_id, trace]));
  const turns = [];
  for (const message of messages) {
    let turn = turns.at(-1);
    if (turn?.ordinal !== message.turn) {
      turn = { id: message.turn_id, ordinal: message.turn, said: null, steps: [], trace: ended.get(message.turn_id) ?? null };
      turns.push(turn);
    }
    if (message.role === "User" && !turn.said) turn.said = { ...message, content: asWritten(message.content), origin: origins.get(turn.id) };
    else turn.steps.push(message);
  }
  return turns;
}

/** The log of one session. `chat` is the page. */
export class Log {
  constructor(chat) {
    this.chat = chat;
    this.list = h("div", { class: "turns" });
    this.node = h("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0", onscroll: () => this.onScroll() }, this.list);
    this.down = h("button", { class: "to-end", type: "button", "aria-label": "Jump to the newest message", hidden: true, onclick: () => this.toEnd() }, icon("chevron", 18));
    this.variants = new Variants();
    this.cursor = null;
    this.loading = false;
    this.stored = new Map();
    /** The newest message is in sight, and stays so. */
    this.isAtEnd = true;
    // Turns take their real height only when they are drawn.
    new ResizeObserver(() => { if (this.isAtEnd) this.node.scrollTop = this.node.scrollHeight; }).observe(this.list);
  }

  /** Before anything is known. */
  showLoading() {
    fill(this.list, skeleton(5));
  }

  showEmpty(state) {
    this.stored.clear();
    this.cursor = null;
    fill(this.list, emptyState(state));
    this.down.hidden = true;
  }

  /** Reads a page of messages and the traces of their turns; `before` is the oldest turn that is known, of an older page. */
  async read(sessionId, cursor = null, limit = PAGE_MESSAGES, before = null) {
    const { api, signal } = this.chat.ctx;
    const agent = this.chat.agent.id;
    const [page, { traces, running }] = await Promise.all([
      api.get(api.withQuery(`/api/sessions/${sessionId}/messages`, { limit, cursor }), { signal }),
      api.get(api.withQuery(`/api/agents/${agent}/traces`, { session_id: sessionId, limit: TRACES, cursor: before }), { signal }),
    ]);
    return { ...page, turns: turnsOf(page.messages, traces, running) };
  }

  /** Shows the newest page. `open` turns at the end have not ended; gives the turns. */
  show(page, live) {
    this.stored.clear();
    this.cursor = page.next_cursor;
    this.compacted = page.compacted_turns;
    const openFrom = page.turns.length - page.queued;
    const nodes = page.turns.map((turn, at) => this.node_of(turn, at >= openFrom));
    fill(this.list, nodes, live);
    if (page.turns.length === 0 && live.length === 0) {
      this.stored.clear();
      this.cursor = null;
      this.down.hidden = true;
      fill(this.list, this.chat.welcome.node());
    }
    this.variants.arrange(this.list);
    this.toEnd();
  }

  node_of(turn, isOpen) {
    const node = storedTurn(turn, this.chat.agent.name, { retry: (turn) => this.chat.retry(turn), edit: (turn) => this.chat.composer.edit(turn), branch: (turn) => this.chat.branch(turn), isOpen, agentId: this.chat.agent.id });
    if (this.compacted > 0 && turn.ordinal === this.compacted) node.prepend(h("p", { class: "summary-line" }, "The model sees a summary of the messages above."));
    this.stored.set(turn.id, { turn, node, isOpen });
    return node;
  }

  /**
   * Brings the newest turns up to date: what ended takes its final form, `ended` (a live turn, or null) that of the stored one;
   * `live` nodes stay behind them.
   */
  refresh(page, live, ended = null) {
    this.list.querySelector(".empty")?.remove();
    const openFrom = page.turns.length - page.queued;
    const isNear = this.isAtEnd;
    const endedId = ended && this.idOf(ended, page.turns);
    page.turns.forEach((turn, at) => {
      const isOpen = at >= openFrom;
      const known = this.stored.get(turn.id);
      if (known && !known.isOpen && known.turn.steps.length === turn.steps.length && Boolean(known.turn.trace) === Boolean(turn.trace)) return;
      const node = this.node_of(turn, isOpen);
      const old = known?.node ?? (turn.id === endedId ? ended.node : null);
      if (old?.parentNode === this.list) this.replace(old, node);
      else this.list.insertBefore(node, [ended?.node, ...live].find((other) => other?.parentNode === this.list) ?? null);
    });
    if (ended?.node.contains(document.activeElement)) this.node.focus({ preventScroll: true });
    ended?.node.remove();
    // What stands there is not moved: it would lose the focus.
    this.list.append(...live.filter((node) => node.parentNode !== this.list));
    this.variants.arrange(this.list);
    if (isNear) this.toEnd();
  }

  /** The id of what was streamed: where none was told, that of the first new turn with its message. */
  idOf(live, turns) {
    const text = live.message.trim();
    return live.turnId ?? turns.find((turn) => !this.stored.has(turn.id) && turn.said?.content?.trim().startsWith(text))?.id ?? null;
  }

  /** The turns that answer the same message as `turn`, as far as they are here, in their order. */
  variantsOf(turn) {
    return [...this.stored.values()].map((known) => known.turn).filter((other) => groupOf(other) === groupOf(turn)).sort((a, b) => a.ordinal - b.ordinal);
  }

  /** Is `turn` one of those that answer the last message? */
  isLast(turn) {
    const newest = Math.max(...[...this.stored.values()].map((known) => known.turn.ordinal));
    return this.variantsOf(turn).at(-1)?.ordinal === newest;
  }

  /** Puts `node` into the place of another element of the same turn: with the same open, and the focus. */
  replace(old, node) {
    const give = hold(old);
    old.replaceWith(node);
    give(node, this.node);
  }

  /** A live turn shows a stored one from now on: in its place, before those that wait. */
  begin(live) {
    this.list.querySelector(".empty")?.remove();
    const known = this.stored.get(live.turnId);
    this.stored.delete(live.turnId);
    const waits = [...this.stored.values()].find(({ isOpen }) => isOpen)?.node ?? null;
    if (known) this.replace(known.node, live.node);
    else this.list.insertBefore(live.node, waits);
    this.variants.arrange(this.list);
    this.toEnd();
  }

  append(node) {
    this.list.querySelector(".empty")?.remove();
    this.list.append(node);
    this.variants.arrange(this.list);
    this.toEnd();
  }

  /** Older turns come when the top is near. */
  async onScroll() {
    this.isAtEnd = this.isNearEnd();
    this.down.hidden = this.isAtEnd;
    if (this.cursor === null || this.loading || this.node.scrollTop > 400) return;
    this.loading = true;
    const session = this.chat.sessionId;
    const wait = h("div", { class: "older" }, h("span", { class: "spinner" }), "Older messages …");
    this.list.prepend(wait);
    try {
      const oldest = [...this.stored.values()].reduce((least, { turn }) => (turn.ordinal < least.ordinal ? turn : least), { ordinal: Infinity, id: null });
      const page = await this.read(session, this.cursor, PAGE_MESSAGES, oldest.id);
      if (session !== this.chat.sessionId) return;
      const before = this.node.scrollHeight - this.node.scrollTop;
      this.cursor = page.next_cursor;
      wait.after(...page.turns.map((turn) => this.node_of(turn, false)));
      wait.remove();
      this.variants.arrange(this.list);
      this.node.scrollTop = this.node.scrollHeight - before;
    } catch (error) {
      showError(error);
    } finally {
      wait.remove();
      this.loading = false;
    }
  }

  isNearEnd() {
    return this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < NEAR;
  }

  toEnd() {
    this.isAtEnd = true;
    this.node.scrollTop = this.node.scrollHeight;
    this.down.hidden = true;
  }

  /** Makes a change and keeps the end in sight when it was. */
  grow(change) {
    change();
    if (this.isAtEnd) this.node.scrollTop = this.node.scrollHeight;
    else this.down.hidden = false;
  }
}
