// Settings: providers and their keys, models, the configuration, backups, and how the daemon is.

import { useStyles } from "../lib/dom.js";
import { allowed } from "../lib/me.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Settings";

/** What stands where devices cannot be paired. */
const PAIRING = { title: "Device pairing is off", text: "Turn it on to give phones and other devices keys of their own.", key: "pairing.enabled", lines: "[pairing]\nenabled = true" };

export const TABS = [
  { name: "providers", label: "Providers", text: "Model providers and API keys. Keys are write-only.", load: () => import("./settings/providers.js") },
  { name: "models", label: "Models", text: "Models, prices, capabilities and aliases.", load: () => import("./settings/models.js") },
  { name: "config", label: "Configuration", text: "Edit config.toml. Comments and order of the file are kept.", load: () => import("./settings/config.js") },
  { name: "backups", scope: "admin", label: "Backups", text: "Agents, sessions, memory and configuration in one file.", load: () => import("./settings/backups.js"), absent: "This daemon does not support backups over the API. Stop the daemon and copy its home instead." },
  { name: "people", label: "Users and keys", text: "Who may use this daemon, and with which keys.", load: () => import("./settings/people.js") },
  { name: "devices", label: "Devices", text: "Phones and other devices with keys of their own.", load: () => import("./settings/devices.js"), absent: PAIRING },
  { name: "sessions", label: "Sessions", text: "Who has signed in, and from where.", load: () => import("./settings/sessions.js") },
  { name: "notifications", label: "Notifications", text: "What this browser tells you while you look elsewhere.", load: () => import("./settings/notifications.js") },
  { name: "terminal", scope: "admin", label: "Terminal", text: "A shell on the machine of the daemon.", load: () => import("./settings/terminal.js") },
  { name: "health", label: "Health", text: "What works, and what needs your attention.", load: () => import("./settings/health.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/settings.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "settings", title, tabs: allowed(TABS) });
}
