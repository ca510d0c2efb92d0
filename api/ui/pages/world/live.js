// The live numbers of the world: its rates, its beat, what its systems cost, its queues, its memory.

import { get, withQuery } from "../../lib/api.js";
import { showError } from "../../lib/dialogs.js";
import { fill, h, useStyles } from "../../lib/dom.js";
import { bytes, count, duration, money, number, short } from "../../lib/format.js";
import { poll } from "../../lib/poll.js";
import { Lines, POINTS } from "./lines.js";
import { rowsOf } from "./answer.js";
import { ratesBefore, storedEvents, turnsBefore } from "./past.js";
import { followAlways } from "../../lib/stream.js";
import { activity } from "../home/activity.js";

const READING_MS = 3000;
const STATES_MS = 5000;
const NOT_RUNNING = { loading: "the world is loading", exchanging: "a restore is in progress" };

/** Microseconds as "340 µs", "2.4 ms", "1.2 s". */
const micros = (value) => (!(value > 0) ? "0" : value < 1000 ? `${Math.round(value ?? 0)} µs` : value < 1_000_000 ? `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)} ms` : `${(value / 1_000_000).toFixed(1)} s`);
const rate = (value) => (value < 10 ? (value ?? 0).toFixed(value > 0 && value < 1 ? 2 : 1).replace(/\.0$/, "") : short(Math.round(value)));
const words = (name) => name.replaceAll("_", " ");

/** A number with its name, whose text alone changes. */
function figure(name, note = "") {
  const value = h("strong", {}, "–");
  const small = h("small", {}, note);
  return { node: h("div", { class: "stat" }, h("span", {}, name), value, small), set: (text, more) => { value.textContent = text; if (more !== undefined) small.textContent = more; } };
}

/** A list of bars that keeps its elements from reading to reading. */
class Bars {
  constructor(label, empty) {
    this.list = h("ul", { class: "bars", "aria-label": label });
    this.rows = new Map();
    this.empty = empty;
  }

