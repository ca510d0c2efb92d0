// Users and keys: who may use the daemon, and with which keys. A key is shown once, when it is created.

import { call, get, page } from "../../lib/api.js";
import { editBudget, spentOf } from "../../lib/budget.js";
import { copyText } from "../../lib/code.js";
import { choice, textInput } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, count, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, me } from "../../lib/me.js";
import { inLanes, perFrame, poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 10_000;
/** Budgets that are read at once. */
const LANES = 4;
const ROLES = [["viewer", "Viewer: reads"], ["user", "User: has agents"], ["admin", "Admin: everything but owners"], ["owner", "Owner: everything"]];
const SCOPES = [["read", "Read"], ["chat", "Chat with agents"], ["write", "Change agents and what belongs to them"], ["admin", "Change the installation"]];
const DAY_SECS = 86_400;
const ENDS = [["", "Never"], [String(DAY_SECS), "In a day"], [String(7 * DAY_SECS), "In 7 days"], [String(30 * DAY_SECS), "In 30 days"], [String(365 * DAY_SECS), "In a year"]];

/** The roles that this key may give. */
const roles = () => ROLES.filter(([role]) => role !== "owner" || me().role === "owner");
/** May this key touch one of this role? */
const isBelow = (role) => can("admin") && (role !== "owner" || me().role === "owner");

export async function mount(root, ctx) {
  const { signal } = ctx;
  let users = [];
  /** Budgets by the id of the user. Those of the rows that are seen are read as often as the list is. */
  const budgets = new Map();
  const isRead = new Set();
  const due = new Set();
  const readDue = perFrame(readBudgets, signal);
  const nameOf = (id) => users.find((user) => user.id === id)?.name ?? "";
  const two = (strong, small) => h("span", { class: "two" }, h("strong", { class: "cut" }, strong), h("small", { class: "faint cut" }, small));

  const people = new Table({
    label: "Users", signal, rowHeight: 60, slimHeight: 92, fit: true, empty: "No users yet. Add people who sign in with an account and limits of their own.",
    columns: [
      { label: "Name", width: "minmax(0, 2fr)", cell: (user) => two(user.name, [h("span", { class: "narrow-only" }, `${[user.role, ...spentBy(user)].join(" · ")} · `), [user.configured ? "set in config.toml" : "", ...Object.entries(user.channel_bindings).map(([channel, id]) => `${channel} ${id}`)].filter(Boolean).join(" · ") || "no chats"]) },
      { label: "Role", width: "100px", side: true, cell: (user) => h("span", { class: "badge" }, user.role) },
      { label: "Spent", width: "minmax(0, 1.4fr)", side: true, cell: spending },
      { label: "Keys", width: "90px", side: true, end: true, cell: (user) => count(user.keys, "key") },
      { label: "Actions", width: "140px", slim: "132px", end: true, cell: userActions },
    ],
  });
  const keys = new Table({
    label: "API keys", signal, rowHeight: 60, slimHeight: 92, fit: true, empty: "No named keys yet. Create one for a program, with only the rights that it needs.",
    columns: [
      { label: "Name", width: "minmax(0, 2fr)", cell: (key) => two(key.name, [nameOf(key.user_id), key.scopes.length > 0 ? `only ${key.scopes.join(", ")}` : ""].filter(Boolean).join(" · ") || `created ${ago(key.created_at)}`) },
      { label: "Role", width: "100px", side: true, cell: (key) => h("span", { class: "badge" }, key.role) },
      { label: "Expires", width: "minmax(0, 1fr)", side: true, cell: (key) => expiry(key) },
      { label: "Last used", width: "minmax(0, 1fr)", side: true, cell: (key) => h("span", { class: "dim cut" }, key.last_used_at ? ago(key.last_used_at) : "never") },
      { label: "Actions", width: "110px", slim: "98px", end: true, cell: (key) => isBelow(key.role) ? h("button", { type: "button", class: "small", "aria-label": `Revoke ${key.name}`, onclick: () => revoke(key).catch(showError) }, "Revoke…") : null },
    ],
  });
  const nothing = emptyState({ icon: icon("key", 28), title: "One key for everything", text: "Give each program and each person a key of their own, with only the rights they need. Revoke it without touching the others.", actions: can("admin") ? [h("button", { type: "button", onclick: () => edit(null).catch(showError) }, icon("plus", 18), "Add the first user"), h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("key", 18), "Create the first key")] : [] });
  const userPart = h("section", { class: "stack", "aria-labelledby": "people-users" }, h("h2", { id: "people-users" }, "Users"), people.root);
  const keyPart = h("section", { class: "stack", "aria-labelledby": "people-keys" }, h("h2", { id: "people-keys" }, "API keys"), keys.root);
  fill(root, h("div", { class: "stack" }, nothing, userPart, keyPart));
  if (can("admin")) {
    fill(ctx.actions,
      h("button", { type: "button", onclick: () => edit(null).catch(showError) }, icon("plus", 18), "Add a user"),
      h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("key", 18), "Create a key"));
  }

  /** What the agents of a user have spent, of what they may: today and this month; nothing until it is known. */
  function spentBy(user) {
    if (!isRead.has(user.id)) {
      isRead.add(user.id);
      due.add(user.id);
      readDue();
    }
    const budget = budgets.get(user.id);
    return budget ? [`${spentOf(budget.today_spent_usd, budget.daily_limit_usd)} today`, `${spentOf(budget.month_spent_usd, budget.monthly_limit_usd)} this month`] : [];
  }

  function spending(user) {
    const made = two(...spentBy(user));
    if (budgets.get(user.id)?.status === "exceeded") made.classList.add("danger-text");
    return made;
  }

  async function readBudgets() {
    const ids = [...due];
    due.clear();
    let isNew = false;
    await inLanes(ids, LANES, async (id) => {
      // One who was deleted meanwhile is gone from the next list.
      const budget = await get(`/api/budget/users/${id}`, { signal }).catch(() => null);
      if (!budget || JSON.stringify(budget) === JSON.stringify(budgets.get(id))) return;
      budgets.set(id, budget);
      isNew = true;
    });
    if (isNew && !signal.aborted) people.redraw();
  }

  async function limit(user) {
    const text = "Applies to all agents of the user together, from the next call, and overrides the limits for users in the configuration.";
    const budget = await editBudget({ title: `Budget of ${user.name}`, path: `/api/budget/users/${user.id}`, text, signal });
    if (!budget) return;
    budgets.set(user.id, budget);
    people.redraw();
  }

  function userActions(user) {
    const budget = can("write") ? h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Budget of ${user.name}`, title: "Budget", onclick: () => limit(user).catch(showError) }, icon("money", 17)) : null;
    if (user.configured || !isBelow(user.role)) return budget && h("span", { class: "row-actions" }, budget);
    return h("span", { class: "row-actions" }, budget,
      h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Edit ${user.name}`, title: "Edit", onclick: () => edit(user).catch(showError) }, icon("edit", 17)),
      h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Delete ${user.name}`, title: "Delete", onclick: () => remove(user).catch(showError) }, icon("trash", 17)));
  }

  function expiry(key) {
    if (!key.expires_at) return h("span", { class: "dim" }, "never");
    const isOver = new Date(key.expires_at) <= new Date();
    return h("time", { class: isOver ? "danger-text cut" : "cut", datetime: key.expires_at, title: when(key.expires_at) }, isOver ? "expired" : ago(key.expires_at));
  }

  async function whole(path, name) {
    const items = [];
    let cursor = null;
    do {
      const found = await page(path, name, { limit: 200, cursor }, { signal });
      items.push(...found.items);
      cursor = found.next;
    } while (cursor !== null);
    return items;
  }

  async function read() {
    isRead.clear();
    const [someUsers, someKeys] = await Promise.all([whole("/api/users", "users"), whole("/api/keys", "keys")]);
    users = someUsers;
    people.set(someUsers);
    keys.set(someKeys);
    nothing.hidden = someUsers.length + someKeys.length > 0;
    userPart.hidden = someUsers.length === 0;
    keyPart.hidden = someKeys.length === 0;
  }

  /** Adds a user, or changes one. */
  async function edit(user) {
    const name = field("Name", textInput(user?.name ?? "", { maxlength: "128" }));
    const role = field("Role", choice(roles(), user?.role ?? "user"));
    const chats = field("Chats", textInput(Object.entries(user?.channel_bindings ?? {}).map(([channel, id]) => `${channel}=${id}`).join(", ")), { hint: "Who they are in channels, such as telegram=123456. Separate several with commas." });
    const done = await ask({
      title: user ? `Edit ${user.name}` : "Add a user", action: user ? "Save" : "Add", body: [name, role, chats], fields: { name, role, channel_bindings: chats },
      submit: () => {
        const bindings = bindingsOf(chats.control.value);
        const body = { name: name.control.value.trim(), role: role.control.value, channel_bindings: bindings };
        return user ? call("PUT", `/api/users/${user.id}`, body) : call("POST", "/api/users", body);
      },
    });
    if (!done) return;
    toast(user ? "Saved" : `${done.name} was added. Create a key for them.`);
    await again();
  }

  function bindingsOf(text) {
    const pairs = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => part.split("="));
    return Object.fromEntries(pairs.map(([channel, ...id]) => [channel.trim(), id.join("=").trim()]));
  }

  async function remove(user) {
    const text = `Their ${count(user.keys, "key")} stop working at once. Their agents stay, for admins.`;
    if (!(await confirm({ title: `Delete ${user.name}?`, text, run: () => call("DELETE", `/api/users/${user.id}`) }))) return;
    toast("Deleted");
    await again();
  }

  async function create() {
    const name = field("Name", textInput("", { maxlength: "128" }), { hint: "What uses the key, such as monitoring or Ann's laptop." });
    const owned = users.filter((user) => isBelow(user.role)).map((user) => [user.id, `${user.name} (${user.role})`]);
    const owner = field("Belongs to", choice([["", "No user (admin rights)"], ...(me().role === "owner" ? [["owner", "No user (owner rights)"]] : []), ...owned], ""), { hint: "A user's key has the user's permissions." });
    const boxes = SCOPES.filter(([scope]) => can(scope)).map(([scope, label]) => [scope, h("input", { type: "checkbox", checked: true }), label]);
    const ends = field("Expires", choice(ENDS, ""));
    const made = await ask({
      title: "Create a key", action: "Create", body: [name, owner,
        h("fieldset", { class: "stack tight-stack" }, h("legend", {}, "May do"), boxes.map(([, box, label]) => h("label", { class: "switch-line" }, box, ` ${label}`))), ends],
      fields: { name, user_id: owner, role: owner, expires_in_secs: ends },
      submit: () => {
        const scopes = boxes.filter(([, box]) => box.checked).map(([scope]) => scope);
        if (scopes.length === 0) throw new Error("Select at least one right.");
        const of = owner.control.value;
        return call("POST", "/api/keys", {
          name: name.control.value.trim(), ...(of === "owner" ? { role: "owner" } : of === "" ? {} : { user_id: of }),
          ...(scopes.length < SCOPES.length ? { scopes } : {}), ...(ends.control.value ? { expires_in_secs: Number(ends.control.value) } : {}),
        });
      },
    });
    if (!made) return;
    await again();
    await ask({
      title: `The key of ${made.name}`, action: "Done", cancel: null,
      body: [
        h("p", {}, "Copy the key now. It is not shown again: the daemon only keeps its hash."),
        h("pre", { class: "code-box made-key", tabindex: "0", "aria-label": "The key" }, made.key),
        h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => copyText(made.key) }, icon("copy", 18), "Copy the key")),
      ],
    });
  }

  async function revoke(key) {
    const text = "It stops working at once, and the streams that it opened end. This cannot be undone.";
    if (!(await confirm({ title: `Revoke ${key.name}?`, text, action: "Revoke", run: () => call("DELETE", `/api/keys/${key.id}`) }))) return;
    toast("Revoked");
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
