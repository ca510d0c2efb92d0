// The side of the chat: all agents, and the sessions of the open one.

import { debounce, emptyState, h, s } from "../../lib/dom.js";
import { showError } from "../../lib/dialogs.js";
import { brief, count, modelText, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";
import { can } from "../../lib/me.js";
import { excerptText, learnTitles, titleOf } from "../../lib/titles.js";
import { marksOf, recentAgents } from "./activity.js";

const PAGE_AGENTS = 200;
const PAGE_SESSIONS = 100;
const SEARCH_PAUSE_MS = 180;
const TITLES_PAUSE_MS = 60;
const COUNT_EVERY_MS = 15_000;

/** The lists. `chat` is the page: it opens what is picked. */
export class Side {
  constructor(chat) {
    this.chat = chat;
    this.api = chat.ctx.api;
    this.total = null;
    /** What agents are doing, by id; and those that were used last, which stand on top. */
    this.marks = new Map();
    this.recent = [];
    this.agents = new VirtualList({
      label: "Agents",
      rowHeight: 52,
      row: (agent) => agentRow(agent, this.marks.get(agent.id)),
      read: (cursor, q) => this.readAgents(cursor, q),
      open: (agent) => chat.open(agent.id),
      empty: (q) => (q ? note(`There is no agent named “${q}”.`) : this.noAgents()),
      onCount: (found, isWhole) => this.showCount(found, isWhole),
      onError: showError,
    });
    this.sessions = new VirtualList({
      label: "Sessions",
      rowHeight: 46,
      row: (session) => {
        this.needsTitle(session);
        return sessionRow(session, this.sessionSearch.value());
      },
      read: (cursor, q) => this.readSessions(cursor, q),
      open: (session) => chat.open(chat.agent.id, session.session_id ?? session.id),
      keyOf: (session) => session.session_id ?? session.id,
      empty: (q) => note(q ? `No results for “${q}”.` : "No sessions yet."),
      onError: showError,
    });
    /** Sessions in sight whose title is not known. */
    this.untitled = new Map();
    this.readTitles = debounce(() => this.titleAll(), TITLES_PAUSE_MS);
    this.build();
    this.sessions.box.addEventListener("keydown", (event) => {
      if (event.key === "F2" && can("write")) chat.rename().catch(showError);
    });
    chat.ctx.every(COUNT_EVERY_MS, () => this.refreshCount());
  }

  build() {
    this.search = searchBox("Search agents", (q) => this.agents.reload(q), this.agents);
    this.sessionSearch = searchBox("Search sessions", (q) => this.sessions.reload(q), this.sessions);
    this.counter = h("span", { class: "counter" });
    const newAgent = h("button", { class: "quiet small", type: "button", onclick: () => this.chat.newAgent().catch(showError) }, icon("plus", 16), "New agent");
    const newSession = h("button", { class: "quiet small", type: "button", onclick: () => this.chat.newSession().catch(showError) }, icon("plus", 16), "New session");
    this.sessionPart = h("section", { class: "side-part sessions-part", "aria-labelledby": "sessions-title", hidden: true },
      h("div", { class: "side-head" }, h("h2", { id: "sessions-title" }, "Sessions"), can("write") ? newSession : null), this.sessionSearch.node, this.sessions.node);
    this.node = h("aside", { class: "side", id: "side", "aria-label": "Agents and sessions" },
      h("section", { class: "side-part", "aria-labelledby": "agents-title" },
        h("div", { class: "side-head" }, h("h2", { id: "agents-title" }, "Agents"), this.counter, can("write") ? newAgent : null), this.search.node, this.agents.node),
      this.sessionPart);
    this.veil = h("button", { class: "veil", type: "button", "aria-label": "Close", onclick: () => this.close() });
    this.toggle = h("button", {
      class: "quiet only-icon side-toggle", type: "button", "aria-label": "Agents and sessions", "aria-controls": "side", "aria-expanded": "false",
      onclick: () => this.open(),
    }, icon("menu"));
  }

  async readAgents(cursor, q) {
    const { signal } = this.chat.ctx;
    const [found] = await Promise.all([this.api.page("/api/agents", "agents", { limit: PAGE_AGENTS, cursor, q }), cursor === null && !q ? this.readActivity(signal) : null]);
    if (q) return found;
    this.total = found.total;
    const top = new Set(this.recent.map(({ id }) => id));
    const others = found.items.filter(({ id }) => !top.has(id));
    return { ...found, items: cursor === null ? [...this.recent, ...others] : others };
  }

  async readActivity(signal) {
    [this.recent, this.marks] = await Promise.all([recentAgents({ signal }), marksOf({ signal })]);
  }

  /** What the list shows of activity. */
  activity() {
    return JSON.stringify([this.recent.map(({ id }) => id), [...this.marks]]);
  }

  readSessions(cursor, q) {
    const agent = this.chat.agent.id;
    return q
      ? this.api.page("/api/sessions/search", "sessions", { agent_id: agent, q, limit: PAGE_SESSIONS, cursor }).then(withoutAgentName)
      : this.api.page(`/api/agents/${agent}/sessions`, "sessions", { order: "newest", limit: PAGE_SESSIONS, cursor }).then(lastUsedFirst);
  }

  needsTitle(session) {
    this.untitled.set(session.session_id ?? session.id, session);
    this.readTitles();
  }

  titleAll() {
    const wanted = [...this.untitled.values()];
    this.untitled.clear();
    learnTitles(wanted, (id, title) => {
      const node = this.sessions.node.querySelector(`[data-session="${CSS.escape(id)}"]`);
      if (node) node.textContent = title;
    }, { signal: this.chat.ctx.signal });
  }

  /** Agents come and go, and work, by other hands too: the list follows, but not while somebody is about to choose from it. */
  async refreshCount() {
    const { signal } = this.chat.ctx;
    const { total } = await this.api.page("/api/agents", "agents", { limit: 1 }, { signal });
    if (this.total === null) return;
    const before = this.activity();
    await this.readActivity(signal);
    const isHeld = this.agents.node.matches(":hover, :focus-within") || this.search.value() !== "";
    if (total !== this.total || (before !== this.activity() && !isHeld)) await this.agents.reload();
    // The rows stay where they are while somebody is about to choose one; what they say does not.
    else this.showMarks();
  }

  /** Puts the marks that are known by now on the rows in sight. */
  showMarks() {
    for (const [index, row] of this.agents.rows) {
      const agent = this.agents.items[index];
      const old = row.querySelector("[data-mark]");
      const mark = this.marks.get(agent?.id) ?? "";
      if (!agent || agent.state !== "Running" || !old || old.dataset.mark === mark) continue;
      old.replaceWith(markNode(agent, mark));
    }
  }

  showCount(found, isWhole) {
    const known = this.search.value() ? (isWhole ? found : null) : this.total;
    this.counter.textContent = known === null ? "" : number(known);
    if (this.total !== null) this.node?.style.setProperty("--agents", this.total);
  }

  noAgents() {
    if (!can("write")) return emptyState({ icon: icon("agents", 26), title: "No agents", text: "No agents belong to you." });
    return emptyState({ icon: icon("agents", 26), title: "No agents yet", text: "Create one from an agent type or a custom manifest.", actions: [h("button", { class: "primary", type: "button", onclick: () => this.chat.newAgent().catch(showError) }, "New agent")] });
  }

  /** The open agent and session changed. */
  show(agent, sessionId) {
    const isOther = this.shown !== agent?.id;
    this.shown = agent?.id;
    this.sessionPart.hidden = !agent;
    this.agents.select(agent?.id ?? null);
    this.sessions.select(sessionId);
    if (agent && isOther) {
      this.sessionSearch.clear();
      this.sessions.box.scrollTop = 0;
      this.sessions.reload("");
    }
  }

  focusSearch() {
    this.open();
    this.search.input.focus();
    this.search.input.select();
  }

  /** On a phone the lists lie over the conversation. */
  open() {
    this.chat.frame.classList.add("side-open");
    this.toggle.setAttribute("aria-expanded", "true");
    if (matchMedia("(max-width: 900px)").matches) this.search.input.focus();
  }

  close() {
    if (!this.chat.frame.classList.contains("side-open")) return;
    this.chat.frame.classList.remove("side-open");
    this.toggle.setAttribute("aria-expanded", "false");
    if (matchMedia("(max-width: 900px)").matches) this.toggle.focus();
  }
}

/** The daemon gives the newest first; within a page, those that were used last come first. */
function lastUsedFirst(page) {
  return { ...page, items: page.items.toSorted((a, b) => String(b.updated_at ?? "").localeCompare(String(a.updated_at ?? ""))) };
}

/** Every session matches where the name of its agent does: that says nothing within one agent. */
function withoutAgentName(page) {
  return { ...page, items: page.items.filter(({ matched }) => matched !== "agent_name") };
}

/** A search box above a list: arrow down goes into the list, Enter opens its first row. */
function searchBox(label, search, list) {
  const input = h("input", { type: "search", placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false", "aria-controls": list.id });
  const soon = debounce(() => search(input.value.trim()), SEARCH_PAUSE_MS);
  input.addEventListener("input", soon);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      list.box.focus();
    } else if (event.key === "Enter" && list.items.length > 0) {
      list.open(list.items[0]);
    }
  });
  return {
    input,
    node: h("div", { class: "search" }, icon("search", 16), input),
    value: () => input.value.trim(),
    clear: () => { input.value = ""; },
  };
}

