// The trace of one run: its model and tool calls on a time line, what each got and gave, how full the context was, and the run again.

import { get, stream, withQuery } from "../../lib/api.js";
import { codeBlock } from "../../lib/code.js";
import { showError } from "../../lib/dialogs.js";
import { emptyState, fill, h, skeleton } from "../../lib/dom.js";
import { ago, duration, money, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { render } from "../../lib/markdown.js";
import { can } from "../../lib/me.js";
import { windowOf } from "../chat/context.js";
import { OpenRun } from "./open-run.js";
import { originText, outcomeBadge } from "./words.js";

/** Pages of traces and of messages that are read to find the run. */
const PAGES_MAX = 40;
const TRACES = 200;
const MESSAGES = 200;
/** How often an open run is looked at, in milliseconds. */
const OPEN_MS = 1500;
/** Milliseconds of waiting that get a line of their own. */
const WAIT_MS = 50;

/** Finds the trace of a turn; null where it is not kept, or has not ended. */
async function traceOf(agentId, turnId, sessionId, signal) {
  let cursor = null;
  for (let n = 0; n < PAGES_MAX; n += 1) {
    const found = await get(withQuery(`/api/agents/${encodeURIComponent(agentId)}/traces`, { session_id: sessionId, limit: TRACES, cursor }), { signal });
    const trace = found.traces.find((one) => one.turn_id === turnId);
    if (trace) return { trace, running: null };
    const running = found.running?.find((one) => one.turn_id === turnId);
    if (running) return { trace: null, running };
    cursor = found.next_cursor;
    if (cursor === null || cursor === undefined) break;
  }
  return { trace: null, running: null };
}

/** The messages of a turn, oldest first; none where its session is gone. */
async function messagesOf(sessionId, turnId, signal) {
  let cursor = null;
  try {
    for (let n = 0; n < PAGES_MAX; n += 1) {
      const page = await get(withQuery(`/api/sessions/${encodeURIComponent(sessionId)}/messages`, { limit: MESSAGES, cursor }), { signal });
      const found = page.messages.filter((message) => message.turn_id === turnId);
      if (found.length > 0) return found;
      cursor = page.next_cursor;
      if (cursor === null) break;
    }
  } catch (error) {
    if (error.status !== 404 && error.status !== 403) throw error;
  }
  return [];
}

/** "openai/gpt/4" as ["openai", "gpt/4"]. */
function providerAndModel(name) {
  const at = name.indexOf("/");
  return [name.slice(0, at), name.slice(at + 1)];
}

/** The calls of a run with what is stored of them: `{ step, call, result, message }`, in the order in which they began. */
function callsOf(trace, messages) {
  const answers = messages.filter(({ role }) => role === "Assistant");
  const asked = new Map(answers.flatMap((message) => message.tool_calls ?? []).map((call) => [call.id, call]));
  const results = messages.flatMap((message) => message.tool_results ?? []);
  // Steps are told in the order in which they ended; retries of a model call have no message of their own.
  const models = trace.steps.filter(({ kind, status }) => kind === "model" && status === "ok");
  return [...trace.steps].sort((a, b) => a.started_at.localeCompare(b.started_at)).map((step) => {
    if (step.kind === "model") return { step, message: answers[models.indexOf(step)] ?? null };
    const at = results.findIndex((result) => result.name === step.name);
    const [result] = at >= 0 ? results.splice(at, 1) : [];
    return { step, result: result ?? null, call: result ? asked.get(result.call_id) ?? null : null };
  });
}

export class Trace {
  /** `ctx` is the page's. `compareWith` is the turn of another run, as `<session>.<turn>`, that this one repeats. */
  constructor(ctx, { turnId, sessionId, compareWith = null }) {
    Object.assign(this, { ctx, turnId, sessionId, compareWith, timer: 0, isOver: false, chosen: 0 });
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
      fill(this.node, this.back(), emptyState({ icon: icon("alert", 28), title: "This trace is not kept", text: "The daemon keeps the newest traces of each agent." }));
      return;
    }
    const models = [...new Set(trace.steps.filter(({ kind }) => kind === "model").map(({ name }) => name))];
    const [messages, windows, other] = await Promise.all([messagesOf(trace.session_id, this.turnId, signal), Promise.all(models.map((name) => windowOf(...providerAndModel(name), { signal }))), this.other()]);
    if (this.isOver) return;
    this.show(trace, messages, new Map(models.map((name, at) => [name, windows[at]])), other);
  }

  /** The run that this one repeats. */
  async other() {
    if (!this.compareWith) return null;
    const [session, turn] = this.compareWith.split(".");
    return (await traceOf(this.ctx.agent.id, turn, session, this.ctx.signal)).trace;
  }

  back() {
    return h("a", { class: "more-link back-link", href: `#/agent/${encodeURIComponent(this.ctx.agent.id)}/runs` }, icon("chevron", 14), "All runs");
  }

  show(trace, messages, windows, other) {
    const { agent } = this.ctx;
    const calls = callsOf(trace, messages);
    const said = messages.find(({ role }) => role === "User") ?? null;
    const again = h("button", { type: "button", onclick: () => this.again(said, trace, again).catch(showError) }, icon("retry", 17), "Run again");
    const detail = h("section", { class: "card stack trace-detail", "aria-label": "Selected step", "aria-live": "polite" });
    const rows = this.rows(trace, calls);
    const list = h("ol", { class: "waterfall", "aria-label": "Steps of the run" }, rows.map((row, at) => h("li", {}, h("button", {
      type: "button", class: `fall-row ${row.style}`, "aria-pressed": "false", style: { "--from": `${row.from}%`, "--part": `${row.part}%` },
      onclick: () => choose(at),
    }, h("span", { class: "fall-name cut" }, icon(row.icon, 15), row.name), h("span", { class: "fall-bar", "aria-hidden": "true" }, h("i")), h("span", { class: "fall-time num" }, row.time)))));
    const choose = (at) => {
      this.chosen = at;
      [...list.querySelectorAll(".fall-row")].forEach((button, index) => button.setAttribute("aria-pressed", String(index === at)));
      fill(detail, rows[at].detail());
    };
    fill(this.node,
      h("div", { class: "bar-row trace-head" }, this.back(), h("span", { class: "grow" }), h("a", { class: "button", href: `#/chat/${encodeURIComponent(agent.id)}/${trace.session_id}` }, icon("chat", 17), "Open in chat"), said && can("chat") ? again : null),
      h("div", { class: "bar-row tight" }, outcomeBadge(trace.status), h("span", { class: "dim" }, "from ", originText(trace.origin), ", ", h("time", { datetime: trace.started_at, title: when(trace.started_at) }, ago(trace.started_at))),
        trace.parent_turn_id ? h("span", { class: "dim" }, "as part of another run") : null),
      trace.error ? h("p", { class: "notice bad" }, icon("alert"), h("span", {}, trace.error)) : null,
      this.figures(trace, other),
      this.context(calls, windows),
      h("div", { class: "trace-parts" }, h("section", { class: "card stack", "aria-label": "Time line" }, h("h2", {}, "Steps"), list), detail));
    choose(Math.min(this.chosen, rows.length - 1));
    this.rowsShown = rows;
  }

  figures(trace, other) {
    const than = (now, before, format) => {
      if (!other) return "";
      const change = now - before;
      return change === 0 ? "same as before" : `${change > 0 ? "+" : "−"}${format(Math.abs(change))} than before`;
    };
    const stat = (name, value, note) => h("div", { class: "stat" }, h("span", {}, name), h("strong", {}, value), h("small", {}, note));
    const tokens = (one) => one.input_tokens + one.output_tokens;
    return h("div", { class: "stat-row" },
      stat("Time", duration(trace.duration_ms), than(trace.duration_ms, other?.duration_ms, duration)),
      stat("Model calls", number(trace.iterations), than(trace.iterations, other?.iterations, number)),
      stat("Tool calls", number(trace.tool_calls), than(trace.tool_calls, other?.tool_calls, number)),
      stat("Tokens", short(tokens(trace)), other ? than(tokens(trace), tokens(other), short) : `${short(trace.input_tokens)} in, ${short(trace.output_tokens)} out`),
      stat("Cost", money(trace.cost_usd), than(trace.cost_usd, other?.cost_usd, money)));
  }

  /** How full the context was at each model call. */
  context(calls, windows) {
    const models = calls.filter(({ step }) => step.kind === "model" && step.input_tokens);
    const largest = models.reduce((most, call) => (call.step.input_tokens > (most?.step.input_tokens ?? 0) ? call : most), null);
    if (!largest) return null;
    const { name, input_tokens: used } = largest.step;
    const window = windows.get(name);
    const part = window ? Math.min(1, used / window) : 0;
    const text = window ? `${number(used)} of ${number(window)} tokens (${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %)` : `${number(used)} tokens; the context window of ${name} is not known`;
    return h("section", { class: "card context-card", "aria-label": "Context window" },
      h("div", { class: "bar-row tight" }, h("h2", { class: "grow" }, "Context window"), h("span", { class: "dim" }, text)),
      window ? h("div", { class: `meter ${part > 0.9 ? "bad" : part > 0.7 ? "warn" : ""}`, role: "meter", "aria-label": `Context window: ${text}`, "aria-valuenow": Math.round(part * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { style: { "--part": `${Math.max(0.5, part * 100).toFixed(1)}%` } })) : null);
  }

  /** The lines of the waterfall: the prompt, the search of memory, and each call. */
  rows(trace, calls) {
    const began = new Date(trace.started_at).getTime();
    const whole = Math.max(1, trace.duration_ms);
    const place = (at, ms) => {
      const from = Math.min(99, Math.max(0, ((at - began) / whole) * 100));
      return { from: from.toFixed(2), part: Math.min(100 - from, Math.max(0.6, (ms / whole) * 100)).toFixed(2) };
    };
    const prompt = { name: "Prompt", icon: "user", style: "prompt", time: "", from: 0, part: 0, detail: () => this.promptDetail(trace) };
    // The search is a part of the first model call.
    const first = calls.find(({ step }) => step.kind === "model");
    const memory = trace.memory_search_ms === null || trace.memory_search_ms === undefined ? [] : [{
      name: "Memory search", icon: "database", style: "memory", time: duration(trace.memory_search_ms), ...place(first ? new Date(first.step.started_at).getTime() : began, trace.memory_search_ms), detail: () => memoryDetail(trace),
    }];
    let before = { end: began, step: null };
    const made = calls.flatMap((call) => {
      const { step } = call;
      const isModel = step.kind === "model";
      const start = new Date(step.started_at).getTime();
      const wait = isModel ? start - before.end : 0;
      const after = before.step;
      before = { end: Math.max(before.end, start + step.duration_ms), step };
      const own = {
        name: step.name, icon: isModel ? "world" : "tool", style: `${step.kind} ${step.status === "ok" ? "" : "failed"}`, time: duration(step.duration_ms),
        ...place(start, step.duration_ms), detail: () => (isModel ? modelDetail(call) : toolDetail(call)),
      };
      const rows = call === first ? [...memory, own] : [own];
      return wait < WAIT_MS ? rows : [{ name: "Waiting", icon: "pause", style: "wait", time: duration(wait), ...place(start - wait, wait), detail: () => waitDetail(wait, after) }, ...rows];
    });
    this.messages = calls;
    return [prompt, ...(first ? [] : memory), ...made];
  }

  /** What the model was asked: the instructions, as they are now, and the message. */
  promptDetail(trace) {
    const holder = h("div", { class: "stack" }, skeleton(3));
    messagesOf(trace.session_id, this.turnId, this.ctx.signal).then((messages) => {
      const said = messages.find(({ role }) => role === "User");
      const system = this.ctx.agent.system_prompt;
      fill(holder,
        h("div", { class: "field" }, h("h3", {}, "Message"), said ? h("div", { class: "plain prompt-said" }, said.content) : h("p", { class: "dim" }, "The message is no longer stored.")),
        h("div", { class: "field" }, h("h3", {}, "System prompt"), system ? h("div", { class: "plain prompt-said" }, system) : h("p", { class: "dim" }, "None."), h("p", { class: "hint" }, "As the agent has it now. Skills, goals and memories are added to it.")));
    }).catch(showError);
    return [h("h2", {}, "Prompt"), holder];
  }

  /** Sends the message again, to a new session, and opens the trace of that run beside the figures of this one. */
  async again(said, trace, button) {
    const { api, agent, signal } = this.ctx;
    button.disabled = true;
    try {
      const { session_id: session } = await api.call("POST", `/api/agents/${agent.id}/sessions`, {});
      fill(button, h("span", { class: "spinner" }), "Running…");
      const attachments = (said.images ?? []).map(({ file_id }) => ({ file_id }));
      await stream(`/api/agents/${agent.id}/message/stream`, { message: said.content, session_id: session, attachments: attachments.length > 0 ? attachments : undefined }, () => {}, { signal });
      const { traces } = await get(withQuery(`/api/agents/${agent.id}/traces`, { session_id: session, limit: 1 }), { signal });
      if (traces.length > 0) this.ctx.go(["agent", agent.id, "runs", traces[0].turn_id], { session, with: `${trace.session_id}.${trace.turn_id}` });
    } finally {
      button.disabled = false;
      fill(button, icon("retry", 17), "Run again");
    }
  }
}

const facts = (rows) => h("dl", { class: "pairs" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** Why a model call did not go out at once; `after` is the step before it, or null. */
function waitDetail(ms, after) {
  const why = after === null ? "Before its first model call, a turn waits for earlier messages of the session, for a free slot of the provider, and for its budget."
    : after.kind === "model" && after.status !== "ok" ? "The model call before failed. The daemon paused, then called again."
      : "Before a further model call, a turn waits for a free slot of the provider, and for its budget.";
  return [h("h2", {}, "Waiting"), facts([["Time", duration(ms)]]), h("p", {}, why), h("p", { class: "hint" }, "queue.concurrency.provider_calls sets how many calls a provider gets at once.")];
}

function modelDetail({ step, message }) {
  return [
    h("div", { class: "bar-row tight" }, h("h2", { class: "grow cut" }, step.name), outcomeBadge(step.status)),
    facts([["Time", duration(step.duration_ms)], ["Tokens", step.input_tokens === null ? null : `${number(step.input_tokens)} in, ${number(step.output_tokens)} out`], ["Cost", step.cost_usd === null ? null : money(step.cost_usd)], ["Began", when(step.started_at)]]),
    message?.thinking ? h("details", { class: "thinking" }, h("summary", {}, icon("chevron", 15), "Thinking"), h("div", { class: "plain" }, message.thinking)) : null,
    message?.content ? h("div", { class: "field" }, h("h3", {}, "Response"), h("div", { class: "md" }, render(message.content))) : null,
    (message?.tool_calls ?? []).length > 0 ? h("p", { class: "dim" }, `Called ${message.tool_calls.map(({ name }) => name).join(", ")}.`) : null,
    message ? null : h("p", { class: "dim" }, "What it said is not stored."),
  ];
}

function toolDetail({ step, call, result }) {
  return [
    h("div", { class: "bar-row tight" }, h("h2", { class: "grow cut" }, step.name), outcomeBadge(result?.is_error ? "error" : step.status)),
    facts([["Time", duration(step.duration_ms)], ["Began", when(step.started_at)]]),
    call ? h("div", { class: "field" }, h("h3", {}, "Input"), codeBlock(typeof call.input === "string" ? call.input : JSON.stringify(call.input, null, 2), "json")) : null,
    result ? h("div", { class: "field" }, h("h3", {}, "Result"), codeBlock(result.content, ""), result.cut_bytes > 0 ? h("p", { class: "hint" }, `${number(result.cut_bytes)} bytes were cut.`) : null) : h("p", { class: "dim" }, "Its result is not stored."),
  ];
}

function memoryDetail(trace) {
  const found = trace.memories ?? [];
  return [
    h("h2", {}, "Memory search"), facts([["Time", duration(trace.memory_search_ms)], ["Outcome", trace.memory_search]]),
    found.length > 0 ? h("ul", { class: "lines" }, found.map((one) => h("li", { class: "run-line" }, h("span", { class: "grow" }, one.content), h("span", { class: "faint num" }, one.score.toFixed(3))))) : h("p", { class: "dim" }, "Nothing was found."),
  ];
}
