// Schedules and cron jobs in one list, with their next runs on a time line.

import { call, page } from "../../lib/api.js";
import { agentLink, learn, learnAll, nameOf } from "../../lib/agents.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { HERE, hasZone, ruleText, whenHere } from "../../lib/cron.js";
import { emptyState, fill, h, hidden } from "../../lib/dom.js";
import { ago, number, when } from "../../lib/format.js";
import { examples, SCHEDULES } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { Axis } from "./axis.js";
import { editDeliveries } from "./deliveries.js";
import { editTime } from "./time-form.js";

/** Rows read at a time, of each kind. */
const PAGE = 200;
/** Rows on the time line; the others are in the list below. */
const DRAWN_MAX = 40;
const EVERY_MS = 5000;
/** Behind each moment: what does not run stands last. */
const LATEST = "9999";
/** Letters of a prompt that stand for a name. */
const LABEL_MAX = 200;

/** The two families of routes that are one thing. */
export const KINDS = {
  schedule: { path: "/api/schedules", list: "schedules", rule: "cron" },
  job: { path: "/api/cron/jobs", list: "jobs", rule: "schedule" },
};

const OUTCOMES = { completed: "good", failed: "bad", stopped: "warn", missed: "warn", overlapped: "warn", refused: "bad", agent_stopped: "warn", over_budget: "bad" };

/** A record of either kind with the same keys. */
function normal(kind, record) {
  const id = record.id ?? record.schedule_id ?? record.job_id;
  return { ...record, kind, id, rule: record[KINDS[kind].rule], label: (record.name || record.prompt || "").slice(0, LABEL_MAX) };
}

/** What tells two readings of a record apart: its long texts change with `updated_at` and with the time of its last outcome. */
function stampOf({ prompt, last_result, ...rest }) {
  return JSON.stringify([rest, last_result?.at, last_result?.status]);
}

const addressOf = (item, rest = "") => `${KINDS[item.kind].path}/${item.id}${rest}`;

