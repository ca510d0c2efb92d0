// What needs a person: approvals, proposals, and what has failed or was stopped, gathered from the routes that know it.

import { Failure, get, page, withQuery } from "./api.js";
import { learn, learnAll, nameOf } from "./agents.js";
import { callLine, callTitle } from "./calls.js";
import { count } from "./format.js";
import { allowed } from "./me.js";
import { PEOPLE } from "./origins.js";
import { inLanes } from "./poll.js";
import { queryRows } from "./query.js";
import { learnSaid, saidOf } from "./said.js";
import { errorText } from "./trouble.js";

/** Entries of each kind. */
const SHOWN_MAX = 50;
/** Schedules, cron jobs and triggers whose deliveries are looked at: those that ran last. */
const SENDERS = 10;
/** Queries at once: the daemon runs four. */
const LANES = 2;
/** Failures are told for so long, as a duration of a query. */
const RECENT = "7d";
const RECENT_MS = 7 * 86_400_000;
/** A provider that has not answered for so long when a call fails is in trouble. */
const LASTING_MS = 60_000;
const DISMISSED = "agentsvc-dismissed";
const DISMISSED_MAX = 500;

const OUTCOMES = { failed: "failed", refused: "was refused", agent_stopped: "did not run: the agent is stopped", over_budget: "did not run: a budget is used up", };
const BAD = `("${Object.keys(OUTCOMES).join('", "')}")`;
const UNDELIVERED = new Set(["refused", "failed", "unknown"]);

const rows = (q, signal) => queryRows(q, { signal });

const agentOf = (row) => {
  learn(row.agent_id, row["agent.name"]);
  return row.agent_id ?? null;
};

/** Records of failed entries that were read, by the id of their entry: what has failed does not change. */
const records = new Map();
const RECORDS_MAX = 200;

/** The record behind an entry; null where it is gone or not for this key. */
async function recordOf(id, path, signal) {
  if (records.has(id)) return records.get(id);
  const record = await get(path, { signal }).catch((error) => {
    if (error instanceof Failure && [403, 404, 429, 503].includes(error.status)) return null;
    throw error;
  });
  // One that runs again has another end soon.
  if (!record || record.open_runs > 0) return record;
  if (records.size >= RECORDS_MAX) records.delete(records.keys().next().value);
  records.set(id, record);
  return record;
}

const LABEL_MAX = 120;
/** Letters of an error that are shown. */
const ERROR_MAX = 400;

/** Schedules of either kind that failed, and those that are switched off. */
async function schedules(kind, path, signal) {
  const found = await rows(`${kind} where last_status in ${BAD} or enabled = false select id, name, rule, agent_id, agent.name, enabled, last_status, last_run, next_run limit ${SHOWN_MAX * 2}`, signal);
  const entries = [];
  await inLanes(found, LANES, async (row) => {
    const failed = OUTCOMES[row.last_status];
    const id = row.enabled ? `${kind} ${row.id} ${row.last_run}` : `${kind} ${row.id} off`;
    // One that ran once and is done was not paused by anybody.
    if (!row.enabled && row.last_run !== null && !failed) return;
    const record = failed || !row.name ? await recordOf(id, `${path}/${row.id}`, signal) : null;
    const title = row.name || record?.prompt.slice(0, LABEL_MAX) || row.rule;
    const base = { id, title, agent: agentOf(row), at: row.last_run };
    if (!row.enabled) return void entries.push({ ...base, kind: "paused", text: failed ? `Paused; the last run ${failed}` : "Paused before its first run", href: "#/automation", quiet: true, resume: kind === "cron_jobs" ? `${path}/${row.id}/enable` : `${path}/${row.id}` });
    const last = record?.last_result;
    const why = last?.status === row.last_status ? last.text.slice(0, ERROR_MAX) : "";
    // Only a run that began has a trace.
    const run = row.last_status === "failed" && last ? { agent: row.agent_id, endedAt: last.at } : null;
    entries.push({ ...base, kind: "failed", text: why || `The last run ${failed}`, href: withQuery("#/automation", { filter: title }), again: { path: `${path}/${row.id}/run` }, run });
  });
  return entries;
}

