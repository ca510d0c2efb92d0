// The last events as a stream, with filters. A flood is taken in as it comes and shown a few times a second.

import { pause as wait, withQuery } from "../../lib/api.js";
import { agentField, agentLink, learn, learnAll, nameLinks, nameOf } from "../../lib/agents.js";
import { ask, showError } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { Table } from "../../lib/table.js";
import { followAlways } from "../../lib/stream.js";
import { agentNamedBy, sentenceOf } from "./sentences.js";

/** Events that are kept; the oldest go. */
const KEPT_MAX = 2000;
/** Time between two looks of the list, however much happens. */
const LOOK_MS = 150;
/** Time between two questions for names. */
const NAMES_MS = 1000;
const GROUPS = [
  ["Agents", ["agent_spawned", "agent_started", "agent_stopped", "agent_updated", "agent_terminated"]],
  ["Turns", ["message_received", "turn_started", "turn_completed", "turn_failed", "session_compacted"]],
  ["Tools", ["tool_called", "tool_refused", "tool_unknown"]],
  ["Tasks", ["task_posted", "task_claimed", "task_completed", "task_failed"]],
  ["Automation", ["schedule_fired", "cron_fired", "workflow_started", "workflow_completed", "workflow_failed"]],
  ["Trust", ["approval_requested", "approval_resolved", "budget_warning", "budget_exceeded"]],
  ["Others", ["memory_updated", "knowledge_updated", "custom"]],
];
const TONES = { failed: "bad", refused: "bad", unknown: "bad", exceeded: "bad", terminated: "bad", warning: "warn", requested: "warn", stopped: "warn", completed: "good", started: "accent", spawned: "accent", fired: "accent" };

