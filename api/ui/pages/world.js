// World: what the daemon does right now, what happens, queries over it, its snapshots and rehearsals.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "World";

const ABSENT = "This part needs a daemon that has it. Update the daemon and reload the page; everything else works.";
const TABS = [
  { name: "live", label: "Live", text: "What the daemon does right now.", absent: ABSENT, load: () => import("./world/live.js") },
  { name: "events", label: "Events", text: "What happens, as it becomes durable.", absent: ABSENT, load: () => import("./world/events.js") },
  { name: "query", label: "Query", text: "Ask for agents, turns, schedules and all else by their fields.", absent: ABSENT, load: () => import("./world/query.js") },
  { name: "snapshots", label: "Snapshots", text: "The whole world at one moment, to go back to.", absent: ABSENT, load: () => import("./world/snapshots.js") },
  { name: "rehearsals", label: "Rehearsals", text: "The world run ahead in virtual time: what will fire, and what it will cost.", absent: ABSENT, load: () => import("./world/rehearsals.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/world.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "world", title, tabs: TABS });
}