/** Tasks that failed lately, with their errors. */
async function tasks(signal) {
  const found = await rows(`tasks where state = "failed" and ended_at > now - ${RECENT} select id, title, claimed_by, ended_at limit ${SHOWN_MAX}`, signal);
  const entries = [];
  await inLanes(found, LANES, async (row) => {
    const id = `task ${row.id} ${row.ended_at}`;
    const record = await recordOf(id, `/api/tasks/${row.id}`, signal);
    entries.push({ id, kind: "failed", title: row.title, text: record?.error?.slice(0, ERROR_MAX) || "The task failed", agent: row.claimed_by, at: row.ended_at, href: "#/automation/tasks", again: { path: `/api/tasks/${row.id}/retry` } });
  });
  return entries;
}

/** Answers that did not arrive where schedules and triggers send them. */
async function deliveries(signal) {
  const kinds = [["schedules", "/api/schedules", "last_run", "runs"], ["cron_jobs", "/api/cron/jobs", "last_run", "runs"], ["triggers", "/api/triggers", "last_fired_at", "fired"]];
  const senders = [];
  for (const [kind, path, at, many] of kinds) {
    const label = kind === "triggers" ? "pattern" : "name, rule";
    for (const row of await rows(`${kind} where ${many} > 0 select id, agent_id, agent.name, ${label} sort by ${at} desc limit ${SENDERS}`, signal)) senders.push({ ...row, path: `${path}/${row.id}` });
  }
  const found = [];
  await inLanes(senders, LANES, async (sender) => {
    const told = await get(`${sender.path}/targets`, { signal }).catch((error) => {
      if (error instanceof Failure && error.status === 404) return { deliveries: [] };
      throw error;
    });
    for (const one of told.deliveries.filter(({ status }) => UNDELIVERED.has(status)).slice(0, 5)) {
      found.push({ id: `delivery ${sender.id} ${one.created_at} ${one.recipient ?? one.channel ?? ""}`, kind: "delivery", title: [one.channel, one.recipient].filter(Boolean).join(" · ") || String(one.type).replaceAll("_", " "), text: one.reason || `The answer of ${sender.name || sender.rule || "a trigger"} did not arrive`, agent: agentOf(sender), at: one.created_at, href: sender.path.includes("triggers") ? "#/automation/triggers" : "#/automation" });
    }
  });
  return found;
}

/** Providers that fail, and those that agents use without a key. */
async function providers(signal) {
  const [{ providers: all }, { default_provider: standard }] = await Promise.all([get("/api/providers", { signal }), get("/api/status?limit=1", { signal })]);
  const users = new Map((await rows("agents group by provider count", signal)).map(({ provider, count: many }) => [provider, many]));
  const entries = [];
  for (const { name, display_name: label, auth_status: auth, calls } of all) {
    const [many, title] = [users.get(name) ?? 0, label || name];
    const isUsed = many > 0 || name === standard;
    const { state, last_error: error, last_success_at: good } = calls ?? {};
    const href = withQuery("#/settings", { filter: name });
    const add = (id, what, text, mend, test = name) => entries.push({ id: `provider ${name} ${id}`, kind: "provider", title: what, text, agent: null, at: error?.at ?? null, href, mend: { label: mend, href }, test });
    // Agents can bring an endpoint with its own key: one that has answered needs no other.
    if (auth === "not_configured" && isUsed && !good) add("no key", `${title} has no API key`, many > 0 ? `${count(many, "agent")} ${many === 1 ? "uses" : "use"} it` : "It is the default provider", "Add a key", null);
    else if (state === "paused") add(`paused ${error?.at}`, `${title} is paused after repeated errors`, error ? errorText({ ...error, name: title }) : "Calls to it wait", "Show the provider");
    else if (state === "failing" && error && (error.code === "provider_auth" || isLasting(error.at, good))) add(`failing ${error.at}`, error.code === "provider_auth" ? `${title} rejects the API key` : `${title} is failing`, errorText({ ...error, name: title }), error.code === "provider_auth" ? "Replace the key" : "Show the provider");
  }
  return entries;
}

/** A single failed call between successful ones is no trouble yet. */
const isLasting = (failedAt, succeededAt) => !succeededAt || Date.parse(failedAt) - Date.parse(succeededAt) > LASTING_MS;

