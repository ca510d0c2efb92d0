// MCP servers: the list with the state of each, and the server whose name is in the address.

import { call, get } from "../../lib/api.js";
import { confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, count, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { mark } from "../../lib/marks.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { examples, SERVERS } from "../../lib/examples.js";
import { ServerView } from "./server.js";
import { editServer, pathOf } from "./server-form.js";
import { canSignIn, signIn, signOut } from "./sign-in.js";
import { elsewhere, sentence, stateBadge, targetText } from "./words.js";

const EVERY_MS = 4000;
/** The list of servers is large: it is read when their health has changed, and after so many looks at that. */
const LOOKS = 15;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let view = null;
  /** Reads what is shown, once that has begun. */
  let again = async () => {};

  const actions = {
    add: async (draft = null) => {
      const added = await editServer(null, draft);
      if (added) open(added.id);
    },
    edit: async (server) => {
      if (!(await editServer(server))) return;
      toast("Saved");
      await changed();
    },
    reconnect: async (server) => {
      try {
        const told = await call("POST", `${pathOf(server.id)}/reconnect`);
        toast(told.status === "connected" ? `${server.name} is connected, with ${count(told.tool_count, "tool")}` : `${server.name} is still connecting`);
      } finally {
        await changed();
      }
    },
    accept: async (server) => {
      try {
        await call("POST", `${pathOf(server.id)}/accept-tools`, { hash: server.tools_review.hash });
        toast("Accepted");
      } finally {
        await changed();
      }
    },
    signIn: async (server) => {
      if (await signIn(server, signal)) toast(`Signed in to ${server.name}`);
      await changed();
    },
    signOut: async (server) => {
      if (!(await signOut(server))) return;
      toast("Signed out");
      await changed();
    },
    remove: async (server) => {
      const text = "The daemon stops the server and deletes its settings and stored values. Agents can no longer call its tools.";
      if (!(await confirm({ title: `Remove ${server.name}?`, text, action: "Remove", run: () => call("DELETE", pathOf(server.id)) }))) return;
      toast("Removed");
      if (view === list) await changed();
      else ctx.go(["connections"]);
    },
    reload: async () => {
      const told = await call("POST", "/api/mcp/reload", {});
      toast(`Catalog reloaded, ${count(told.new_connections, "server")} started`);
      await changed();
    },
    back: () => ctx.go(["connections"]),
  };

  const open = (id) => ctx.go(["connections", "servers", id]);

  async function changed() {
    view.forget();
    await again();
  }

  const list = new ServerList({ signal, actions, open });

  /** Shows the list, or the server that the address names. */
  async function route([id], isFirst = false) {
    const from = view;
    view = id === undefined ? list : new ServerView({ id, signal, actions });
    fill(ctx.actions, view.buttons());
    fill(root, view.node);
    if (isFirst) return;
    await again();
    if (view === list && from?.id) list.focus(from.id);
    else view.focus();
  }

  ctx.onRoute((path) => {
    if ((path[0] ?? null) !== (view?.id ?? null)) route(path).catch(showError);
  });
  if (can("admin")) ctx.key("n", "Add a server", () => actions.add().catch(showError));
  await route(ctx.path, true);
  await view.read();
  again = poll(() => view.read(), EVERY_MS, { signal });
  if (can("admin")) ctx.onNew((name) => actions.add(SERVERS.find((draft) => draft.name === name)).catch(showError));
}

