// The trace of one run: what stands out in it, where its time and money went, its steps on a time line, what each was sent and gave, and the
// run again.

import { get, stream, withQuery } from "../../lib/api.js";
import { ask, menuButton, showError } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, skeleton, useStyles } from "../../lib/dom.js";
import { ago, duration, money, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { render } from "../../lib/markdown.js";
import { can } from "../../lib/me.js";
import { lineOf } from "../../lib/titles.js";
import { errorText, mendLink } from "../../lib/trouble.js";
import { windowOf } from "../chat/context.js";
import { OpenRun } from "./open-run.js";
import { callsOf, messagesOf, providerAndModel, sentOf, traceOf } from "./trace-data.js";
import { findingsNode, findingsOf, timeBar } from "./trace-findings.js";
import { contextBar } from "./trace-prompt.js";
import { rowsOf } from "./trace-steps.js";
import { originText, outcomeBadge } from "./words.js";

/** How often an open run is looked at, in milliseconds. */
const OPEN_MS = 1500;
/** Marks on the time line. */
const MARKS = 4;

export class Trace {
  /** `ctx` is the page's. `compareWith` is the turn of another run, as `<session>.<turn>`, that this one repeats. */
  constructor(ctx, { turnId, sessionId, compareWith = null }) {
    Object.assign(this, { ctx, turnId, sessionId, compareWith, timer: 0, isOver: false, chosen: null });
    this.node = h("div", { class: "stack trace" }, skeleton(6));
  }

  end() {
    this.isOver = true;
    clearTimeout(this.timer);
  }

  /** Looks again in a while; a look that failed is no reason to stop. */
  lookLater() {
    this.timer = setTimeout(() => this.load().catch((error) => {
      showError(error);
      if (!this.isOver) this.lookLater();
    }), OPEN_MS);
  }

  async load() {
    const { signal, agent } = this.ctx;
    await useStyles(new URL("../../styles/trace.css", import.meta.url));
    const { trace, running } = await traceOf(agent.id, this.turnId, this.sessionId, signal);
    if (this.isOver) return;
    if (running) {
      this.open ??= new OpenRun(this.ctx, this.turnId, this.back());
      await this.open.show(running, await messagesOf(running.session_id, this.turnId, signal));
      if (this.isOver) return;
      if (this.open.node.parentNode !== this.node) fill(this.node, this.open.node);
      this.lookLater();
      return;
    }
    if (!trace) {
      fill(this.node, this.back(), h("h1", { class: "sr" }, `Run of ${agent.name}`), emptyState({ icon: icon("alert", 28), title: "This trace is not kept", text: "The daemon keeps the newest traces of each agent." }));
      return;
    }
    const models = [...new Set(trace.steps.filter(({ kind }) => kind === "model").map(({ name }) => name))];
    const [messages, sent, windows, other] = await Promise.all([messagesOf(trace.session_id, this.turnId, signal), sentOf(agent.id, this.turnId, signal), Promise.all(models.map((name) => windowOf(...providerAndModel(name), { signal }))), this.other()]);
    if (this.isOver) return;
    const known = new Map(models.map((name, at) => [name, windows[at]]));
    const calls = callsOf(trace, messages, sent);
    this.show({ trace, messages, calls, agent, signal, said: messages.find(({ role }) => role === "User") ?? null, windowOf: (name) => known.get(name) ?? calls.find(({ step }) => step.name === name)?.sent?.at(-1)?.context_tokens ?? null }, other);
  }

  /** The run that this one repeats, with its messages. */
  async other() {
    if (!this.compareWith) return null;
    const [session, turn] = this.compareWith.split(".");
    const { agent, signal } = this.ctx;
    const [{ trace }, messages] = await Promise.all([traceOf(agent.id, turn, session, signal), messagesOf(session, turn, signal)]);
    return trace && { trace, messages };
  }

  /** Where the run belongs: its agent, and the list of its runs. */
  back() {
    const { agent } = this.ctx;
    const base = `#/agent/${encodeURIComponent(agent.id)}`;
    return h("nav", { class: "crumbs", "aria-label": "Where this run belongs" }, h("a", { class: "more-link", href: base }, agent.name), h("span", { class: "faint", "aria-hidden": "true" }, "/"), h("a", { class: "more-link", href: `${base}/runs` }, "All runs"));
  }

  show(run, other) {
    const { trace, calls } = run;
    const rows = rowsOf(run);
    const detail = h("section", { class: "card stack trace-detail", "aria-label": "Selected step", "aria-live": "polite" });
    const list = this.waterfall(rows, trace, (at) => choose(at));
    const buttons = [...list.querySelectorAll(".fall-row")];
    const choose = (at) => {
      this.chosen = at;
      buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(index === at)));
      fill(detail, rows[at].detail());
      detail.scrollTop = 0;
    };
    const open = (call) => {
      const at = rows.findIndex((row) => row.call === call);
      choose(at);
      buttons[at].focus({ preventScroll: true });
      detail.scrollIntoView({ block: "nearest" });
    };
    const findings = findingsOf(trace, calls, run.windowOf);
    const time = h("section", { class: "card context-card", "aria-label": "Where the time went" }, h("h2", {}, "Where the time went"), timeBar(trace, calls));
    const found = findings.length > 0 ? h("section", { class: "card stack tight-stack", "aria-label": "Findings" }, h("h2", {}, "What stands out"), findingsNode(findings, open)) : null;
    fill(this.node,
      this.head(run),
      this.outcome(run),
      this.figures(trace, other?.trace),
      other ? this.comparison(run, other) : null,
      // The steps come first; what is said of the whole run stands below them, beside the step that is open.
      h("div", { class: "trace-parts" }, h("div", { class: "stack" }, h("section", { class: "card stack tight-stack", "aria-label": "Time line" }, h("h2", {}, "Steps"), list), found, time, this.context(run)), detail));
    // A run that failed is opened for its failure.
    const failed = trace.status === "failed" ? rows.findLastIndex((row) => row.call?.error) : -1;
    choose(this.chosen ?? Math.max(0, failed));
  }

  head(run) {
    const { trace, said, agent } = run;
    const again = h("button", { type: "button", onclick: () => this.again(said, said.content, trace, again).catch(showError) }, icon("retry", 17), "Run again");
    const edited = () => this.edit(said, trace, again);
    return h("div", { class: "bar-row trace-head" }, this.back(), h("span", { class: "grow" }),
      h("a", { class: "button", href: `#/chat/${encodeURIComponent(agent.id)}/${trace.session_id}` }, icon("chat", 17), "Open in chat"),
      said && can("chat") ? [again, menuButton({ label: "More ways to run", items: () => [
        { label: "Edit the message and run", icon: "edit", run: edited },
        { label: "Change prompt or model", icon: "settings", scope: "write", run: () => this.ctx.go(["agent", agent.id, "settings"]) },
      ] })] : null);
  }

  /** How it ended, from where it came, and what it was told. */
  outcome({ trace, said }) {
    const model = trace.steps.findLast(({ kind }) => kind === "model");
    const mend = trace.code ? mendLink(trace.code, model ? providerAndModel(model.name)[0] : null, trace.error ?? "") : null;
    return h("div", { class: "stack tight-stack" },
      h("h1", { class: "trace-said cut", title: said?.content.slice(0, 500) }, said ? lineOf(said.content) : `Run of ${this.ctx.agent.name}`),
      h("div", { class: "bar-row tight" }, outcomeBadge(trace.status), h("span", { class: "dim" }, "from ", originText(trace.origin), ", ", h("time", { datetime: trace.started_at, title: when(trace.started_at) }, ago(trace.started_at))),
        model ? h("span", { class: "dim" }, "with ", h("b", {}, model.name)) : null,
        trace.parent_turn_id ? h("span", { class: "dim" }, "as part of another run") : null),
      trace.error ? h("div", { class: "notice bad" }, icon("alert"), h("div", { class: "stack tight-stack" }, h("p", { class: "fault-text" }, errorText({ error: trace.error })), mend)) : null);
  }

  waterfall(rows, trace, choose) {
    const marks = Array.from({ length: MARKS + 1 }, (_, at) => h("span", { style: { "--at": `${(at / MARKS) * 100}%` } }, at === 0 ? "0" : duration((trace.duration_ms * at) / MARKS)));
    const list = h("ol", { class: "waterfall", "aria-label": "Steps of the run" }, rows.map((row, at) => h("li", {}, h("button", {
      type: "button", class: `fall-row ${row.style}`, "aria-pressed": "false", style: { "--from": `${row.from}%`, "--part": `${row.part}%` },
      onclick: () => choose(at),
    }, icon(row.icon, 15), h("span", { class: "fall-name two" }, h("span", { class: "cut" }, row.name), row.note ? h("small", { class: "cut" }, row.note) : null), h("span", { class: "fall-bar", "aria-hidden": "true" }, h("i")), h("span", { class: "fall-time num two" }, h("span", {}, row.time), row.cost ? h("small", {}, row.cost) : null)))));
    list.addEventListener("keydown", (event) => {
      const buttons = [...list.querySelectorAll(".fall-row")];
      const to = buttons.indexOf(document.activeElement) + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0);
      if (!["ArrowDown", "ArrowUp"].includes(event.key) || !buttons[to]) return;
      event.preventDefault();
      buttons[to].focus();
      choose(to);
    });
    return h("div", {}, h("div", { class: "fall-axis", "aria-hidden": "true" }, h("div", {}, marks)), list);
  }

  figures(trace, other) {
    const than = (now, before, format) => {
      if (!other) return "";
      const change = now - before;
      return change === 0 ? "same as before" : `${change > 0 ? "+" : "−"}${format(Math.abs(change))} than before`;
    };
    const stat = (name, value, note) => h("div", { class: "stat" }, h("span", {}, name), h("strong", {}, value), h("small", {}, note));
    const tokens = (one) => one.input_tokens + one.output_tokens;
    return h("div", { class: `stat-row ${other ? "" : "stat-line"}` },
      stat("Time", duration(trace.duration_ms), than(trace.duration_ms, other?.duration_ms, duration)),
      stat("Model calls", number(trace.iterations), than(trace.iterations, other?.iterations, number)),
      stat("Tool calls", number(trace.tool_calls), than(trace.tool_calls, other?.tool_calls, number)),
      stat("Tokens", short(tokens(trace)), other ? than(tokens(trace), tokens(other), short) : `${short(trace.input_tokens)} in, ${short(trace.output_tokens)} out`),
      stat("Cost", money(trace.cost_usd), than(trace.cost_usd, other?.cost_usd, money)));
  }

  /** Both answers, side by side. */
  comparison({ messages, trace }, other) {
    const answer = (title, of, list) => h("div", { class: "field" }, h("h3", {}, title), (() => {
      const text = list.filter(({ role, content }) => role === "Assistant" && content).map(({ content }) => content).join("\n\n");
      return text ? h("div", { class: "md compared" }, render(text)) : h("p", { class: "dim" }, of.error || "No response.");
    })());
    return h("section", { class: "card stack", "aria-label": "Comparison" }, h("h2", {}, "Answers compared"),
      h("div", { class: "compare-parts" }, answer("Before", other.trace, other.messages), answer("This run", trace, messages)));
  }

  /** How full the context was at the largest model call, and with what. */
  context(run) {
    const models = run.calls.filter(({ step }) => step.kind === "model" && step.input_tokens);
    const largest = models.reduce((most, call) => (call.step.input_tokens >= (most?.step.input_tokens ?? 0) ? call : most), null);
    if (!largest) return null;
    const { name, input_tokens: used } = largest.step;
    const window = run.windowOf(name);
    const part = window ? Math.min(1, used / window) : 0;
    const text = window ? `${number(used)} of ${number(window)} tokens billed (${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %)` : `${number(used)} tokens billed; the context window of ${name} is not known`;
    const sent = largest.sent.at(-1);
    return h("section", { class: "card context-card", "aria-label": "Context window" },
      h("div", { class: "bar-row tight" }, h("h2", { class: "grow" }, "Context window"), h("span", { class: "dim" }, text)),
      sent ? [contextBar(sent, window), h("p", { class: "hint" }, "The parts are estimates; the provider counts tokens its own way.")]
        : window ? h("div", { class: `meter ${part > 0.9 ? "bad" : part > 0.7 ? "warn" : ""}`, role: "meter", "aria-label": `Context window: ${text}`, "aria-valuenow": Math.round(part * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { style: { "--part": `${Math.max(0.5, part * 100).toFixed(1)}%` } })) : null);
  }

  /** Asks for another wording, and runs that. */
  async edit(said, trace, button) {
    const text = h("textarea", { rows: "6" });
    text.value = said.content;
    const message = field("Message", text, { hint: "It is sent to a new session, and the answers stand side by side." });
    let wanted = null;
    await ask({ title: "Edit the message and run", action: "Run", body: [message], fields: { message }, submit: () => { wanted = text.value.trim(); } });
    if (wanted) await this.again(said, wanted, trace, button);
  }

  /** Sends the message to a new session, and opens the trace of that run beside this one. */
  async again(said, text, trace, button) {
    const { api, agent, signal } = this.ctx;
    button.disabled = true;
    try {
      const { session_id: session } = await api.call("POST", `/api/agents/${agent.id}/sessions`, {});
      fill(button, h("span", { class: "spinner" }), "Running…");
      const attachments = (said.images ?? []).map(({ file_id }) => ({ file_id }));
      await stream(`/api/agents/${agent.id}/message/stream`, { message: text, session_id: session, attachments: attachments.length > 0 ? attachments : undefined }, () => {}, { signal });
      const { traces } = await get(withQuery(`/api/agents/${agent.id}/traces`, { session_id: session, limit: 1 }), { signal });
      if (traces.length > 0) this.ctx.go(["agent", agent.id, "runs", traces[0].turn_id], { session, with: `${trace.session_id}.${trace.turn_id}` });
    } finally {
      button.disabled = false;
      fill(button, icon("retry", 17), "Run again");
    }
  }
}
