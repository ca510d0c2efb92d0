// Budgets of the installation, of a user or of an agent: the form of the limits, and what is spent of them.

import { call, get } from "./api.js";
import { numberInput, numberOf } from "./controls.js";
import { ask, toast } from "./dialogs.js";
import { field, h } from "./dom.js";
import { money, number } from "./format.js";

/** How a budget is marked that is `ok`, `warning` or `exceeded`. */
export const STATUS = { ok: "good", warning: "warn", exceeded: "bad" };

/** What a status is called. */
export const STATUS_WORDS = { ok: "Within limits", warning: "Near a limit", exceeded: "Exceeded" };

/** What a status means. */
export const STATUS_TEXT = { ok: "Requests are allowed.", warning: "80 % of a limit is used.", exceeded: "Requests are refused until a limit is raised or the next period starts." };

/** "$0.12 of $5.00", or "$0.12" without a limit, which is 0. */
export const spentOf = (spent, limit, format = money) => (limit > 0 ? `${format(spent)} of ${format(limit)}` : format(spent));

/** Spent against a limit, with a bar; a limit of 0 is none. */
export function budgetCard(name, spent, limit, format, note, reset, style = "card stat") {
  const part = limit > 0 ? Math.min(1, spent / limit) : 0;
  const level = part >= 1 ? "bad" : part >= 0.8 ? "warn" : "";
  return h("section", { class: style, title: reset }, h("span", {}, name), h("strong", {}, format(spent)),
    h("small", {}, limit > 0 ? `of ${format(limit)}, ${number(Math.round(part * 100))} %` : "no limit"),
    h("div", { class: `meter ${level}`, role: "meter", "aria-label": `${name}: ${format(spent)} of ${limit > 0 ? format(limit) : "no limit"}`, "aria-valuenow": Math.round(part * 100), "aria-valuemin": 0, "aria-valuemax": 100 }, h("i", { style: { "--part": `${part * 100}%` } })),
    h("small", {}, note));
}

/** Asks for the limits at `path`; gives the budget, or null when it was left. */
export async function editBudget({ title, path, text = "Applies from the next call and overrides the configuration and the manifest.", signal }) {
  const budget = await get(path, { signal });
  const limit = (label, value, hint, step) => field(label, numberInput(value > 0 ? value : "", { min: 0, step, placeholder: "no limit" }), { hint });
  const day = limit("Daily limit (USD)", budget.daily_limit_usd, `Spent today: ${money(budget.today_spent_usd)}.`, "any");
  const month = limit("Monthly limit (USD)", budget.monthly_limit_usd, `Spent this month: ${money(budget.month_spent_usd)}.`, "any");
  const hour = limit("Hourly limit (tokens)", budget.hourly_token_limit, `Used this hour: ${number(budget.hourly_tokens_used)}.`, 1);
  const made = await ask({
    title, action: "Save", fields: { daily_limit_usd: day, monthly_limit_usd: month, hourly_token_limit: hour },
    body: [h("p", { class: "dim" }, `Leave empty for no limit. ${text}`), day, month, hour],
    submit: () => call("PUT", path, { daily_limit_usd: numberOf(day.control), monthly_limit_usd: numberOf(month.control), hourly_token_limit: numberOf(hour.control) }),
  });
  if (made) toast("Budget saved");
  return made;
}
