// The overview: what needs a person, what happened lately and comes next, what it cost, and what was done in the last days.

import { agentLink, learn, learnAll, nameLinks, nameOf } from "../lib/agents.js";
import { Failure, get } from "../lib/api.js";
import { decisionButtons } from "../lib/approve.js";
import { callBody, callTitle } from "../lib/calls.js";
import { Chart, sparkline } from "../lib/charts.js";
import { ruleText, whenIn } from "../lib/cron.js";
import { showError } from "../lib/dialogs.js";
import { fill, h, refill, skeleton, useStyles } from "../lib/dom.js";
import { ago, count, money, moneyMark, number, short, when } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { pendingOf, readInbox } from "../lib/inbox.js";
import { isOfPeople, learnOrigins } from "../lib/origins.js";
import { poll, tellFaults } from "../lib/poll.js";
import { queryRows } from "../lib/query.js";
import { followAlways } from "../lib/stream.js";
import { learnTitles, titleOf } from "../lib/titles.js";
import { activity } from "./home/activity.js";
import { showSetup } from "./home/setup.js";

export const title = "Overview";

const EVERY_MS = 30_000;
/** Between two looks that are made early, because something ended or waits. */
const SOON_MS = 4000;
const DAYS = 30;
/** The chart begins with the first day that has something, but has so many days at least. */
const DAYS_MIN = 7;
/** Days of the small lines below the figures. */
const LINE_DAYS = 14;
const DAY_MS = 86_400_000;
const SHOWN = 6;
/** Conversations among which those of people are looked for. */
const LOOKED = 24;
/** Stands where a figure was not read yet. */
const UNREAD = "–";
/** Letters of a prompt that stand for a name. */
const LABEL_MAX = 200;

/** Rows of a query as objects; none where the daemon is busy with others. */
async function rows(q, signal) {
  try {
    return await queryRows(q, { signal });
  } catch (error) {
    if (error.status === 429 || error.status === 503) return null;
    throw error;
  }
}