function note(text) {
  return h("p", { class: "hint" }, text);
}

/** The figures of agents, on a field of 24: the large ones, which are turned by the name, and the small ones in a corner. */
const FIGURES = ["M3 14a9 9 0 0 1 18 0z", "M4 20V5a15 15 0 0 1 15 15z", "M11 4l7 7-7 7-7-7z", "M4 5h6v15H4z", "M11 4l8 13H3z", "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm0 4a3 3 0 1 1 0 6 3 3 0 0 1 0-6z", "M4 4h7a7 7 0 0 1 7 7v7h-7a7 7 0 0 1-7-7z", "M8 4h5v5h5v5h-5v5H8v-5H3V9h5z", "M4 4h6v6H4zM10 10h6v6h-6z", "M3 12a8 8 0 0 1 8-8v16a8 8 0 0 1-8-8z"];
const SMALL = ["M17.500 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6z", "M15 15h6v6h-6z", "M18 14l4 7h-8z", ""];
/** Colours, evenly around the circle. */
const HUES = 12;

/** The mark of an agent: figures in one of a few colours, which its name alone decides. */
export function avatar(name) {
  let sum = [...String(name)].reduce((sum, c) => Math.imul(sum ^ c.codePointAt(0), 0x01000193) >>> 0, 0x811c9dc5);
  const take = (count) => {
    sum = Math.imul(sum ^ (sum >>> 15), 0x2c1b3c6d) >>> 0;
    return Math.floor((sum / 2 ** 32) * count);
  };
  const hue = take(HUES) * (360 / HUES) + 15;
  return h("span", { class: "avatar", "aria-hidden": "true", style: { "--hue": String(hue) } }, s("svg", { viewBox: "0 0 24 24", fill: "currentColor" },
    s("path", { d: FIGURES[take(FIGURES.length)], transform: `rotate(${take(4) * 90} 11 11)` }), s("path", { d: SMALL[take(SMALL.length)] })));
}

