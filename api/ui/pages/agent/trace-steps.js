// The steps of a run as lines of a waterfall, and what each shows when it is selected.

import { codeBlock } from "../../lib/code.js";
import { h } from "../../lib/dom.js";
import { count, duration, money, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { render } from "../../lib/markdown.js";
import { lineOf } from "../../lib/titles.js";
import { errorText, mendLink } from "../../lib/trouble.js";
import { stepName } from "./trace-findings.js";
import { contextBar, goneNote, promptView, triesNode } from "./trace-prompt.js";
import { providerAndModel, waitsOf } from "./trace-data.js";
import { outcomeBadge } from "./words.js";

/** The least part of the line that a bar takes, in percent. */
const PART_MIN = 0.6;

/**
 * The lines of the waterfall: `{ name, note, icon, style, time, cost, from, part, call, detail() }`. `run` has the `trace`, its `calls`, the message
 * that was `said`, the `agent`, `windowOf(name)` and the `signal` of the page.
 */
export function rowsOf(run) {
  const { trace, calls } = run;
  const began = new Date(trace.started_at).getTime();
  const whole = Math.max(1, trace.duration_ms);
  const place = (at, ms) => {
    const from = Math.min(99, Math.max(0, ((at - began) / whole) * 100));
    return { from: from.toFixed(2), part: Math.min(100 - from, Math.max(PART_MIN, (ms / whole) * 100)).toFixed(2) };
  };
  const waits = new Map(waitsOf(trace, calls).map((wait) => [wait.before, wait]));
  // The search is a part of the first model call.
  const first = calls.find(({ step }) => step.kind === "model");
  const memory = typeof trace.memory_search_ms === "number" ? [{
    name: "Memory search", note: count((trace.memories ?? []).length, "memory", "memories"), icon: "database", style: "memory", time: duration(trace.memory_search_ms), cost: "",
    ...place(first ? new Date(first.step.started_at).getTime() : began, trace.memory_search_ms), detail: () => memoryDetail(trace),
  }] : [];
  const made = calls.flatMap((call) => {
    const wait = waits.get(call);
    const held = wait ? [{ name: "Waiting", note: wait.before.step.kind === "tool" ? "for approval or a free place" : "", icon: "pause", style: "wait", time: duration(wait.ms), cost: "", ...place(wait.from, wait.ms), detail: () => waitDetail(wait) }] : [];
    return [...held, ...(call === first ? memory : []), callRow(run, call, place)];
  });
  const prompt = { name: "Prompt", note: run.said ? lineOf(run.said.content) : "", icon: "user", style: "prompt", time: "", cost: "", from: 0, part: 0, detail: () => promptDetail(run, first) };
  return [prompt, ...(first ? [] : memory), ...made];
}

function callRow(run, call, place) {
  const { step, message, error } = call;
  const isModel = step.kind === "model";
  const did = isModel ? [step.name, (message?.tool_calls ?? []).length > 0 ? `called ${message.tool_calls.map(({ name }) => name).join(", ")}` : ""].filter(Boolean).join(" · ") : inputLine(call.call?.input);
  return {
    name: stepName(call), note: error ? `${step.name === stepName(call) ? "" : `${step.name} · `}${step.status === "refused" ? "refused" : step.status === "unknown" ? "interrupted" : "failed"}: ${lineOf(error)}` : did,
    icon: error ? "alert" : isModel ? "world" : "tool", style: `${step.kind} ${error ? "failed" : ""}`, time: duration(step.duration_ms), cost: step.cost_usd ? money(step.cost_usd) : "",
    ...place(new Date(step.started_at).getTime(), step.duration_ms), call, detail: () => (isModel ? modelDetail(run, call) : toolDetail(call)),
  };
}

/** The input of a call in one line. */
function inputLine(input) {
  const value = typeof input === "string" ? parsed(input) : input;
  if (value === null || typeof value !== "object") return String(value ?? "");
  return Object.values(value).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ").slice(0, 120);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const facts = (rows) => h("dl", { class: "pairs" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

const heading = (text, status) => h("div", { class: "bar-row tight" }, h("h2", { class: "grow cut" }, text), status ? outcomeBadge(status) : null);

/** Why a step failed, with the way to mend it. */
const faultNode = (error, code = null, provider = null) => h("div", { class: "notice bad" }, icon("alert"), h("div", { class: "stack tight-stack" }, h("p", { class: "fault-text" }, errorText({ error, provider })), code ? mendLink(code, provider, error) : null));

/** Why a call did not go out at once. */
function waitDetail({ ms, after, before }) {
  const why = before.step.kind === "tool" ? "Before a tool call runs, it waits for an approval where one is required, and for a free place."
    : after === null ? "Before its first model call, a turn waits for earlier messages of the session, for a free slot of the provider, and for its budget."
      : after.step.kind === "model" && after.step.status !== "ok" ? "The model call before failed. The daemon paused, then called again."
        : "Before a further model call, a turn waits for a free slot of the provider, and for its budget.";
  const key = before.step.kind === "tool" ? null : h("p", { class: "hint" }, h("code", {}, "queue.concurrency.provider_calls"), " sets how many calls a provider gets at once.");
  return [heading("Waiting"), facts([["Time", duration(ms)]]), h("p", {}, why), key];
}

/** The parts of a step behind buttons: `[{ label, make }]`; the first is shown. */
function sections(parts) {
  const shown = parts.filter(Boolean);
  const place = h("div", { class: "stack" });
  const buttons = shown.map(({ label, make }, at) => h("button", { type: "button", class: "small", "aria-pressed": String(at === 0), onclick: () => choose(at, make) }, label));
  const choose = (at, make) => {
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(index === at)));
    place.replaceChildren(...[make()].flat().filter(Boolean));
  };
  if (shown.length > 0) choose(0, shown[0].make);
  return [shown.length > 1 ? h("div", { class: "segments", role: "group", "aria-label": "Parts of the step" }, buttons) : null, place];
}

