// The live graph: which agents talk to each other, message by message. The list beside it says the same in words, and a table has all
// agents.

import { get } from "../../lib/api.js";
import { showError } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { ago, brief, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { perFrame, poll } from "../../lib/poll.js";
import { followAlways } from "../../lib/stream.js";
import { Table } from "../../lib/table.js";
import { Picture } from "./picture.js";
import { Relations, wordsOf } from "./relations.js";

const EVERY_MS = 15_000;
/** Events that are read when the page is opened: as many as the daemon gives. */
const EVENTS_READ = 500;
/** Events in the list. */
const SHOWN = 40;
/** Time between two looks at the lists, however much happens. */
const LOOK_MS = 300;
/** Time after which agents that an event has named are asked for. */
const ASK_MS = 1000;
/** Events that wait for a frame; a hidden tab has none. */
const WAITING_MAX = 1000;
/** Before all events. */
const START = "00000000-0000-0000-0000-000000000000";
const STATES = { live: ["good", "live"], waiting: ["warn", "reconnecting"], refused: ["bad", "refused"] };

export async function mount(root, ctx) {
  const { signal } = ctx;
  const relations = new Relations();
  let waiting = [];
  let drawn = -1;
  let shown = 0;
  let looked = 0;
  let asked = 0;
  let selected = null;
  let isList = ctx.query.get("view") === "list";

  const state = h("span", { class: "badge", role: "status" }, "connecting");
  const counts = h("p", { class: "dim" });
  const views = h("div", { class: "segments", role: "group", "aria-label": "View" }, [["Graph", false], ["List", true]].map(([label, value]) => h("button", { type: "button", "aria-pressed": String(isList === value), onclick: () => ctx.go(["connections", "graph"], { view: value ? "list" : "" }) }, label)));
  const picture = new Picture({ signal, relations, open: (id) => choose(id === selected ? null : id), onShown: (some) => { shown = some; tellCounts(); } });
  const table = new Table({
    label: "Agents and whom they talk with", signal, rowHeight: 60, open: (row) => choose(row.id), empty: "No agents.",
    columns: [
      { label: "Agent", width: "minmax(0, 1.4fr)", sort: (row) => row.name, cell: (row) => h("span", { class: "two" }, h("strong", { class: "cut" }, row.name), h("small", { class: "faint cut" }, row.state || "state unknown")) },
      { label: "Talks with", width: "minmax(0, 1.6fr)", sort: (row) => row.with, cell: (row) => h("span", { class: "cut dim" }, row.names) },
      { label: "Sent", width: "64px", slim: "44px", end: true, sort: (row) => row.sent, cell: (row) => number(row.sent) },
      { label: "Received", width: "84px", side: true, end: true, sort: (row) => row.received, cell: (row) => number(row.received) },
      { label: "Last event", width: "120px", side: true, sort: (row) => row.at, cell: (row) => (row.at ? ago(row.at) : h("span", { class: "faint" }, "none")) },
    ],
  });
  const legend = h("p", { class: "talk-legend hint" }, h("span", { class: "key-peer" }, "sends messages or tasks"), h("span", { class: "key-child" }, "created"), h("span", { class: "key-running" }, "running"));
  const chosen = h("div", { class: "talk-chosen", role: "status" });
  const list = h("ol", { class: "talk-events", "aria-label": "Events" });
  const nothing = h("p", { class: "dim" }, "No agent has written to another yet. Agents write to each other with the tool agent_send.");
  const main = h("div", { class: "talk-main" });
  const side = h("section", { class: "card talk-side", tabindex: "0", "aria-label": "Latest events" }, h("h2", {}, "Latest events"), chosen, list);
  const body = h("div", { class: "stack" }, h("div", { class: "bar-row" }, views, counts), nothing, h("div", { class: "talk" }, main, side));
  fill(ctx.actions, state);

  /** Takes in what came since the last frame. */
  const takeIn = perFrame(() => {
    const keys = [];
    const ids = [];
    for (const event of waiting) {
      const key = relations.takeEvent(event);
      if (key) keys.push(key);
      ids.push(event.source_id, event.target_id);
    }
    waiting = [];
    show();
    // The state of an agent that was not known is read soon.
    if (asked === 0 && ids.some((id) => relations.nodes.get(id)?.state === "")) asked = setTimeout(() => { asked = 0; again(); }, ASK_MS);
    // A line that is new is drawn first.
    requestAnimationFrame(() => picture.light(keys, ids.filter(Boolean)));
  }, signal);

  function choose(id) {
    selected = id;
    picture.select(id);
    look();
  }

  function show() {
    if (body.parentNode !== root) fill(root, body);
    if (!isList && drawn !== relations.changes) {
      drawn = relations.changes;
      picture.draw();
    }
    if (looked === 0) looked = setTimeout(look, LOOK_MS);
  }

  /** Writes the lists anew. */
  function look() {
    clearTimeout(looked);
    looked = 0;
    if (signal.aborted) return;
    const agent = relations.nodes.get(selected) ?? null;
    const events = relations.events.filter((event) => agent === null || event.source_id === agent.id || event.target_id === agent.id).slice(-SHOWN).reverse();
    nothing.hidden = relations.events.length > 0 || relations.edges.size > 0;
    refill(list, events.map(line), events.length === 0 ? h("li", { class: "dim" }, "No events yet.") : null);
    refill(chosen, agent === null ? null : about(agent));
    if (isList) table.set(relations.ranked().map((node) => ({ ...node, with: node.with.size, names: relations.partners(node).slice(0, 20).join(", ") || "none yet" })));
    tellCounts();
  }

  function line(event) {
    const { source, did, target } = wordsOf(event);
    // Names and texts are of agents: they stay text.
    return h("li", {}, h("div", { class: "bar-row tight" }, h("span", { class: "grow" }, h("strong", {}, source), ` ${did} `, target ? h("strong", {}, target) : null), h("time", { class: "faint", datetime: event.timestamp, title: when(event.timestamp) }, brief(event.timestamp))),
      event.detail ? h("p", { class: "server-text clamp" }, event.detail) : null);
  }

  function about(agent) {
    const names = relations.partners(agent);
    return [
      h("div", { class: "bar-row tight" }, h("strong", { class: "grow cut" }, agent.name), h("button", { type: "button", class: "quiet small only-icon", "aria-label": "Show the events of all agents", onclick: () => choose(null) }, icon("close", 16))),
      h("p", { class: "hint" }, [agent.state, agent.model, `${number(agent.sent)} sent`, `${number(agent.received)} received`].filter(Boolean).join(" · ")),
      h("p", { class: "hint" }, names.length > 0 ? `With ${names.slice(0, 12).join(", ")}${names.length > 12 ? ` and ${count(names.length - 12, "other")}` : ""}` : "With no other agent yet"),
      h("a", { href: `#/chat/${encodeURIComponent(agent.id)}` }, `Open the chat of ${agent.name}`),
    ];
  }

  function tellCounts() {
    const known = relations.nodes.size;
    const seen = isList ? known : Math.min(shown, known);
    const rest = Math.max(relations.total, known) - seen;
    counts.textContent = `${count(seen, "agent")}${rest > 0 ? `, the most recent. ${number(rest)} more ${rest === 1 ? "is" : "are"} not shown.` : ""}`;
  }

  function arrange() {
    [...views.children].forEach((button, at) => button.setAttribute("aria-pressed", String(isList === (at === 1))));
    fill(main, isList ? table.root : h("div", { class: "card talk-card" }, picture.node, legend));
    drawn = -1;
    show();
    look();
  }

  async function readTopology() {
    const { taken } = relations;
    relations.takeTopology(await get("/api/comms/topology", { signal }), taken);
  }

  /** Events first: the topology says which of their agents are still there. */
  async function readAll() {
    const { events } = await get(`/api/comms/events?limit=${EVENTS_READ}`, { signal });
    for (const event of events.toReversed()) relations.takeEvent(event);
    await readTopology();
    return events[0]?.id ?? START;
  }

  ctx.onRoute((_, query) => {
    isList = query.get("view") === "list";
    arrange();
  });
  const after = await readAll();
  arrange();
  const again = poll(async () => {
    await readTopology();
    show();
  }, EVERY_MS, { signal });
  followAlways(() => "/api/comms/events/stream", {
    signal, after,
    onEvent: (name, event) => {
      if (name === "lagged") return void readAll().then(show).catch(showError);
      if (waiting.length < WAITING_MAX) waiting.push(event);
      takeIn();
    },
    onState: (how, error) => {
      const [style, word] = STATES[how];
      state.className = `badge ${style}`;
      state.textContent = error?.status === 429 ? "too many streams are open" : word;
      if (how === "refused") fill(root, emptyState({ icon: icon("alert", 28), title: "The stream was refused", text: error.message, actions: [h("button", { class: "primary", type: "button", onclick: () => location.reload() }, "Try again")] }));
    },
  });
  return () => {
    clearTimeout(looked);
    clearTimeout(asked);
  };
}