  /** `items` are `{ key, name, value, part, note, level }`. */
  set(items) {
    const wanted = new Set(items.map((item) => item.key));
    for (const [key, row] of this.rows) if (!wanted.has(key)) { row.node.remove(); this.rows.delete(key); }
    items.forEach((item, at) => {
      let row = this.rows.get(item.key);
      if (!row) {
        const [value, bar, note] = [h("span", { class: "num" }), h("i"), h("small", { class: "faint" })];
        const meter = h("div", { class: "meter" }, bar);
        row = { node: h("li", {}, h("span", { class: "cut" }, item.name), value, meter, note), value, bar, note, meter };
        this.rows.set(item.key, row);
      }
      row.value.textContent = item.value;
      row.note.textContent = item.note ?? "";
      row.bar.style.setProperty("--part", `${Math.min(100, Math.max(0, item.part * 100)).toFixed(1)}%`);
      row.meter.className = `meter ${item.level ?? ""}`;
      if (this.list.children[at] !== row.node) this.list.insertBefore(row.node, this.list.children[at] ?? null);
    });
  }
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  await useStyles(new URL("../../styles/home.css", import.meta.url));
  // Without this route there is no such world to show: the error goes to the tabs.
  const first = await get("/api/world", { signal });
  const state = h("span", { class: "badge", role: "status" }, "connecting");
  const figures = {
    agents: figure("Agents"), turns: figure("Turns in flight"), done: figure("Turns completed", "since the start"), failed: figure("Turns failed", "since the start"),
    cost: figure("Cost since the start"), approvals: figure("Approvals", "pending"), events: figure("Events per second"), fires: figure("Runs started per second"),
  };
  const engine = { beat: figure("Tick"), lag: figure("Store lag", "p99"), memory: figure("Memory") };
  const charts = {
    rates: new Lines({ title: "Per second", names: ["Events", "Messages", "Runs started"], format: rate, signal }),
    turns: new Lines({ title: "Turns", names: ["In flight", "Pending"], format: short, signal }),
    time: new Lines({ title: "p99 latency", names: ["Step", "Tick"], format: micros, signal }),
    store: new Lines({ title: "Store", names: ["Lag to disk"], format: micros, signal }),
  };
  const systems = new Bars("Systems by time");
  const queues = new Bars("Queues and limits");
  const memory = new Bars("Memory by kind");
  const states = new Bars("Agents by state");
  const systemsNote = h("p", { class: "hint" });
  const memoryNote = h("p", { class: "hint" });
  const lastHour = activity({ signal, hours: 1 });
  const part = (title, ...inner) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title), inner);
  fill(ctx.actions, state);
  fill(root, h("div", { class: "stack" }, h("div", { class: "stat-row live-stats" }, Object.values(figures).map(({ node }) => node)),
    h("div", { class: "live-grid" }, charts.rates.node, charts.turns.node), lastHour.node,
    h("h2", {}, "Engine"), h("div", { class: "stat-row" }, Object.values(engine).map(({ node }) => node)),
    h("div", { class: "live-grid" }, charts.time.node, charts.store.node),
    h("div", { class: "live-grid" },
      h("div", { class: "live-column" }, part("Agents by state", states.list), part("Systems", systemsNote, systems.list)),
      h("div", { class: "live-column" }, part("Queues", queues.list), part("Memory", memoryNote, memory.list)))));

  function showQueues(items) {
    queues.set(items.map(({ name, unit, length, bound }) => {
      const share = bound ? length / bound : 0;
      const text = unit === "bytes" ? bytes : short;
      return { key: name, name: words(name), value: text(length), part: share, level: share > 0.8 ? "bad" : share > 0.5 ? "warn" : "", note: bound ? `of ${text(bound)}${unit === "bytes" ? "" : ` ${unit}`}` : unit };
    }));
  }

  function showReading(world) {
    const { beat, release } = world;
    const { turns_completed: done, turns_failed: failed } = world.totals;
    figures.done.set(number(done));
    figures.failed.set(number(failed), failed > 0 ? `${((failed / Math.max(1, done + failed)) * 100).toFixed(1)} % of all` : "since the start");
    engine.beat.set(`${rate(beat.achieved_hz)} Hz`, beat.missed_last_minute > 0 ? `${number(beat.missed_last_minute)} missed per minute` : `of ${beat.hz} Hz, none missed`);
    figures.cost.set(money(world.totals.cost_micros / 1_000_000), `up ${duration(world.uptime_seconds * 1000)}, ${release.version}`);
    const top = Math.max(1e-9, ...world.systems.map((system) => system.share));
    const sorted = [...world.systems].sort((a, b) => b.share - a.share).slice(0, 16);
    systemsNote.textContent = `${count(world.systems.length, "system")}; share of the world's time and average duration.`;
    systems.set(sorted.map((system) => ({ key: system.name, name: words(system.name), value: `${(system.share * 100).toFixed(1)} %`, part: system.share / top, note: `${micros(system.mean_us)}, at most ${micros(system.max_us)}` })));
    const kinds = world.memory.kinds.filter((kind) => kind.count > 0).sort((a, b) => b.bytes - a.bytes).slice(0, 16);
    const most = Math.max(1, ...kinds.map((kind) => kind.bytes));
    memoryNote.textContent = `${bytes(world.memory.estimated_bytes)} in the world${world.memory.rss_bytes ? `, ${bytes(world.memory.rss_bytes)} in the process` : ""}${world.memory.stale ? "; earlier reading, the world is busy" : ""}.`;
    memory.set(kinds.map((kind) => ({ key: kind.kind, name: words(kind.kind), value: bytes(kind.bytes), part: kind.bytes / most, note: count(kind.count, "entity", "entities") })));
    if (world.state !== "running") figures.agents.set("–", NOT_RUNNING[world.state] ?? world.state);
  }

  function showMoment(now) {
    figures.agents.set(number(now.agents), count(now.sessions, "session"));
    figures.turns.set(number(now.turns_in_flight), `${number(now.calls_out)} model calls, ${number(now.tools_out)} tool calls`);
    figures.events.set(rate(now.events_per_second), `${rate(now.messages_per_second)} messages`);
    figures.fires.set(rate(now.fires_per_second), "triggers and schedules");
    figures.approvals.set(number(now.approvals_pending));
    engine.lag.set(micros(now.store_lag_p99_us), `${bytes(now.store_backlog_bytes)} wait`);
    engine.memory.set(now.rss_bytes ? bytes(now.rss_bytes) : "–", "of the process");
    charts.rates.push([now.events_per_second, now.messages_per_second, now.fires_per_second]);
    charts.turns.push([now.turns_in_flight, now.turns_waiting]);
    charts.time.push([now.step_p99_us, now.beat_p99_us]);
    charts.store.push([now.store_lag_p99_us]);
    showQueues(now.queues);
  }

  async function readStates() {
    const answer = rowsOf(await get(withQuery("/api/world/query", { q: "agents group by state count" }), { signal }));
    const rows = answer.rows.map(([name, many]) => ({ name: String(name), many: Number(many) })).sort((a, b) => b.many - a.many);
    const all = Math.max(1, rows.reduce((sum, row) => sum + row.many, 0));
    const level = (name) => ({ running: "good", suspended: "warn", stopped: "warn", terminated: "bad", crashed: "bad" }[name.toLowerCase()] ?? "");
    states.set(rows.map((row) => ({ key: row.name, name: row.name, value: number(row.many), part: row.many / all, level: level(row.name), note: `${((row.many / all) * 100).toFixed(row.many === all ? 0 : 1)} %` })));
  }

  /** Begins the charts of rates and turns with what was before the page was opened; charts that go on from the last visit have it. */
  async function showPast(now) {
    if (charts.rates.points.length > 0) return;
    const found = await storedEvents(first.totals.events, signal);
    const times = { now: Date.parse(now.at), uptimeSecs: now.uptime_seconds, seconds: POINTS - 1 };
    charts.rates.before(ratesBefore(found, times));
    charts.turns.before(turnsBefore(found, { ...times, current: now.turns_in_flight }));
  }

  /** The first moment says what time it is at the daemon. */
  let past = null;
  function takeMoment(now) {
    past ??= showPast(now).catch((error) => { if (error.name !== "AbortError" && error.status !== 429) showError(error); });
    showMoment(now);
  }

  const say = (style, text) => { state.className = `badge ${style}`; state.textContent = text; };
  showReading(first);
  lastHour.read().catch((error) => { if (error.name !== "AbortError" && error.status !== 429) showError(error); });
  showQueues(first.queues);
  poll(async () => showReading(await get("/api/world", { signal })), READING_MS, { signal, onFault: (error) => error && say("bad", "not reached") });
  let isTold = false;
  poll(readStates, STATES_MS, { signal, onFault: (error) => {
    if (error && !isTold && error.status !== 0) showError(error);
    isTold = error !== null;
  } });
  followAlways(() => "/api/world/stream", {
    signal,
    onEvent: (name, body) => name === "world" && takeMoment(body),
    onState: (how, error) => say(...{ live: ["good", "live"], waiting: ["warn", error?.status === 429 ? "too many watch" : "reconnecting"], refused: ["bad", "refused"] }[how]),
  }).catch(showError);
}
