// Cost and control: what is spent, what waits for a person, what was done, and what protects.

import { onApprovals } from "../lib/badge.js";
import { useStyles } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Cost & control";

export const TABS = [
  { name: "spending", label: "Spending", text: "Model cost and budgets.", load: () => import("./money/spending.js") },
  { name: "approvals", label: "Approvals", text: "Tool calls that wait for your decision.", load: () => import("./money/approvals.js") },
  { name: "audit", label: "Audit", text: "Tamper-evident log of every action.", load: () => import("./money/audit.js") },
  { name: "security", label: "Security", text: "Which protections are on, and what changes them.", load: () => import("./money/security.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/money.css", import.meta.url))]);
  const leave = mountTabs(root, ctx, { name: "money", title, tabs: TABS, badges: (badge) => onApprovals((count) => badge("approvals", count > 0 ? number(count) : ""), ctx.signal) });
  return leave;
}
