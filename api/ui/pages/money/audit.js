// The audit log: its entries, newest first, a search over all of them, and their verification.

import { get, withQuery } from "../../lib/api.js";
import { agentLink, learnAll, nameOf } from "../../lib/agents.js";
import { ask, showError } from "../../lib/dialogs.js";
import { debounce, fill, h } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const PAGE = 200;
const SEARCH_PAUSE_MS = 200;
const EVERY_MS = 5000;

/** The colour of what an entry is about, by its first word. */
const tone = (type) => (/failed|refused|injection|unknown|rejected/.test(type) ? "bad" : /approval|totp|tainted|config|budget/.test(type) ? "warn" : /deleted|terminated|removed/.test(type) ? "" : "accent");

const details = (entry) => {
  try {
    return JSON.parse(entry.details);
  } catch {
    return {};
  }
};

/** Names come before numbers and hashes. */
const FIRST = ["tool", "name", "action", "path", "key", "reason", "error"];
const rankOf = (key) => (FIRST.includes(key) ? FIRST.indexOf(key) : /sha256|hash/.test(key) ? 99 : FIRST.length);

/** The details of an entry on one line. */
const line = (entry) => Object.entries(details(entry)).sort(([a], [b]) => rankOf(a) - rankOf(b)).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");

/** The agent that acted. */
const agentOf = (entry) => entry.actor.slice(6).split("/")[0];
const actorOf = (entry) => (entry.actor.startsWith("agent:") ? `agent ${nameOf(agentOf(entry))}` : entry.actor);

export async function mount(root, ctx) {
  const { signal } = ctx;
  let entries = [];
  let total = 0;
  /** Where the next page begins; null at the end. */
  let next = null;
  let round = 0;
  let isReading = false;
  const verdict = h("div", { role: "status", "aria-live": "polite" });
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search types, actors and details", "aria-label": "Filter", oninput: debounce(() => begin().catch(showError), SEARCH_PAUSE_MS) });
  const table = new Table({
    label: "Audit entries", signal, rowHeight: 52, open, empty: "No matching entries.", more: () => more().catch(showError),
    columns: [
      { label: "What", width: "minmax(0, 1.4fr)", slim: "150px", cell: (entry) => h("span", { class: `badge ${tone(entry.event_type)}` }, entry.event_type.replaceAll("_", " ")) },
      { label: "Details", width: "minmax(0, 2.4fr)", side: true, cell: (entry) => h("span", { class: "dim" }, line(entry)) },
      { label: "By", width: "minmax(0, 1fr)", slim: "minmax(0, 1fr)", cell: (entry) => (entry.actor.startsWith("agent:") ? h("span", {}, "agent ", agentLink(agentOf(entry))) : entry.actor) },
      { label: "When", width: "130px", slim: "110px", end: true, cell: (entry) => h("time", { datetime: entry.timestamp, title: when(entry.timestamp) }, ago(entry.timestamp)) },
      { label: "No.", width: "72px", side: true, end: true, cell: (entry) => number(entry.id) },
    ],
  });
  const button = h("button", { class: "primary", type: "button", onclick: () => verify().catch(showError) }, icon("shield", 18), "Verify the log");
  fill(ctx.actions, button);
  fill(root, h("div", { class: "stack" }, verdict, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), table.root));

  const read = (before) => get(withQuery("/api/audit/recent", { limit: PAGE, before, q: search.value.trim() }), { signal });

  /** The first page, anew: the filter was changed. */
  async function begin() {
    const mine = (round += 1);
    const found = await read(null);
    if (mine !== round) return;
    show(found.entries, found);
    await fillUp();
  }

  /** What came since, at the head of the list. */
  async function refresh() {
    const mine = round;
    const found = await read(null);
    if (mine !== round || isReading) return;
    const newest = entries[0]?.id ?? 0;
    const fresh = found.entries.filter(({ id }) => id > newest);
    // More came than a page has: the list begins anew.
    if (fresh.length === found.entries.length && found.next_before !== null) return show(found.entries, found);
    show([...fresh, ...entries], { total: found.total, next_before: next });
  }

  async function more() {
    if (next === null || isReading) return;
    isReading = true;
    const mine = round;
    try {
      const found = await read(next);
      if (mine === round) show([...entries, ...found.entries], found);
    } finally {
      isReading = false;
    }
  }

  /** A page of a filter may have few entries, or none, and not be the last. */
  async function fillUp() {
    const mine = round;
    while (mine === round && next !== null && entries.length < PAGE && !signal.aborted) await more();
  }

  function show(list, found) {
    const before = new Map(entries.map((entry) => [entry.id, entry]));
    entries = list.map((entry) => before.get(entry.id) ?? entry);
    total = found.total;
    next = found.next_before;
    const isAll = next === null;
    counts.textContent = search.value.trim() === "" ? `${number(total)} entries` : `${number(entries.length)}${isAll ? "" : " and more"} of ${number(total)} entries match`;
    table.set(entries);
    learnAll(entries.slice(0, 200).flatMap((entry) => [entry.agent_id, entry.actor.startsWith("agent:") ? entry.actor.slice(6).split("/")[0] : null]), () => table.redraw(), { signal });
  }

  async function verify() {
    button.disabled = true;
    fill(verdict, h("p", { class: "notice" }, h("span", { class: "spinner" }), "Verifying the log…"));
    try {
      const found = await get("/api/audit/verify", { signal });
      const isWhole = found.status === "valid";
      fill(verdict, h("div", { class: `notice ${isWhole ? "good" : "bad"}` }, icon(isWhole ? "check" : "alert"), h("div", { class: "stack tight-stack grow" },
        h("strong", {}, isWhole ? `The log is intact: ${count(found.chain_length, "entry", "entries")}` : `The log is broken at entry ${number(found.broken_at)}`),
        isWhole ? h("span", {}, `From ${when(found.first_entry)} to ${when(found.last_entry)}; ${count(found.checkpoints, "checkpoint")}, signed up to entry ${number(found.signed_up_to)}.`)
          : h("span", {}, `${found.reason} Keep the home unchanged and compare it with a backup.`),
        h("small", {}, "Public key ", h("code", { class: "break" }, found.public_key)))));
    } catch (error) {
      fill(verdict);
      throw error;
    } finally {
      button.disabled = false;
    }
  }

  function open(entry) {
    const rows = [["When", when(entry.timestamp)], ["By", actorOf(entry)], ["Agent", entry.agent_id && `${nameOf(entry.agent_id)} (${entry.agent_id})`], ["Hash", entry.hash], ["Previous hash", entry.prev_hash]].filter(([, value]) => value);
    return ask({
      title: `Entry ${entry.id}: ${entry.event_type.replaceAll("_", " ")}`, action: "Close", cancel: null, wide: true,
      body: [h("dl", { class: "pairs" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", { class: name.startsWith("Hash") ? "mono" : null }, value)])), h("pre", { class: "code-box" }, JSON.stringify(details(entry), null, 2))],
    });
  }

  await begin();
  poll(refresh, EVERY_MS, { signal });
}
