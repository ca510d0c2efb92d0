// Memory: the entries that agents keep, their knowledge graphs, and what keeps both in order.

import { useStyles } from "../lib/dom.js";
import { allowed } from "../lib/me.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Memory";

export const TABS = [
  { name: "entries", all: true, label: "Entries", text: "Facts that agents remember about users, sessions and their own work.", load: () => import("./memory/entries.js") },
  { name: "graph", label: "Knowledge graph", text: "What an agent knows about people, projects and other things, and how they are related.", load: () => import("./memory/graph.js") },
  { name: "upkeep", all: true, label: "Maintenance", text: "Statistics, duplicates, cleanup, export and import.", load: () => import("./memory/upkeep.js") },
];

export async function mount(root, ctx) {
  await Promise.all(["parts", "connections", "memory"].map((name) => useStyles(new URL(`../styles/${name}.css`, import.meta.url))));
  return mountTabs(root, ctx, { name: "memory", title, tabs: allowed(TABS) });
}
