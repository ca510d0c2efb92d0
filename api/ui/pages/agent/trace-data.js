// What is known of a run: its trace, its messages, and what it sent to models, put together step by step.

import { get, withQuery } from "../../lib/api.js";

/** Pages of traces and of messages that are read to find the run. */
const PAGES_MAX = 40;
const TRACES = 200;
const MESSAGES = 200;
/** Milliseconds of waiting that get a line of their own. */
const WAIT_MS = 50;

const at = (text) => new Date(text).getTime();

/** Finds the trace of a turn: `{ trace, running }`, of which one or both are null. */
export async function traceOf(agentId, turnId, sessionId, signal) {
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
export async function messagesOf(sessionId, turnId, signal) {
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

const callsPath = (agentId, turnId) => `/api/agents/${encodeURIComponent(agentId)}/traces/${encodeURIComponent(turnId)}/calls`;

/** What a turn sent to models, oldest first; none where that is no longer kept. */
export async function sentOf(agentId, turnId, signal) {
  try {
    return (await get(callsPath(agentId, turnId), { signal })).calls;
  } catch (error) {
    if (error.status !== 404) throw error;
    return [];
  }
}

/** One of them with its system text, messages and tools; null where it is no longer kept. */
export async function promptOf(agentId, turnId, callId, signal) {
  try {
    return await get(`${callsPath(agentId, turnId)}/${callId}`, { signal });
  } catch (error) {
    if (error.status !== 404) throw error;
    return null;
  }
}

/** The calls of a run with what is stored of them: `{ step, call, result, message, sent }`, in the order in which they began. */
export function callsOf(trace, messages, sent) {
  const answers = messages.filter(({ role }) => role === "Assistant");
  const asked = new Map(answers.flatMap((message) => message.tool_calls ?? []).map((call) => [call.id, call]));
  const results = messages.flatMap((message) => message.tool_results ?? []);
  // Steps are told in the order in which they ended; retries of a model call have no message of their own.
  const models = trace.steps.filter(({ kind, status }) => kind === "model" && (status === "ok" || status === "stopped"));
  const sentBy = bySteps(trace.steps.filter(({ kind }) => kind === "model"), sent);
  let number = 0;
  return [...trace.steps].sort((a, b) => a.started_at.localeCompare(b.started_at)).map((step) => {
    if (step.kind === "model") {
      number += 1;
      return { step, number, message: answers[models.indexOf(step)] ?? null, sent: sentBy.get(step) ?? [], error: faultOf(step, null, trace) };
    }
    const index = results.findIndex((result) => result.name === step.name);
    const [result] = index >= 0 ? results.splice(index, 1) : [];
    return { step, result: result ?? null, call: result ? asked.get(result.call_id) ?? null : null, error: faultOf(step, result, trace) };
  });
}

/**
 * What each model step sent: the calls with one number are those of one step. Where those of all steps are kept, they stand in the
 * same order; else they are of the step that began closest to the first of them.
 */
function bySteps(steps, sent) {
  const groups = [...Map.groupBy(sent, (one) => one.number).values()];
  if (groups.length === steps.length) return new Map(steps.map((step, index) => [step, groups[index]]));
  const found = new Map();
  for (const calls of groups) {
    const distance = (step) => Math.abs(at(calls[0].sent_at) - at(step.started_at));
    const [closest] = steps.toSorted((a, b) => distance(a) - distance(b));
    if (closest) found.set(closest, calls);
  }
  return found;
}

/** Why a step failed; "" where it did not. Older traces have no error of their own. */
function faultOf(step, result, trace) {
  const isBad = step.status === "error" || step.status === "refused" || result?.is_error;
  if (!isBad) return step.status === "unknown" ? "The daemon stopped while it ran; it is not known whether it took effect." : "";
  return step.error || (result?.is_error ? result.content : "") || (step.kind === "model" ? trace.error ?? "" : "") || "Failed";
}

/** The time between the tries of model calls, in milliseconds: the daemon waited for the provider. */
const pausesOf = (sent = []) => {
  const tries = sent.flatMap((one) => one.tries);
  return tries.slice(1).reduce((sum, one, index) => sum + Math.max(0, at(one.started_at) - at(tries[index].started_at) - tries[index].duration_ms), 0);
};

/** The times between the steps: before a call `{ before, from, ms, after }`, where it is long enough to be seen. */
export function waitsOf(trace, calls) {
  const waits = [];
  let end = at(trace.started_at);
  let after = null;
  for (const call of calls) {
    const from = at(call.step.started_at);
    if (from - end >= WAIT_MS) waits.push({ before: call, from: end, ms: from - end, after });
    end = Math.max(end, from + call.step.duration_ms);
    after = call;
  }
  return waits;
}

/** Where the time of a run went: `{ model, tools, waiting, memory, other }` in milliseconds; what ran at once counts once. */
export function timesOf(trace, calls) {
  const memory = trace.memory_search_ms ?? 0;
  const of = (kind) => covered(calls.filter(({ step }) => step.kind === kind).map(({ step }) => [at(step.started_at), at(step.started_at) + step.duration_ms]));
  const pauses = calls.reduce((sum, { sent }) => sum + pausesOf(sent), 0);
  const model = Math.max(0, of("model") - pauses - memory);
  const tools = of("tool");
  const waiting = pauses + waitsOf(trace, calls).reduce((sum, { ms }) => sum + ms, 0);
  return { model, tools, waiting, memory, other: Math.max(0, trace.duration_ms - model - tools - waiting - memory) };
}

/** How much of a line some spans cover together. */
function covered(spans) {
  let sum = 0;
  let end = -Infinity;
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum;
}

/** "openai/gpt/4" as ["openai", "gpt/4"]. */
export function providerAndModel(name) {
  const slash = name.indexOf("/");
  return [name.slice(0, slash), name.slice(slash + 1)];
}
