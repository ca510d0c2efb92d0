// Chat: agents, their sessions, and the conversation.

import { Bindings } from "../lib/bindings.js";
import { menuButton, showError, toast } from "../lib/dialogs.js";
import { fill, h, useStyles } from "../lib/dom.js";
import { modelText } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { can, seesAll } from "../lib/me.js";
import { actionsOf } from "./chat/actions.js";
import { Approvals } from "./chat/approve.js";
import { branchAt, mayBranch, sendEdited } from "./chat/branch.js";
import { Composer, dropOn } from "./chat/composer.js";
import { LiveTurn } from "./chat/live.js";
import { Log } from "./chat/log.js";
import { menuOf } from "./chat/menu.js";
import { keepPlace, lastPlace } from "./chat/place.js";
import { Side } from "./chat/side.js";
import { showPicturesOf } from "./chat/turn.js";
import { groupOf } from "./chat/variants.js";
import { loadVoice } from "./chat/voice.js";
import { Watch } from "./chat/watch.js";
import { Welcome } from "./chat/welcome.js";

export const title = "Chat";

/** Answers that one tab streams at once: browsers hold six connections to one place over HTTP/1.1. */
const STREAMS_MAX = 3;
/** How long it takes until a session is read again of a daemon that was not there, in milliseconds: at first, and at most. */
const AGAIN_MS = [1000, 8000];

/** Opens the chat: `#/chat/<agent>/<session>`. */
export async function mount(root, ctx) {
  await useStyles(new URL("../styles/chat.css", import.meta.url));
  const chat = new Chat(root, ctx);
  await chat.start();
}

class Chat {
  constructor(root, ctx) {
    this.ctx = ctx;
    /** The open agent (its detail) and session, or null. */
    this.agent = null;
    this.sessionId = null;
    /** Turns that this tab sent and streams, by session: each `{ live, session, isOver }`. */
    this.sent = [];
    /** What is opened next was made just now. */
    this.isNew = false;
    /** Grows with each change of agent or session, so that an answer to an earlier question is known as late. */
    this.view = 0;
    this.name = h("h1", { class: "cut" }, "Chat");
    this.note = h("p", { class: "cut note" }, "Select an agent to chat with");
    this.state = h("span", { class: "badge warn", hidden: true });
    this.startButton = h("button", { class: "small", type: "button", hidden: true, onclick: () => this.startAgent().catch(showError) }, icon("play", 15), "Start");
    this.frame = h("div", { class: "chat" });
    this.side = new Side(this);
    this.log = new Log(this);
    this.composer = new Composer(this);
    this.watch = new Watch(this);
    this.approvals = new Approvals(this);
    this.welcome = new Welcome(this);
    this.page = h("a", { class: "button quiet only-icon", title: "Overview and settings", "aria-label": "Overview and settings of the agent", hidden: true }, icon("settings"));
    this.more = menuButton({ label: "More", items: () => this.menu() });
    this.more.hidden = true;
    const head = h("header", { class: "chat-head" }, this.side.toggle, h("div", { class: "grow" }, this.name, this.note), this.state, this.startButton, this.page, this.more);
    const place = h("section", { class: "conversation", "aria-label": "Conversation with the agent" }, head, h("div", { class: "log-frame" }, h("h2", { class: "sr" }, "Messages"), this.log.node, this.log.down), can("chat") ? this.composer.node : null);
    fill(this.frame, this.side.node, this.side.veil, place);
    dropOn(place, this.composer);
    root.append(this.frame);
    this.actions = actionsOf(this);
    this.bindings = new Bindings((text) => Promise.resolve(text.startsWith("/") ? this.command(text) : this.actions[text]?.()).catch(showError));
    document.addEventListener("keydown", (event) => {
      if (!event.defaultPrevented && !document.querySelector("dialog[open], .menu:popover-open") && this.bindings.onKey(event)) event.preventDefault();
    }, { signal: ctx.signal });
    // The palette finds agents too. Its key can be bound to something else here.
    ctx.claim = (event) => ![undefined, "search"].includes(this.bindings.commandOf(event)) && this.bindings.onKey(event);
    ctx.showKeys(() => this.bindings.list.filter(({ event }) => event === "key").map(({ key, description, command }) => ({ key, label: description || command })));
    ctx.onRoute(() => this.route().catch(showError));
    import("./chat/trouble.js").then(({ Trouble }) => new Trouble(this)).catch(() => {});
  }

  async start() {
    this.log.showLoading();
    if (can("chat")) this.composer.load().catch(showError);
    if (seesAll()) this.bindings.load().catch(showError);
    // The chat works without a voice, for which a key must be allowed to write.
    const voice = can("write") ? loadVoice().catch(() => {}) : null;
    await Promise.all([this.side.agents.reload(""), voice]);
    await this.route();
  }