/** Sessions of people whose newest turn failed. */
async function turns(signal) {
  // Without a failure in these days nothing has to be looked for.
  const { points } = await get(withQuery("/api/history", { from: new Date(Date.now() - RECENT_MS).toISOString(), step: "hour" }), { signal });
  if (points.every((point) => point.turns_failed === 0)) return [];
  const sessions = await rows(`sessions where updated_at > now - ${RECENT} select id, agent_id, agent.name sort by updated_at desc limit ${SHOWN_MAX * 2}`, signal);
  const agents = [...new Set(sessions.map(agentOf))].slice(0, SENDERS);
  const failed = [];
  await inLanes(agents, LANES, async (agent) => {
    const { traces, running } = await get(`/api/agents/${agent}/traces?limit=${SHOWN_MAX}`, { signal }).catch((error) => {
      if (error instanceof Failure && error.status === 404) return { traces: [], running: [] };
      throw error;
    });
    const seen = new Set(running.map(({ session_id: id }) => id));
    for (const run of traces) {
      const isNewest = !seen.has(run.session_id);
      seen.add(run.session_id);
      if (isNewest && run.status === "failed" && PEOPLE.has(run.origin) && Date.now() - Date.parse(run.ended_at) < RECENT_MS) failed.push({ ...run, agent });
    }
  });
  await learnSaid(failed, () => {}, { signal });
  return failed.map((run) => {
    const provider = run.steps?.findLast(({ kind }) => kind === "model")?.name.split("/")[0];
    return { id: `turn ${run.turn_id}`, kind: "turn", title: saidOf(run) || "A message", text: errorText({ code: run.code, error: run.error ?? "The turn failed", provider }).slice(0, ERROR_MAX), agent: run.agent, at: run.ended_at, href: `#/chat/${run.agent}/${run.session_id}`, open: "Open chat", retry: run };
  });
}

/** Each source gives entries: `{ id, kind, title, text, agent, at, href, quiet }`; what is `quiet` is listed, but not counted. What failed has `again`, how it is run again, and `run`, the run that failed; `mend` is a link to where it is mended, `test` a provider that can be tested. A failed turn has `retry`, the run whose message is sent again. What is paused has `resume`, the path that goes on with it. */
const SOURCES = [
  { all: true, read: async (signal) => {
    const { items, total } = await page("/api/approvals", "approvals", { status: "pending", limit: SHOWN_MAX }, { signal });
    // The titles have the names: they are shown in notifications and on the overview, too.
    await learnAll(items.map(({ agent_id: agent }) => agent), () => {}, { signal });
    const list = items.map((item) => ({ id: item.id, kind: "approval", title: callTitle(item, nameOf(item.agent_id)), text: callLine(item) || item.description, agent: item.agent_id, at: item.created_at, href: "#/money/approvals", approval: item }));
    return Object.assign(list, { more: Math.max(0, (total ?? items.length) - items.length) });
  } },
  { all: true, read: async (signal) => (await get("/api/skills/pending", { signal })).candidates.map((one) => {
    learn(one.agent_id, one.agent_name);
    return { id: one.id, kind: "proposal", title: one.skill_name, text: one.changelog || "A change of this skill waits for a review", agent: one.agent_id, at: one.created_at, href: "#/library" };
  }) },
  { all: true, read: (signal) => rows(`budgets where status != "ok" select scope, agent_id, agent.name, status, today_usd, month_usd limit ${SHOWN_MAX}`, signal).then((found) => found.map((row) => ({
    id: `budget ${row.scope} ${row.status} ${new Date().toISOString().slice(0, 10)}`, kind: "budget", title: row.scope === "global" ? "Global budget" : `Budget of ${row["agent.name"] ?? "an agent"}`,
    text: row.status === "exceeded" ? "Exceeded: model calls are refused until it is raised or the next period starts" : "80 % is used", agent: agentOf(row), at: null, href: "#/money", mend: { label: "Change the budget", href: "#/money" },
  }))) },
  { all: true, read: (signal) => rows(`agents where state = "Crashed" or state = "Terminated" select id, name, state, updated_at limit ${SHOWN_MAX}`, signal).then((found) => found.map((row) => {
    learn(row.id, row.name);
    return { id: `agent ${row.id} ${row.state} ${row.updated_at}`, kind: "agent", title: row.name, text: `The agent is ${row.state.toLowerCase()}`, agent: row.id, at: row.updated_at, href: `#/agent/${row.id}` };
  })) },
  { all: true, read: (signal) => schedules("schedules", "/api/schedules", signal) },
  { all: true, read: (signal) => schedules("cron_jobs", "/api/cron/jobs", signal) },
  { all: true, read: deliveries },
  { all: true, read: tasks },
  { all: true, read: (signal) => rows(`runs where state = "Failed" and ended_at > now - ${RECENT} select id, workflow_id, name, error, ended_at limit ${SHOWN_MAX}`, signal).then((found) => found.map((row) => ({ id: `run ${row.id}`, kind: "failed", title: row.name, text: row.error || "The workflow run failed", agent: null, at: row.ended_at, href: `#/automation/workflows/${row.workflow_id}`, again: { path: `/api/workflows/${row.workflow_id}/run`, workflowRun: row.id }, run: { href: `#/automation/workflows/${row.workflow_id}/runs/${row.id}` } }))) },
  { all: true, read: providers },
  { all: true, read: turns },
  { all: true, read: async (signal) => (await get("/api/channels", { signal })).channels.filter(({ enabled, state }) => enabled && state === "failed").map((one) => ({ id: `channel ${one.name} ${one.last_error_at}`, kind: "connection", title: one.display_name || one.name, text: one.last_error || "The channel failed", agent: null, at: one.last_error_at, href: "#/connections/channels" })) },
  { all: true, read: async (signal) => (await get("/api/mcp/servers", { signal })).servers.filter(({ status, error, auth }) => (status === "disconnected" && error) || auth?.state === "needs_auth" || auth?.state === "expired").map((one) => ({ id: `server ${one.id} ${one.error ?? one.auth?.state}`, kind: "connection", title: one.name, text: one.auth?.state === "needs_auth" || one.auth?.state === "expired" ? "Sign in to use this MCP server" : one.error, agent: null, at: null, href: "#/connections" })) },
];