export async function mount(root, ctx) {
  const { signal } = ctx;
  let kept = [];
  let seen = 0;
  let missed = 0;
  let newest = 0;
  let text = "";
  let paused = false;
  let planned = 0;
  let round = 0;
  let isNaming = false;
  let areNamesWanted = false;
  let following = null;
  /** Kinds that are followed; none for all. An address can name some. */
  const chosen = new Set((ctx.query.get("kind") ?? "").split(",").filter(Boolean));

  const state = h("span", { class: "badge", role: "status" }, "connecting");
  const counts = h("p", { class: "dim num" });
  const pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => { paused = !paused; pause.setAttribute("aria-pressed", String(paused)); fill(pause, icon(paused ? "play" : "pause", 18), paused ? "Resume" : "Pause"); look(); } }, icon("pause", 18), "Pause");
  const search = h("input", { type: "search", placeholder: "Contains text", "aria-label": "Contains text", oninput: () => { text = search.value.toLowerCase(); look(); } });
  const agent = agentField("Agent", { optional: true });
  agent.control.placeholder = "any agent";
  agent.control.addEventListener("change", () => begin().catch(showError));
  const named = chosen.size === 0 ? null : h("button", { type: "button", class: "small", "aria-pressed": "true", onclick: () => {
    chosen.clear();
    named.remove();
    begin().catch(showError);
  } }, `Only: ${[...chosen].join(", ").replaceAll("_", " ")}`, icon("close", 13));
  const kinds = h("div", { class: "kind-groups" }, named, GROUPS.map(([name, words]) => group(name, words)));
  const table = new Table({
    label: "Events, newest first", signal, rowHeight: 38, slimHeight: 72, open: details, empty: "No matching events yet. Events appear as soon as agents are active.",
    columns: [
      { label: "Kind", width: "190px", slim: "24px", cell: ({ event }) => h("span", { class: `badge ${TONES[event.kind.split("_").at(-1)] ?? ""}` }, event.kind.replaceAll("_", " ")) },
      { label: "Agent", width: "minmax(0, 1fr)", cell: ({ event }) => h("span", { class: "two event-agent" }, event.agent_id ? agentLink(event.agent_id) : h("span", { class: "faint" }, "–"), h("small", { class: "dim cut" }, sentenceOf(event).slice(0, 120))) },
      { label: "What", width: "minmax(0, 2.6fr)", side: true, cell: ({ event }) => h("span", { class: "dim" }, sentenceOf(event).slice(0, 300)) },
      { label: "When", width: "104px", slim: "88px", end: true, cell: ({ at }) => h("time", { datetime: at, title: when(at) }, clock(at)) },
    ],
  });
  table.view.classList.add("events-view");
  fill(ctx.actions, state, h("button", { type: "button", onclick: () => { kept = []; look(); } }, "Clear"), pause);
  fill(root, h("div", { class: "stack" }, h("div", { class: "event-filters" }, h("div", { class: "search-field" }, search), agent, counts), kinds, table.root));

  function group(name, words) {
    const button = h("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => {
      const isOn = button.getAttribute("aria-pressed") === "true";
      for (const word of words) if (isOn) chosen.delete(word); else chosen.add(word);
      button.setAttribute("aria-pressed", String(!isOn));
      begin().catch(showError);
    } }, name);
    return button;
  }

  /** Follows anew with the filters that the daemon knows: kinds and agent. */
  async function begin() {
    const asked = (round += 1);
    let id = null;
    try {
      id = await agent.read();
    } catch {
      return;
    }
    // The filters were changed again meanwhile: the later call knows better.
    if (asked !== round || signal.aborted) return;
    following?.abort();
    following = new AbortController();
    const mine = following;
    signal.addEventListener("abort", () => mine.abort(), { signal: mine.signal });
    kept = [];
    newest = 0;
    look();
    await followAlways(() => withQuery("/api/world/events", { kind: [...chosen].join(","), agent_id: id }), {
      signal: mine.signal,
      onEvent: (name, body) => {
        if (name === "lagged") missed += body.missed;
        if (name !== "event") return;
        // After a break the last ones come again; after a restart they are counted from 1.
        const isOld = body.number <= newest && kept.length > 0 && body.at <= kept.at(-1).at;
        if (isOld) return;
        newest = body.number;
        seen += 1;
        learn(body.event.agent_id, agentNamedBy(body.event));
        kept.push(body);
        // Cut now and then, not with each event.
        if (kept.length > KEPT_MAX * 1.5) kept = kept.slice(-KEPT_MAX);
        if (!paused) plan();
      },
      onState: (how, error) => {
        state.className = `badge ${{ live: "good", waiting: "warn", refused: "bad" }[how]}`;
        state.textContent = { live: "live", waiting: "reconnecting", refused: "refused" }[how];
        if (how === "refused") fill(root, emptyState({ icon: icon("alert", 28), title: error.status === 404 ? "This daemon does not support the event stream" : "The stream was refused", text: error.status === 404 ? ctx.tab.absent : error.message, actions: [h("button", { class: "primary", type: "button", onclick: () => location.reload() }, "Try again")] }));
      },
    });
  }

  function plan() {
    if (planned || document.hidden) return;
    planned = setTimeout(() => { planned = 0; look(); }, LOOK_MS);
  }

  function look() {
    const last = kept.slice(-KEPT_MAX);
    const rows = text === "" ? last : last.filter((one) => (one.words ??= JSON.stringify(one.event).toLowerCase()).includes(text));
    if (!paused || rows.length === 0) table.set(rows.reverse());
    counts.textContent = `${count(seen, "event")} received${missed > 0 ? `, ${number(missed)} dropped` : ""}${paused ? "; the list is paused" : ""}`;
    areNamesWanted = table.shown.length > 0;
    if (areNamesWanted && !isNaming) learnNames();
  }

  /** Reads the names of the agents in sight: one question after the other, however fast the list changes. */
  async function learnNames() {
    isNaming = true;
    while (areNamesWanted && !signal.aborted) {
      areNamesWanted = false;
      const inSight = table.shown.slice(0, 40).map(({ event }) => event.agent_id);
      await learnAll(inSight, () => nameLinks(root), { signal });
      await wait(NAMES_MS, signal).catch(() => {});
    }
    isNaming = false;
  }

  function details({ number: place, at, depth, event }) {
    return ask({
      title: event.kind.replaceAll("_", " "), action: "Close", cancel: null, wide: true,
      body: [h("p", { class: "dim" }, `Number ${number(place)}, ${when(at)}${depth > 0 ? `, ${count(depth, "fired turn")} from the first cause` : ""}.`),
        event.agent_id ? h("p", {}, h("a", { href: `#/agent/${event.agent_id}` }, `Open ${nameOf(event.agent_id)}`)) : null,
        h("pre", { class: "code-box tall" }, JSON.stringify(event, null, 2))],
    });
  }

  document.addEventListener("visibilitychange", () => document.hidden || look(), { signal });
  ctx.key("p", "Pause the events", () => pause.click());
  begin().catch(showError);
}

/** A moment as "03:10:00.123". */
function clock(at) {
  const date = new Date(at);
  const two = (value, size = 2) => String(value).padStart(size, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}