  /** Opens what the address names, else what was open last, else the first agent. */
  async route() {
    // The address of earlier releases was #agent=...&session=...
    const old = new URLSearchParams(location.hash.slice(1));
    if (this.ctx.query.get("new") === "agent") {
      this.ctx.go(["chat", ...this.ctx.path], {}, { replace: true });
      return this.newAgent();
    }
    const named = this.ctx.path.length > 0 ? this.ctx.path : [old.get("agent"), old.get("session")];
    const [id, session] = named[0] ? named : lastPlace();
    if (id && id === this.agent?.id && session === this.sessionId) return named[0] ? undefined : this.open(id, session, { replace: true });
    if (id) {
      try {
        return await this.show(id, session ?? null);
      } catch (error) {
        if (![400, 403, 404].includes(error.status)) throw error;
        // Of an agent that is still there the present session is shown.
        if (session && this.agent?.id === id) return this.gone();
        if (named[0]) toast("The agent or session no longer exists.", { kind: "bad" });
      }
    }
    const [first] = this.side.agents.items;
    if (first) return this.open(first.id, null, { replace: true });
    this.agent = null;
    this.sessionId = null;
    this.side.show(null, null);
    this.drawHead();
    return this.log.showEmpty({
      icon: icon("chat", 32), title: "Welcome to agentsvc", text: can("write") ? "Create your first agent and start a conversation." : "No agents belong to you.",
      actions: !can("write") ? [] : [h("button", { class: "primary", type: "button", onclick: () => this.newAgent().catch(showError) }, icon("plus", 18), "New agent")],
    });
  }

  /** Goes to an agent, and to one of its sessions; without one to its current session. */
  open(agentId, sessionId = null, options) {
    this.side.close();
    this.ctx.go(["chat", agentId, ...(sessionId ? [sessionId] : [])], {}, options);
  }

  async show(agentId, wanted) {
    const view = ++this.view;
    const { api } = this.ctx;
    if (agentId !== this.agent?.id) {
      const agent = await api.get(`/api/agents/${encodeURIComponent(agentId)}`);
      if (view !== this.view) return;
      this.agent = agent;
      showPicturesOf(agent.id);
      this.composer.setThinking(false);
    }
    const session = wanted ?? (await api.get(`/api/agents/${encodeURIComponent(agentId)}`)).session_id;
    if (view !== this.view) return;
    const before = this.sessionId;
    this.sessionId = session;
    if (session !== before) this.composer.moveTo(session, before);
    keepPlace(this.agent.id, session);
    this.composer.follow.hidden = true;
    this.ctx.go(["chat", this.agent.id, session], {}, { replace: true });
    this.drawHead();
    this.side.show(this.agent, session);
    this.composer.refresh();
    this.log.showLoading();
    this.watch.stop();
    const page = await this.log.read(session);
    if (view !== this.view) return;
    this.label = page.label;
    this.drawHead();
    const mine = this.mine();
    this.composer.context.set(page.turns, this.agent.model);
    this.log.show({ ...page, turns: page.turns.slice(0, page.turns.length - Math.min(page.queued, mine.length)), queued: Math.max(0, page.queued - mine.length) }, mine.map(({ live }) => live.node));
    this.watch.start(page.queued > 0);
    this.composer.refresh();
    if (page.queued === 0) this.offer(page.turns, view);
    // Whoever walks through the lists stays there; what was just made is written to.
    const isNew = this.isNew;
    this.isNew = false;
    if (matchMedia("(min-width: 901px)").matches && (isNew || !this.side.node.contains(document.activeElement))) this.composer.focus();
  }

  /** Reads the open session again. */
  async reload() {
    if (this.sessionId) await this.show(this.agent.id, this.sessionId);
  }

  drawHead() {
    const { agent } = this;
    this.ctx.setTitle(agent?.name ?? title);
    this.name.textContent = agent?.name ?? "Chat";
    const model = modelText(agent?.model?.provider, agent?.model?.model);
    this.note.textContent = agent ? [this.label ? `#${this.label}` : null, model, agent.description].filter(Boolean).join(" · ") : "Select an agent to chat with";
    const isDown = Boolean(agent && agent.state !== "Running");
    this.state.hidden = !isDown;
    this.state.textContent = agent?.state ?? "";
    this.startButton.hidden = !isDown || !seesAll() || !can("write") || !can("chat");
    this.more.hidden = this.page.hidden = !agent;
    if (agent) this.page.href = `#/agent/${encodeURIComponent(agent.id)}`;
  }

  // --- Turns ---------------------------------------------------------------------------------------------------------

  /** What this tab sent to the open session and still streams. */
  mine() {
    return this.sent.filter((turn) => turn.session === this.sessionId && !turn.live.isOver);
  }

