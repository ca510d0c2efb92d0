// World: what the daemon does right now, what happens, queries over it, its snapshots and rehearsals.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "World";

const ABSENT = "This daemon does not support this page. Update the daemon and reload.";
export const TABS = [
  { name: "live", label: "Live", text: "Live activity, and the last hour.", absent: ABSENT, load: () => import("./world/live.js") },
  { name: "events", label: "Events", text: "What happened, newest first.", absent: ABSENT, load: () => import("./world/events.js") },
  { name: "logs", label: "Logs", text: "What the daemon logs, newest first.", absent: ABSENT, load: () => import("./world/logs.js") },
  { name: "query", label: "Query", text: "Query agents, turns, schedules and everything else.", absent: ABSENT, load: () => import("./world/query.js") },
  { name: "snapshots", label: "Snapshots", text: "Save the state of all agents, and restore it later.", absent: ABSENT, load: () => import("./world/snapshots.js") },
  { name: "rehearsals", label: "Rehearsals", text: "Simulate the coming days: what fires and what it costs.", absent: ABSENT, load: () => import("./world/rehearsals.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/world.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "world", title, tabs: TABS });
}
