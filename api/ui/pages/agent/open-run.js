// A run that has not ended: its message, what it has done so far, and what it waits for.

import { approvalCard } from "../../lib/approve.js";
import { get, withQuery } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { ago, count, duration, money, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { render } from "../../lib/markdown.js";
import { seesAll } from "../../lib/me.js";
import { lineOf } from "../../lib/titles.js";
import { causeText, mendLink, untilText } from "../../lib/trouble.js";
import { saidNode, ToolNode } from "../chat/turn.js";
import { originText, stateText } from "./words.js";

/** The open run of `turnId`; `ctx` is the page's, `back` the link to all runs. */
export class OpenRun {
  constructor(ctx, turnId, back) {
    Object.assign(this, { ctx, turnId, seen: "", approvals: new Map() });
    this.state = h("span", { class: "badge accent" });
    this.facts = h("span", { class: "dim" });
    /** What holds it up, if anything does. */
    this.held = h("div", { class: "notice warn", hidden: true });
    this.said = h("div");
    this.steps = h("div", { class: "parts" });
    this.asks = h("div", { class: "stack" });
    this.chat = h("a", { class: "button" }, icon("chat", 17), "Open in chat");
    this.title = h("h1", { class: "trace-said cut" }, `Run of ${ctx.agent.name}`);
    this.node = h("div", { class: "stack" },
      h("div", { class: "bar-row trace-head" }, back, h("span", { class: "grow" }), this.chat), this.title,
      h("div", { class: "bar-row tight", role: "status" }, h("span", { class: "spinner" }), this.state), this.facts, this.held,
      h("section", { class: "card stack", "aria-label": "Run so far" }, this.said, this.steps, this.asks));
  }

  /** Shows what is known by now. */
  async show(running, messages) {
    const { agent, signal } = this.ctx;
    this.chat.href = `#/chat/${encodeURIComponent(agent.id)}/${running.session_id}`;
    const word = stateText(running.state);
    if (this.state.textContent !== word) this.state.textContent = word;
    fill(this.facts, `from ${originText(running.origin)}, started `, h("time", { datetime: running.started_at, title: when(running.started_at) }, ago(running.started_at)),
      `, running for ${duration(Date.now() - Date.parse(running.started_at))}. ${count(running.iterations, "model call")}, ${count(running.tool_calls, "tool call")}, ${number(running.input_tokens + running.output_tokens)} tokens, ${money(running.cost_usd)} so far.`);
    this.held.hidden = !running.waiting;
    if (running.waiting) fill(this.held, icon("pause"), h("span", {}, h("b", {}, causeText(running.waiting)), " ", untilText(running.waiting)));
    if (running.waiting) this.held.lastChild.append(" ", mendLink(running.waiting.code, running.waiting.provider, running.waiting.error) ?? "");
    const seen = JSON.stringify(messages);
    if (seen !== this.seen) this.showSteps(messages, running.origin);
    this.seen = seen;
    if (seesAll()) await this.showApprovals(agent, signal);
  }

  showSteps(messages, origin) {
    const said = messages.find(({ role }) => role === "User");
    if (said) this.title.textContent = lineOf(said.content);
    fill(this.said, said ? saidNode({ ...said, origin }) : h("p", { class: "dim" }, "Its message is not stored yet."));
    const tools = new Map();
    const nodes = [];
    for (const message of messages.filter((one) => one !== said)) {
      if (message.content && message.role === "Assistant") nodes.push(h("div", { class: "md" }, render(message.content)));
      for (const call of message.tool_calls ?? []) {
        const tool = new ToolNode(call.name, call.input);
        tools.set(call.id, tool);
        nodes.push(tool.node);
      }
      for (const result of message.tool_results ?? []) tools.get(result.call_id)?.set({ result: result.content, isError: result.is_error, cut: result.cut_bytes });
    }
    fill(this.steps, nodes);
  }

  async showApprovals(agent, signal) {
    const { approvals } = await get(withQuery("/api/approvals", { status: "pending", agent_id: agent.id, limit: 50 }), { signal });
    const own = approvals.filter(({ turn_id: turn }) => turn === this.turnId);
    for (const [id, node] of this.approvals) {
      if (own.some((one) => one.id === id)) continue;
      node.remove();
      this.approvals.delete(id);
    }
    for (const approval of own.filter(({ id }) => !this.approvals.has(id))) {
      const node = approvalCard(approval, { name: agent.name, signal, decided: () => node.remove() });
      this.approvals.set(approval.id, node);
      this.asks.append(node);
    }
  }
}
