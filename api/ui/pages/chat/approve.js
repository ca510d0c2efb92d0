// Tool calls that wait for a person, decided where they are asked.

import { seesAll } from "../../lib/me.js";

const LOOK_EVERY_MS = 1_500;

/** While an answer runs, looks for approvals that it waits for. `chat` is the page. */
export class Approvals {
  constructor(chat) {
    this.chat = chat;
    this.shown = new Map();
    // Only those decide who may see what all agents ask for.
    if (seesAll()) chat.ctx.every(LOOK_EVERY_MS, () => this.look());
  }

  async look() {
    const { chat } = this;
    const live = chat.running();
    if (!live) return this.shown.clear();
    const { api, signal } = chat.ctx;
    const path = api.withQuery("/api/approvals", { status: "pending", agent_id: chat.agent.id, limit: 20 });
    const { approvals } = await api.get(path, { signal });
    const waiting = new Set(approvals.map(({ id }) => id));
    for (const id of [...this.shown.keys()]) if (!waiting.has(id)) this.remove(id);
    if (approvals.length === 0) return undefined;
    const { approvalCard } = await import("../../lib/approve.js");
    for (const approval of approvals) {
      // The answer that it stood at may have been drawn anew.
      if (this.shown.get(approval.id)?.isConnected) continue;
      const node = approvalCard(approval, { name: chat.agent.name, signal, decided: () => this.remove(approval.id) });
      this.shown.set(approval.id, node);
      live.add(node);
    }
    return undefined;
  }

  remove(id) {
    this.shown.get(id)?.remove();
    this.shown.delete(id);
  }
}
