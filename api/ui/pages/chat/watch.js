// Watches the open session: turns that others began (triggers, schedules, another tab), and the one that ran when the
// page was loaded.

import { debounce } from "../../lib/dom.js";
import { LiveTurn } from "./live.js";

const RETRY_MS_MIN = 2_000;
const RETRY_MS_MAX = 30_000;
const RESULTS_PAUSE_MS = 120;

/** One watch at a time. `chat` is the page. */
export class Watch {
  constructor(chat) {
    this.chat = chat;
    this.ending = null;
    this.live = null;
    this.fetchResults = debounce((live) => this.readResults(live).catch(() => {}), RESULTS_PAUSE_MS);
    chat.ctx.signal.addEventListener("abort", () => this.stop());
  }

  isLive() {
    return this.live !== null && !this.live.isOver;
  }

  stop() {
    this.ending?.abort();
    this.ending = null;
    this.live?.node.remove();
    this.live = null;
  }

  /** Follows the open session from now on; `isRunning` says that a turn is under way. */
  start(isRunning) {
    this.stop();
    this.ending = new AbortController();
    if (isRunning) this.begin().catch(() => {});
    this.run(this.ending.signal, this.chat.sessionId);
  }

  async run(signal, session) {
    const { ctx } = this.chat;
    const path = ctx.api.withQuery(`/api/agents/${this.chat.agent.id}/attach`, { session_id: session, from: "start" });
    let pause = RETRY_MS_MIN;
    while (!signal.aborted) {
      const events = [];
      let isOver = false;
      let isExchanged = false;
      try {
        await ctx.api.events(path, (name, event) => {
          if (signal.aborted) return;
          pause = RETRY_MS_MIN;
          // No turn's end: there is another world now.
          isExchanged ||= name === "error" && event.code === "exchanging";
          if (isExchanged && !this.live) return;
          isOver ||= name === "done" || name === "error";
          if (name === "error" && event.code === "session_removed") this.ending?.abort();
          // Until it is known whose turn this is, its events wait.
          if (this.live) this.take(name, event);
          else {
            events.push([name, event]);
            if (events.length === 1) this.begin().then(() => events.splice(0).forEach(([name, event]) => this.take(name, event))).catch(() => {});
          }
        }, { signal });
      } catch (error) {
        // Busy, loading or draining: later. Anything else that is refused stays refused.
        if (error.name === "AbortError" || (error.status >= 400 && error.status < 500 && error.status !== 429)) return;
      }
      if (signal.aborted) return;
      if (isExchanged) {
        this.live?.node.remove();
        this.live = null;
        await this.chat.exchanged(session).catch(() => {});
        return;
      }
      if (isOver) {
        const { live } = this;
        this.live = null;
        // This starts the watch anew.
        await this.chat.settle(session, live).catch(() => {});
        return;
      }
      await new Promise((resolve) => { setTimeout(resolve, pause); });
      pause = Math.min(RETRY_MS_MAX, pause * 2);
      if (!signal.aborted) await this.chat.settle(session, null).catch(() => {});
    }
  }

  take(name, event) {
    if (!this.live) return;
    this.live.event(name, event);
    if (name === "tool_result") this.fetchResults(this.live);
    if (name === "done" || name === "error" || name === "owner_notice") this.chat.bindings.onEvent(name);
    this.chat.composer.refresh();
  }

  /** Puts the running turn on the screen: the first of those that have not ended. */
  async begin() {
    if (this.live || this.beginning) return this.beginning;
    const { chat } = this;
    const [session, ending] = [chat.sessionId, this.ending];
    this.beginning = (async () => {
      const page = await chat.log.read(session, null, 20);
      if (ending !== this.ending || this.live) return;
      // It has ended since somebody said that it runs, and no event will say so.
      if (page.queued === 0) return void chat.settle(session, null).catch(() => {});
      const turn = page.turns[page.turns.length - Math.max(1, page.queued)];
      const live = new LiveTurn(chat.agent.name, turn?.said ?? null, (change) => chat.log.grow(change));
      live.turnId = turn?.id ?? null;
      this.live = live;
      chat.log.begin(live);
      live.results(turn?.steps ?? []);
      chat.approvals.look().catch(() => {});
      chat.composer.refresh();
    })().finally(() => { this.beginning = null; });
    return this.beginning;
  }

  /** The results of the tools that a running turn called so far. */
  async readResults(live) {
    const page = await this.chat.log.read(this.chat.sessionId, null, 20);
    const turn = page.turns[page.turns.length - Math.max(1, page.queued)];
    if (turn && !live.isOver) live.results(turn.steps);
  }
}