function modelDetail(run, call) {
  const { step, message, sent, error } = call;
  const last = sent.at(-1) ?? null;
  const window = run.windowOf(step.name) ?? last?.context_tokens ?? null;
  const speed = step.output_tokens && step.duration_ms > 0 ? `${short((step.output_tokens / step.duration_ms) * 1000)} tokens a second` : null;
  const before = run.calls.filter((one) => one.step.kind === "model" && one.number < call.number).at(-1)?.sent.at(-1) ?? null;
  const calls = message?.tool_calls ?? [];
  const response = { label: "Response", make: () => [
    message?.thinking ? h("details", { class: "thinking" }, h("summary", {}, icon("chevron", 15), "Thinking"), h("div", { class: "plain" }, message.thinking)) : null,
    message?.content ? h("div", { class: "md" }, render(message.content)) : null,
    calls.map(({ name, input }) => h("div", { class: "field" }, h("h3", {}, `Calls ${name}`), codeBlock(typeof input === "string" ? input : JSON.stringify(input, null, 2), "json"))),
    message || error ? null : h("p", { class: "dim" }, "What it said is not stored."),
  ].flat() };
  const prompt = { label: "Prompt as sent", make: () => (last ? [contextBar(last, window), promptView({ agentId: run.agent.id, turnId: run.trace.turn_id, sent: last, before, signal: run.signal })] : [goneNote()]) };
  return [
    heading(stepName(call), step.status),
    facts([["Model", step.name], ["Time", [duration(step.duration_ms), speed].filter(Boolean).join(", ")], ["Tokens", typeof step.input_tokens === "number" ? `${number(step.input_tokens)} in, ${number(step.output_tokens)} out` : null], ["Cost", typeof step.cost_usd === "number" ? money(step.cost_usd) : null], ["Began", when(step.started_at)]]),
    error ? faultNode(error, run.trace.code, providerAndModel(step.name)[0]) : null,
    triesNode(sent),
    ...sections(error ? [prompt] : [response, prompt]),
  ];
}

function toolDetail({ step, call, result, error }) {
  return [
    heading(step.name, result?.is_error ? "error" : step.status),
    facts([["Time", duration(step.duration_ms)], ["Began", when(step.started_at)]]),
    error && result?.content !== error ? faultNode(error) : null,
    call ? h("div", { class: "field" }, h("h3", {}, "Input"), codeBlock(typeof call.input === "string" ? call.input : JSON.stringify(call.input, null, 2), "json")) : null,
    result ? h("div", { class: "field" }, h("h3", { class: result.is_error ? "danger-text" : null }, result.is_error ? "Error" : "Result"), codeBlock(result.content, ""), result.cut_bytes > 0 ? h("p", { class: "hint" }, `${number(result.cut_bytes)} bytes were cut.`) : null) : h("p", { class: "dim" }, "Its result is not stored."),
  ];
}

function memoryDetail(trace) {
  const found = trace.memories ?? [];
  return [
    heading("Memory search"), facts([["Time", duration(trace.memory_search_ms)], ["Outcome", trace.memory_search]]),
    found.length > 0 ? h("ul", { class: "lines" }, found.map((one) => h("li", { class: "run-line" }, h("span", { class: "grow" }, one.content), h("span", { class: "faint num" }, one.score.toFixed(3))))) : h("p", { class: "dim" }, "Nothing was found."),
  ];
}

/** What the first model call was sent; where that is no longer kept, the message, and the instructions as they are now. */
function promptDetail(run, first) {
  const sent = first?.sent?.[0] ?? null;
  const said = h("div", { class: "field" }, h("h3", {}, "Message"), run.said ? h("div", { class: "plain prompt-said" }, run.said.content) : h("p", { class: "dim" }, "The message is no longer stored."));
  if (sent) {
    return [heading("Prompt"), h("p", { class: "hint" }, "What the first model call was sent. Each model call shows its own."), contextBar(sent, run.windowOf(first.step.name) ?? sent.context_tokens),
      promptView({ agentId: run.agent.id, turnId: run.trace.turn_id, sent, before: null, signal: run.signal })];
  }
  const system = run.agent.system_prompt;
  return [heading("Prompt"), said,
    h("div", { class: "field" }, h("h3", {}, "System prompt"), system ? h("div", { class: "plain prompt-said" }, system) : h("p", { class: "dim" }, "None."), h("p", { class: "hint" }, "As the agent has it now. Skills, goals and memories are added to it.")), goneNote()];
}
