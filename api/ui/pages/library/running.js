// Hands at work: their state, their figures, their settings, and how they are paused and ended.

import { call, get, withQuery } from "../../lib/api.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { ago, bytes, count, duration, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { inLanes, poll } from "../../lib/poll.js";
import { settingFields } from "./hand.js";

const EVERY_MS = 5000;
const LANES = 4;

/** A figure in its format: `{ value, format }`; a dash where the hand has not written it yet. */
function figure({ value, format }) {
  if (value === null || value === undefined) return "–";
  if (format === "bytes") return bytes(Number(value));
  if (format === "duration") return Number.isFinite(Number(value)) ? duration(Number(value) * 1000) : String(value);
  if (format === "percentage") return Number.isFinite(Number(value)) ? `${number(Number(value))} %` : String(value);
  if (format === "date") return when(String(value)) || String(value);
  if (format === "number" && Number.isFinite(Number(value))) return number(Number(value));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const STATES = { running: ["good", "running"], paused: ["", "paused"], error: ["bad", "error"] };

export async function mount(root, ctx) {
  const { signal } = ctx;
  let instances = [];
  const stats = new Map();
  const list = h("ul", { class: "instance-cards", "aria-label": "Running hands" });
  const nothing = emptyState({
    icon: icon("play", 28), title: "No hand is running", text: "Start one from the list of hands.",
    actions: [h("a", { class: "button primary", href: "#/library/hands" }, "Open hands")],
  });

  async function read() {
    const told = await get("/api/hands/active", { signal });
    ({ instances } = told);
    const present = new Set(instances.map((one) => one.instance_id));
    for (const id of stats.keys()) if (!present.has(id)) stats.delete(id);
    await inLanes(instances, LANES, async ({ instance_id: id }) => stats.set(id, await get(`/api/hands/instances/${encodeURIComponent(id)}/stats`, { signal })));
    show();
  }

  function show() {
    if (instances.length === 0) return void fill(root, nothing);
    if (list.parentNode !== root) fill(root, list);
    refill(list, instances.map(card));
  }

  function card(one) {
    const told = stats.get(one.instance_id) ?? {};
    const [style, word] = STATES[one.status] ?? ["", one.status];
    const metrics = Object.entries(told.metrics ?? {});
    const name = one.agent_name || one.hand_id;
    return h("li", { class: "card stack" },
      h("div", { class: "bar-row tight" }, h("h2", { class: "grow cut" }, h("a", { href: `#/agent/${encodeURIComponent(one.agent_id)}` }, name)),
        h("span", { class: `badge ${style}` }, word)),
      one.error ? h("p", { class: "fault" }, one.error) : null,
      h("div", { class: "stat-row" }, metrics.length === 0 ? null : metrics.map(([label, value]) => h("div", { class: "stat" }, h("span", { class: "dim" }, label), h("strong", {}, figure(value))))),
      h("p", { class: "faint" }, [`Started ${ago(one.activated_at)}`, told.events_processed !== undefined ? `${count(told.events_processed, "event")} handled` : null, told.errors > 0 ? count(told.errors, "error") : null].filter(Boolean).join(" · ")),
      can("admin") && h("div", { class: "buttons" },
        one.status === "paused" ? button(one, "Resume", "play", () => move(one, "resume")) : button(one, "Pause", "pause", () => move(one, "pause")),
        button(one, "Settings", "settings", () => settings(one)),
        button(one, "End", "stop", () => end(one))));
  }

  const button = (one, label, name, run) => h("button", { type: "button", "aria-label": `${label}: ${one.agent_name || one.hand_id}`, data: { key: `${label} ${one.instance_id}` }, onclick: () => run().catch(showError) }, icon(name, 16), label);

  async function move(one, verb) {
    await call("POST", `/api/hands/instances/${encodeURIComponent(one.instance_id)}/${verb}`, {});
    await again();
  }

  async function settings(one) {
    const path = withQuery(`/api/hands/${encodeURIComponent(one.hand_id)}/settings`, { instance_id: one.instance_id });
    const told = await get(path, { signal });
    const known = told.settings ?? [];
    const { nodes, fields, read: changed } = settingFields(known, told.effective_values ?? {});
    const saved = await ask({ title: `Settings of ${one.agent_name || one.hand_id}`, fields, body: nodes.length > 0 ? nodes : [h("p", {}, "It has no settings.")], submit: () => call("PUT", path, changed()) });
    if (saved) toast("Saved");
  }

  async function end(one) {
    const text = "Its agents and their schedules are removed. Their files stay in their workspaces.";
    if (!(await confirm({ title: `End ${one.agent_name || one.hand_id}?`, text, action: "End", run: () => call("DELETE", `/api/hands/instances/${encodeURIComponent(one.instance_id)}`) }))) return;
    toast("Ended");
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
