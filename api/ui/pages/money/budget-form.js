// The form of a budget: everybody's, or one agent's.

import { call, get } from "../../lib/api.js";
import { numberInput, numberOf } from "../../lib/controls.js";
import { ask, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { money, number } from "../../lib/format.js";

/** Asks for the limits at `path`; gives the budget, or null when it was left. */
export async function editBudget({ title, path, signal }) {
  const budget = await get(path, { signal });
  const limit = (label, value, hint, step) => field(label, numberInput(value > 0 ? value : "", { min: 0, step, placeholder: "no limit" }), { hint });
  const day = limit("Dollars per day", budget.daily_limit_usd, `Spent today: ${money(budget.today_spent_usd)}.`, "any");
  const month = limit("Dollars per month", budget.monthly_limit_usd, `Spent this month: ${money(budget.month_spent_usd)}.`, "any");
  const hour = limit("Tokens per hour", budget.hourly_token_limit, `Used this hour: ${number(budget.hourly_tokens_used)}.`, 1);
  const made = await ask({
    title, action: "Save", fields: { daily_limit_usd: day, monthly_limit_usd: month, hourly_token_limit: hour },
    body: [h("p", { class: "dim" }, "Leave empty for no limit. Applies from the next call and overrides the configuration and the manifest."), day, month, hour],
    submit: () => call("PUT", path, { daily_limit_usd: numberOf(day.control), monthly_limit_usd: numberOf(month.control), hourly_token_limit: numberOf(hour.control) }),
  });
  if (made) toast("Budget saved");
  return made;
}
