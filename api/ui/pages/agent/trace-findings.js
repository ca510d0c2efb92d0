// What stands out in a run: where its time and its money went, and what made it slow, wrong or dear.

import { h } from "../../lib/dom.js";
import { count, duration, money, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { timesOf } from "./trace-data.js";

const KINDS = [["model", "Model", 0], ["tools", "Tools", 1], ["waiting", "Waiting", 2], ["memory", "Memory search", 4], ["other", "Other", 5]];
/** From this share on a step is what a run spent its time or money on. */
const MOST = 0.5;
/** A context that is so full is about to be too small. */
const FULL = 0.8;
/** Runs that took no longer, and calls that cost no more, need no explanation. */
const SLOW_MS = 2000;
const DEAR_USD = 0.05;
/** Descriptions of tools that take fewer tokens cost little. */
const TOOLS_TOKENS = 8000;

const percent = (part, whole) => `${Math.round((part / whole) * 100)} %`;

/** A bar of the time of a run, with its parts named. */
export function timeBar(trace, calls) {
  const times = timesOf(trace, calls);
  const whole = Math.max(1, KINDS.reduce((sum, [key]) => sum + times[key], 0));
  const shown = KINDS.filter(([key]) => times[key] / whole >= 0.005);
  return h("div", { class: "stack tight-stack" },
    h("div", { class: "parts-bar", role: "img", "aria-label": shown.map(([key, name]) => `${name}: ${duration(times[key])}`).join(", ") },
      shown.map(([key, name, series]) => h("i", { class: `part-${series}`, title: `${name}: ${duration(times[key])}`, style: { "--part": `${((times[key] / whole) * 100).toFixed(2)}%` } }))),
    h("div", { class: "parts-legend" }, shown.map(([key, name, series]) => h("span", { class: `part-key part-${series}` }, name, " ", h("b", {}, duration(times[key])), ` (${percent(times[key], whole)})`))));
}

/** The name of a step where several are told apart. */
export const stepName = ({ step, number: nth }) => (step.kind === "model" ? `Model call ${nth}` : step.name);

/**
 * What stands out, the worst first: `{ kind, text, call }`, where `kind` is bad, warn or note and `call` the step that it is about, or null.
 * `windowOf(name)` gives the context window of a model, or null.
 */
export function findingsOf(trace, calls, windowOf) {
  return [...failures(calls), ...retries(calls), ...context(calls, windowOf), ...slow(trace, calls), ...dear(trace, calls), ...memory(trace)];
}

function failures(calls) {
  return calls.filter(({ error }) => error).map((call) => ({ kind: call.step.status === "unknown" ? "warn" : "bad", call, text: `${stepName(call)} ${call.step.status === "refused" ? "was refused" : call.step.status === "unknown" ? "was interrupted" : "failed"}: ${firstLine(call.error)}` }));
}

function retries(calls) {
  return calls.filter(({ sent = [], error }) => !error && sent.flatMap(({ tries }) => tries).some(({ code }) => code)).map((call) => {
    const failed = call.sent.flatMap(({ tries }) => tries).filter(({ code }) => code);
    const models = new Set(call.sent.map(({ provider, model }) => `${provider}/${model}`));
    return { kind: "warn", call, text: `${stepName(call)} needed ${count(failed.length + 1, "try", "tries")}${models.size > 1 ? ` and a fallback model, ${call.step.name}` : ""}: ${firstLine(failed.at(-1).error)}` };
  });
}

function context(calls, windowOf) {
  const found = [];
  const cut = calls.find(({ sent = [] }) => sent.some((one) => one.cut));
  if (cut) found.push({ kind: "warn", call: cut, text: "Earlier messages were left out of the prompt: the conversation no longer fits the context window." });
  const full = calls.filter(({ step }) => step.input_tokens && windowOf(step.name)).map((call) => ({ call, part: call.step.input_tokens / windowOf(call.step.name) })).toSorted((a, b) => b.part - a.part)[0];
  if (full && full.part >= FULL && !cut) found.push({ kind: "warn", call: full.call, text: `${stepName(full.call)} used ${percent(full.part, 1)} of the context window.` });
  const tools = calls.flatMap((call) => (call.sent ?? []).map((one) => ({ call, one }))).find(({ one }) => one.tokens.tools >= TOOLS_TOKENS && one.tokens.tools / sumOf(one.tokens) >= MOST);
  if (tools) found.push({ kind: "note", call: tools.call, text: `Descriptions of ${count(tools.one.tools, "tool")} take ${percent(tools.one.tokens.tools, sumOf(tools.one.tokens))} of the prompt. Grant fewer tools to pay less for each call.` });
  return found;
}

const sumOf = (tokens) => Object.values(tokens).reduce((sum, one) => sum + one, 0);

function slow(trace, calls) {
  if (trace.duration_ms < SLOW_MS || calls.length === 0) return [];
  const times = timesOf(trace, calls);
  if (times.waiting / trace.duration_ms >= MOST) return [{ kind: "warn", call: null, text: `It waited ${duration(times.waiting)}, ${percent(times.waiting, trace.duration_ms)} of its time. The steps marked as waiting say for what.` }];
  const longest = calls.toSorted((a, b) => b.step.duration_ms - a.step.duration_ms)[0];
  if (calls.length < 2 || longest.step.duration_ms / trace.duration_ms < MOST) return [];
  return [{ kind: "note", call: longest, text: `${stepName(longest)} took ${duration(longest.step.duration_ms)}, ${percent(longest.step.duration_ms, trace.duration_ms)} of the time.` }];
}

function dear(trace, calls) {
  const models = calls.filter(({ step }) => step.cost_usd);
  const dearest = models.toSorted((a, b) => b.step.cost_usd - a.step.cost_usd)[0];
  if (models.length < 2 || dearest.step.cost_usd < DEAR_USD || dearest.step.cost_usd / trace.cost_usd < MOST) return [];
  return [{ kind: "note", call: dearest, text: `${stepName(dearest)} cost ${money(dearest.step.cost_usd)}, ${percent(dearest.step.cost_usd, trace.cost_usd)} of the run, for ${number(dearest.step.input_tokens)} tokens in and ${number(dearest.step.output_tokens)} out.` }];
}

function memory(trace) {
  if (trace.memory_search === "late") return [{ kind: "warn", call: null, text: "It was answered without memory: the search took too long." }];
  if (trace.memory_search === "failed") return [{ kind: "warn", call: null, text: "It was answered without memory: the search failed." }];
  return [];
}

const firstLine = (text) => {
  const [line] = String(text).trim().split("\n");
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
};

/** The findings as a list; `open(call)` shows a step. */
export function findingsNode(findings, open) {
  if (findings.length === 0) return null;
  return h("ul", { class: "findings", "aria-label": "What stands out" }, findings.map(({ kind, text, call }) => h("li", { class: kind },
    icon(kind === "note" ? "flag" : "alert", 16), h("span", { class: "grow" }, text),
    call ? h("button", { type: "button", class: "quiet small", "aria-label": `Show ${stepName(call)}`, onclick: () => open(call) }, "Show") : null)));
}
