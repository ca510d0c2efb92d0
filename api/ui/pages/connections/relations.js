// Who talks to whom, as far as the daemon has said it: agents, their relations, and the last events between them. Bounded: what
// happened longest ago goes first.

const NODES_MAX = 2000;
const EDGES_MAX = 5000;
/** Events that are kept for the list. */
export const EVENTS_KEPT = 200;

/** What an event says between its two agents; `true` where it is a relation of its target to its source. */
const KINDS = {
  agent_message: { words: "wrote to", alone: "wrote" },
  agent_spawned: { words: "was created by", alone: "was created" },
  agent_terminated: { words: "was deleted by", alone: "was deleted" },
  task_posted: { words: "posted a task for", alone: "posted a task" },
  task_claimed: { words: "claimed a task of", alone: "claimed a task" },
  task_completed: { words: "completed a task of", alone: "completed a task" },
};

/** An event in words: who, did what, to whom. A client that acted has no name. */
export function wordsOf(event) {
  const kind = KINDS[event.kind] ?? { words: event.kind.replaceAll("_", " "), alone: event.kind.replaceAll("_", " ") };
  const source = event.source_name || "A client";
  return { source, did: event.target_name ? kind.words : kind.alone, target: event.target_name };
}

/** The key of the relation between two agents. */
export const edgeKey = (from, to, kind) => `${kind} ${from} ${to}`;

/** Agents and relations. `changes` is another number after each change of what is drawn. */
export class Relations {
  constructor() {
    this.nodes = new Map();
    this.edges = new Map();
    this.events = [];
    this.total = 0;
    this.changes = 0;
    this.seen = new Set();
    /** Events that were taken. */
    this.taken = 0;
  }

  /**
   * The answer of `GET /api/comms/topology`, asked for when `taken` was what it is given as. Agents that it leaves out are gone, unless
   * they did something since then.
   */
  takeTopology({ nodes, edges, total }, taken) {
    const told = new Set();
    for (const [at, node] of nodes.entries()) {
      told.add(node.id);
      this.node(node.id, node.name, { state: node.state, model: node.model, rank: at });
    }
    for (const { id, seen } of [...this.nodes.values()]) if (!told.has(id) && seen <= taken) this.drop(id);
    for (const { from, to, kind } of edges) this.edge(from, to, kind);
    this.total = total;
    this.changes += 1;
  }

  /** An event, in the order in which they happen; one that was seen counts once. Gives the key of the relation that it belongs to, or null. */
  takeEvent(event) {
    if (this.seen.has(event.id)) return null;
    this.seen.add(event.id);
    this.taken += 1;
    this.events.push(event);
    if (this.events.length > EVENTS_KEPT * 2) {
      this.events = this.events.slice(-EVENTS_KEPT);
      this.seen = new Set(this.events.map(({ id }) => id));
    }
    const { source_id: source, target_id: target, kind, timestamp: at } = event;
    if (kind === "agent_terminated") {
      if (this.drop(source)) this.total = Math.max(0, this.total - 1);
      return null;
    }
    if (kind === "agent_spawned" && !this.nodes.has(source)) this.total += 1;
    const from = source ? this.node(source, event.source_name, { at, seen: this.taken }) : null;
    const to = target ? this.node(target, event.target_name, { at, seen: this.taken }) : null;
    if (kind === "agent_message") {
      if (from) from.sent += 1;
      if (to) to.received += 1;
    }
    if (!from || !to || from === to) return null;
    const isChild = kind === "agent_spawned";
    const edge = isChild ? this.edge(target, source, "parent_child") : this.edge(source, target, "peer");
    edge.at = at;
    edge.count += 1;
    return edge.key;
  }

  /** The agent `id` with what is known of it now. */
  node(id, name, values) {
    let node = this.nodes.get(id);
    if (!node) {
      if (this.nodes.size >= NODES_MAX) this.drop([...this.nodes.values()].reduce((oldest, one) => (one.at < oldest.at ? one : oldest)).id);
      node = { id, name, state: "", model: "", at: "", rank: NODES_MAX, seen: 0, sent: 0, received: 0, with: new Set() };
      this.nodes.set(id, node);
      this.changes += 1;
    }
    if ((name && name !== node.name) || (values.state && values.state !== node.state)) this.changes += 1;
    Object.assign(node, values);
    if (name) node.name = name;
    return node;
  }

  edge(from, to, kind) {
    const key = edgeKey(from, to, kind);
    let edge = this.edges.get(key);
    if (!edge) {
      if (this.edges.size >= EDGES_MAX) this.cut(this.edges.values().next().value);
      edge = { key, from, to, kind, at: "", count: 0 };
      this.edges.set(key, edge);
      this.nodes.get(from)?.with.add(to);
      this.nodes.get(to)?.with.add(from);
      this.changes += 1;
    }
    return edge;
  }

  cut(edge) {
    this.edges.delete(edge.key);
    this.changes += 1;
  }

  drop(id) {
    if (!this.nodes.delete(id)) return false;
    this.changes += 1;
    for (const edge of this.edges.values()) if (edge.from === id || edge.to === id) this.cut(edge);
    for (const node of this.nodes.values()) node.with.delete(id);
    return true;
  }

  /** The agents: those that did something last first, then those with relations, then as the daemon orders them. */
  ranked() {
    const order = (a, b) => (a.at !== b.at ? (a.at < b.at ? 1 : -1) : Number(b.with.size > 0) - Number(a.with.size > 0) || a.rank - b.rank);
    return [...this.nodes.values()].sort(order);
  }

  /** The names of the agents that this one has to do with. */
  partners(node) {
    return [...node.with].map((id) => this.nodes.get(id)?.name).filter(Boolean);
  }
}