/** All servers. */
class ServerList {
  constructor({ signal, actions, open }) {
    Object.assign(this, { signal, actions, id: null });
    this.servers = null;
    this.rows = [];
    this.filter = "";
    this.known = "";
    this.looks = 0;
    const search = h("input", { type: "search", placeholder: "Filter by name or address", "aria-label": "Filter", oninput: () => { this.filter = search.value.toLowerCase(); this.show(); } });
    this.counts = h("p", { class: "dim", role: "status" });
    this.table = new Table({
      label: "MCP servers", signal, rowHeight: 60, fit: true, open: (row) => open(row.id), empty: "No matching server.",
      columns: [
        { label: "Server", width: "minmax(0, 2.4fr)", sort: (row) => row.name, cell: (row) => h("span", { class: "marked" }, mark(row.template_id ?? row.name), h("span", { class: "two" }, h("strong", { class: "cut" }, row.name), h("small", { class: "faint cut" }, row.fault ? sentence(row.fault) : targetText(row.transport)))) },
        { label: "State", width: "130px", slim: "116px", sort: (row) => row.health?.status ?? row.status, cell: (row) => stateBadge(row, row.health) },
        { label: "Tools", width: "110px", side: true, end: true, sort: (row) => row.tool_count, cell: (row) => (row.health?.tools_to_review > 0 ? h("span", { class: "badge warn" }, `${number(row.health.tools_to_review)} to accept`) : number(row.tool_count)) },
        { label: "Last response", width: "140px", side: true, sort: (row) => row.health?.last_ok ?? "", cell: (row) => (row.health?.last_ok ? ago(row.health.last_ok) : h("span", { class: "faint" }, "never")) },
        { label: "Actions", width: "60px", slim: "48px", end: true, cell: (row) => this.menu(row) },
      ],
    });
    this.full = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), this.counts), this.table.root);
    this.nothing = emptyState({
      icon: icon("link", 28), title: "No MCP servers yet",
      text: "An MCP server gives your agents tools, such as files, a calendar or a code host.",
      actions: [can("admin") && h("button", { class: "primary", type: "button", onclick: () => actions.add().catch(showError) }, icon("plus", 18), "Add a server")],
    });
    if (can("admin")) this.nothing.append(examples(SERVERS, (draft) => actions.add(draft).catch(showError)));
    this.nothing.append(h("p", { class: "hint" }, elsewhere("https://github.com/modelcontextprotocol/servers", "Servers that there are"), " · ", elsewhere("https://modelcontextprotocol.io/", "About the protocol"), " · ", h("a", { href: "#/connections/catalog" }, "Catalog")));
    this.node = h("div", {});
  }

  buttons() {
    const { actions } = this;
    return can("admin") ? [
      h("button", { type: "button", title: "Read the catalog again and restart servers whose entry changed", onclick: () => actions.reload().catch(showError) }, icon("retry", 18), "Reload"),
      h("button", { class: "primary", type: "button", onclick: () => actions.add().catch(showError) }, icon("plus", 18), "Add a server"),
    ] : [];
  }

  menu(row) {
    const { actions } = this;
    return can("admin") && menuButton({ label: `More for ${row.name}`, class: "quiet small only-icon", items: () => [
      ...(canSignIn(row) ? [{ label: "Sign in", icon: "key", run: () => actions.signIn(row) }] : []),
      { label: "Reconnect", icon: "retry", run: () => actions.reconnect(row) },
      ...(row.source === "config" ? [] : [{ label: "Edit", icon: "edit", run: () => actions.edit(row) }, { label: "Remove", icon: "trash", danger: true, run: () => actions.remove(row) }]),
    ] });
  }

  forget() {
    this.servers = null;
  }

  async read() {
    const { signal } = this;
    const { health } = await get("/api/mcp/health", { signal });
    const known = JSON.stringify(health.map(({ id, status, tool_count: tools, tools_to_review: waiting, reconnecting }) => [id, status, tools, waiting, reconnecting]));
    this.looks += 1;
    if (this.servers === null || known !== this.known || this.looks >= LOOKS) {
      this.servers = (await get("/api/mcp/servers", { signal })).servers;
      this.known = known;
      this.looks = 0;
    }
    const of = new Map(health.map((item) => [item.id, item]));
    const before = new Map(this.rows.map((row) => [row.id, row]));
    this.rows = this.servers.map(({ tools: _, flagged_tools: __, tools_review: ___, ...server }) => {
      const item = of.get(server.id);
      const row = { ...server, health: item, fault: item?.status === "connected" ? null : (server.error ?? item?.last_error ?? null) };
      const old = before.get(row.id);
      return old && JSON.stringify(old) === JSON.stringify(row) ? old : row;
    });
    this.show();
  }

  show() {
    const isEmpty = this.rows.length === 0;
    const wanted = isEmpty ? this.nothing : this.full;
    if (wanted.parentNode !== this.node) fill(this.node, wanted);
    if (isEmpty) return;
    const rows = this.rows.filter((row) => `${row.name} ${targetText(row.transport)}`.toLowerCase().includes(this.filter));
    const connected = this.rows.filter((row) => row.health?.status === "connected").length;
    this.table.set(rows);
    this.counts.textContent = `${count(this.rows.length, "server")}, ${number(connected)} connected`;
  }

  /** Gives the focus back to the row of a server that was open. */
  focus(id) {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const row = id && this.table.body.querySelector(`[data-row="${CSS.escape(id)}"] .t-open`);
      (row ?? (this.rows.length > 0 ? this.table.view : document.querySelector("main"))).focus({ preventScroll: true });
    }));
  }
}