/** What stands at the end of the row of a running agent: what it does, or when it was used last. */
const markNode = (agent, mark) => h("span", { class: "row-mark", data: { mark } }, MARKS[mark]?.() ?? (agent.used_at ? h("time", { class: "faint note", datetime: agent.used_at }, brief(agent.used_at)) : null));

const MARKS = { waiting: () => h("span", { class: "agent-mark", role: "img", "aria-label": "waits for your approval", title: "Waits for your approval" }, icon("shield", 15)), running: () => h("span", { class: "spinner", role: "img", "aria-label": "working", title: "Working" }) };

function agentRow(agent, mark) {
  const model = modelText(agent.model_provider, agent.model_name);
  const isRunning = agent.state === "Running";
  return h("div", { class: "item" }, avatar(agent.name),
    h("div", { class: "grow" }, h("div", { class: "cut name" }, agent.name), h("div", { class: "cut note" }, model || "default model")),
    isRunning ? markNode(agent, mark ?? "") : h("span", { class: "badge warn" }, agent.state));
}

function sessionRow(session, typed) {
  const messages = session.message_count === undefined ? "" : count(session.message_count, "message");
  const details = session.excerpt ? excerptText(session.excerpt, typed) : [messages, brief(session.updated_at)].filter(Boolean).join(" · ");
  return h("div", { class: "item" },
    h("div", { class: "grow" },
      h("div", { class: "cut name" }, session.label ? icon("tag", 13) : null, h("span", { data: { session: session.session_id ?? session.id } }, titleOf(session))), h("div", { class: "cut note" }, details)),
    session.queued > 0 ? h("span", { class: "spinner", role: "img", "aria-label": "answering" }) : session.current ? h("span", { class: "badge", title: "Messages from schedules, triggers and other clients go to this session" }, "default") : null);
}
