// What an answer that does not come waits for: a line below it that says what is the matter, and when it goes on.

import { showError } from "../../lib/dialogs.js";
import { h } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { can } from "../../lib/me.js";
import { causeText, mendLink, untilText } from "../../lib/trouble.js";

const LOOK_EVERY_MS = 1000;
/** An answer that says nothing for so long is looked at. */
const QUIET_MS = 1500;
/** A provider that says nothing for so long is worth a word. */
const SLOW_MS = 6000;

/** Follows the running answer of the open session. `chat` is the page. */
export class Trouble {
  constructor(chat) {
    this.chat = chat;
    this.said = "";
    chat.ctx.every(LOOK_EVERY_MS, () => this.look());
  }

  async look() {
    const { chat } = this;
    const live = chat.running();
    if (live && chat.approvals.shown.size > 0) return live.note({ isStill: true, text: can("admin") ? "Waiting for your approval." : "Waiting for an approval." });
    if (!live || Date.now() - live.heard < QUIET_MS) return live?.note(null);
    const { api, signal } = chat.ctx;
    const { agent, sessionId } = chat;
    const { running } = await api.get(api.withQuery(`/api/agents/${agent.id}/traces`, { limit: 1 }), { signal });
    if (live !== chat.running() || Date.now() - live.heard < QUIET_MS) return undefined;
    // The oldest is the one that runs; the others are behind it.
    const run = running.filter((one) => one.session_id === sessionId).toSorted((a, b) => a.started_at.localeCompare(b.started_at))[0];
    return live.note(run ? this.words(run, live) : null);
  }

  /** Stops the turn that waits and asks for another model; the message can be sent again then. */
  anotherModel() {
    if (!can("write") || !can("chat")) return null;
    return h("button", { type: "button", class: "small", onclick: () => this.chat.stop().then(() => this.chat.pickModel()).catch(showError) }, "Use another model");
  }

  /** What is said of a run that is quiet; null for nothing. */
  words({ state, waiting }, live) {
    const { provider } = this.chat.agent.model;
    const quiet = Date.now() - live.heard;
    const clock = duration(Math.floor(quiet / 1000) * 1000);
    if (waiting) return { isBad: true, text: causeText(waiting), clock: untilText(waiting), link: [mendLink(waiting.code, waiting.provider, waiting.error), this.anotherModel()], detail: waiting.error };
    if (state === "reserving") return { text: `Waiting for a free slot of ${provider}, or for its budget.`, clock };
    if (state === "waiting_for_approval") return { isStill: true, text: "Waiting for an approval.", clock };
    if (state === "stopping") return { text: "Stopping…" };
    if (state === "calling" && quiet >= SLOW_MS) return { text: `Waiting for ${provider} to respond.`, clock };
    return null;
  }
}
