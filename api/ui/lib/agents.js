// Agents in forms and lists of other pages: their names by their ids, and a field that finds one.

import { Failure, get, page, withQuery } from "./api.js";
import { faultAt } from "./checks.js";
import { seesAll } from "./me.js";
import { debounce, field, fill, h, uniqueId } from "./dom.js";
import { inLanes } from "./poll.js";
import { query } from "./query.js";

/** Names that are kept; beyond that the oldest go. */
const NAMES_MAX = 5000;
/** Calls for names that are out at once. */
const LANES = 4;
/** Names that one question asks for. */
const ASKED_MAX = 100;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
/** Agents that a field offers. */
const OFFERED = 20;
/** Letters of a description beside an offered name. */
const ABOUT_MAX = 80;

const names = new Map();

/** The name of an agent as far as it is known; else the beginning of its id. */
export const nameOf = (id) => (id ? (names.get(id) ?? id.slice(0, 8)) : "");

/** Notes names that some answer brought along. */
export function learn(id, name) {
  if (!id || !name) return;
  if (names.size >= NAMES_MAX) names.delete(names.keys().next().value);
  names.set(id, name);
}

/** A link to the page of an agent; `data` are further `data-` attributes. `nameLinks` puts in names that came later. */
export const agentLink = (id, { data = {} } = {}) => h("a", { class: "agent-link", href: `#/agent/${encodeURIComponent(id)}`, data: { agent: id, ...data } }, nameOf(id));

/** Puts the names that are known by now into the links of `root`. */
export function nameLinks(root) {
  for (const node of root.querySelectorAll("[data-agent]")) if (node.textContent !== nameOf(node.dataset.agent)) node.textContent = nameOf(node.dataset.agent);
}

/** Reads the names of `ids` that are not known, then calls `then` if there were any. */
export async function learnAll(ids, then, { signal } = {}) {
  let missing = [...new Set(ids)].filter((id) => id && !names.has(id)).slice(0, ASKED_MAX);
  if (missing.length === 0) return;
  // Many are one question; who may not ask it, asks for each.
  if (missing.length > 1 && seesAll() && missing.every((id) => UUID.test(id))) {
    try {
      const { rows } = await query(`agents where id in ("${missing.join('", "')}") select id, name`, { signal });
      for (const [id, name] of rows) learn(id, name);
      for (const id of missing) if (!names.has(id)) learn(id, `${id.slice(0, 8)} (removed)`);
      missing = [];
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
    }
  }
  await inLanes(missing, LANES, async (id) => {
    try {
      learn(id, (await get(`/api/agents/${encodeURIComponent(id)}`, { signal })).name);
    } catch (error) {
      if (error instanceof Failure && error.status === 404) learn(id, `${id.slice(0, 8)} (removed)`);
    }
  });
  if (!signal?.aborted) then();
}

/**
 * A field that takes an agent by its name: `const agent = agentField("Agent")`, and `await agent.read()` gives the id,
 * or null when it is empty and may be. A name that no agent has is shown at the field, and `read` throws.
 */
export function agentField(label, { id = null, optional = false, hint = "" } = {}) {
  const list = h("datalist", { id: uniqueId("agents") });
  const control = h("input", {
    type: "text", list: list.id, autocomplete: "off", spellcheck: "false", value: id ? nameOf(id) : "",
    placeholder: optional ? "No agent" : "Choose an agent", required: !optional,
  });
  const offer = debounce(async () => {
    try {
      const { items } = await page("/api/agents", "agents", { q: control.value.trim(), limit: OFFERED });
      for (const item of items) learn(item.id, item.name);
      fill(list, items.map((item) => h("option", { value: item.name, label: item.description ? `${item.name}: ${item.description.slice(0, ABOUT_MAX)}` : null })));
    } catch {
      // Only offers are missing; what is typed is checked when it is read.
    }
  }, 150);
  control.addEventListener("input", offer);
  control.addEventListener("focus", offer, { once: true });
  const made = field(label, control, { hint });
  made.append(list);
  if (!id && !optional) chooseOnly().catch(() => {});

  /** Where there is one agent alone, it is the one. */
  async function chooseOnly() {
    const { items, total } = await page("/api/agents", "agents", { limit: 1 });
    if (total !== 1 || items.length !== 1 || control.value !== "") return;
    learn(items[0].id, items[0].name);
    control.value = items[0].name;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }

  if (id) learnAll([id], () => { if (control.value === id.slice(0, 8)) control.value = nameOf(id); });
  made.read = async () => {
    const name = control.value.trim();
    if (name === "" && optional) return null;
    if (name === "") throw faultAt(made, "Choose an agent.");
    if (id && name === nameOf(id)) return id;
    const { items } = await page("/api/agents", "agents", { name, limit: 1 });
    if (items.length === 0) throw faultAt(made, `There is no agent named “${name}”. Choose one from the list.`);
    made.fault("");
    return items[0].id;
  };
  return made;
}

/** All agents whose name has `q` in it, one page: for lists. */
export const findAgents = (q, limit = OFFERED) => get(withQuery("/api/agents", { q, limit }));
