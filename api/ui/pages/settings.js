// Settings: providers and their keys, models, the configuration, backups, and how the daemon is.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Settings";

const TABS = [
  { name: "providers", label: "Providers", text: "Where models are asked, and the keys for it. Keys can be set, never read.", load: () => import("./settings/providers.js") },
  { name: "models", label: "Models", text: "What models there are, what they cost and can do, and short names for them.", load: () => import("./settings/models.js") },
  { name: "config", label: "Configuration", text: "The keys of config.toml. Comments and order of the file stay as they are.", load: () => import("./settings/config.js") },
  { name: "backups", label: "Backups", text: "Everything in one file: agents, sessions, memory, configuration.", load: () => import("./settings/backups.js"), absent: "Backups over the API need a daemon that has them. Stop the daemon and copy its home instead." },
  { name: "health", label: "Health", text: "How the daemon is, and what to look at.", load: () => import("./settings/health.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/settings.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "settings", title, tabs: TABS });
}
