// Connections: MCP servers and their catalog, channels, agents of other systems, which agents talk to each other, and other
// nodes.

import { useStyles } from "../lib/dom.js";
import { mountTabs } from "../lib/tabs.js";

export const title = "Connections";

export const TABS = [
  { name: "servers", label: "MCP servers", text: "Programs and services whose tools your agents can call.", load: () => import("./connections/servers.js") },
  { name: "catalog", label: "Catalog", text: "Servers that can be installed from files in mcp/catalog.", load: () => import("./connections/catalog.js") },
  { name: "channels", label: "Channels", text: "Messengers from which people write to your agents.", absent: "This daemon has no channels. Update it to use this part.", load: () => import("./connections/channels.js") },
  { name: "agents", label: "External agents", text: "Agents of other systems, and how they reach yours (A2A).", load: () => import("./connections/a2a.js") },
  { name: "graph", label: "Live graph", text: "Which agents talk to each other, as it happens.", load: () => import("./connections/talk.js") },
  { name: "peers", label: "Peers", text: "Other nodes whose agents can be messaged.", absent: "This daemon cannot connect to other nodes. Update it to use this part.", load: () => import("./connections/peers.js") },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/connections.css", import.meta.url))]);
  return mountTabs(root, ctx, { name: "connections", title, tabs: TABS });
}
