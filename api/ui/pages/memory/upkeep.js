// How many entries there are, which settings are in effect, and what keeps the memory in order.

import { Failure, call, download, get, send, withQuery } from "../../lib/api.js";
import { agentField, learnAll, nameOf } from "../../lib/agents.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { fill, h, refill } from "../../lib/dom.js";
import { count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { agentText, categoryText, followChanges } from "./words.js";

const IMPORT_BYTES_MAX = 96 * 1024 * 1024;
const EVERY_MS = 2000;
/** Imports that are shown, the newest first. */
const IMPORTS_SHOWN = 10;
/** Groups of duplicates that are shown. */
const GROUPS_SHOWN = 50;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let agent = null;
  let running = false;
  const agentPlace = h("div", {});
  const counts = h("div", { class: "stat-row" });
  const categories = h("section", { class: "card stack", "aria-label": "Categories" });
  const settings = h("section", { class: "card stack", "aria-label": "Settings in effect" });
  const result = h("div", { role: "status" });
  const works = h("section", { class: "card stack", "aria-label": "Maintenance" });
  const transfer = h("section", { class: "card stack", "aria-label": "Export and import" });
  const imports = h("ul", { class: "tool-list", "aria-label": "Imports" });
  const file = h("input", { type: "file", accept: "application/json,.json", "aria-label": "File to import", onchange: () => importFile().catch(showError) });
  fill(root, h("div", { class: "stack" }, h("div", { class: "memory-filters" }, agentPlace), counts, h("div", { class: "upkeep-cards" }, categories, settings), works, transfer));

  async function route(query) {
    agent = query.get("agent") || null;
    const made = agentField("Agent", { id: agent, optional: true });
    made.control.placeholder = "all agents";
    made.control.addEventListener("change", async () => {
      try {
        ctx.go(["memory", "upkeep"], { agent: await made.read() }, { replace: true });
      } catch {
        // The field says that there is no such agent.
      }
    });
    fill(agentPlace, made);
    fill(result);
    if (agent) await learnAll([agent], () => {}, { signal });
    showWorks();
    showTransfer();
    await readStats();
  }

  async function readStats() {
    const asked = agent;
    const stats = await get(asked ? `/api/memory/agents/${encodeURIComponent(asked)}/stats` : "/api/memory/stats", { signal });
    if (asked !== agent) return;
    const stat = (label, value) => h("div", { class: "stat" }, h("span", {}, label), h("strong", {}, number(value)));
    fill(counts, stat("Entries", stats.total), stat("Users", stats.user_count), stat("Sessions", stats.session_count), stat("Agents", stats.agent_count));
    const names = Object.entries(stats.categories).sort((a, b) => b[1] - a[1]);
    refill(categories, h("h2", {}, "Categories"), names.length === 0 ? h("p", { class: "dim" }, "No entries yet.") : h("ul", { class: "chips" }, names.map(([name, size]) => h("li", {},
      name === "uncategorized" ? h("span", { class: "badge" }, `${name} ${number(size)}`) : h("a", { class: "badge", href: withQuery("#/memory", { agent: asked, category: name }) }, `${categoryText(name)} ${number(size)}`)))));
    const line = (label, isOn, on, off) => [h("dt", {}, label), h("dd", {}, h("span", { class: `badge ${isOn ? "good" : ""}` }, isOn ? "on" : "off"), ` ${isOn ? on : off}`)];
    refill(settings, h("h2", {}, "Settings in effect"), h("dl", { class: "pairs" },
      line("Memory", stats.enabled, "Entries can be learned and recalled.", "Agents neither learn nor recall entries."),
      line("Learning", stats.auto_memorize_enabled, "Facts are stored after each turn.", "Entries are stored by hand and by clients only."),
      line("Recall", stats.auto_retrieve_enabled, "Matching entries are given to the model before each turn.", "Entries are not given to models."),
      line("Extraction by a model", stats.llm_extraction, "A model finds the facts.", "Rules find the facts; no model is called.")),
    h("p", {}, h("a", { href: "#/settings/config" }, "Change the keys of [proactive_memory]")));
  }

  /** A task with its text and a button. */
  const task = (title, text, button) => h("div", { class: "upkeep-task" }, h("div", { class: "grow" }, h("h3", {}, title), h("p", { class: "dim" }, text)), button);
  const button = (label, run, props = {}) => h("button", { type: "button", onclick: () => busy(run).catch(showError), ...props }, label);

  /** One task at a time. */
  async function busy(run) {
    if (running) return;
    running = true;
    for (const node of works.querySelectorAll("button")) node.disabled = true;
    try {
      await run();
    } finally {
      running = false;
      for (const node of works.querySelectorAll("button")) node.disabled = node.dataset.needs === "agent" && !agent;
    }
  }

  function showWorks() {
    const whose = agent ? nameOf(agent) : "all agents";
    const needs = agent ? "" : " Choose an agent first.";
    fill(works, h("h2", {}, "Maintenance"), h("p", { class: "hint" }, `Applies to the entries of ${whose}.`),
      task("Duplicates", `Finds entries of one user and level that say the same.${needs}`, button("Find duplicates", findDuplicates, { disabled: !agent, data: { needs: "agent" } })),
      can("write") && task("Cleanup", "Deletes expired entries and those whose confidence is below 0.05.", button("Clean up", cleanUp)),
      can("write") && task("Decay", "Lowers the confidence of entries that were not used for a day. Entries that are used often decay more slowly.", button("Lower confidence", decay)), result);
  }

  async function findDuplicates() {
    fill(result, h("p", { class: "notice" }, h("span", { class: "spinner" }), "Comparing entries…"));
    let found;
    try {
      found = await get(`/api/memory/agents/${encodeURIComponent(agent)}/duplicates`, { signal });
    } catch (error) {
      fill(result);
      throw error;
    }
    if (found.groups.length === 0) {
      fill(result, h("p", { class: "notice good" }, icon("check", 18), "There are no duplicates."));
      return;
    }
    fill(result, h("div", { class: "stack" },
      h("div", { class: "bar-row" }, h("h3", { class: "grow" }, count(found.duplicate_groups, "group of duplicates", "groups of duplicates")), can("write") && h("button", { type: "button", class: "primary", onclick: () => busy(consolidate).catch(showError) }, "Keep the newest of each")),
      h("ol", { class: "tool-list", "aria-label": "Duplicates" }, found.groups.slice(0, GROUPS_SHOWN).map((group) => h("li", {}, group.map((entry, at) => h("p", { class: at === 0 ? "entry-content" : "entry-content dim" }, h("span", { class: `badge ${at === 0 ? "good" : ""}` }, at === 0 ? "kept" : "hidden"), " ", entry.content))))),
      found.groups.length > GROUPS_SHOWN ? h("p", { class: "hint" }, `The first ${GROUPS_SHOWN} groups are shown.`) : null));
  }

  async function consolidate() {
    let done = null;
    const text = "The newest entry of each group stays. The others are hidden, and deleted after 30 days.";
    const run = async () => { done = await call("POST", `/api/memory/agents/${encodeURIComponent(agent)}/consolidate`); };
    if (!(await confirm({ title: "Consolidate duplicates?", text, action: "Consolidate", danger: false, run }))) return;
    fill(result, h("p", { class: "notice good" }, icon("check", 18), `${count(done.merged_count, "entry", "entries")} hidden; ${count(done.consolidated, "entry", "entries")} kept.`));
    await readStats();
  }

  const whole = () => (agent ? { agent_id: agent } : {});

  async function cleanUp() {
    let done = null;
    const run = async () => { done = await call("POST", "/api/memory/cleanup", whole()); };
    if (!(await confirm({ title: `Clean up the memory of ${agentText(agent)}?`, text: "Expired entries and those with a confidence below 0.05 are deleted. This cannot be undone.", action: "Clean up", run }))) return;
    fill(result, h("p", { class: "notice good" }, icon("check", 18), `${count(done.deleted_count, "entry", "entries")} deleted.`));
    await readStats();
  }

  async function decay() {
    let done = null;
    const run = async () => { done = await call("POST", "/api/memory/decay", whole()); };
    if (!(await confirm({ title: `Lower the confidence of unused entries of ${agentText(agent)}?`, text: "Confidence falls with the days since an entry was used. The same days count once.", action: "Lower confidence", danger: false, run }))) return;
    fill(result, h("p", { class: "notice good" }, icon("check", 18), `Confidence of ${count(done.decayed, "entry", "entries")} lowered (rate ${done.decay_rate} a day).`));
  }

  function showTransfer() {
    fill(transfer, h("h2", {}, "Export and import"), agent ? [
      h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => download(`/api/memory/agents/${encodeURIComponent(agent)}/export`, `memory-${nameOf(agent)}.json`, { signal }).catch(showError) }, icon("download", 18), "Export as JSON"), can("write") && h("label", { class: "button" }, "Import a file", file)),
      can("write") && h("p", { class: "hint" }, "A file with up to 100,000 entries and 96 MB. Importing the same file again changes nothing."),
    ] : h("p", { class: "dim" }, `Choose an agent to export its entries${can("write") ? " or to import a file" : ""}.`), imports);
  }

  async function importFile() {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    if (chosen.size > IMPORT_BYTES_MAX) throw new Failure("The file is larger than 96 MB. Split it.", 400);
    // A large file is not parsed here: only what stands around it is written.
    const start = await chosen.slice(0, 4096).text();
    const at = start.search(/\S/);
    const first = start[at];
    // A mark at the beginning of the file is not JSON.
    const from = new Blob([start.slice(0, at + 1)]).size;
    if (first !== "[" && first !== "{") throw new Failure("The file is not JSON: it must hold an object or an array.", 400);
    const body = first === "[" ? new Blob(['{"background":true,"memories":', chosen, "}"]) : new Blob(['{"background":true,', chosen.slice(from)]);
    const response = await send("POST", `/api/memory/agents/${encodeURIComponent(agent)}/import`, { body, type: "application/json", signal });
    showImports([await response.json()]);
    await again();
  }

  function showImports(list) {
    refill(imports, list.map((one) => h("li", {},
      h("div", { class: "bar-row tight" }, h("strong", { class: "grow cut" }, `Import for ${nameOf(one.agent_id)}`), h("span", { class: `badge ${{ completed: "good", failed: "bad" }[one.status] ?? "accent"}` }, one.status)),
      one.status === "running" ? h("div", { class: "meter", role: "progressbar", "aria-label": "Progress of the import", "aria-valuemin": "0", "aria-valuemax": String(one.total), "aria-valuenow": String(one.done), style: { "--part": `${one.total > 0 ? (100 * one.done) / one.total : 0}%` } }, h("i", {})) : null,
      h("p", { class: "dim" }, `${number(one.done)} of ${count(one.total, "entry", "entries")}: ${number(one.created)} created, ${number(one.updated)} updated, ${number(one.skipped)} skipped`),
      one.error ? h("p", { class: "fault" }, one.error) : null, h("small", { class: "faint" }, when(one.started_at)))));
  }

  let wasRunning = false;
  async function readImports() {
    const { imports: list } = await get("/api/memory/imports", { signal });
    const newest = [...list].reverse().slice(0, IMPORTS_SHOWN);
    showImports(newest);
    learnAll(newest.map((one) => one.agent_id), () => showImports(newest), { signal });
    const isRunning = list.some((one) => one.status === "running");
    if (wasRunning && !isRunning) {
      toast("The import has ended");
      await readStats();
    }
    wasRunning = isRunning;
  }

  await route(ctx.query);
  ctx.onRoute((path, query) => route(query).catch(showError));
  const again = poll(readImports, EVERY_MS, { signal });
  followChanges("memory_updated", () => agent, { signal, changed: () => readStats().catch(showError) });
}
