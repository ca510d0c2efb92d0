// Money and trust: what is spent, what waits for a person, what was done, and what protects.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Money & trust";

const TABS = [
  { name: "spending", label: "Spending", text: "What models cost, against the budgets.", load: () => import("./money/spending.js") },
  { name: "approvals", label: "Approvals", text: "Actions that wait for a person.", load: () => import("./money/approvals.js") },
  { name: "audit", label: "Audit", text: "The record of every action, which cannot be changed unseen.", load: () => import("./money/audit.js") },
  { name: "security", label: "Security", text: "What protects this daemon, and what is off.", load: () => import("./money/security.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/money.css", import.meta.url))]);
  const leave = mountTabs(root, ctx, { name: "money", title, tabs: TABS });
  return leave;
}