/** Goes on without what is refused for the load; what is missing comes with the next look. */
const orBusy = (asked) => asked.catch((error) => {
  if (![429, 503].includes(error.status)) throw error;
});

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/home.css", import.meta.url))]);
  const { signal } = ctx;
  const note = h("p", { class: "tab-note", role: "status" });
  const setup = h("div", { class: "home-setup" });
  const figures = h("div", { class: "stat-row home-figures" });
  /** What runs at this moment, which the stream of the world tells. */
  const running = { value: h("strong", {}, "–"), note: h("small", {}, ""), mark: h("span", { class: "badge", role: "status" }, "connecting") };
  const needs = h("section", { class: "card stack", "aria-label": "Needs you" }, skeleton(4));
  const talks = h("section", { class: "card stack", "aria-label": "Recent conversations" }, skeleton(4));
  const next = h("section", { class: "card stack", "aria-label": "Next runs" }, skeleton(4));
  const agents = h("section", { class: "card stack", "aria-label": "Agents by cost" }, skeleton(4));
  const chart = new Chart({ label: `Cost by day, the last ${DAYS} days`, height: 248, none: `No model was called in the last ${DAYS} days.` });
  const dailyTitle = h("h2", { class: "grow" }, `Last ${DAYS} days`);
  const chartPlace = h("div", {}, skeleton(6));
  const measure = { name: "cost_usd" };
  const switches = h("div", { class: "segments", role: "group", "aria-label": "Chart values" }, [["Cost", "cost_usd"], ["Tokens", "tokens"], ["Calls", "request_count"]].map(([label, name]) => h("button", {
    type: "button", "aria-pressed": String(name === measure.name), data: { key: name }, onclick: () => { measure.name = name; showDaily(); },
  }, label)));
  const past = activity({ signal });
  let daily = null;
  /** Approvals whose details are open. */
  const opened = new Set();
  /** What the figures are made of, as far as it was read. */
  const known = { usage: null, inbox: null, points: null };
  /** Reads all anew. */
  let again = read;
  fill(root, h("div", { class: "scroll" }, h("div", { class: "page-body" },
    h("header", { class: "page-head" }, h("div", { class: "grow" }, h("h1", {}, title), note), running.mark, h("div", { class: "buttons tab-actions" }, h("a", { class: "button primary", href: "#/chat" }, icon("chat", 18), "Open chat"))),
    h("div", { class: "stack" }, setup, needs, figures,
      h("div", { class: "home-grid" }, h("section", { class: "card stack", "aria-label": "By day" }, h("div", { class: "bar-row" }, dailyTitle, switches), chartPlace), next),
      past.node,
      h("div", { class: "home-grid halves" }, talks, agents)))));
  tellFaults(signal, (fault) => { note.textContent = fault ? `Not updated since ${when(fault.since)}.` : ""; });

  async function read() {
    const from = new Date(Date.now() - DAY_MS).toISOString();
    // Each card is drawn when its own answer is there.
    await Promise.all([
      get("/api/usage/summary", { signal }).then((usage) => { known.usage = usage; showFigures(); }),
      get(`/api/usage/daily?days=${DAYS}`, { signal }).then(({ days }) => { daily = days; showFigures(); showDaily(); }),
      get(`/api/history?from=${encodeURIComponent(from)}&step=hour`, { signal }).then(({ points }) => { known.points = points; showFigures(); }),
      readInbox({ signal }).then((inbox) => {
        known.inbox = inbox;
        ctx.setInbox(inbox.count, pendingOf(inbox));
        showFigures();
        showNeeds(inbox);
        return learnAll(inbox.items.map(({ agent }) => agent), () => { showNeeds(inbox); nameLinks(root); }, { signal });
      }),
      get("/api/budget/agents", { signal }).then(showAgents),
      rows(`sessions where messages > 0 select id, agent_id, agent.name, label, messages, created_at, updated_at sort by updated_at desc limit ${LOOKED}`, signal).then(async (found) => {
        const conversations = found?.map((row) => ({ ...row, session_id: row.id, message_count: row.messages })) ?? null;
        await learnOrigins(conversations ?? [], { signal });
        showTalks(conversations);
      }),
      Promise.all([upcoming("schedules"), upcoming("cron_jobs")]).then(async ([schedules, jobs]) => {
        const due = [...(schedules ?? []), ...(jobs ?? [])].sort((a, b) => a.next_run.localeCompare(b.next_run)).slice(0, SHOWN);
        await learnPrompts(due);
        showNext(due);
      }),
      orBusy(past.read()), orBusy(showSetup(setup, ctx)),
    ]);
    // Some are known by now from what else was read.
    nameLinks(root);
  }

  const prompts = new Map();

  /** Reads the prompts of schedules without a name. */
  async function learnPrompts(due) {
    const missing = due.filter(({ id, name }) => !name && !prompts.has(id));
    await Promise.all(missing.map(async ({ id }) => {
      try {
        prompts.set(id, (await get(`/api/schedules/${id}`, { signal })).prompt.slice(0, LABEL_MAX));
      } catch (error) {
        // Deleted since: its rule stands there until the next look.
        if (!(error instanceof Failure)) throw error;
      }
    }));
    for (const id of prompts.keys()) if (!due.some((row) => row.id === id)) prompts.delete(id);
  }

  const upcoming = (kind) => rows(`${kind} where enabled and next_run is not null select id, name, rule, timezone, agent_id, agent.name, next_run sort by next_run limit ${SHOWN}`, signal);
  const more = (href, text) => h("a", { class: "more-link", href }, text, icon("chevron", 14));
  const head = (text, link) => h("div", { class: "bar-row tight" }, h("h2", { class: "grow" }, text), link);
  const none = (text) => h("p", { class: "dim" }, text);

  function showFigures() {
    const { usage, inbox, points } = known;
    const today = usage?.today;
    const week = daily?.slice(-7);
    const sum = (name) => week.reduce((total, day) => total + day[name], 0);
    const all = (name) => points?.reduce((total, point) => total + point[name], 0) ?? 0;
    const yesterday = daily?.at(-2);
    const [failed, turns] = [all("turns_failed"), all("turns")];
    const stat = (name, value, text, { level = "", href = null, values = null } = {}) => h("div", { class: `stat ${level}` }, h("span", {}, name), h("strong", {}, href ? h("a", { href }, value) : value), h("small", {}, text),
      values?.some((one) => one > 0) ? sparkline(values, { label: `${name}, the last ${LINE_DAYS} days`, height: 26 }) : null);
    const line = (value) => daily?.slice(-LINE_DAYS).map(value);
    const needsText = inbox?.count === 0 ? "nothing" : "see above";
    refill(figures,
      h("div", { class: "stat" }, h("span", {}, "Running now"), running.value, running.note),
      inbox ? stat("Needs you", number(inbox.count), needsText, { level: inbox.count > 0 ? "is-bad" : "is-good", href: "#/inbox" }) : stat("Needs you", UNREAD, ""),
      stat("Failed turns", points ? number(failed) : UNREAD, turns > 0 ? `of ${number(turns)} in 24 hours` : "in 24 hours", { level: failed > 0 ? "is-bad" : "", href: failed === 0 ? null : inbox?.items.some(({ kind }) => kind === "turn" || kind === "failed") ? "#/inbox" : "#/world/events?kind=turn_failed" }),
      stat("Model calls today", daily ? number(daily.at(-1).request_count) : UNREAD, yesterday ? `${number(yesterday.request_count)} yesterday` : "", { values: line((day) => day.request_count) }),
      stat("Tokens today", today ? short(today.input_tokens + today.output_tokens) : UNREAD, week ? `${short(sum("input_tokens") + sum("output_tokens"))} in 7 days` : "", { values: line((day) => day.input_tokens + day.output_tokens) }),
      stat("Cost today", daily ? money(daily.at(-1).cost_usd) : UNREAD, week ? `${money(sum("cost_usd"))} in 7 days` : "", { values: line((day) => day.cost_usd) }));
  }

  /** What the call would do, opened where one decides on it. */
  function bodyOf(approval) {
    const details = h("details", { class: "need-body", open: opened.has(approval.id), ontoggle: () => {
      if (!details.open) return void opened.delete(approval.id);
      opened.add(approval.id);
      if (details.childElementCount === 1) details.append(callBody(approval, { signal }) ?? h("p", { class: "dim" }, "It has no input."));
      return undefined;
    } }, h("summary", { data: { key: `details ${approval.id}` } }, "Details"));
    return details;
  }

  function showNeeds({ items, count: many }) {
    const shown = items.filter(({ quiet }) => !quiet).slice(0, SHOWN);
    needs.classList.toggle("is-urgent", many > 0);
    refill(needs, head("Needs you", many > 0 ? more("#/inbox", many > SHOWN ? `All ${number(many)}` : "Open inbox") : null), shown.length === 0 ? h("p", { class: "all-clear" }, icon("check", 17), "Nothing needs you. Approvals, failures, providers in trouble and exceeded budgets appear here.") : h("ul", { class: "lines" }, shown.map((item) => h("li", { class: item.approval ? "need-line" : null },
      h("a", { class: "run-line", href: item.kind === "approval" ? "#/inbox" : item.href }, icon(item.kind === "approval" ? "shield" : "alert", 16), h("span", { class: "grow two" }, h("span", { class: "cut" }, item.approval ? callTitle(item.approval, nameOf(item.agent)) : item.title), h("small", { class: "faint cut" }, item.agent ? [h("span", { data: { agent: item.agent } }, nameOf(item.agent)), ` · ${item.text}`] : item.text)), item.at ? h("time", { class: "faint", datetime: item.at, title: when(item.at) }, ago(item.at)) : null),
      item.approval ? [decisionButtons(item.approval, { name: nameOf(item.agent), size: "small", decided: () => again().catch(showError) }), bodyOf(item.approval)] : null))));
  }

  function showDaily() {
    if (!daily) return;
    if (!chart.node.isConnected) fill(chartPlace, chart.node);
    for (const button of switches.children) button.setAttribute("aria-pressed", String(button.dataset.key === measure.name));
    const first = daily.findIndex((day) => day.request_count > 0);
    const days = first < 0 ? daily : daily.slice(Math.min(first, daily.length - DAYS_MIN));
    dailyTitle.textContent = `Last ${days.length} days`;
    const ticks = days.map(({ date }) => new Date(`${date}T00:00:00Z`).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" }));
    const series = measure.name === "tokens"
      ? [{ name: "Input", values: days.map((day) => day.input_tokens) }, { name: "Output", values: days.map((day) => day.output_tokens) }]
      : [{ name: measure.name === "cost_usd" ? "Cost" : "Calls", values: days.map((day) => day[measure.name]) }];
    chart.label = `${{ cost_usd: "Cost", tokens: "Tokens", request_count: "Calls" }[measure.name]} by day, the last ${days.length} days`;
    const called = daily.some((day) => day.request_count > 0);
    chart.none = called ? `${{ cost_usd: "No cost", tokens: "No tokens", request_count: "No calls" }[measure.name]} in the last ${DAYS} days.` : `No model was called in the last ${DAYS} days.`;
    chart.format = measure.name === "cost_usd" ? money : short;
    chart.mark = measure.name === "cost_usd" ? moneyMark : short;
    chart.set({ ticks, series });
  }

  function showTalks(sessions) {
    // Other queries had the turn: what stands there stays.
    if (sessions === null) return;
    const known = [...sessions.filter(isOfPeople), ...sessions.filter((session) => !isOfPeople(session))].slice(0, SHOWN).sort((a, b) => b.updated_at.localeCompare(a.updated_at));
    for (const row of known) learn(row.agent_id, row["agent.name"]);
    refill(talks, head("Recent conversations", null), known.length === 0 ? none("No conversations yet. Open the chat and send a message.") : h("ul", { class: "lines" }, known.map((row) => h("li", { class: "home-line" },
      h("span", { class: "grow two" }, h("a", { class: "cut home-link", href: `#/chat/${row.agent_id}/${row.id}`, data: { session: row.id } }, titleOf(row)), h("small", { class: "faint cut" }, agentLink(row.agent_id), ` · ${count(row.messages, "message")}`)),
      h("time", { class: "faint", datetime: row.updated_at, title: when(row.updated_at) }, ago(row.updated_at))))));
    learnTitles(known, (id, text) => {
      const node = talks.querySelector(`[data-session="${CSS.escape(id)}"]`);
      if (node) node.textContent = text;
    }, { signal });
  }

  function showNext(items) {
    for (const row of items) learn(row.agent_id, row["agent.name"]);
    refill(next, head("Next runs", more("#/automation", "Schedules")), items.length === 0 ? none(["Nothing is scheduled. ", h("a", { href: "#/automation?new=1" }, "New schedule")]) : h("ul", { class: "lines" }, items.map((row) => h("li", { class: "home-line" },
      h("span", { class: "grow two" }, h("span", { class: "cut" }, row.name || prompts.get(row.id) || row.rule), h("small", { class: "faint cut" }, agentLink(row.agent_id), ` · ${ruleText(row.rule) ?? row.rule}`)),
      h("time", { class: "faint", datetime: row.next_run, title: whenIn(row.next_run, row.timezone) }, ago(row.next_run))))));
  }

  function showAgents(spenders) {
    for (const row of spenders) learn(row.agent_id, row.agent_name);
    const top = spenders.filter((row) => row.total_cost_usd > 0).slice(0, SHOWN);
    refill(agents, head("Agents by cost", more("#/money", "Spending")), top.length === 0 ? none("No agent has spent anything yet. What each costs appears here.") : h("ul", { class: "lines" }, top.map((row) => h("li", { class: "home-line" },
      h("span", { class: "grow cut" }, agentLink(row.agent_id)), h("span", { class: "faint num" }, `${money(row.today_cost_usd)} today`), h("span", { class: "num" }, money(row.total_cost_usd))))));
  }

  await read();
  again = poll(read, EVERY_MS, { signal, isRead: true });
  follow();

  /** Keeps what runs now, and reads the rest early when a turn ended or an approval came or went. */
  function follow() {
    let before = null;
    let timer = 0;
    const soon = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        again().catch(() => {});
      }, SOON_MS);
    };
    signal.addEventListener("abort", () => clearTimeout(timer));
    const say = (style, text) => { running.mark.className = `badge ${style}`; running.mark.textContent = text; };
    followAlways(() => "/api/world/stream", {
      signal,
      onEvent: (name, now) => {
        if (name !== "world") return;
        running.value.textContent = number(now.turns_in_flight);
        running.note.textContent = now.turns_waiting > 0 ? `${number(now.turns_waiting)} waiting` : `${count(now.agents, "agent")}`;
        if (before && (now.turns_in_flight < before.turns_in_flight || now.approvals_pending !== before.approvals_pending)) soon();
        before = now;
      },
      onState: (how) => say(...{ live: ["good", "live"], waiting: ["warn", "reconnecting"], refused: ["", "not live"] }[how]),
    }).catch(() => say("", "not live"));
  }
}
