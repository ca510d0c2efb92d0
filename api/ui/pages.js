// The pages of the shell, in the order of the navigation. A page is one line here and one module in `pages/`:
//
//   export const title = "World";
//   export async function mount(root, ctx) { ...; return unmount; }
//
// `root` is an empty element that is the page's own. `ctx` is described in app.js (`class Context`). `mount` may fail:
// the shell then shows the error with a way to try again. `unmount` (optional) is called before the element goes;
// everything that was begun with `ctx.signal` has ended by then. A module is loaded when its page is first opened.

/** `name` is the first part of the address (`#/chat`), `key` opens the page after `g`, `icon` names one of icons.js; `short` stands in the navigation; one that `hasParts` exports them as `TABS`; `scope` and `all: true` say for which keys it is (lib/me.js); one that `isInner` is reached by links only. */
export const PAGES = [
  { name: "chat", label: "Chat", icon: "chat", key: "c", load: () => import("./pages/chat.js") },
  { name: "home", isInner: true, all: true, label: "Overview", icon: "home", key: "h", load: () => import("./pages/home.js") },
  { name: "inbox", isInner: true, all: true, label: "Inbox", icon: "inbox", key: "i", load: () => import("./pages/inbox.js") },
  { name: "agent", isInner: true, label: "Agent", icon: "agents", load: () => import("./pages/agent.js") },
  { name: "world", all: true, label: "World", icon: "world", key: "w", hasParts: true, load: () => import("./pages/world.js") },
  { name: "memory", label: "Memory", icon: "database", key: "e", hasParts: true, load: () => import("./pages/memory.js") },
  { name: "automation", scope: "write", label: "Automation", icon: "automation", key: "a", hasParts: true, load: () => import("./pages/automation.js") },
  { name: "connections", all: true, label: "Connections", short: "Connect", icon: "link", key: "o", hasParts: true, load: () => import("./pages/connections.js") },
  { name: "library", label: "Library", icon: "book", key: "l", hasParts: true, load: () => import("./pages/library.js") },
  { name: "money", all: true, label: "Cost & control", short: "Control", icon: "money", key: "m", hasParts: true, load: () => import("./pages/money.js") },
  { name: "settings", all: true, label: "Settings", icon: "settings", key: "s", hasParts: true, load: () => import("./pages/settings.js") },
  { name: "cluster", isInner: true, all: true, label: "Cluster", icon: "database", load: () => import("./pages/cluster.js") },
];

/** What stands where an address names no page. */
export const LOST = { name: "lost", label: "Page not found", load: () => import("./pages/lost.js") };
