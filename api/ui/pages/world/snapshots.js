// Snapshots: the whole world at one committed step. Taking one costs nothing that is noticed; going back to one is said first.

import { call, get } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, bytes, count, duration, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 4000;
const BEFORE = { restore: "before a restore", migration: "before a migration", deletion: "before many agents were deleted" };
const COUNTS = ["agents", "sessions", "messages", "turns", "triggers", "schedules", "workflows", "goals", "tasks", "memories"];

const nameOf = (item) => item.label || (item.reason === "auto" ? `Automatic, ${BEFORE[item.before] ?? "automatic"}` : "Unnamed");

export async function mount(root, ctx) {
  const { signal } = ctx;
  const underway = h("div", { role: "status", "aria-live": "polite" });
  const take = h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("plus", 18), "Create a snapshot");
  const table = new Table({
    label: "Snapshots", signal, rowHeight: 60, slimHeight: 92, open: details, fit: true,
    columns: [
      { label: "Snapshot", width: "minmax(0, 2fr)", cell: (item) => h("span", { class: "two" }, h("strong", { class: "cut" }, nameOf(item)), h("small", { class: "faint cut" }, h("span", { class: "narrow-only" }, `${ago(item.created_at)} · `), `${item.step === undefined ? "" : `step ${number(item.step)} · `}${item.reason === "auto" ? "automatic" : "manual"}`)) },
      { label: "Created", width: "minmax(0, 1fr)", side: true, cell: (item) => h("time", { class: "two", datetime: item.created_at }, h("span", {}, ago(item.created_at)), h("small", { class: "faint cut" }, when(item.created_at))) },
      { label: "Contents", width: "minmax(0, 1.4fr)", side: true, cell: (item) => h("span", { class: "dim" }, `${count(item.counts.agents, "agent")}, ${short(item.counts.messages)} messages`) },
      { label: "Size", width: "84px", side: true, end: true, cell: (item) => bytes(item.size_bytes) },
      { label: "Actions", width: "150px", slim: "112px", end: true, cell: (item) => h("span", { class: "row-actions" },
        can("admin") && h("button", { type: "button", class: "small", onclick: () => restore(item).catch(showError) }, "Restore"),
        can("admin") && h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Delete ${nameOf(item)}`, title: "Delete", onclick: () => remove(item).catch(showError) }, icon("trash", 16))) },
    ],
  });
  const nothing = emptyState({ icon: icon("database", 28), title: "No snapshots yet", text: "Create a snapshot before a risky change. Snapshots are small, and restoring one takes seconds.",
    actions: [can("admin") && h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("plus", 18), "Create a snapshot")] });
  fill(ctx.actions, can("admin") && take);
  fill(root, h("div", { class: "stack" }, underway, table.root, nothing));
  table.root.hidden = nothing.hidden = true;

  async function read() {
    const found = await get("/api/world/snapshots", { signal });
    const before = new Map(table.rows.map((item) => [item.id, item]));
    table.set(found.snapshots.map((item) => before.get(item.id) ?? item));
    table.root.hidden = found.snapshots.length === 0;
    nothing.hidden = found.snapshots.length > 0;
    take.disabled = Boolean(found.underway);
    const now = found.underway;
    fill(underway, now ? h("p", { class: "notice" }, h("span", { class: "spinner" }), `${now.kind === "restore" ? "Restoring a snapshot" : "Creating a snapshot"}: ${now.phase}, ${short(now.rows)} rows, ${bytes(now.bytes)} so far.`) : null);
  }

  async function create() {
    const label = field("Name", textInput("", { maxlength: 200, placeholder: "before the cleanup" }), { hint: "Optional. The world keeps running while the snapshot is created." });
    const made = await ask({ title: "Create a snapshot", action: "Create", body: [label], fields: { label }, submit: () => call("POST", "/api/world/snapshots", label.control.value.trim() ? { label: label.control.value.trim() } : {}) });
    if (!made) return;
    toast(`Created: ${bytes(made.size_bytes)}`);
    await again();
  }

  async function restore(item) {
    const { agent_count: agents } = await get("/api/health/detail", { signal }).catch(() => ({}));
    let done = null;
    const isDone = await ask({
      title: "Restore this snapshot?", action: "Restore", danger: true,
      body: [
        h("p", {}, "The whole world is restored to its state of ", h("strong", {}, ago(item.created_at)), ` (${when(item.created_at)}): ${count(item.counts.agents, "agent")}, ${number(item.counts.sessions)} sessions, ${number(item.counts.messages)} messages.`),
        h("ul", { class: "plain-list" },
          h("li", {}, `What was made since goes: agents${agents === undefined ? "" : ` (${number(agents)} live now)`}, messages, schedules, goals, tasks and recorded spending.`),
          h("li", {}, "Active model and tool calls are cancelled. The API is unavailable for about as long as a start takes."),
          h("li", {}, "A snapshot of the current world is created first, so that you can undo this."),
          h("li", {}, "Schedules that were due since then become due again. Configuration, keys, uploads, workspaces and the audit log are unchanged.")),
      ],
      submit: async () => { done = await call("POST", `/api/world/snapshots/${item.id}/restore`); },
    });
    if (!isDone) return;
    toast(`Restored ${when(item.created_at)}${done?.pause_ms === undefined ? "" : `; unavailable for ${duration(done.pause_ms)}`}`);
    await again();
  }

  async function remove(item) {
    if (!(await confirm({ title: "Delete this snapshot?", text: `You can no longer restore ${when(item.created_at)} unless another snapshot or a backup contains it.`, run: () => call("DELETE", `/api/world/snapshots/${item.id}`) }))) return;
    toast("Deleted");
    await again();
  }

  function details(item) {
    const rows = [["Created", when(item.created_at)], ["Step", item.step === undefined ? "" : number(item.step)], ["Size", `${bytes(item.size_bytes)}, ${bytes(item.counts.bytes)} of rows`], ...COUNTS.map((key) => [key[0].toUpperCase() + key.slice(1), item.counts[key] ? number(item.counts[key]) : ""]), ["Rows", number(item.counts.rows)], ["SHA-256", h("code", { class: "break" }, item.sha256)], ["Id", h("code", {}, item.id)]];
    return ask({ title: nameOf(item), action: "Close", cancel: null, wide: true, body: [h("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))] });
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
