// Triggers: which events wake which agents, how often they did, and how each match ended.

import { call, get, page } from "../../lib/api.js";
import { agentLink, learnAll, nameOf } from "../../lib/agents.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, count, duration, number, when } from "../../lib/format.js";
import { examples, TRIGGERS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { seesAll } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { queryRows } from "../../lib/query.js";
import { Table } from "../../lib/table.js";
import { editDeliveries } from "./deliveries.js";
import { editTrigger, patternText, publishEvent } from "./trigger-form.js";

const PAGE = 500;
const EVERY_MS = 5000;
const ENDS = { fired: "good", done: "good", failed: "bad", open: "accent", over_budget: "bad", rate_limited: "warn", too_deep: "warn", refused: "bad" };

const fired = (item) => (item.max_fires > 0 ? `${number(item.fire_count)} of ${number(item.max_fires)}` : number(item.fire_count));
const firedText = (item) => (item.max_fires > 0 ? `fired ${fired(item)}` : `fired ${count(item.fire_count, "time")}`);
const badge = (word) => h("span", { class: `badge ${ENDS[word] ?? ""}` }, String(word).replaceAll("_", " "));

export async function mount(root, ctx) {
  const { signal } = ctx;
  /** The agent whose page this is a part of, or null for all. */
  const own = ctx.agent?.id ?? null;
  let items = [];
  let pages = 1;
  let next = null;
  let filter = (ctx.query.get("filter") ?? "").toLowerCase();

  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: own ? "Filter by event or prompt" : "Filter by agent, event or prompt", "aria-label": "Filter", value: filter, oninput: () => { filter = search.value.toLowerCase(); show(); } });
  const more = h("button", { type: "button", hidden: true, onclick: () => { pages += 1; again().catch(showError); } }, "Show more");
  const table = new Table({
    label: "Triggers", signal, rowHeight: 60, slimHeight: 92, fit: true, open: (item) => fires(item), empty: "No matching triggers.",
    columns: [
      { label: "When", width: "minmax(0, 1.9fr)", sort: (item) => patternText(item.pattern), cell: whenCell },
      { label: "Agent", width: "minmax(0, 1fr)", side: true, sort: (item) => nameOf(item.agent_id), cell: (item) => h("span", { class: "two" }, h("span", { class: "cut" }, agentLink(item.target_agent_id ?? item.agent_id)), item.target_agent_id ? h("small", { class: "faint cut" }, `of ${nameOf(item.agent_id)}`) : null) },
      { label: "Prompt", width: "minmax(0, 1.7fr)", side: true, cell: (item) => h("span", { class: "cut dim" }, item.prompt_template) },
      { label: "Last match", width: "minmax(0, 1.1fr)", side: true, sort: (item) => item.last?.last_matched_at ?? "", cell: lastCell },
      { label: "Fired", width: "96px", side: true, end: true, sort: (item) => item.fire_count, cell: fired },
      { label: "On", width: "52px", slim: "38px", cell: toggleCell },
      { label: "Actions", width: "60px", slim: "48px", end: true, cell: actionsCell },
    ].filter(({ label }) => own === null || label !== "Agent"),
  });
  const list = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), table.root, more);
  const nothing = emptyState({
    icon: icon("branch", 28), title: "No triggers yet", text: "A trigger sends a prompt to an agent when something happens: a turn failed, a task was created, or an event of your own.",
    actions: [h("button", { class: "primary", type: "button", onclick: () => edit(null) }, icon("plus", 18), "New trigger")],
  });
  nothing.append(examples(TRIGGERS, (draft) => edit(null, draft), { sign: "branch" }));
  fill(ctx.actions,
    seesAll() && own === null ? h("button", { type: "button", onclick: () => publish().catch(showError) }, icon("send", 18), "Publish an event") : null,
    h("button", { class: "primary", type: "button", onclick: () => edit(null) }, icon("plus", 18), "New trigger"));

  async function read() {
    const found = [];
    next = null;
    for (let n = 0; n < pages; n += 1) {
      const some = await page("/api/triggers", "triggers", { agent_id: own, limit: PAGE, cursor: next }, { signal });
      found.push(...some.items);
      next = some.next;
      if (!next) break;
    }
    const last = await lastOf();
    const before = new Map(items.map((item) => [item.id, item]));
    items = found.map((one) => {
      const item = { ...one, last: last.get(one.id) ?? null };
      const old = before.get(item.id);
      return old && JSON.stringify(old) === JSON.stringify(item) ? old : item;
    });
    learnAll(items.flatMap((item) => [item.agent_id, item.target_agent_id]), () => table.redraw(), { signal });
    show();
  }

  /** What the last match of each trigger led to, of those that matched last. */
  async function lastOf() {
    if (!seesAll()) return new Map();
    const rows = await queryRows(`triggers where matched > 0 select id, last_outcome, last_matched_at order by last_matched_at desc limit ${PAGE}`, { signal });
    return new Map(rows.map((row) => [row.id, row]));
  }

  function whenCell(item) {
    const limit = item.cooldown_secs ? `at most every ${duration(item.cooldown_secs * 1000)}` : "";
    const last = item.last ? `last ${item.last.last_outcome.replaceAll("_", " ")} ${ago(item.last.last_matched_at)}` : firedText(item);
    return h("span", { class: "two" }, h("strong", { class: "cut" }, patternText(item.pattern)),
      h("small", { class: "faint cut" }, h("span", { class: "narrow-only" }, [last, nameOf(item.target_agent_id ?? item.agent_id), limit].filter(Boolean).join(" · ")), h("span", { class: "wide-only" }, limit)));
  }

  function lastCell({ last, fire_count: fired }) {
    if (!last) return h("span", { class: "faint" }, fired > 0 || !seesAll() ? "" : "Never matched");
    return h("span", { class: "two", title: when(last.last_matched_at) }, h("span", {}, badge(last.last_outcome)), h("small", { class: "faint cut" }, ago(last.last_matched_at)));
  }

  function show() {
    if (items.length === 0) {
      if (nothing.parentNode !== root) fill(root, nothing);
      return;
    }
    if (list.parentNode !== root) fill(root, list);
    const text = (item) => `${nameOf(item.agent_id)} ${patternText(item.pattern)} ${item.prompt_template}`.toLowerCase();
    const rows = filter === "" ? items : items.filter((item) => text(item).includes(filter));
    table.set(rows);
    more.hidden = next === null;
    counts.textContent = `${number(rows.length)} shown${next ? ", there are more" : ""}`;
  }

  function toggleCell(item) {
    const box = h("input", {
      type: "checkbox", role: "switch", checked: item.enabled, "aria-label": `Enable the trigger for ${patternText(item.pattern)}`,
      onchange: async () => {
        try {
          await call("PATCH", `/api/triggers/${item.id}`, { enabled: box.checked });
          toast(box.checked ? "Enabled" : "Disabled");
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
    return menuButton({ label: `More for ${patternText(item.pattern)}`, class: "quiet small only-icon", items: () => [
      { label: "Edit", icon: "edit", run: () => edit(item) },
      { label: "Matches and fires", icon: "world", run: () => fires(item) },
      ...(item.pattern?.custom ? [{ label: "Publish its event now", icon: "send", all: true, run: () => publish(item.pattern.custom.event_type) }] : []),
      { label: "Deliveries", icon: "send", all: true, run: () => editDeliveries(`/api/triggers/${item.id}`, patternText(item.pattern)) },
      { label: "Delete", icon: "trash", danger: true, run: () => remove(item) },
    ] });
  }

  async function edit(item, draft = null) {
    if (!(await editTrigger(item, item ? null : { agent_id: own, ...draft }))) return;
    toast(item ? "Saved" : "Created");
    await again();
  }

  async function remove(item) {
    const text = `${nameOf(item.agent_id)} no longer receives ${patternText(item.pattern)}.`;
    if (await confirm({ title: "Delete this trigger?", text, run: () => call("DELETE", `/api/triggers/${item.id}`) })) {
      toast("Deleted");
      await again();
    }
  }

  async function fires(item) {
    try {
      const found = await get(`/api/triggers/${item.id}/fires`, { signal });
      const ends = Object.entries(found.outcomes ?? {}).filter(([, count]) => count > 0);
      const rows = (found.fires ?? []).map((fire) => h("tr", {}, h("td", {}, when(fire.fired_at)), h("td", {}, fire.event?.kind ?? fire.event), h("td", {}, nameOf(fire.agent_id)), h("td", {}, badge(fire.status))));
      await ask({
        title: patternText(item.pattern), action: "Close", cancel: null, wide: true,
        body: [
          h("div", { class: "chips" }, ends.length > 0 ? ends.map(([word, count]) => h("span", { class: "bar-row tight" }, badge(word), number(count))) : h("span", { class: "dim" }, "No matches yet.")),
          found.last_matched_at ? h("p", { class: "dim" }, `Last match ${ago(found.last_matched_at)}: ${String(found.last_outcome).replaceAll("_", " ")}.`) : null,
          h("pre", { class: "code-box" }, item.prompt_template),
          rows.length > 0 ? h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Last fires" },
            h("table", {}, h("thead", {}, h("tr", {}, ["Fired", "Event", "Agent", "Turn"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))) : null,
        ],
      });
    } catch (error) {
      showError(error);
    }
  }

  async function publish(type = "") {
    if (await publishEvent(type)) {
      toast("Published");
      await again();
    }
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
  ctx.key("n", "New trigger", () => edit(null));
  ctx.onNew(() => edit(null));
  ctx.onRoute((_, query) => { if (query.has("filter")) { search.value = query.get("filter"); filter = search.value.toLowerCase(); show(); } });
}
