// The pages of the shell, in the order of the navigation. A page is one line here and one module in `pages/`:
//
//   export const title = "World";
//   export async function mount(root, ctx) { ...; return unmount; }
//
// `root` is an empty element that is the page's own. `ctx` is described in app.js (`class Context`). `mount` may fail:
// the shell then shows the error with a way to try again. `unmount` (optional) is called before the element goes;
// everything that was begun with `ctx.signal` has ended by then. A module is loaded when its page is first opened.

/** `name` is the first part of the address (`#/chat`), `key` opens the page after `g`, `icon` names one of icons.js; `short` stands in the navigation. */
export const PAGES = [
  { name: "chat", label: "Chat", icon: "chat", key: "c", load: () => import("./pages/chat.js") },
  { name: "world", label: "World", icon: "world", key: "w", load: () => import("./pages/world.js") },
  { name: "memory", label: "Memory", icon: "database", key: "e", load: () => import("./pages/memory.js") },
  { name: "automation", label: "Automation", icon: "automation", key: "a", load: () => import("./pages/automation.js") },
  { name: "connections", label: "Connections", short: "Connect", icon: "link", key: "o", load: () => import("./pages/connections.js") },
  { name: "library", label: "Library", icon: "book", key: "l", load: () => import("./pages/library.js") },
  { name: "money", label: "Money & trust", short: "Money", icon: "money", key: "m", load: () => import("./pages/money.js") },
  { name: "settings", label: "Settings", icon: "settings", key: "s", load: () => import("./pages/settings.js") },
];