  /** The turn of the open session that runs on the screen, or null. */
  running() {
    return this.mine()[0]?.live ?? (this.watch.isLive() ? this.watch.live : null);
  }

  isBusy() {
    return this.running() !== null;
  }

  /** Sends a message; `files` are uploads (`file_id`, `filename`, `content_type`), `repeats` is the first of the turns whose message it sends again. */
  async send(text, files = [], { repeats = null } = {}) {
    const [agent, session] = [this.agent, this.sessionId];
    if (this.sent.filter(({ live }) => !live.isOver).length >= STREAMS_MAX) {
      this.composer.set(text);
      throw new this.ctx.api.Failure("This tab is already waiting for several responses. Wait for one of them, then send this message.", 0);
    }
    const images = files.filter(({ content_type: type }) => type.startsWith("image/")).map((file) => ({ file_id: file.file_id, filename: file.filename, media_type: file.content_type, url: file.url }));
    const others = files.filter(({ content_type: type }) => !type.startsWith("image/")).map((file) => `📎 ${file.filename}`);
    const live = new LiveTurn(agent.name, { content: [text, ...others].filter(Boolean).join("\n"), images, repeats }, (change) => this.log.grow(change));
    live.message = text;
    const turn = { live, session };
    this.sent.push(turn);
    this.watch.stop();
    this.log.append(live.node);
    this.composer.refresh();
    const body = { message: text, session_id: session, repeats: repeats ?? undefined, attachments: files.length > 0 ? files.map(({ file_id }) => ({ file_id })) : undefined, thinking: this.composer.isThinking || undefined };
    try {
      await this.ctx.api.stream(`/api/agents/${agent.id}/message/stream`, body, (name, event) => this.onEvent(turn, name, event), { signal: this.ctx.signal });
      if (!live.isOver) live.end(null);
    } catch (error) {
      // The page is left; the turn goes on.
      if (error.name === "AbortError") return;
      if (!error.hasBegun && !live.isOver) {
        // Refused, or not reached: nothing was said. Give the text back and say why.
        live.end(null);
        live.node.remove();
        if (this.sessionId === session && this.composer.input.value === "") this.composer.set(text);
        showError(error);
      } else if (!live.isOver) {
        live.event("error", { error: `${error.message} The response is stored in the session and appears when the daemon is reachable again.` });
      }
    } finally {
      this.sent = this.sent.filter((other) => other !== turn);
      if (turn.isExchanged && this.sessionId === session) {
        live.node.remove();
        // The other world never heard it.
        if (this.composer.input.value === "") this.composer.set(text);
        await this.exchanged(session).catch(showError);
      } else await this.settle(session, live).catch(showError);
    }
  }

  onEvent(turn, name, event) {
    turn.isExchanged ||= name === "error" && event.code === "exchanging";
    const isLast = turn.live.event(name, event);
    if (name === "tool_result" && this.sessionId === turn.session) this.watch.fetchResults(turn.live);
    if (isLast || name === "owner_notice") this.bindings.onEvent(name);
  }

  /** A turn is over: what is stored of it takes the place of what was streamed. */
  async settle(session, live) {
    if (this.ctx.signal.aborted) return;
    this.side.sessions.reload();
    if (session !== this.sessionId) return;
    this.composer.refresh();
    const view = this.view;
    const page = await this.readAgain(session, view);
    if (page === null || view !== this.view || session !== this.sessionId) return;
    const mine = this.mine();
    const shown = page.turns.length - Math.min(page.queued, mine.length);
    this.composer.context.set(page.turns, this.agent.model);
    this.log.refresh({ ...page, turns: page.turns.slice(0, shown), queued: Math.max(0, page.queued - mine.length) }, mine.map(({ live }) => live.node), live);
    if (mine.length === 0) this.watch.start(page.queued > 0);
    this.composer.refresh();
    if (page.queued === 0) this.offer(page.turns, view);
  }

  /** Offers ways on after the newest answer. It is no part of the first load, and nothing is lost without it. */
  offer(turns, view) {
    import("./chat/follow.js").then(({ followUps }) => view === this.view && followUps(this, turns)).catch(() => {});
  }

  /** The newest of a session: asked again until the daemon is there, or `view` is over (null). */
  async readAgain(session, view) {
    for (let wait = AGAIN_MS[0]; ; wait = Math.min(AGAIN_MS[1], wait * 2)) {
      try {
        return await this.log.read(session, null, 20);
      } catch (error) {
        if (view !== this.view || error.name === "AbortError") return null;
        if (error.status === 404) return this.gone();
        if (error.status !== 0 && error.status < 500) throw error;
        if (error.status !== 0) showError(error);
      }
      await this.ctx.api.pause(wait, this.ctx.signal);
      if (view !== this.view) return null;
    }
  }

