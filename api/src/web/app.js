// The web chat: which agent and session is open, what runs, and what the keys and buttons do.

import * as chat from "./chat.js";
import { call, command, Failure, onKeyNeeded, page, stream } from "./api.js";
import { Bindings } from "./bindings.js";
import { element } from "./markdown.js";

const PAGE_ITEMS = 50;
// Pages that one search reads at most before it asks whether to go on.
const SEARCH_PAGES_MAX = 10;
const SEARCH_PAUSE_MS = 180;

const MANIFEST = `name = "my-agent"
description = "A friendly helper"
system_prompt = """
You are a helpful assistant. Answer briefly and say so when you do not know.
"""

# Without a model, the daemon's default answers.
# [model]
# provider = "builtin"

[capabilities]
tools = ["*"]
`;

const ui = Object.fromEntries(
  [...document.querySelectorAll("[id]")].map((node) => [node.id.replace(/-(\w)/g, (_, c) => c.toUpperCase()), node]),
);

/** The open agent (`{id, name, ...}`) and session, or null. */
let agent = null;
let sessionId = null;
/** Answers being written, by session: `{live, said}`. */
const running = new Map();
/** Grows with each change of agent or session, so that an answer to an earlier question is known as late. */
let view = 0;

// --- Lists -----------------------------------------------------------------------------------------------------------

/** A list at the side that grows by pages. */
class SideList {
  constructor({ list, more, read, row, hint }) {
    Object.assign(this, { list, more, read, row, hint });
    this.round = 0;
    more.addEventListener("click", () => this.load().catch(showError));
  }

  /** Starts over; `filter` goes to `read`. */
  async reload(filter = "") {
    this.filter = filter;
    this.cursor = null;
    this.fresh = true;
    await this.load();
  }

  /** Reads on until something can be shown. */
  async load() {
    const round = ++this.round;
    let rows = [];
    for (let pages = 0; rows.length === 0 && pages < SEARCH_PAGES_MAX; pages += 1) {
      const { items, next } = await this.read(this.cursor, this.filter);
      // A newer search has begun: what this one found is of no use.
      if (round !== this.round) return;
      rows = items.map(this.row);
      this.cursor = next;
      if (!next) break;
    }
    if (this.fresh) this.list.replaceChildren();
    this.fresh = false;
    this.list.append(...rows);
    this.more.hidden = !this.cursor;
    this.hint?.(this.list.childElementCount, this.filter, Boolean(this.cursor));
    markCurrent();
  }
}

const agents = new SideList({
  list: ui.agents,
  more: ui.moreAgents,
  read: async (cursor, filter) => {
    const { items, next } = await page("api/agents", "agents", { limit: PAGE_ITEMS, cursor, q: filter });
    const part = filter.toLowerCase();
    return { items: items.filter((item) => item.name.toLowerCase().includes(part)), next };
  },
  row: (item) => {
    const model = [item.model_provider, item.model_name].filter(Boolean).join(" / ");
    const state = item.state === "Running" ? "" : ` · ${item.state}`;
    return row(item.id, item.name, model + state, () => openAgent(item.id));
  },
  hint: (count, filter, more) => {
    const none = filter ? `No agent is called “${filter}”` : "No agents yet. Create the first one.";
    ui.agentsHint.textContent = count > 0 ? "" : more ? "Nothing found so far." : none;
  },
});

const sessions = new SideList({
  list: ui.sessions,
  more: ui.moreSessions,
  read: async (cursor) => {
    const of = agent.id;
    const found = await page(`api/agents/${of}/sessions`, "sessions", { limit: PAGE_ITEMS, cursor });
    return agent?.id === of ? found : { items: [], next: null };
  },
  row: (item) => {
    const id = item.session_id ?? item.id;
    const count = item.message_count ?? 0;
    const note = `${count} ${count === 1 ? "message" : "messages"}${item.current ? " · current" : ""}`;
    return row(id, item.label || when(item.created_at) || id.slice(0, 8), note, () => openSession(id));
  },
});

function row(id, title, note, open) {
  const button = element("button", "", "item");
  button.type = "button";
  button.dataset.id = id;
  button.append(element("b", title), element("span", note));
  button.addEventListener("click", () => {
    closeSide();
    open().catch(showError);
  });
  const item = element("li");
  item.append(button);
  return item;
}

function markCurrent() {
  for (const button of document.querySelectorAll(".item")) {
    const current = button.dataset.id === agent?.id || button.dataset.id === sessionId;
    button.setAttribute("aria-current", String(current));
  }
}

