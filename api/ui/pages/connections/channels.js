// Channels: the list with the state of each, what can be set up, the allowed chats, and the channel of the address.

import { call, get } from "../../lib/api.js";
import { confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { examples, PLATFORMS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { mark } from "../../lib/marks.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { ChannelView } from "./channel.js";
import { addChannel, editChannel, pairChat, testChannel } from "./channel-form.js";
import { PackageNotice } from "./channel-package.js";
import { channelPath, platformText, stateBadge } from "./channel-words.js";
import { SiteList } from "./sites.js";

const EVERY_MS = 4000;
/** Cards and rows that are shown before the rest is asked for. */
const PAGE = 60;
const GALLERY = "registry";

export async function mount(root, ctx) {
  const { signal } = ctx;
  let view = null;
  /** What the platforms are searched for when they are opened. */
  let asked = "";
  /** Reads what is shown, once that has begun. */
  let again = async () => {};

  const actions = {
    /** Opens the platforms; those alone that have `wanted`, where it is given. */
    browse: (wanted = "") => {
      asked = wanted;
      ctx.go(["connections", "channels", GALLERY]);
    },
    open: (name) => ctx.go(["connections", "channels", name]),
    add: async (entry) => {
      const added = await addChannel(entry);
      if (added) actions.open(added.name);
    },
    edit: async (name) => { if (await editChannel(name)) await again(); },
    test: async (name) => {
      try {
        await testChannel(name);
      } finally {
        await again();
      }
    },
    pair: async (names, chosen) => { if (await pairChat(names, chosen)) await again(); },
    unpair: async (pairing) => {
      const isOpen = pairing.state === "offered";
      const title = isOpen ? `Withdraw the code for ${pairing.channel}?` : `Remove ${pairing.name || pairing.conversation}?`;
      const text = isOpen ? "The code can no longer be used." : "The channel no longer answers this chat, unless its rules let it in.";
      if (!(await confirm({ title, text, action: isOpen ? "Withdraw" : "Remove", run: () => call("DELETE", `/api/channels/pairings/${encodeURIComponent(pairing.id)}`) }))) return;
      await again();
    },
    remove: async (name) => {
      const text = "The daemon stops its adapter and deletes its entry and its stored secrets.";
      if (!(await confirm({ title: `Remove ${name}?`, text, action: "Remove", run: () => call("DELETE", channelPath(name, "/configure")) }))) return;
      toast("Removed");
      if (view === list) await again();
      else ctx.go(["connections", "channels"]);
    },
    reload: async () => {
      const told = await call("POST", "/api/channels/reload");
      toast(`Reloaded: ${count(told.started.length, "channel")} started, ${number(told.stopped.length)} stopped`);
      await again();
    },
  };

  const list = new ChannelList({ signal, actions });

  async function route([name], isFirst = false) {
    const from = view;
    if (name === undefined) view = list;
    else view = name === GALLERY ? new Gallery({ signal, actions, filter: asked }) : new ChannelView({ id: name, signal, actions });
    fill(ctx.actions, view.buttons());
    fill(root, view.node);
    asked = "";
    if (isFirst) return;
    await again();
    if (view === list && from?.id) list.focus(from.id);
    else view.focus();
  }

  ctx.onRoute((path) => {
    if ((path[0] ?? null) !== (view?.id ?? null)) route(path).catch(showError);
  });
  if (can("admin")) ctx.key("n", "Add a channel", () => actions.browse());
  await route(ctx.path, true);
  await view.read();
  again = poll(() => view.read(), EVERY_MS, { signal });
}

/** All channels, and the allowed chats. */
class ChannelList {
  constructor({ signal, actions }) {
    Object.assign(this, { signal, actions, id: null });
    this.rows = [];
    this.shown = "";
    this.counts = h("p", { class: "dim", role: "status" });
    this.table = new Table({
      label: "Channels", signal, rowHeight: 60, fit: true, keyOf: (row) => row.name, open: (row) => actions.open(row.name), empty: "No channels.",
      columns: [
        { label: "Channel", width: "minmax(0, 2.4fr)", sort: (row) => row.name, cell: (row) => h("span", { class: "marked" }, mark(row.display_name || row.name), h("span", { class: "two" }, h("strong", { class: "cut" }, row.name), h("small", { class: "faint cut" }, row.last_error ?? row.display_name))) },
        { label: "State", width: "130px", slim: "116px", sort: (row) => row.state, cell: (row) => stateBadge(row) },
        { label: "Agent", width: "minmax(0, 1fr)", side: true, sort: (row) => row.agent ?? "", cell: (row) => row.agent ?? h("span", { class: "faint" }, "by rules") },
        { label: "Received", width: "100px", side: true, end: true, sort: (row) => row.messages_received, cell: (row) => number(row.messages_received) },
        { label: "Sent", width: "90px", side: true, end: true, sort: (row) => row.messages_sent, cell: (row) => number(row.messages_sent) },
        { label: "Last message", width: "140px", side: true, sort: (row) => row.last_message_at ?? "", cell: (row) => (row.last_message_at ? ago(row.last_message_at) : h("span", { class: "faint" }, "never")) },
        { label: "Actions", width: "60px", slim: "48px", end: true, cell: (row) => this.menu(row) },
      ],
    });
    this.pairings = h("ul", { class: "tool-list", "aria-label": "Paired chats" });
    this.pair = can("admin") && h("button", { type: "button", class: "small", onclick: () => actions.pair(this.rows.map((row) => row.name)).catch(showError) }, icon("plus", 16), "Allow a chat");
    const chats = h("section", { class: "card stack", "aria-label": "Allowed chats" },
      h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Allowed chats"), this.pair),
      h("p", { class: "hint" }, "A channel without rules of its own answers only these chats. To allow a new chat, create a code here and send it from that chat."), this.pairings);
    this.full = h("div", { class: "stack" }, this.counts, this.table.root, chats);
    this.sites = new SiteList();
    this.main = h("div", {});
    this.nothing = emptyState({
      icon: icon("chat", 28), title: "No channels yet",
      text: "A channel lets people write to your agents from Telegram, Slack, e-mail and other platforms.",
      actions: [can("admin") && h("button", { class: "primary", type: "button", onclick: () => actions.browse() }, icon("plus", 18), "Add a channel")],
    });
    if (can("admin")) this.nothing.append(examples(PLATFORMS, ({ id }) => actions.browse(id), { title: "Often used" }));
    this.node = h("div", { class: "stack" }, this.main, this.sites.node);
  }

  buttons() {
    const { actions } = this;
    return can("admin") ? [
      h("button", { type: "button", title: "Read the configuration of channels again", onclick: () => actions.reload().catch(showError) }, icon("retry", 18), "Reload"),
      h("button", { class: "primary", type: "button", onclick: () => actions.browse() }, icon("plus", 18), "Add a channel"),
    ] : [];
  }

  menu(row) {
    const { actions } = this;
    return can("admin") && menuButton({ label: `More for ${row.name}`, class: "quiet small only-icon", items: () => [
      { label: "Send a test message", icon: "send", run: () => actions.test(row.name) },
      { label: "Edit", icon: "edit", run: () => actions.edit(row.name) },
      { label: "Remove", icon: "trash", danger: true, run: () => actions.remove(row.name) },
    ] });
  }

  async read() {
    const { signal } = this;
    const [{ channels }, { pairings }, { web_chats: sites }] = await Promise.all([
      get("/api/channels", { signal }), get(`/api/channels/pairings?limit=${PAGE}`, { signal }), get("/api/web-chats", { signal }),
    ]);
    this.sites.set(sites);
    const before = new Map(this.rows.map((row) => [row.name, JSON.stringify(row)]));
    const old = new Map(this.rows.map((row) => [row.name, row]));
    this.rows = channels.map((row) => (before.get(row.name) === JSON.stringify(row) ? old.get(row.name) : row));
    const isEmpty = channels.length === 0;
    const wanted = isEmpty ? this.nothing : this.full;
    if (wanted.parentNode !== this.main) fill(this.main, wanted);
    if (isEmpty) return;
    this.table.set(this.rows);
    this.counts.textContent = `${count(channels.length, "channel")}, ${number(channels.filter((row) => row.state === "active").length)} active`;
    this.showPairings(pairings);
  }

  showPairings(pairings) {
    const text = JSON.stringify(pairings);
    if (text === this.shown) return;
    this.shown = text;
    const line = (pairing) => h("li", {}, h("div", { class: "bar-row" },
      h("span", { class: "grow two" }, h("strong", { class: "cut" }, pairing.state === "offered" ? "Code that waits for a chat" : pairing.name || pairing.conversation),
        h("small", { class: "faint cut" }, pairing.state === "offered" ? `${pairing.channel}, until ${when(pairing.expires_at)}` : `${pairing.channel}, ${pairing.conversation}, since ${when(pairing.paired_at)}`)),
      can("admin") && h("button", { type: "button", class: "small", data: { key: `unpair ${pairing.id}` }, "aria-label": `${pairing.state === "offered" ? "Withdraw the code" : `Remove ${pairing.name || pairing.conversation}`} of ${pairing.channel}`, onclick: () => this.actions.unpair(pairing).catch(showError) }, pairing.state === "offered" ? "Withdraw" : "Remove")));
    refill(this.pairings, pairings.map(line), pairings.length === 0 ? h("li", { class: "dim" }, "No chats are paired yet. Allow a chat to let it write to a channel.") : null);
  }

  /** Gives the focus back to the row of a channel that was open. */
  focus(id) {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const row = id && this.table.body.querySelector(`[data-row="${CSS.escape(id)}"] .t-open`);
      (row ?? document.querySelector("main")).focus({ preventScroll: true });
    }));
  }
}