function dismissed() {
  try {
    return new Set(JSON.parse(localStorage.getItem(DISMISSED)) ?? []);
  } catch {
    return new Set();
  }
}

/** Leaves entries out from now on, in this browser. */
export function dismiss(ids) {
  localStorage.setItem(DISMISSED, JSON.stringify([...dismissed(), ...ids].slice(-DISMISSED_MAX)));
}

/** How many entries were dismissed in this browser. */
export const dismissedCount = () => dismissed().size;

/** Dismissed entries that are still of concern come back. */
export const restoreDismissed = () => localStorage.removeItem(DISMISSED);

/** Everything that needs a person, newest first: `{ items, count }`. A source that this key may not read, or that this daemon has not, is left out. */
export async function readInbox({ signal, isFresh = false } = {}) {
  // The badge and the overview ask at the same moment. After a change, what was asked before it is too old.
  if (isFresh || !underWay) {
    const mine = gather().finally(() => { if (underWay === mine) underWay = null; });
    underWay = mine;
  }
  const found = await underWay;
  signal?.throwIfAborted();
  return found;
}

let underWay = null;

async function gather() {
  const { signal } = new AbortController();
  const items = [];
  let more = 0;
  await inLanes(allowed(SOURCES), LANES, async ({ read }) => {
    try {
      const found = await read(signal);
      more += found.more ?? 0;
      items.push(...found);
    } catch (error) {
      if (!(error instanceof Failure) || ![400, 403, 404, 429, 501, 503].includes(error.status)) throw error;
    }
  });
  const gone = dismissed();
  const shown = items.filter(({ id }) => !gone.has(id)).sort((a, b) => String(b.at ?? "~").localeCompare(String(a.at ?? "~")));
  return { items: shown, count: shown.filter(({ quiet }) => !quiet).length + more, more };
}

/** How many of what the inbox holds are approvals. */
export const pendingOf = ({ items, more }) => items.filter(({ kind }) => kind === "approval").length + more;

/** Only the number of pending approvals, which is asked for often. */
export async function pendingApprovals({ signal } = {}) {
  const { total, items } = await page("/api/approvals", "approvals", { status: "pending", limit: 1 }, { signal });
  return total ?? items.length;
}