function when(timestamp) {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

// --- Agent and session -----------------------------------------------------------------------------------------------

async function openAgent(id, wanted = null) {
  const mine = ++view;
  const found = await call("GET", `api/agents/${encodeURIComponent(id)}`);
  if (mine !== view) return;
  agent = found;
  sessionId = null;
  const model = [found.model?.provider, found.model?.model].filter(Boolean).join(" / ");
  ui.agentName.textContent = found.name;
  ui.agentNote.textContent = [found.description, model].filter(Boolean).join(" · ");
  ui.agentState.textContent = found.state;
  ui.agentState.className = `state ${String(found.state).toLowerCase()}`;
  ui.agentState.hidden = false;
  ui.sessionsPart.hidden = false;
  document.title = `${found.name} · agentsvc`;
  sessions.reload().catch(showError);
  await openSession(wanted ?? found.session_id);
}

async function openSession(id) {
  const mine = ++view;
  sessionId = id;
  history.replaceState(null, "", `#${new URLSearchParams({ agent: agent.id, session: id })}`);
  markCurrent();
  refreshComposer();
  const session = await call("GET", `api/sessions/${encodeURIComponent(id)}`);
  if (mine !== view) return;
  chat.showHistory(session.messages ?? [], agent.name);
  const turn = running.get(id);
  if (turn) {
    const last = session.messages?.at(-1);
    const stored = last && /^user$/i.test(last.role) && last.content === turn.said;
    chat.append(...(stored ? [] : [chat.userMessage(turn.said)]), turn.live.node);
  }
  ui.prompt.focus();
}

async function newSession() {
  const made = await call("POST", `api/agents/${agent.id}/sessions`, {});
  await openSession(made.session_id);
  await sessions.reload();
}

/** Opens what the address names, else the first agent of the list. */
async function openFromAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  const id = named.get("agent");
  if (id) {
    try {
      return await openAgent(id, named.get("session"));
    } catch (error) {
      // The agent or session is gone; begin as if none had been named.
      if (!(error instanceof Failure) || ![400, 403, 404].includes(error.status)) throw error;
    }
  }
  const first = ui.agents.querySelector(".item");
  if (first) return openAgent(first.dataset.id);
  return chat.showEmpty("Welcome to agentsvc", "Create an agent to begin.");
}

// --- A turn ----------------------------------------------------------------------------------------------------------

async function sendMessage(text) {
  const [to, session] = [agent, sessionId];
  const turn = { live: new chat.LiveAnswer(to.name), said: text, ended: false };
  running.set(session, turn);
  const said = chat.userMessage(text);
  chat.append(said, turn.live.node);
  refreshComposer();
  const body = { message: text, session_id: session };
  try {
    await stream(`api/agents/${to.id}/message/stream`, body, (name, event) => onEvent(turn, name, event));
    if (!turn.ended) end(turn, "The stream ended early. The agent goes on; open the session again for its answer.");
  } catch (error) {
    if (error.status >= 400 && !turn.ended) {
      // Refused: nothing was said. Give the text back and say why.
      said.remove();
      turn.live.node.remove();
      if (sessionId === session && ui.prompt.value === "") setPrompt(text);
      showError(error);
    } else if (!turn.ended) {
      end(turn, error.message);
    }
  } finally {
    running.delete(session);
    refreshComposer();
    if (agent?.id === to.id) sessions.reload().catch(() => {});
  }
}

function onEvent(turn, name, event) {
  const { live } = turn;
  if (name === "chunk") live.chunk(event.content ?? "");
  else if (name === "tool_use") live.toolUse(event.tool);
  else if (name === "tool_result") live.toolResult(event.tool, event.input);
  else if (name === "owner_notice") {
    live.note(event.text);
    bindings.onEvent("owner_notice");
  }
  else if (name === "lagged") live.note(`${event.missed} events were missed; open the session again for the whole answer.`);
  else if (name === "error") end(turn, event.error || "The turn failed.", event.code);
  else if (name === "done") {
    const usage = event.usage ?? {};
    turn.ended = true;
    if (event.stopped) live.note("Stopped.");
    live.end(`${usage.input_tokens ?? 0} tokens in · ${usage.output_tokens ?? 0} out`);
    bindings.onEvent("done");
  }
}

/** Ends an answer that did not end well. */
function end(turn, message, code = "") {
  turn.ended = true;
  turn.live.note(message, code !== "turn_stopped");
  turn.live.end();
  if (code !== "turn_stopped") bindings.onEvent("error");
}

async function stop() {
  if (!running.has(sessionId)) return;
  ui.stop.disabled = true;
  try {
    await call("POST", `api/agents/${agent.id}/stop`);
  } finally {
    ui.stop.disabled = false;
  }
}

// --- The message box -------------------------------------------------------------------------------------------------

function refreshComposer() {
  const busy = running.has(sessionId);
  ui.prompt.disabled = !sessionId;
  ui.prompt.placeholder = agent ? `Message ${agent.name}` : "Pick an agent first";
  ui.stop.hidden = !busy;
  ui.send.hidden = busy;
  ui.send.disabled = !sessionId || ui.prompt.value.trim() === "";
}

function setPrompt(text) {
  ui.prompt.value = text;
  ui.prompt.style.height = "auto";
  ui.prompt.style.height = `${ui.prompt.scrollHeight}px`;
  refreshComposer();
}

function submit() {
  const text = ui.prompt.value.trim();
  if (text === "" || !sessionId || running.has(sessionId)) return;
  hideError();
  setPrompt("");
  if (text.startsWith("/")) typeCommand(text).catch(showError);
  else sendMessage(text).catch(showError);
}

