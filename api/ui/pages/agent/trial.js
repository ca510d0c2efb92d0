// A chat beside the page of an agent, in a session of its own, to try what was changed.

import { showError } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { LiveTurn } from "../chat/live.js";

/** Turns that stay on the screen; all are in the session. */
const TURNS_MAX = 20;

export class Trial {
  /** `ctx` is the page's, with its `agent`; `close` hides the chat where it lies over the page. */
  constructor(ctx, close) {
    this.ctx = ctx;
    this.sessionId = null;
    this.live = null;
    this.turns = h("div", { class: "turns" });
    this.log = h("div", { class: "log trial-log", role: "log", "aria-label": "Test conversation", tabindex: "0" }, this.turns);
    this.input = h("textarea", { rows: "1", "aria-label": "Test message", autocomplete: "off", oninput: () => this.refresh(), onkeydown: (event) => this.onKey(event) });
    this.send = h("button", { class: "primary only-icon send", type: "submit", "aria-label": "Send", title: "Send" }, icon("send"));
    this.stop = h("button", { class: "stop", type: "button", hidden: true, onclick: () => this.halt().catch(showError) }, icon("stop", 17), "Stop");
    this.fresh = h("button", { class: "quiet small", type: "button", hidden: true, onclick: () => this.begin() }, icon("plus", 15), "New");
    this.link = h("a", { class: "button small", hidden: true }, "Open in chat");
    this.note = h("p", { class: "hint trial-note" });
    this.node = h("aside", { class: "trial", "aria-label": "Test chat" },
      h("header", { class: "trial-head" }, h("h2", { class: "grow" }, "Test chat"), this.link, this.fresh,
        h("button", { type: "button", class: "quiet small only-icon trial-close", "aria-label": "Close the test chat", onclick: close }, icon("close", 16))),
      this.log,
      h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
        h("div", { class: "box" }, this.input, h("div", { class: "box-row" }, h("span", { class: "grow" }), this.stop, this.send))));
    this.begin();
  }

  /** Starts over: the next message opens a new session. */
  begin() {
    this.sessionId = null;
    this.link.hidden = this.fresh.hidden = true;
    fill(this.turns, this.note);
    this.agentChanged();
  }

  /** What is said above an empty conversation, and below the box. */
  agentChanged() {
    const { agent } = this.ctx;
    this.input.placeholder = `Message ${agent.name}`;
    this.note.textContent = agent.state === "Running" ? "Messages go to a new session. The agent answers with its saved settings." : "The agent is stopped. Start it to get an answer.";
    this.refresh();
  }

  refresh() {
    const isBusy = Boolean(this.live && !this.live.isOver);
    this.stop.hidden = !isBusy;
    this.send.hidden = isBusy;
    this.send.disabled = this.input.value.trim() === "";
  }

  onKey(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.submit();
  }

  submit() {
    const text = this.input.value.trim();
    if (text === "" || (this.live && !this.live.isOver)) return;
    this.input.value = "";
    this.say(text).catch((error) => {
      if (this.input.value === "") this.input.value = text;
      showError(error);
    }).finally(() => this.refresh());
  }

  async say(text) {
    const { api, agent, signal } = this.ctx;
    this.sessionId ??= (await api.call("POST", `/api/agents/${agent.id}/sessions`, {})).session_id;
    this.link.href = `#/chat/${agent.id}/${this.sessionId}`;
    this.link.hidden = this.fresh.hidden = false;
    this.note.remove();
    const live = new LiveTurn(agent.name, { content: text }, (change) => { change(); this.log.scrollTop = this.log.scrollHeight; });
    this.live = live;
    this.turns.append(live.node);
    while (this.turns.childElementCount > TURNS_MAX) this.turns.firstChild.remove();
    this.refresh();
    try {
      await api.stream(`/api/agents/${agent.id}/message/stream`, { message: text, session_id: this.sessionId }, (name, event) => live.event(name, event), { signal });
      if (!live.isOver) live.end(null);
      await this.complete(live);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!live.isOver) live.event("error", { error: error.message });
      if (error.hasBegun) return;
      live.node.remove();
      throw error;
    }
  }

  /** The results of its tools, which the stream does not bring. */
  async complete(live) {
    if (live.tools.length === 0) return;
    const { messages } = await this.ctx.api.get(`/api/sessions/${this.sessionId}/messages?limit=20`, { signal: this.ctx.signal });
    const last = messages.at(-1)?.turn;
    live.results(messages.filter(({ turn }) => turn === last));
  }

  async halt() {
    if (this.sessionId) await this.ctx.api.call("POST", `/api/agents/${this.ctx.agent.id}/stop`, { session_id: this.sessionId });
  }
}
