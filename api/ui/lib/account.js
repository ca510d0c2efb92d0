// The account of the person who uses the page: who they are here, what their agents have spent of what they may, and where they are
// signed in.

import { get } from "./api.js";
import { STATUS, STATUS_TEXT, STATUS_WORDS, budgetCard } from "./budget.js";
import { show } from "./dialogs.js";
import { h, useStyles } from "./dom.js";
import { money, short, when } from "./format.js";
import { me, seesAll } from "./me.js";

const part = (name, spent, limit, format, reset) => budgetCard(name, spent, limit, format, `resets ${when(reset)}`, null, "stat");

/** Shows it, until it is closed. */
export async function showAccount() {
  const { kind, name, role, user_id: user } = me();
  const [budget] = await Promise.all([get(`/api/budget/users/${user}`), useStyles(new URL("../styles/parts.css", import.meta.url))]);
  const ending = new AbortController();
  // Who sees everything has them in the settings, with those of others.
  const sessions = kind === "session" && !seesAll() ? h("section", { class: "stack tight-stack", "aria-label": "Your sessions" }) : null;
  if (sessions) {
    const place = h("div");
    sessions.append(h("h3", {}, "Your sessions"), place);
    const { mount } = await import("../pages/settings/sessions.js");
    await mount(place, { signal: ending.signal });
  }
  await show({
    title: "Your account",
    body: [
      h("dl", { class: "pairs" }, h("dt", {}, "Name"), h("dd", {}, name), h("dt", {}, "Role"), h("dd", {}, h("span", { class: "badge" }, role)),
        h("dt", {}, "Budget"), h("dd", {}, h("span", { class: `badge ${STATUS[budget.status] ?? ""}` }, STATUS_WORDS[budget.status] ?? budget.status), ` ${STATUS_TEXT[budget.status] ?? ""}`)),
      h("div", { class: "stat-row" },
        part("Today", budget.today_spent_usd, budget.daily_limit_usd, money, budget.daily_reset_at),
        part("This month", budget.month_spent_usd, budget.monthly_limit_usd, money, budget.monthly_reset_at),
        part("Tokens this hour", budget.hourly_tokens_used, budget.hourly_token_limit, short, budget.hourly_reset_at)),
      h("p", { class: "hint" }, "What all your agents spend together. An admin sets the limits."), sessions,
    ],
  });
  ending.abort();
}
