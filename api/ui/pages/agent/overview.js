// What an agent is and does: its figures, its prompt and model, what it may use, what acts for it, and its newest runs.

import { get, page, withQuery } from "../../lib/api.js";
import { editBudget, spentOf } from "../../lib/budget.js";
import { confirm, menuButton, toast } from "../../lib/dialogs.js";
import { fill, h, refill } from "../../lib/dom.js";
import { ago, count, duration, modelText, money, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { allowed, can, seesAll } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { readOffers } from "../../lib/offers.js";
import { rightsNode, rightsOf } from "../../lib/rights.js";
import { learnSaid } from "../../lib/said.js";
import { learnTitles, titleOf } from "../../lib/titles.js";
import { forgetPlace } from "../chat/place.js";
import { runText } from "./runs.js";
import { outcomeBadge, runAddress, stateText, toolsOf } from "./words.js";

const EVERY_MS = 10_000;
const RUNS = 6;
const SESSIONS = 5;
/** Letters of the prompt that are shown. */
const PROMPT_MAX = 600;

/** The limits of a budget as a manifest has them. */
const limitsOf = (budget) => (budget ? { daily: budget.daily_limit_usd * 1e6, monthly: budget.monthly_limit_usd * 1e6, hourly_tokens: budget.hourly_token_limit } : {});

export async function mount(root, ctx) {
  const { signal } = ctx;
  const path = `/api/agents/${encodeURIComponent(ctx.agent.id)}`;
  const figures = h("div", { class: "stat-row" });
  const about = h("section", { class: "card stack", "aria-label": "About" });
  const uses = h("section", { class: "card stack", "aria-label": "Capabilities" });
  const acts = h("section", { class: "card stack", "aria-label": "Automation" });
  const runs = h("section", { class: "card stack", "aria-label": "Recent runs" });
  const talks = h("section", { class: "card stack", "aria-label": "Conversations" });
  fill(root, h("div", { class: "stack" }, figures, h("div", { class: "agent-halves" }, h("div", { class: "stack" }, about, uses), h("div", { class: "stack" }, runs, talks, acts))));

  /** The tools that there are, once they are known. */
  let tools = null;

  /** What this key may not see is left out. */
  const orNull = (asked) => asked.catch((error) => {
    if (error.status === 403 || error.status === 404) return null;
    throw error;
  });

  async function read() {
    const of = { agent_id: ctx.agent.id, limit: 3 };
    const [agent, metrics, traces, sessions, budget, schedules, jobs, triggers, memory] = await Promise.all([
      get(path, { signal }), get(`${path}/metrics`, { signal }), get(withQuery(`${path}/traces`, { limit: RUNS }), { signal }),
      page(`${path}/sessions`, "sessions", { order: "newest", limit: SESSIONS }, { signal }), orNull(get(`/api/budget/agents/${key()}`, { signal })),
      orNull(page("/api/schedules", "schedules", of, { signal })), orNull(page("/api/cron/jobs", "jobs", of, { signal })), orNull(page("/api/triggers", "triggers", of, { signal })),
      orNull(get(`/api/memory/agents/${key()}/count`, { signal })),
    ]);
    tools ??= (await readOffers(["tools"], { signal })).tools;
    ctx.changed(agent);
    showFigures(metrics, budget);
    showAbout(agent);
    showUses(agent, budget);
    showRuns(traces);
    learnSaid([...(traces.running ?? []), ...traces.traces].slice(0, RUNS), () => showRuns(traces), { signal });
    showTalks(sessions);
    showActs({ schedules, jobs, triggers, memory, budget });
    showActions();
  }

  function key() {
    return encodeURIComponent(ctx.agent.id);
  }

  function showFigures({ turns, tokens, cost_usd: cost, latency_ms: latency, error_rate: errors, window }, budget) {
    const all = turns.done + turns.failed + turns.stopped + turns.interrupted;
    const stat = (name, value, note) => h("div", { class: "stat" }, h("span", {}, name), h("strong", {}, value), h("small", {}, note));
    const spent = budget?.today_spent_usd;
    fill(figures,
      stat("Runs", number(all), turns.open > 0 ? `${number(turns.open)} open` : turns.failed > 0 ? `${number(turns.failed)} failed` : "none failed"),
      stat("Error rate", `${(errors * 100).toFixed(errors > 0 && errors < 0.1 ? 1 : 0)} %`, `of the last ${number(window.turns)}`),
      stat("Median time", window.turns > 0 ? duration(latency.p50) : "–", window.turns > 0 ? `p99 ${duration(latency.p99)}` : "no runs yet"),
      stat("Tokens", short(tokens.total), `${short(tokens.input)} in, ${short(tokens.output)} out`),
      stat("Cost", cost === null ? "–" : money(cost), spent === undefined ? "all time" : `${money(spent)} today`));
  }

  const more = (href, text) => h("a", { class: "more-link", href }, text, icon("chevron", 14));
  const head = (text, link) => h("div", { class: "bar-row" }, h("h2", { class: "grow" }, text), link);
  const settings = `#/agent/${key()}/settings`;
  const pairs = (rows) => h("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

  /** The prompt; a long one begins with its first words and can be opened. */
  function promptNodes(prompt, isOpen = false) {
    if (prompt.length <= PROMPT_MAX) return h("p", { class: "plain" }, prompt);
    const beginning = prompt.slice(0, PROMPT_MAX).replace(/\s+\S*$/, "");
    return h("details", { class: "prompt-more", open: isOpen }, h("summary", {}, h("span", { class: "plain" }, `${beginning} …`), h("span", { class: "more-link is-closed" }, "Show all"), h("span", { class: "more-link is-open" }, "Show less")), h("p", { class: "plain" }, prompt));
  }

  function showAbout(agent) {
    const { model } = agent;
    const prompt = agent.system_prompt.trim();
    refill(about, head("About", can("write") ? more(settings, "Edit") : null),
      agent.description ? h("p", {}, agent.description) : null,
      pairs([["Model", modelText(model.provider, model.model)], ["Mode", agent.mode], ["Tags", agent.tags.join(", ")], ["Created", h("time", { datetime: agent.created_at, title: when(agent.created_at) }, ago(agent.created_at))], ["Version", agent.version], ["Author", agent.author]]),
      prompt ? h("figure", { class: "prompt-card" }, h("figcaption", { class: "dim" }, "System prompt"), promptNodes(prompt, about.querySelector("details")?.open)) : h("p", { class: "dim" }, "No system prompt."));
  }

  function showUses(agent, budget) {
    const { capabilities: caps } = agent;
    const words = (list, all, none) => (list.includes("*") ? all : list.length === 0 ? none : h("ul", { class: "word-list" }, list.map((word) => h("li", { class: "word" }, word))));
    refill(uses, head("What this agent may do", can("write") ? more(settings, "Change") : null),
      tools ? rightsNode(rightsOf({ ...agent, limits: limitsOf(budget) }, tools)) : null,
      h("details", { class: "changes", open: uses.querySelector("details")?.open ?? false }, h("summary", {}, icon("chevron", 14), "As the manifest says it"), pairs([
      ["Tools", words(caps.tools, "All tools", "None")],
      ["Only", agent.tool_allowlist.length > 0 ? words(agent.tool_allowlist, "All", "None") : null],
      ["Never", agent.tool_blocklist.length > 0 ? words(agent.tool_blocklist, "All", "None") : null],
      ["Skills", agent.skills.length > 0 ? words(agent.skills, "All skills", "None") : null],
      ["MCP servers", agent.mcp_servers.length > 0 ? words(agent.mcp_servers, "All servers", "None") : null],
      ["Network", words(caps.network, "All hosts", "No hosts")], ["Shell", words(caps.shell, "All commands", "No commands")],
      ["Files", caps.file_system ? "Its workspace" : "No"], ["Create agents", caps.agent_spawn ? "Yes" : "No"],
    ])));
  }

  function showRuns(found) {
    const { traces, running = [] } = found;
    const row = (run, badge, note) => h("li", {}, h("a", { class: "run-line", href: runAddress(ctx.agent.id, run) }, badge, h("span", { class: "grow two" }, h("span", { class: "cut" }, runText(run)), h("small", { class: "faint cut" }, note)), h("time", { class: "faint", datetime: run.started_at, title: when(run.started_at) }, ago(run.started_at))));
    const lines = [
      ...running.slice(0, RUNS).map((run) => row(run, h("span", { class: "badge accent" }, stateText(run.state)), [run.tool_calls > 0 ? count(run.tool_calls, "tool call") : "", "running"].filter(Boolean).join(", "))),
      ...traces.map((run) => row(run, outcomeBadge(run.status), run.error || [toolsOf(run), duration(run.duration_ms), money(run.cost_usd)].filter(Boolean).join(", "))),
    ].slice(0, RUNS);
    refill(runs, head("Recent runs", more(`#/agent/${key()}/runs`, "All runs")), lines.length > 0 ? h("ul", { class: "lines" }, lines) : h("p", { class: "dim" }, "This agent has not run yet. Send it a message, in the test chat for example; each answer is a run with its steps, time and cost."));
  }

  function showTalks({ items, total }) {
    refill(talks, head(total > SESSIONS ? `Conversations (${number(total)})` : "Conversations", more(`#/chat/${key()}`, "Open chat")),
      h("ul", { class: "lines" }, items.map((session) => h("li", {}, h("a", { class: "run-line", href: `#/chat/${key()}/${session.session_id}` },
        h("span", { class: "grow cut", data: { session: session.session_id } }, titleOf(session)), h("span", { class: "faint" }, count(session.message_count, "message")))))));
    learnTitles(items, (id, title) => {
      const node = talks.querySelector(`[data-session="${CSS.escape(id)}"]`);
      if (node) node.textContent = title;
    }, { signal });
  }

  function showActs({ schedules, jobs, triggers, memory, budget }) {
    const many = (found) => found?.total ?? found?.items.length ?? 0;
    const line = (key, label, note, href) => h("li", {}, h("a", { class: "run-line", href, data: { key } }, h("span", { class: "grow" }, label), h("span", { class: "faint cut" }, note)));
    const next = [...(schedules?.items ?? []), ...(jobs?.items ?? [])].map((item) => item.next_run).filter(Boolean).sort()[0];
    const pages = new Set(allowed([{ name: "automation", scope: "write" }, { name: "memory", all: true }, { name: "library", all: true }, { name: "money", all: true }]).map((one) => one.name));
    refill(acts, head("Works with", null), h("ul", { class: "lines" },
      pages.has("automation") ? line("times", "Schedules", [count(many(schedules) + many(jobs), "schedule"), next ? `next ${ago(next)}` : null].filter(Boolean).join(", "), `#/agent/${key()}/automation`) : null,
      pages.has("automation") ? line("triggers", "Triggers", count(many(triggers), "trigger"), `#/agent/${key()}/automation`) : null,
      line("files", "Workspace", "files of the agent", `#/agent/${key()}/files`),
      pages.has("memory") ? line("memory", "Memory", memory ? count(memory.count, "entry", "entries") : "", withQuery("#/memory", { agent: ctx.agent.id })) : null,
      pages.has("library") ? line("skills", "Skills", ctx.agent.skills.length === 0 ? "all skills" : count(ctx.agent.skills.length, "skill"), "#/library") : null,
      pages.has("money") ? line("budget", "Budget", budget ? `${spentOf(budget.today_spent_usd, budget.daily_limit_usd)} today` : "limits and spending", "#/money") : null));
  }

  function showActions() {
    if (ctx.actions.childElementCount > 0) return;
    fill(ctx.actions, h("a", { class: "button", href: `#/chat/${key()}` }, icon("chat", 18), "Chat"), can("write") ? menuButton({ label: `More for ${ctx.agent.name}`, items }) : null);
  }

  function items() {
    const isRunning = ctx.agent.state === "Running";
    const { api } = ctx;
    return [
      { label: isRunning ? "Stop the agent" : "Start the agent", icon: isRunning ? "pause" : "play", scope: isRunning ? "write" : "chat", all: true, run: async () => { await api.call("POST", `/api/agents/bulk/${isRunning ? "stop" : "start"}`, { agent_ids: [ctx.agent.id] }); await again(); toast(isRunning ? "Stopped" : "Started"); } },
      { label: "Change the budget", icon: "money", scope: "write", all: true, run: async () => { if (await editBudget({ title: `Budget of ${ctx.agent.name}`, path: `/api/budget/agents/${key()}`, signal })) await again(); } },
      { label: "Clone the agent", icon: "copy", run: async () => { const made = await api.call("POST", `${path}/clone`, {}); toast(`${made.name} was created.`); ctx.go(["agent", made.agent_id]); } },
      { label: "Delete the agent", icon: "trash", danger: true, run: remove },
    ];
  }

  async function remove() {
    const run = () => ctx.api.call("DELETE", path);
    if (!(await confirm({ title: `Delete ${ctx.agent.name}?`, text: "This deletes the agent with its sessions, memory and uploads. It cannot be undone.", action: "Delete agent", run }))) return;
    forgetPlace();
    toast("Deleted");
    ctx.go(["chat"]);
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
  if (seesAll()) ctx.key("t", "Show the runs of the agent", () => ctx.go(["agent", ctx.agent.id, "runs"]));
}