  /** The open session is no more: it was deleted, or the world was exchanged for one that never had it. */
  async gone() {
    toast("That session no longer exists. This is the current session.", { kind: "bad" });
    const { id } = this.agent;
    this.agent = null;
    this.sessionId = null;
    await this.side.agents.reload();
    await this.show(id, null).catch(() => this.ctx.go(["chat"], {}, { replace: true }));
    return null;
  }

  /** The world was exchanged for another (a restore): everything is read anew. */
  async exchanged(session) {
    toast("The world was restored from a snapshot or a backup. This page shows the restored state.");
    const { id } = this.agent;
    this.agent = null;
    try {
      await this.side.agents.reload();
      await this.show(id, session);
    } catch (error) {
      if (error.status !== 404) throw error;
      this.agent = { id };
      await this.gone();
    }
  }

  /** Says the message of `turn` again: in its place where it is the last one, else in a branch. */
  retry(turn) {
    // An earlier message is answered again in a branch: what came after it was said to the first answer.
    if (!this.log.isLast(turn) && mayBranch()) return sendEdited(this, turn, turn.said?.content ?? "", []);
    const files = (turn.said?.images ?? []).map(({ file_id, filename, media_type }) => ({ file_id, filename, content_type: media_type }));
    return this.send(turn.said?.content ?? "", files, { repeats: this.log.isLast(turn) && !this.isBusy() ? groupOf(turn) : null });
  }

  /** What the person said last. */
  lastSaid() {
    return [...this.log.stored.values()].findLast(({ turn }) => turn.said)?.turn.said.content ?? null;
  }

  async stop() {
    if (!this.isBusy()) return;
    await this.ctx.api.call("POST", `/api/agents/${this.agent.id}/stop`, { session_id: this.sessionId });
  }

  async interrupt() {
    if (!this.isBusy()) return;
    await this.ctx.api.call("POST", `/api/agents/${this.agent.id}/sessions/${this.sessionId}/interrupt`);
    toast("The turn stops before its next tool call.");
  }

  /** Asks for another model. */
  async pickModel() {
    const { chooseModel } = await import("./chat/models.js");
    if (this.agent && (await chooseModel(this.ctx.api, this.agent))) {
      await this.changedAgent();
      this.composer.refresh();
    }
  }

  /** Opens a new session with the conversation up to the end of `turn`. */
  branch(turn) {
    return branchAt(this, turn.ordinal + 1);
  }

  /** Sends `text` in place of the message of `turn`. */
  sendEdited(turn, text, files) {
    return sendEdited(this, turn, text, files);
  }

  /** A command of the chat: the daemon's answer is shown, and the agent read again, whose session it may have changed. */
  async command(text) {
    const [agent, session] = [this.agent, this.sessionId];
    if (!agent) return;
    const { response, thinking } = await this.ctx.api.command(agent.id, text, session, this.composer.isThinking);
    this.composer.setThinking(thinking);
    if (this.agent?.id !== agent.id) return;
    const fresh = await this.ctx.api.get(`/api/agents/${agent.id}`);
    const isOther = fresh.session_id !== agent.session_id;
    this.agent = fresh;
    this.drawHead();
    this.side.sessions.reload();
    if (isOther) await this.show(agent.id, fresh.session_id);
    else if (/^\/compact/i.test(text)) await this.reload();
    this.log.append(h("div", { class: "command-answer", role: "status" }, h("code", {}, text), h("div", { class: "plain" }, response)));
  }

  // --- Agents and sessions -------------------------------------------------------------------------------------------

  async newAgent() {
    this.side.close();
    const { createAgent } = await import("./chat/create.js");
    const made = await createAgent(this.ctx.api);
    if (!made) return;
    this.side.search.clear();
    await this.side.agents.reload("");
    toast(`${made.name} was created.`);
    this.isNew = true;
    this.open(made.agent_id);
  }

  async newSession() {
    if (!this.agent) return;
    const made = await this.ctx.api.call("POST", `/api/agents/${this.agent.id}/sessions`, {});
    await this.side.sessions.reload("");
    this.isNew = true;
    this.open(this.agent.id, made.session_id);
  }

  async startAgent() {
    await this.ctx.api.call("POST", "/api/agents/bulk/start", { agent_ids: [this.agent.id] });
    await this.changedAgent();
  }

  async changedAgent() {
    this.agent = await this.ctx.api.get(`/api/agents/${this.agent.id}`);
    this.drawHead();
    await this.side.agents.reload();
  }

  menu() {
    return menuOf(this);
  }

  async rename() {
    const { renameSession } = await import("./chat/rename.js");
    await renameSession(this);
  }
}
