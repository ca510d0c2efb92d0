// The audit log: its entries, newest first, a search over all of them, and their verification.

import { Failure, get, key as apiKey, page, withQuery } from "../../lib/api.js";
import { agentLink, learn, learnAll, nameOf } from "../../lib/agents.js";
import { ask, showError } from "../../lib/dialogs.js";
import { debounce, fill, h } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { me, seesAll } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { queryRows } from "../../lib/query.js";
import { Table } from "../../lib/table.js";
import { deedOf, details } from "./deeds.js";

const PAGE = 200;
const SEARCH_PAUSE_MS = 200;
const EVERY_MS = 5000;

/** The colour of what an entry is about, by its first word. */
const tone = (type) => (/failed|refused|injection|unknown|rejected/.test(type) ? "bad" : /approval|totp|tainted|config|budget/.test(type) ? "warn" : /deleted|terminated|removed/.test(type) ? "" : "accent");

/** Names come before numbers and hashes. */
const FIRST = ["tool", "name", "action", "path", "key", "reason", "error"];
const rankOf = (key) => (FIRST.includes(key) ? FIRST.indexOf(key) : /sha256|hash/.test(key) ? 99 : FIRST.length);

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi;
const isUuid = (text) => text.length === 36 && text.search(UUID) === 0;
const isNamed = (id) => nameOf(id) !== id.slice(0, 8);
const isHash = (key, text) => /sha256|hash|fingerprint/.test(key) || /^[\da-f]{40,}$/.test(text);

/** What was done, in words; else the details of an entry on one line, with names in the place of ids. Ids without a name and hashes are in the dialog. */
function line(entry) {
  const deed = deedOf(entry);
  if (deed) return deed;
  const own = entry.agent_id ? nameOf(entry.agent_id) : null;
  return Object.entries(details(entry)).sort(([a], [b]) => rankOf(a) - rankOf(b))
    .filter(([, value]) => value !== null)
    .map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)])
    .filter(([key, text]) => !isHash(key, text) && !(isUuid(text) && !isNamed(text)) && !(key === "name" && text === own))
    .map(([key, text]) => `${key.replaceAll("_", " ")}: ${text.replace(UUID, (id) => nameOf(id))}`).join(", ");
}

/** Without a key, and with no session, this tab is on the machine of the daemon, as are the others without one. */
const isLocal = () => apiKey.get() === null && me().kind !== "session";

/** Who acts without a name of their own. */
const ACTORS = { get api() { return isLocal() ? "This machine (no API key)" : "API key"; }, client: "Client without a key", hook: "Hook", peer: "Peer", chat: "Chat", system: "System" };

/** The agent that acted. */
const agentOf = (entry) => (entry.actor.startsWith("agent:") ? entry.actor.slice(6).split("/")[0] : null);

/** The names of users and named keys by their ids, as far as they are known. */
const people = new Map();

/** Who acted, in words; an agent is left to `agentOf`. */
function actorOf(entry) {
  if (agentOf(entry)) return `Agent ${nameOf(agentOf(entry))}`;
  if (ACTORS[entry.actor]) return ACTORS[entry.actor];
  const parts = entry.actor.split("/").map((part) => part.split(":"));
  if (!parts.every(([kind, id]) => id && (kind === "user" || kind === "key"))) return entry.actor;
  const named = parts.map(([kind, id]) => [kind, people.get(id) ?? id.slice(0, 8)]);
  return named.length === 1 ? `${named[0][0] === "key" ? "Key" : "User"} ${named[0][1]}` : `${named[0][1]} (key ${named[1][1]})`;
}

