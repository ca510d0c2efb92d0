// Automation: what acts by itself. Times, triggers, workflows, goals and tasks.

import { useStyles } from "../lib/dom.js";
import { allowed } from "../lib/me.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Automation";

export const TABS = [
  { name: "times", scope: "chat", label: "Schedules", text: "Prompts that are sent to agents at set times, their next runs and results.", load: () => import("./automation/times.js") },
  { name: "triggers", scope: "chat", label: "Triggers", text: "Send a prompt to an agent when an event happens.", load: () => import("./automation/triggers.js") },
  { name: "workflows", label: "Workflows", text: "Pipelines of agent steps, and their runs.", load: () => import("./automation/workflows.js") },
  { name: "goals", label: "Goals", text: "Goals of agents. Open goals are part of the agent's prompt.", load: () => import("./automation/goals.js") },
  { name: "tasks", scope: "chat", label: "Tasks", text: "The shared task queue.", load: () => import("./automation/tasks.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/automation.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "automation", title, tabs: allowed(TABS) });
}