export async function mount(root, ctx) {
  const { signal } = ctx;
  /** The agent whose page this is a part of, or null for all. */
  const own = ctx.agent?.id ?? null;
  let items = [];
  let filter = (ctx.query.get("filter") ?? "").toLowerCase();
  const cursors = { schedule: null, job: null };
  let pages = 1;
  let isMore = false;

  const axis = new Axis({ signal, open: (item) => edit(item) });
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: own ? "Filter by name or rule" : "Filter by name, agent or rule", "aria-label": "Filter", value: filter, oninput: () => { filter = search.value.toLowerCase(); show(); } });
  const table = new Table({
    label: "Schedules", signal, rowHeight: 60, slimHeight: 92, open: (item) => edit(item), fit: true,
    empty: "No matching schedules.",
    columns: [
      { label: "Name", width: "minmax(0, 1.7fr)", sort: (item) => item.label, cell: nameCell },
      { label: "Repeats", width: "minmax(0, 1.7fr)", side: true, cell: ruleCell },
      { label: "Agent", width: "minmax(0, 1fr)", side: true, sort: (item) => nameOf(item.agent_id), cell: (item) => agentLink(item.agent_id) },
      { label: "Next run", width: "minmax(0, 1.2fr)", side: true, sort: (item) => (item.enabled && item.next_run) || LATEST, cell: nextCell },
      { label: "Last outcome", width: "minmax(0, 1.2fr)", side: true, cell: lastCell },
      { label: "Runs", width: "72px", side: true, end: true, sort: (item) => item.run_count ?? 0, cell: (item) => number(item.run_count) },
      { label: "On", width: "52px", slim: "38px", cell: toggleCell },
      { label: "Actions", width: "92px", slim: "76px", end: true, cell: actionsCell },
    ].filter(({ label }) => own === null || label !== "Agent"),
  });
  const more = h("button", { type: "button", hidden: true, onclick: () => { pages += 1; again().catch(showError); } }, "Show more");
  const ranges = h("div", { class: "segments", role: "group", "aria-label": "Timeline range" },
    [["24 hours", 24], ["7 days", 168]].map(([label, hours]) => h("button", {
      type: "button", "aria-pressed": String(hours === 24),
      onclick: (event) => {
        for (const other of ranges.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
        axis.setRange(hours);
      },
    }, label)));
  const line = h("section", { class: "card axis-card", "aria-label": "Timeline" }, h("div", { class: "bar-row" }, h("div", { class: "grow" }, h("h2", {}, "Next runs"), h("p", { class: "hint" }, `Times are in your time zone, ${HERE}.`)), ranges), axis.node);
  const list = h("div", { class: "stack" }, line, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), table.root, more);
  const nothing = emptyState({
    icon: icon("calendar", 28), title: "No schedules yet", text: "A schedule sends a prompt to an agent: every morning, every ten minutes, or once.",
    actions: [h("button", { class: "primary", type: "button", onclick: () => edit(null) }, icon("plus", 18), "New schedule")],
  });
  nothing.append(examples(SCHEDULES, (draft) => edit(null, draft), { sign: "calendar" }));
  fill(ctx.actions, h("button", { class: "primary", type: "button", onclick: () => edit(null) }, icon("plus", 18), "New schedule"));

  async function read() {
    const found = [];
    isMore = false;
    for (const kind of Object.keys(KINDS)) {
      cursors[kind] = null;
      for (let n = 0; n < pages; n += 1) {
        const { items: some, next } = await page(KINDS[kind].path, KINDS[kind].list, { agent_id: own, limit: PAGE, cursor: cursors[kind] }, { signal });
        found.push(...some.map((record) => normal(kind, record)));
        cursors[kind] = next;
        if (!next) break;
      }
      isMore ||= cursors[kind] !== null;
    }
    // Records that did not change stay the same objects, so that their rows stay as they are.
    const before = new Map(items.map((item) => [item.id, item]));
    items = found.map((item) => {
      const old = before.get(item.id);
      return old && stampOf(old) === stampOf(item) ? old : item;
    });
    learnAll(items.map((item) => item.agent_id), () => table.redraw(), { signal });
    show();
  }

  function show() {
    if (items.length === 0 && filter === "") {
      if (nothing.parentNode !== root) fill(root, nothing);
      return;
    }
    if (list.parentNode !== root) fill(root, list);
    const next = (item) => (item.enabled && item.next_run) || LATEST;
    const rows = (filter === "" ? [...items] : items.filter((item) => `${item.label} ${nameOf(item.agent_id)} ${item.rule}`.toLowerCase().includes(filter))).sort((a, b) => next(a).localeCompare(next(b)) || a.label.localeCompare(b.label));
    table.set(rows);
    more.hidden = !isMore;
    const on = items.filter((item) => item.enabled).length;
    counts.textContent = `${number(rows.length)} shown, ${number(on)} enabled${isMore ? ", there are more" : ""}`;
    const due = rows.filter((item) => item.enabled && item.next_run).sort((a, b) => a.next_run.localeCompare(b.next_run));
    axis.set(due.slice(0, DRAWN_MAX), due.length);
  }

  function nameCell(item) {
    const agent = nameOf(item.agent_id);
    const isFailed = ["failed", "refused", "over_budget"].includes(item.last_result?.status);
    return h("span", { class: "two" },
      h("strong", { class: "cut" }, isFailed ? h("span", { class: "narrow-only" }, h("i", { class: "bad-dot" }), hidden("Last run failed: ")) : null, item.label),
      h("small", { class: "faint cut" }, h("span", { class: "narrow-only" }, [nextText(item), lastText(item), ruleText(item.rule) ?? item.rule, agent].filter(Boolean).join(" · ")), h("span", { class: "wide-only" }, item.name ? item.prompt.slice(0, LABEL_MAX) : "")));
  }

  /** The rule in words, and as it is written. */
  function ruleCell(item) {
    const words = ruleText(item.rule);
    // An interval counts in no zone.
    const zone = hasZone(item.rule) ? item.timezone ?? "UTC" : "";
    return h("span", { class: "two", title: [words, item.rule, zone].filter(Boolean).join(" · ") }, words ? h("span", { class: "cut" }, words) : h("code", { class: "cut" }, item.rule),
      h("small", { class: "faint cut" }, words ? [h("code", {}, item.rule), zone ? ` · ${zone}` : ""] : zone));
  }

  function nextText(item) {
    if (!item.enabled) return "Off";
    return item.next_run ? ago(item.next_run) : "None";
  }

  function nextCell(item) {
    if (!item.enabled || !item.next_run) return h("span", { class: "faint" }, nextText(item));
    return h("time", { datetime: item.next_run, title: when(item.next_run), class: "two" }, h("span", { class: "cut" }, nextText(item)), h("small", { class: "faint cut" }, whenHere(item.next_run)));
  }

  function lastText(item) {
    if (item.open_runs > 0) return "running";
    return item.last_result ? `last ${item.last_result.status.replaceAll("_", " ")}` : "";
  }

  function lastCell(item) {
    if (item.open_runs > 0) return h("span", { class: "badge accent" }, "running");
    const last = item.last_result;
    if (!last) return h("span", { class: "faint" }, "Never ran");
    return h("span", { class: "two", title: last.text || null },
      h("span", {}, h("span", { class: `badge ${OUTCOMES[last.status] ?? ""}` }, last.status.replaceAll("_", " "))), h("small", { class: "faint cut" }, ago(last.at)));
  }

  function toggleCell(item) {
    const box = h("input", {
      type: "checkbox", role: "switch", checked: item.enabled, "aria-label": `Enable ${item.label.slice(0, 60)}`,
      onchange: async () => {
        try {
          const enabled = box.checked;
          await (item.kind === "job" ? call("PUT", addressOf(item, "/enable"), { enabled }) : call("PUT", addressOf(item), { enabled }));
          toast(enabled ? "Enabled" : "Disabled");
          await again();
        } catch (error) {
          box.checked = item.enabled;
          showError(error);
        }
      },
    });
    return h("label", { class: "switch" }, box);
  }

  function actionsCell(item) {
    const label = item.label.slice(0, 60);
    return h("span", { class: "row-actions" },
      h("button", { type: "button", class: "small only-icon", "aria-label": `Run ${label} now`, title: "Run now", onclick: () => runNow(item).catch(showError) }, icon("play", 16)),
      menuButton({ label: `More for ${label}`, class: "quiet small only-icon", items: () => [
        { label: "Edit", icon: "edit", run: () => edit(item) },
        { label: "Last result and outcomes", icon: "world", run: () => outcomes(item) },
        { label: "Deliveries", icon: "send", all: true, run: () => editDeliveries(addressOf(item), item.label) },
        { label: "Delete", icon: "trash", danger: true, run: () => remove(item) },
      ] }));
  }

  async function runNow(item) {
    await call("POST", addressOf(item, "/run"));
    toast(`Started for ${nameOf(item.agent_id)}`, { action: { label: "Show the runs", run: () => ctx.go(["agent", item.agent_id, "runs"]) } });
    await again();
  }

  async function edit(item, draft = null) {
    const made = await editTime(item, item ? null : { agent_id: own, ...draft });
    if (!made) return;
    if (made.agent_name) learn(made.agent_id, made.agent_name);
    toast(item ? "Saved" : "Created");
    await again();
  }

  async function remove(item) {
    const text = `“${item.label.slice(0, 120)}” will not run again. Turns that it started continue.`;
    if (await confirm({ title: "Delete this schedule?", text, run: () => call("DELETE", addressOf(item)) })) {
      toast("Deleted");
      await again();
    }
  }

  function outcomes(item) {
    const rows = Object.entries(item.outcomes ?? {}).map(([name, count]) => h("tr", {}, h("td", {}, h("span", { class: `badge ${OUTCOMES[name] ?? ""}` }, name.replaceAll("_", " "))), h("td", { class: "num" }, number(count))));
    const last = item.last_result;
    return ask({
      title: "Outcomes", action: "Close", cancel: null,
      body: [
        h("p", { class: "dim" }, `${item.label.slice(0, 160)} · ${number(item.run_count)} runs, ${number(item.waiting)} waiting`),
        h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Outcome"), h("th", { scope: "col", class: "num" }, "Count"))), h("tbody", {}, rows)),
        last?.text ? h("div", { class: "field" }, h("strong", {}, `Last: ${last.status}, ${when(last.at)}`), h("pre", { class: "code-box" }, last.text)) : null,
      ],
    });
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
  ctx.key("n", "New schedule", () => edit(null));
  ctx.onNew(() => edit(null));
  ctx.onRoute((_, query) => { if (query.has("filter")) { search.value = query.get("filter"); filter = search.value.toLowerCase(); show(); } });
}