/** Reads the names of users and keys once they are needed; true when there are more of them. */
async function learnPeople(entries, signal) {
  const ids = entries.filter(({ actor }) => /^(user|key):/.test(actor)).flatMap(({ actor }) => actor.split("/").map((part) => part.split(":")[1]));
  if (ids.every((id) => people.has(id))) return false;
  try {
    const [users, keys] = await Promise.all([page("/api/users", "users", { limit: PAGE }, { signal }), page("/api/keys", "keys", { limit: PAGE }, { signal })]);
    for (const { id, name } of [...users.items, ...keys.items]) people.set(id, name);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  // Those that are gone are not looked for again.
  for (const id of ids) if (!people.has(id)) people.set(id, id.slice(0, 8));
  return true;
}

/** What details name by an id: the kind of the world, and its name there. */
const THINGS = { task: ["tasks", "title"], goal: ["goals", "title"], workflow: ["workflows", "name"], run: ["runs", "name"] };
const THINGS_MAX = 100;
/** Ids that were looked for: those that are gone are not looked for again. */
const sought = new Set();

/** Reads the titles of the tasks, goals and workflows that details name; true when there are more of them. */
async function learnThings(entries, signal) {
  if (!seesAll()) return false;
  let isMore = false;
  for (const [key, [kind, title]] of Object.entries(THINGS)) {
    const ids = [...new Set(entries.map((entry) => details(entry)[key]).filter((id) => typeof id === "string" && isUuid(id) && !sought.has(id)))].slice(0, THINGS_MAX);
    if (ids.length === 0) continue;
    for (const id of ids) sought.add(id);
    try {
      for (const row of await queryRows(`${kind} where id in ("${ids.join('", "')}") select id, ${title}`, { signal })) {
        learn(row.id, row[title]);
        isMore = true;
      }
    } catch (error) {
      // What names them is busy: their entries say what they are.
      if (!(error instanceof Failure)) throw error;
    }
  }
  return isMore;
}

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
  const types = new Set();
  const type = h("select", { "aria-label": "Type", onchange: () => begin().catch(showError) }, h("option", { value: "" }, "Any type"));
  const table = new Table({
    label: "Audit entries", signal, rowHeight: 42, slimHeight: 92, open, empty: "No matching entries.", more: () => more().catch(showError),
    columns: [
      { label: "What", width: "minmax(0, 1.1fr)", slim: "minmax(0, 1fr)", cell: (entry) => h("span", { class: "two" }, h("span", {}, h("span", { class: `badge ${tone(entry.event_type)}` }, entry.event_type.replaceAll("_", " "))), h("span", { class: "narrow-only cut" }, line(entry)), h("small", { class: "faint cut narrow-only" }, actorOf(entry))) },
      { label: "Details", width: "minmax(0, 2.2fr)", side: true, cell: detailCell },
      { label: "By", width: "minmax(0, 1.5fr)", side: true, cell: (entry) => (agentOf(entry) ? h("span", {}, "Agent ", agentLink(agentOf(entry))) : h("span", { title: actorOf(entry) }, actorOf(entry))) },
      { label: "When", width: "130px", slim: "110px", end: true, cell: (entry) => h("time", { datetime: entry.timestamp, title: when(entry.timestamp) }, ago(entry.timestamp)) },
      { label: "No.", width: "72px", side: true, end: true, cell: (entry) => number(entry.id) },
    ],
  });
  const button = h("button", { class: "primary", type: "button", onclick: () => verify().catch(showError) }, icon("shield", 18), "Verify the log");
  fill(ctx.actions, button);
  fill(root, h("div", { class: "stack" }, verdict, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), h("div", { class: "selects" }, type), counts), table.root));

  const read = (before) => get(withQuery("/api/audit/recent", { limit: PAGE, before, q: search.value.trim(), event_type: type.value }), { signal });

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
    counts.textContent = search.value.trim() === "" && type.value === "" ? `${number(total)} entries` : `${number(entries.length)}${isAll ? "" : " and more"} of ${number(total)} entries match`;
    table.set(entries);
    for (const name of new Set(entries.map((entry) => entry.event_type))) {
      if (types.has(name)) continue;
      types.add(name);
      // In the order of the alphabet, behind "Any type".
      const after = [...type.options].slice(1).find((option) => option.value > name) ?? null;
      type.insertBefore(h("option", { value: name }, name.replaceAll("_", " ")), after);
    }
    learnThings(entries.slice(0, PAGE), signal).then((isMore) => { if (isMore) table.redraw(); }).catch(showError);
    learnAll(entries.slice(0, 200).flatMap((entry) => [entry.agent_id, agentOf(entry)]), () => table.redraw(), { signal });
    learnPeople(entries.slice(0, PAGE), signal).then((isMore) => { if (isMore) table.redraw(); }).catch(showError);
  }

  /** The agent that an entry is about, and what else there is to say. */
  function detailCell(entry) {
    const text = line(entry);
    const isOther = entry.agent_id && entry.agent_id !== agentOf(entry);
    return h("span", { class: "dim" }, isOther ? agentLink(entry.agent_id) : null, isOther && text ? " · " : null, text);
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
    const rows = [["When", when(entry.timestamp)], ["By", actorOf(entry)], ["Actor", actorOf(entry) === entry.actor ? null : entry.actor], ["Agent", entry.agent_id && `${nameOf(entry.agent_id)} (${entry.agent_id})`], ["Hash", entry.hash], ["Previous hash", entry.prev_hash]].filter(([, value]) => value);
    return ask({
      title: `Entry ${entry.id}: ${entry.event_type.replaceAll("_", " ")}`, action: "Close", cancel: null, wide: true,
      body: [h("dl", { class: "pairs" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", { class: /hash|actor/i.test(name) ? "mono" : null }, value)])), h("pre", { class: "code-box" }, JSON.stringify(details(entry), null, 2))],
    });
  }

  await begin();
  poll(refresh, EVERY_MS, { signal });
}
