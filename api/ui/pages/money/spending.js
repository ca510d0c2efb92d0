// Spending: today and this month against the budgets, by day, by model and by agent.

import { download, get } from "../../lib/api.js";
import { learn } from "../../lib/agents.js";
import { STATUS, STATUS_TEXT, STATUS_WORDS, budgetCard, editBudget } from "../../lib/budget.js";
import { Chart } from "../../lib/charts.js";
import { showError } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count, money, moneyMark, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 10_000;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let days = 30;
  let measure = "cost_usd";
  let isFirst = true;
  let daily = [];

  const cards = h("div", { class: "grid money-cards" });
  const chart = new Chart({ label: "Spending by day", format: money, height: 220 });
  const spans = segments("Days", [["7 days", 7], ["30 days", 30], ["90 days", 90]], days, (value) => { days = value; again().catch(showError); });
  const measures = segments("Chart values", [["Cost", "cost_usd"], ["Tokens", "tokens"], ["Calls", "request_count"]], measure, (value) => { measure = value; showDaily(); });
  const models = new Table({
    label: "By model", signal, rowHeight: 52, empty: "No model calls yet. Tokens and cost of each model appear with its first call.",
    columns: [
      { label: "Model", width: "minmax(0, 2fr)", sort: (row) => row.model, cell: (row) => h("span", { class: "two" }, h("strong", { class: "cut" }, row.model), h("small", { class: "faint cut" }, row.provider)) },
      { label: "Calls", width: "80px", side: true, end: true, sort: (row) => row.request_count, cell: (row) => short(row.request_count) },
      { label: "Tokens", width: "80px", slim: "72px", end: true, sort: (row) => row.input_tokens + row.output_tokens, cell: (row) => short(row.input_tokens + row.output_tokens) },
      { label: "Cost", width: "96px", slim: "84px", end: true, sort: (row) => row.cost_usd, cell: (row) => money(row.cost_usd) },
    ],
  });
  const agents = new Table({
    label: "By agent", signal, rowHeight: 52, empty: "No agent has called a model yet. Open the chat and send a message to begin.", open: can("write") ? (row) => changeAgent(row).catch(showError) : null, keyOf: (row) => row.agent_id,
    columns: [
      { label: "Agent", width: "minmax(0, 2fr)", sort: (row) => row.agent_name, cell: (row) => h("span", { class: "cut" }, row.agent_name || row.agent_id.slice(0, 8)) },
      { label: "Today", width: "96px", slim: "84px", end: true, sort: (row) => row.today_cost_usd, cell: (row) => money(row.today_cost_usd) },
      { label: "All time", width: "96px", slim: "84px", end: true, sort: (row) => row.total_cost_usd, cell: (row) => money(row.total_cost_usd) },
    ],
  });
  const agentNote = can("write") && h("p", { class: "hint" }, "Select an agent to view and edit its budget.");
  fill(root, h("div", { class: "stack" }, cards,
    h("section", { class: "card stack", "aria-label": "By day" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "By day"), measures, spans), chart.node),
    h("div", { class: "halves" },
      h("section", { class: "stack tight-stack", "aria-label": "By model" }, h("h2", {}, "By model"), models.root),
      h("section", { class: "stack tight-stack", "aria-label": "By agent" }, h("h2", {}, "By agent"), agents.root, agentNote))));
  fill(ctx.actions,
    h("button", { type: "button", onclick: () => download("/api/usage/export", "usage.csv").catch(showError) }, icon("download", 18), "CSV"),
    can("write") && h("button", { class: "primary", type: "button", onclick: () => changeAll().catch(showError) }, icon("edit", 18), "Budgets"));

  async function read() {
    const [budget, summary, byDay, byModel, byAgent] = await Promise.all([
      get("/api/budget", { signal }), get("/api/usage/summary", { signal }), get(`/api/usage/daily?days=${days}`, { signal }),
      get("/api/usage/by-model", { signal }), get("/api/budget/agents", { signal }),
    ]);
    showCards(budget, summary);
    daily = byDay.days;
    // Where nothing costs anything, tokens say more.
    if (isFirst && daily.every((day) => day.cost_usd === 0) && daily.some((day) => day.request_count > 0)) measures.children[1].click();
    else showDaily();
    isFirst = false;
    models.set(byModel.models);
    for (const row of byAgent) learn(row.agent_id, row.agent_name);
    agents.set(byAgent);
  }

  function showCards(budget, summary) {
    const { quota, today } = summary;
    fill(cards,
      budgetCard("Today", budget.today_spent_usd, budget.daily_limit_usd, money, `${count(today.requests, "call")}, ${short(today.input_tokens + today.output_tokens)} tokens`, `resets ${when(budget.daily_reset_at)}`),
      budgetCard("This month", budget.month_spent_usd, budget.monthly_limit_usd, money, budget.reserved_usd > 0 ? `${money(budget.reserved_usd)} reserved for active calls` : "nothing reserved", `resets ${when(budget.monthly_reset_at)}`),
      budgetCard("Tokens this hour", budget.hourly_tokens_used, quota.hourly_token_limit, short, "of all agents", `resets ${when(budget.hourly_reset_at)}`),
      h("section", { class: "card stat" }, h("span", {}, "Global budget"), h("strong", {}, h("span", { class: `badge big ${STATUS[budget.status] ?? ""}` }, STATUS_WORDS[budget.status] ?? budget.status)),
        h("small", {}, STATUS_TEXT[budget.status] ?? "")));
  }

  function showDaily() {
    const names = daily.map(({ date }) => new Date(`${date}T00:00:00Z`).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" }));
    const series = measure === "tokens"
      ? [{ name: "Input", values: daily.map((day) => day.input_tokens) }, { name: "Output", values: daily.map((day) => day.output_tokens) }]
      : [{ name: measure === "cost_usd" ? "Cost" : "Calls", values: daily.map((day) => day[measure]) }];
    chart.format = measure === "cost_usd" ? money : short;
    chart.mark = measure === "cost_usd" ? moneyMark : short;
    chart.set({ ticks: names, series });
  }

  async function changeAll() {
    if (await editBudget({ title: "Global budget", path: "/api/budget", signal })) await again();
  }

  async function changeAgent(row) {
    if (await editBudget({ title: `Budget of ${row.agent_name || "this agent"}`, path: `/api/budget/agents/${row.agent_id}`, signal })) await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}

/** A row of buttons of which one is pressed. */
export function segments(label, options, value, change) {
  const row = h("div", { class: "segments", role: "group", "aria-label": label }, options.map(([text, key]) => h("button", {
    type: "button", "aria-pressed": String(key === value),
    onclick: (event) => {
      for (const other of row.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
      change(key);
    },
  }, text)));
  return row;
}
