// Backups: everything in one file. Made while the daemon runs; restored after a dry run has said what would change.

import { call, download, get } from "../../lib/api.js";
import { ask, confirm, faultText, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, bytes, count, duration, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 3000;
const COMPONENTS = [["agents", "Agents, sessions, memory"], ["data", "Tasks and other data"], ["config", "Configuration"], ["cron_jobs", "Cron jobs"], ["workflows", "Workflows"], ["skills", "Skills"], ["custom_models", "Custom models"], ["hand_state", "Hand state"]];
const PHASES = { counting: "counting", packing: "packing", checking: "checking the archive", comparing: "comparing", building: "building the new world", exchanging: "switching to the new world" };

const pathOf = (item) => `/api/backups/${encodeURIComponent(item.filename)}`;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let making = false;
  const underway = h("div", { role: "status", "aria-live": "polite" });
  const make = h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("plus", 18), "Create a backup");
  const table = new Table({
    label: "Backups", signal, rowHeight: 60, slimHeight: 92, fit: true, open: details, keyOf: (item) => item.filename,
    columns: [
      { label: "File", width: "minmax(0, 2fr)", cell: (item) => h("span", { class: "two" }, h("strong", { class: "cut" }, item.filename), h("small", { class: item.valid ? "faint cut" : "danger-text cut" }, h("span", { class: "narrow-only" }, `${ago(item.created_at)} · `), item.valid ? `${item.release ? `release ${item.release}` : ""}${item.step === undefined ? "" : ` · step ${number(item.step)}`}` : item.problem ?? "cannot be restored")) },
      { label: "Created", width: "minmax(0, 1fr)", side: true, cell: (item) => h("time", { class: "two", datetime: item.created_at }, h("span", {}, ago(item.created_at)), h("small", { class: "faint cut" }, when(item.created_at))) },
      { label: "Contents", width: "minmax(0, 1.2fr)", side: true, cell: (item) => h("span", { class: "dim" }, `${count(item.counts?.agents ?? 0, "agent")}, ${short(item.counts?.messages ?? 0)} messages`) },
      { label: "Size", width: "84px", side: true, end: true, cell: (item) => bytes(item.size_bytes) },
      { label: "Actions", width: "150px", slim: "116px", end: true, cell: (item) => h("span", { class: "row-actions" },
        h("button", { type: "button", class: "small", disabled: !item.valid, onclick: () => restore(item).catch(showError) }, "Restore…"),
        menuButton({ label: `More for ${item.filename}`, class: "quiet small only-icon", items: () => [
          { label: "Contents", icon: "file", run: () => details(item) },
          { label: "Download", icon: "download", run: () => download(pathOf(item), item.filename) },
          { label: "Delete", icon: "trash", danger: true, run: () => remove(item) },
        ] })) },
    ],
  });
  const nothing = emptyState({ icon: icon("database", 28), title: "No backups yet", text: "A backup is one file with all agents, sessions, memory and configuration. It is created while the daemon runs. Keep a copy on another machine.",
    actions: [h("button", { class: "primary", type: "button", onclick: () => create().catch(showError) }, icon("plus", 18), "Create a backup")] });
  fill(ctx.actions, make);
  fill(root, h("div", { class: "stack" }, underway, table.root, nothing));
  table.root.hidden = nothing.hidden = true;

  async function read() {
    const found = await get("/api/backups", { signal });
    const status = await get("/api/backups/status", { signal });
    const items = found.backups;
    const before = new Map(table.rows.map((item) => [item.filename, item]));
    table.set(items.map((item) => {
      const old = before.get(item.filename);
      return old && JSON.stringify(old) === JSON.stringify(item) ? old : item;
    }));
    table.root.hidden = items.length === 0;
    nothing.hidden = items.length > 0;
    make.disabled = making || Boolean(status.running);
    showStatus(status);
  }

  function showStatus(status) {
    const share = status.total_bytes > 0 ? status.done_bytes / status.total_bytes : 0;
    const last = status.scheduled;
    fill(underway,
      status.running ? h("div", { class: "card stack tight-stack" }, h("strong", {}, `${{ backup: "Creating a backup", restore: "Restoring", dry_run: "Comparing" }[status.running] ?? status.running}: ${PHASES[status.phase] ?? status.phase}`),
        h("div", { class: "meter" }, h("i", { style: { "--part": `${share * 100}%` } })), h("small", { class: "dim" }, `${bytes(status.done_bytes)}${status.total_bytes > 0 ? ` of ${bytes(status.total_bytes)}` : ""}, for ${duration(status.seconds * 1000)}`)) : null,
      last?.error ? h("p", { class: "notice bad" }, icon("alert"), `The backup scheduled ${ago(last.at)} failed: ${last.error}`) : null,
      status.next_scheduled ? h("p", { class: "dim" }, `The next backup is scheduled ${ago(status.next_scheduled)} (${when(status.next_scheduled)}).`) : null);
  }

  async function create() {
    making = true;
    make.disabled = true;
    // The call waits for the end; the poll shows how far it is.
    const done = call("POST", "/api/backup");
    again().catch(() => {});
    try {
      const made = await done;
      toast(`${made.filename}, ${bytes(made.size_bytes)}`);
    } finally {
      making = false;
      await again();
    }
  }

  /** First the choice, then a dry run that says what would change, then the restore itself. */
  async function restore(item) {
    const boxes = COMPONENTS.map(([key, label]) => [key, h("input", { type: "checkbox", checked: true }), label]);
    const keep = h("input", { type: "checkbox", checked: true });
    const chosen = await ask({
      title: "Components to restore", action: "Preview changes", wide: true,
      body: [
        h("p", { class: "dim" }, `${item.filename}, created ${when(item.created_at)}.`),
        h("div", { class: "component-grid", role: "group", "aria-label": "Components" }, boxes.map(([, box, label]) => h("label", {}, box, label))),
        h("label", { class: "switch-line" }, keep, " Keep the current configuration, including key, port and paths"),
      ],
      submit: async () => {
        const components = boxes.filter(([, box]) => box.checked).map(([key]) => key);
        if (components.length === 0) throw new Error("Select at least one component.");
        const body = { filename: item.filename, keep_config: keep.checked, ...(components.length < boxes.length ? { components } : {}) };
        return { body, plan: await call("POST", "/api/restore", { ...body, dry_run: true }) };
      },
    });
    if (!chosen) return;
    let told = null;
    const isDone = await ask({
      title: "Changes", action: "Restore", danger: true, wide: true, body: planOf(chosen.plan),
      submit: async () => { told = await call("POST", "/api/restore", chosen.body); },
    });
    if (!isDone) return;
    toast(`Restored${told?.pause_ms ? `; unavailable for ${duration(told.pause_ms)}` : ""}${told?.restart_required?.length ? `. At the next start: ${told.restart_required.join(", ")}` : ""}`);
    await again();
  }

  function planOf(plan) {
    const cells = ({ added = 0, removed = 0, replaced = 0, unchanged = 0 } = {}) => [added, removed, replaced, unchanged].map((value) => h("td", { class: "num" }, number(value)));
    const sum = (one) => Object.fromEntries(["added", "removed", "replaced", "unchanged"].map((key) => [key, (one.rows?.[key] ?? 0) + (one.files?.[key] ?? 0)]));
    const rows = Object.entries(plan.components ?? {}).map(([name, one]) => h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), cells(sum(one))));
    return [
      h("p", {}, `The world is restored to its state of ${when(plan.created_at)}. The current world is kept until the new one is complete. The API is briefly unavailable.`),
      h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Changes" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Component"), ["Added", "Removed", "Replaced", "Unchanged"].map((name) => h("th", { scope: "col", class: "num" }, name)))), h("tbody", {}, rows))),
      plan.restart_required?.length ? h("p", { class: "notice warn" }, icon("alert"), `At the next start: ${plan.restart_required.join(", ")}.`) : null,
      (plan.warnings ?? []).map((text) => h("p", { class: "notice warn" }, icon("alert"), text)),
    ];
  }

  async function remove(item) {
    if (!(await confirm({ title: "Delete this backup?", text: `${item.filename} (${bytes(item.size_bytes)}) is deleted from this machine.`, run: () => call("DELETE", pathOf(item)) }))) return;
    toast("Deleted");
    await again();
  }

  function details(item) {
    const parts = Object.entries(item.components ?? {}).map(([name, one]) => h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", { class: "num" }, number(one.entries)), h("td", { class: "num" }, number(one.rows)), h("td", { class: "num" }, bytes(one.bytes))));
    const counts = Object.entries(item.counts ?? {}).filter(([, value]) => value > 0);
    return ask({
      title: item.filename, action: "Close", cancel: null, wide: true,
      body: [
        item.valid ? null : h("p", { class: "notice bad" }, icon("alert"), item.problem ?? "It cannot be restored."),
        h("p", { class: "dim" }, `Created ${when(item.created_at)}, ${bytes(item.size_bytes)}.`),
        counts.length > 0 ? h("dl", { class: "pairs" }, counts.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, number(value))])) : null,
        parts.length > 0 ? h("table", {}, h("thead", {}, h("tr", {}, ["Component", "Entries", "Rows", "Size"].map((name, at) => h("th", { scope: "col", class: at > 0 ? "num" : null }, name)))), h("tbody", {}, parts)) : null,
      ],
    });
  }

  try {
    await read();
  } catch (error) {
    if (error.status === 404) throw error;
    fill(underway, h("p", { class: "notice bad" }, faultText(error)));
  }
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
