// The knowledge graph of an agent: a picture around the entity that is open, and the same as lists.

import { call, page, withQuery } from "../../lib/api.js";
import { agentField } from "../../lib/agents.js";
import { textInput } from "../../lib/controls.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { debounce, emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { count, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";
import { Table } from "../../lib/table.js";
import { failed } from "../../lib/tabs.js";
import { KnowledgePicture, Knowledge, keyOf, propertyList } from "./knowledge.js";
import { confidenceText, followChanges, taintText } from "./words.js";

const PAGE = 100;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let agent = null;
  let graph = null;
  let selected = "";
  let next = null;
  let rows = [];
  let round = 0;
  let isReading = false;
  let searched = "";
  const agentPlace = h("div", {});
  const q = field("Name", h("input", { type: "search", placeholder: "Part of a name", oninput: debounce(() => readEntities().catch(showError), 250) }));
  const kind = field("Type", textInput("", { placeholder: "any type", oninput: debounce(() => readEntities().catch(showError), 250) }));
  const body = h("div", { class: "stack" });
  const shownText = h("p", { class: "dim", role: "status" });
  const listText = h("p", { class: "dim", role: "status" });
  const detail = h("section", { class: "card stack graph-detail", "aria-label": "Entity" });
  const picture = new KnowledgePicture({ signal, relations: { nodes: new Map(), edges: new Map(), ranked: () => [] }, open: (id) => ctx.go(["memory", "graph"], { agent, entity: id }), onShown: say });
  const table = new Table({
    label: "Entities", signal, open: (row) => ctx.go(["memory", "graph"], { agent, entity: row.id }), more: () => readMore(), empty: "",
    columns: [
      { label: "Name", width: "minmax(0, 2fr)", cell: (row) => h("span", { class: "cut" }, row.name) },
      { label: "Type", width: "minmax(0, 1fr)", cell: (row) => h("span", { class: "badge" }, row.entity_type.replaceAll("_", " ")) },
      { label: "Confidence", width: "130px", side: true, cell: (row) => confidenceText(row.confidence) },
    ],
  });
  const parts = h("div", { class: "stack" },
    h("div", { class: "talk" },
      h("section", { class: "card talk-card", "aria-label": "Graph" }, picture.node, shownText), detail),
    h("section", { class: "stack", "aria-label": "All entities" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Entities"), listText),
      h("div", { class: "memory-filters", role: "search" }, q, kind), table.root));
  fill(root, h("div", { class: "stack" }, h("div", { class: "memory-filters" }, agentPlace), body));

  function showAgent() {
    const made = agentField("Agent", { id: agent, optional: true });
    made.control.placeholder = "Choose an agent";
    made.control.addEventListener("change", async () => {
      try {
        ctx.go(["memory", "graph"], { agent: await made.read() }, { replace: true });
      } catch {
        // The field says that there is no such agent.
      }
    });
    fill(agentPlace, made);
  }

  function say(shown) {
    if (!graph) return;
    const known = graph.nodes.size;
    const rest = known > shown ? ` of ${number(known)} that were read` : "";
    shownText.textContent = `${count(shown, "entity", "entities")}${rest}. Open one to see what it is related to.${graph.isCut ? " The graph has more." : ""}`;
  }

  async function route(query) {
    const wanted = query.get("agent") || null;
    if (wanted !== agent || graph === null) {
      agent = wanted;
      showAgent();
      if (agent === null) {
        graph = null;
        fill(body, emptyState({ icon: icon("branch", 28), title: "Choose an agent", text: "Each agent has its own graph. Agents write it with the tools knowledge_add_entity and knowledge_add_relation." }));
        return;
      }
      await readGraph(query.get("entity") ?? "");
      return;
    }
    const entity = query.get("entity") ?? "";
    if (entity !== selected) await open(entity);
  }

  async function readGraph(entity) {
    const mine = (round += 1);
    const fresh = new Knowledge(agent);
    try {
      if (entity) await fresh.open(entity, signal);
      await fresh.readAll(signal);
      if (mine !== round) return;
      graph = fresh;
      picture.relations = graph;
      await readEntities();
    } catch (error) {
      if (error.name === "AbortError" || mine !== round) return;
      fill(body, failed(error, () => readGraph(entity).catch(showError)));
      return;
    }
    if (graph.nodes.size === 0 && rows.length === 0) {
      fill(body, emptyState({ icon: icon("branch", 28), title: "This agent knows nothing yet", text: "Grant it the tools knowledge_add_entity and knowledge_add_relation, or store relations over the API." }));
      return;
    }
    if (!parts.isConnected) fill(body, parts);
    picture.draw();
    selected = "";
    await open(entity, true);
  }

  /** Opens an entity: its relations are read and drawn. */
  async function open(id, isRead = false) {
    selected = id;
    let isCut = false;
    try {
      if (id && !isRead) isCut = await graph.open(id, signal);
    } catch (error) {
      showError(error);
    }
    if (selected !== id || signal.aborted) return;
    picture.select(graph.nodes.has(id) ? id : null);
    picture.draw();
    showEntity(isCut);
  }

  function showEntity(isCut = false) {
    const entity = graph.nodes.get(selected);
    if (!entity) {
      refill(detail, h("h2", {}, "Entity"), h("p", { class: "dim" }, selected ? "There is no such entity." : "Select an entity in the graph or in the list."));
      return;
    }
    const taint = taintText(entity.taint);
    const relations = graph.of(selected);
    refill(detail,
      h("div", { class: "bar-row" }, h("h2", { class: "grow entry-content" }, entity.name), h("span", { class: "badge" }, entity.entity_type.replaceAll("_", " "))),
      taint ? h("p", { class: "notice warn" }, icon("alert", 18), h("span", {}, taint)) : null,
      h("dl", { class: "pairs" }, entity.confidence === undefined ? null : [h("dt", {}, "Confidence"), h("dd", {}, confidenceText(entity.confidence))], propertyList(entity.properties)),
      h("h3", {}, `Relations (${number(relations.length)}${isCut ? "+" : ""})`),
      relations.length === 0 ? h("p", { class: "dim" }, "None.") : h("ul", { class: "tool-list", "aria-label": `Relations of ${entity.name}` }, relations.map((match) => relationLine(match))),
      can("write") && h("div", { class: "buttons" }, h("button", { type: "button", class: "danger-text", onclick: () => removeEntity(entity).catch(showError) }, icon("trash", 18), "Delete the entity")));
  }

  function relationLine(match) {
    const { source, relation, target } = match;
    const end = (one) => (one.id === selected ? h("span", {}, one.name) : h("a", { href: withQuery("#/memory/graph", { agent, entity: one.id }) }, one.name));
    const taint = taintText(relation.taint);
    const words = `${source.name} ${relation.type.replaceAll("_", " ")} ${target.name}`;
    return h("li", {}, h("div", { class: "bar-row tight" }, h("span", { class: "grow entry-content" }, end(source), h("strong", {}, ` ${relation.type.replaceAll("_", " ")} `), end(target)),
      can("write") && h("button", { type: "button", class: "quiet only-icon small", "aria-label": `Delete: ${words}`, title: "Delete the relation", onclick: () => removeRelation(match, words).catch(showError) }, icon("trash", 16))),
      h("small", { class: "faint" }, [`Confidence: ${confidenceText(relation.confidence)}`, taint].filter(Boolean).join(" · ")));
  }

  async function removeRelation(match, words) {
    const ends = { source: match.source.id, relation: match.relation.type, target: match.target.id };
    const run = () => call("DELETE", withQuery(`${graph.path}/relations`, ends));
    if (!(await confirm({ title: "Delete this relation?", text: `“${words}” is deleted. The entities stay.`, run }))) return;
    toast("Deleted");
    graph.forgetRelation(keyOf(match));
    picture.draw();
    showEntity();
  }

  async function removeEntity(entity) {
    const run = () => call("DELETE", `${graph.path}/entities/${encodeURIComponent(entity.id)}`);
    if (!(await confirm({ title: `Delete ${entity.name}?`, text: "The entity and all its relations are deleted. This cannot be undone.", run }))) return;
    toast("Deleted");
    graph.forget(entity.id);
    ctx.go(["memory", "graph"], { agent });
    await readEntities();
  }

  const entitiesAt = (cursor, limit = PAGE) => page(`${graph.path}/entities`, "entities", { q: q.control.value.trim(), entity_type: kind.control.value.trim(), limit, cursor }, { signal });

  async function readEntities(limit = PAGE) {
    const mine = (searched = `${agent}\n${q.control.value}\n${kind.control.value}`);
    kind.fault("");
    let found;
    try {
      found = await entitiesAt(null, limit);
    } catch (error) {
      if (error.field !== "entity_type") throw error;
      kind.fault(error.message);
      return;
    }
    if (mine !== searched) return;
    rows = found.items;
    next = found.next;
    table.set(rows);
    listText.textContent = rows.length === 0 ? "No entity matches." : `${number(found.total)} in total${next || rows.length < found.total ? `, ${number(rows.length)} shown` : ""}`;
  }

  function readMore() {
    if (isReading || !next) return;
    isReading = true;
    const mine = searched;
    entitiesAt(next).then((found) => {
      if (mine !== searched) return;
      next = found.next;
      rows = [...rows, ...found.items];
      table.set(rows);
      listText.textContent = `${number(found.total)} in all, ${number(rows.length)} shown`;
    }).catch(showError).finally(() => { isReading = false; });
  }

  await route(ctx.query);
  ctx.onRoute((path, query) => route(query).catch(showError));
  // Others may not follow what happens.
  if (seesAll()) followChanges("knowledge_updated", () => agent, { signal, changed: async () => {
    if (!agent || document.querySelector("dialog[open]")) return;
    await readGraph(selected).catch(showError);
  } });
}
