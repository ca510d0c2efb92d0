// What is known in the page of an agent's knowledge graph: a bounded part of it, around the entities that were opened. And its picture.

import { get, withQuery } from "../../lib/api.js";
import { h, s } from "../../lib/dom.js";
import { Picture } from "../connections/picture.js";

/** Entities that are kept; beyond that, those that are farthest from what was opened last go. */
export const NODES_MAX = 200;
/** Relations of an entity that are read, in each direction. */
const RELATIONS_MAX = 100;

/** The key of a relation. */
export const keyOf = ({ source, relation, target }) => `${source.id}\n${relation.type}\n${target.id}`;

/** The part of a graph that was read, in the form that `Picture` draws. */
export class Knowledge {
  constructor(agent) {
    this.path = `/api/memory/agents/${encodeURIComponent(agent)}`;
    this.nodes = new Map();
    this.edges = new Map();
    this.matches = new Map();
    this.opened = [];
    this.isCut = false;
  }

  /** Reads the beginning of the graph. */
  async readAll(signal) {
    const found = await get(withQuery(`${this.path}/relations`, { limit: RELATIONS_MAX }), { signal });
    this.isCut = found.truncated || found.next_cursor !== null;
    this.add(found);
  }

  /** Reads the relations of an entity, both ways; those known of it before are replaced. */
  async open(id, signal) {
    const read = (side) => get(withQuery(`${this.path}/relations`, { [side]: id, limit: RELATIONS_MAX }), { signal });
    const found = await Promise.all([read("source"), read("target")]);
    this.opened = [id, ...this.opened.filter((one) => one !== id)].slice(0, NODES_MAX);
    for (const [key, { from, to }] of this.edges) {
      if (from !== id && to !== id) continue;
      this.edges.delete(key);
      this.matches.delete(key);
    }
    for (const one of found) this.add(one);
    return found.some((one) => one.truncated);
  }

  /** Takes in the answer of a query. */
  add({ matches, entities }) {
    for (const match of matches) {
      const key = keyOf(match);
      this.matches.set(key, match);
      this.edges.set(key, { key, from: match.source.id, to: match.target.id, kind: match.relation.type, at: match.relation.updated_at, count: 1 });
      for (const end of [match.source, match.target]) if (!this.nodes.has(end.id)) this.nodes.set(end.id, { ...end, with: new Set() });
    }
    for (const entity of entities) this.nodes.set(entity.id, { ...entity, with: new Set() });
    this.bound();
  }

  /** Leaves out what is too much, and notes who is related to whom. */
  bound() {
    this.relate();
    if (this.nodes.size > NODES_MAX) {
      this.isCut = true;
      for (const { id } of this.ranked().slice(NODES_MAX)) this.nodes.delete(id);
      for (const [key, { from, to }] of this.edges) {
        if (this.nodes.has(from) && this.nodes.has(to)) continue;
        this.edges.delete(key);
        this.matches.delete(key);
      }
      this.relate();
    }
  }

  relate() {
    for (const node of this.nodes.values()) node.with = new Set();
    for (const { from, to } of this.edges.values()) {
      this.nodes.get(from)?.with.add(to);
      this.nodes.get(to)?.with.add(from);
    }
  }

  forget(id) {
    this.nodes.delete(id);
    this.opened = this.opened.filter((one) => one !== id);
    for (const [key, { from, to }] of this.edges) if (from === id || to === id) this.forgetRelation(key);
    this.relate();
  }

  forgetRelation(key) {
    this.edges.delete(key);
    this.matches.delete(key);
    this.relate();
  }

  /** The entities, those first that are shown first: what was opened last, what is beside it, then what has most relations. */
  ranked() {
    const [last] = this.opened;
    const rank = ({ id, with: beside }) => (id === last ? 3e6 : beside.has(last) ? 2e6 : 0) + (this.opened.includes(id) ? 1e6 : 0) + beside.size;
    return [...this.nodes.values()].map((node) => [rank(node), node]).sort((a, b) => b[0] - a[0]).map(([, node]) => node);
  }

  /** The relations of an entity. */
  of(id) {
    return [...this.matches.values()].filter(({ source, target }) => source.id === id || target.id === id);
  }
}

/** The picture of entities and their relations; the relations of the selected entity carry their types. */
export class KnowledgePicture extends Picture {
  constructor(options) {
    super(options);
    this.canvas.setAttribute("aria-label", "Entities. Use the arrow keys to go from one to another, and Enter to open one.");
    this.labels = null;
  }

  circle(node) {
    const made = super.circle({ ...node, sent: 0, received: 0 });
    const label = `${node.name}, ${node.entity_type}, ${node.with.size} related`;
    made.setAttribute("aria-label", label);
    made.querySelector("title").textContent = label;
    return made;
  }

  line(edge) {
    const made = super.line(edge);
    made.append(s("title", {}, edge.kind));
    return made;
  }

  mark() {
    super.mark();
    this.labels?.remove();
    const near = [...this.lines].filter(([, line]) => line.classList.contains("is-near"));
    this.labels = s("g", { "aria-hidden": "true", class: "edge-labels" }, near.map(([key]) => {
      const { from, to, kind } = this.relations.edges.get(key) ?? {};
      const [a, b] = [this.places.get(from), this.places.get(to)];
      return a && b ? s("text", { x: ((a.x + b.x) / 2).toFixed(1), y: ((a.y + b.y) / 2).toFixed(1), "text-anchor": "middle" }, kind.replaceAll("_", " ")) : null;
    }));
    this.canvas.append(this.labels);
  }
}

/** Properties as pairs of text. */
export const propertyList = (properties) => Object.entries(properties ?? {}).map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))]);