/** The platforms for which channels can be set up. */
class Gallery {
  constructor({ signal, actions, filter }) {
    Object.assign(this, { signal, actions, filter, id: GALLERY });
    this.entries = null;
    this.shown = PAGE;
    this.title = h("h2", { tabindex: "-1" }, "Add a channel");
    this.counts = h("p", { class: "dim", role: "status" });
    this.missing = new PackageNotice({ signal, onchange: () => this.show() });
    this.search = h("input", { type: "search", placeholder: "Search platforms", "aria-label": "Search platforms", value: filter, oninput: () => { this.filter = this.search.value.toLowerCase(); this.shown = PAGE; this.show(); } });
    this.list = h("ul", { class: "connection-cards", "aria-label": "Platforms" });
    this.more = h("button", { type: "button", hidden: true, onclick: () => { this.shown += PAGE; this.show(); } }, "Show more");
    this.node = h("div", { class: "stack" }, h("a", { class: "back-link", href: "#/connections/channels" }, icon("chevron", 16), "All channels"), this.title, this.missing.node,
      h("div", { class: "bar-row" }, h("div", { class: "search-field" }, this.search), this.counts), this.list, this.more);
  }

  buttons() {
    return [];
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  async read() {
    if (this.entries !== null) return;
    this.entries = (await get("/api/channels/registry", { signal: this.signal })).channels;
    this.entries.sort((a, b) => platformText(a)[0].localeCompare(platformText(b)[0]));
    this.show();
    // Its answer takes a while: a program is started for it.
    this.missing.check(this.entries).catch(showError);
  }

  show() {
    const text = (entry) => [entry.id, ...platformText(entry), entry.description, entry.category, ...entry.tags].join(" ").toLowerCase();
    const rows = (this.entries ?? []).filter((entry) => text(entry).includes(this.filter));
    this.counts.textContent = count(rows.length, "platform");
    this.more.hidden = rows.length <= this.shown;
    refill(this.list, rows.slice(0, this.shown).map((entry) => this.card(entry)), rows.length === 0 ? h("li", { class: "dim" }, "No matching platform.") : null);
  }

  card(entry) {
    const [name, kind] = platformText(entry);
    const add = can("admin") && h("button", { type: "button", data: { key: `add ${entry.id}` }, "aria-label": `Set up ${name}`, onclick: () => this.actions.add(entry).catch(showError) }, icon("plus", 16), "Set up");
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, mark(entry.id, 32), h("h3", { class: "grow cut" }, name), kind ? h("span", { class: "badge" }, kind) : null),
      h("p", { class: "dim clamp" }, entry.error ?? entry.description),
      h("div", { class: "buttons" }, entry.adapter ? add : h("span", { class: "dim" }, "Set its command in config.toml"), entry.adapter && this.missing.isMissing ? h("span", { class: "badge warn" }, "needs package") : null, entry.channels.length > 0 ? h("span", { class: "badge good" }, "set up") : null));
  }
}