// --- Errors and dialogs ----------------------------------------------------------------------------------------------

function showError(error) {
  if (error?.name === "AbortError") return;
  ui.alertText.textContent = error instanceof Failure ? error.message : `This page has a fault: ${error?.message ?? error}`;
  ui.alert.hidden = false;
}

function hideError() {
  ui.alert.hidden = true;
}

/** Opens `dialog` and waits: `submit` gives the result, or throws what `fault` then shows; null when dismissed. */
function ask(dialog, fault, submit) {
  return new Promise((resolve) => {
    let result = null;
    const form = dialog.querySelector("form");
    form.onsubmit = async (event) => {
      event.preventDefault();
      fault.textContent = "";
      try {
        result = await submit();
        dialog.close();
      } catch (error) {
        fault.textContent = error.message;
      }
    };
    dialog.onclose = () => resolve(result);
    dialog.showModal();
  });
}

onKeyNeeded((reason) => {
  ui.key.value = "";
  ui.keyFault.textContent = reason;
  return ask(ui.keyDialog, ui.keyFault, async () => ui.key.value.trim() || null);
});

async function newAgent() {
  if (ui.manifest.value === "") ui.manifest.value = MANIFEST;
  ui.agentFault.textContent = "";
  const made = await ask(ui.agentDialog, ui.agentFault, () => call("POST", "api/agents", { manifest_toml: ui.manifest.value }));
  if (!made) return;
  ui.manifest.value = "";
  ui.search.value = "";
  await agents.reload();
  await openAgent(made.agent_id);
}

// --- Commands and bindings -------------------------------------------------------------------------------------------

/** A command of the chat: the daemon's answer is shown, and the agent read again, whose session it may have changed. */
async function typeCommand(text) {
  if (!agent) return;
  const to = agent.id;
  const answer = await command(to, text);
  if (agent?.id !== to) return;
  await openAgent(to);
  const live = new chat.LiveAnswer(text);
  live.chunk(answer);
  live.end();
  chat.append(live.node);
}

/** What a binding may do (`ACTIONS` of the daemon's `bindings.rs`). */
const ACTIONS = {
  search: () => {
    openSide();
    ui.search.focus();
    ui.search.select();
  },
  focus_prompt: () => ui.prompt.focus(),
  new_session: () => agent && newSession(),
  new_agent: () => newAgent(),
  stop: () => {
    closeSide();
    return stop();
  },
  open_list: () => openSide(),
  close_list: () => closeSide(),
  scroll_end: () => chat.toEnd(),
  reload: () => sessionId && openSession(sessionId),
};

const bindings = new Bindings((text) => {
  const run = text.startsWith("/") ? () => typeCommand(text) : ACTIONS[text];
  Promise.resolve(run?.()).catch(showError);
});

// --- Wiring ----------------------------------------------------------------------------------------------------------

function openSide() {
  ui.frame.classList.add("open");
  ui.openSide.setAttribute("aria-expanded", "true");
}

function closeSide() {
  ui.frame.classList.remove("open");
  ui.openSide.setAttribute("aria-expanded", "false");
}

let searching = 0;
ui.search.addEventListener("input", () => {
  clearTimeout(searching);
  searching = setTimeout(() => agents.reload(ui.search.value.trim()).catch(showError), SEARCH_PAUSE_MS);
});

/** Arrow keys walk through the search box and the agents under it; Enter in the box opens the first. */
document.querySelector(".side").addEventListener("keydown", (event) => {
  const stops = [ui.search, ...ui.agents.querySelectorAll(".item")];
  const at = stops.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
  if (at >= 0 && to !== undefined && stops[to]) {
    event.preventDefault();
    stops[to].focus();
  } else if (at === 0 && event.key === "Enter") {
    stops[1]?.click();
  }
});

ui.prompt.addEventListener("input", () => setPrompt(ui.prompt.value));
ui.prompt.addEventListener("keydown", (event) => {
  // While an input method composes, Enter takes its suggestion.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
ui.composer.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
ui.stop.addEventListener("click", () => stop().catch(showError));
ui.newAgent.addEventListener("click", () => newAgent().catch(showError));
ui.newSession.addEventListener("click", () => newSession().catch(showError));
ui.alertClose.addEventListener("click", hideError);
ui.openSide.addEventListener("click", openSide);
ui.veil.addEventListener("click", closeSide);
for (const button of document.querySelectorAll("[data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (bindings.onKey(event)) event.preventDefault();
});
addEventListener("hashchange", () => openFromAddress().catch(showError));

async function health() {
  try {
    const { status } = await call("GET", "api/health");
    ui.health.textContent = status === "ok" ? "online" : status;
    ui.health.className = "health up";
  } catch {
    ui.health.textContent = "offline";
    ui.health.className = "health down";
  }
}

async function start() {
  chat.showEmpty("Welcome to agentsvc", "Loading the agents …");
  health();
  setInterval(() => document.visibilityState === "visible" && health(), 15_000);
  await agents.reload();
  bindings.load().catch(showError);
  await openFromAddress();
}

start().catch(showError);
