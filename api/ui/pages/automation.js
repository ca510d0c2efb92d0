// Automation: what acts by itself. Times, triggers, workflows, goals and tasks.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Automation";

const TABS = [
  { name: "times", label: "Times", text: "Schedules and cron jobs: when agents act by the clock, and how it went.", load: () => import("./automation/times.js") },
  { name: "triggers", label: "Triggers", text: "What happens in the world, and which agent is told.", load: () => import("./automation/triggers.js") },
  { name: "workflows", label: "Workflows", text: "Steps that agents take one after the other, and their runs.", load: () => import("./automation/workflows.js") },
  { name: "goals", label: "Goals", text: "What agents work towards. Open goals stand in their agent's prompt.", load: () => import("./automation/goals.js") },
  { name: "tasks", label: "Tasks", text: "Work that waits for whoever takes it.", load: () => import("./automation/tasks.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/automation.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "automation", title, tabs: TABS });
}
