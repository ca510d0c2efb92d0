// Rehearsals: the form that begins one, those that are kept, and the report of the open one.

import { call, download, get } from "../../lib/api.js";
import { choice, numberInput, numberOf, textBox, textInput } from "../../lib/controls.js";
import { faultAt } from "../../lib/checks.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { ago, brief, count, when } from "../../lib/format.js";
import { examples, REHEARSALS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { reportOf } from "./report.js";

const LIVE_MS = 1500;
const IDLE_MS = 4500;
const STATES = { running: "accent", completed: "good", failed: "bad", cancelled: "warn" };
const SPANS = [["1h", "1 hour"], ["12h", "12 hours"], ["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"]];
const EXAMPLE = '[{ "at": "2026-12-01T09:00:00Z", "kind": "custom", "event_type": "invoice.paid", "payload": {} }]';

export async function mount(root, ctx) {
  const { signal } = ctx;
  let open = null;
  let shown = "";
  let isLive = false;
  let life = new AbortController();
  signal.addEventListener("abort", () => life.abort());
  const list = h("ul", { class: "side-list", "aria-label": "Rehearsals" });
  const place = h("div", { class: "stack" });
  const split = h("div", { class: "split" }, h("div", { class: "split-side" }, list), place);
  const nothing = emptyState({
    icon: icon("play", 28), title: "No rehearsals yet", text: "A rehearsal simulates the coming days on a copy of the world: what fires, what overlaps, when a budget is exceeded and what it costs. It has no effect outside the copy.",
    actions: [can("write") && h("button", { class: "primary", type: "button", onclick: () => begin().catch(showError) }, icon("play", 18), "Rehearse")],
  });
  if (can("write")) nothing.append(examples(REHEARSALS, ({ span }) => begin(span).catch(showError), { sign: "calendar" }));
  fill(ctx.actions, can("write") && h("button", { class: "primary", type: "button", onclick: () => begin().catch(showError) }, icon("play", 18), "Rehearse"));

  async function read() {
    const { rehearsals } = await get("/api/world/rehearsals", { signal });
    isLive = rehearsals.some((item) => item.state === "running");
    if (rehearsals.length === 0) {
      if (nothing.parentNode !== root) fill(root, nothing);
      return;
    }
    if (split.parentNode !== root) fill(root, split);
    const wanted = rehearsals.find((item) => item.id === ctx.path[0]) ?? rehearsals[0];
    refill(list, rehearsals.map((item) => h("li", {}, h("a", { data: { key: item.id }, href: `#/world/rehearsals/${item.id}`, "aria-current": item.id === wanted.id ? "true" : null },
      h("strong", { class: "cut" }, spanOf(item)), h("small", { class: "faint cut" }, `${item.state}, ${ago(item.created_at)}`)))));
    const text = `${wanted.id} ${wanted.state}`;
    if (wanted.state === "running") showRunning(wanted);
    else if (text !== shown) await showReport(wanted.id);
    shown = text;
  }

  const spanOf = (item) => `${brief(item.from_at)} to ${brief(item.until)}`;

  function showRunning(item) {
    const { progress = {} } = item;
    const share = progress.share ?? 0;
    if (open?.id !== item.id || !open.bar?.isConnected) {
      open = { id: item.id, bar: h("i"), text: h("p", { class: "dim", role: "status" }) };
      fill(place, h("section", { class: "card stack", "aria-label": "Running" },
        h("div", { class: "bar-row" }, h("h2", { class: "grow" }, `Rehearsing ${spanOf(item)}`), can("write") && h("button", { type: "button", onclick: () => cancel(item).catch(showError) }, icon("stop", 16), "Cancel")),
        h("div", { class: "meter" }, open.bar), open.text));
    }
    open.bar.style.setProperty("--part", `${share * 100}%`);
    open.text.textContent = `${(share * 100).toFixed(0)} %, at ${when(progress.at)}: ${count(progress.fires ?? 0, "fire")}, ${count(progress.turns ?? 0, "turn")}.`;
  }

  async function showReport(id) {
    const item = await get(`/api/world/rehearsals/${id}`, { signal });
    open = { id };
    // The tables and the picture of the report before end with it.
    life.abort();
    life = new AbortController();
    fill(place,
      h("div", { class: "bar-row report-head" }, h("span", { class: `badge ${STATES[item.state] ?? ""}` }, item.state), h("p", { class: "grow dim" }, `${when(item.from_at)} to ${when(item.until)}, model ${item.model}, seed ${item.seed}${item.from === "now" ? "" : ", from a snapshot"}.`),
        h("button", { type: "button", onclick: () => download(`/api/world/rehearsals/${id}/fires.csv`, "fires.csv").catch(showError) }, icon("download", 18), "Fires as CSV"),
        can("write") && h("button", { type: "button", class: "quiet only-icon", "aria-label": "Delete this rehearsal", title: "Delete", onclick: () => remove(item).catch(showError) }, icon("trash", 18))),
      item.error ? h("p", { class: "notice bad" }, icon("alert"), item.error) : null,
      item.report ? reportOf(item, life.signal) : null);
  }

  async function cancel(item) {
    await call("DELETE", `/api/world/rehearsals/${item.id}`);
    toast("Cancelling. The results so far are kept");
    await again();
  }

  async function remove(item) {
    if (!(await confirm({ title: "Delete this rehearsal?", text: "Its report and fires are deleted.", run: () => call("DELETE", `/api/world/rehearsals/${item.id}`) }))) return;
    shown = "";
    ctx.go(["world", "rehearsals"], {}, { replace: true });
    await again();
  }

  async function begin(known = "7d") {
    const { snapshots } = await get("/api/world/snapshots", { signal }).catch(() => ({ snapshots: [] }));
    const from = field("From", choice([["now", "The current world"], ...snapshots.map((item) => [item.id, `${item.label || "Snapshot"}, ${when(item.created_at)}`])], "now"));
    const span = field("For", textInput(known, { spellcheck: "false" }), { hint: "Such as 90s, 12h, 7d or 1d12h." });
    const model = field("Model responses", choice([["builtin", "Built in: 1 s, 200 tokens each"], ["recorded", "Recorded from each agent's past turns"]], "recorded"));
    const seed = field("Seed", numberInput(1, { min: 0, step: 1 }), { hint: "The same seed gives the same fires." });
    const events = field("Injected events", textBox("", 3, { class: "code", spellcheck: "false", placeholder: EXAMPLE }), { hint: "Optional. A JSON list of events, each with at and kind (custom, message)." });
    const chips = h("div", { class: "chips words" }, SPANS.map(([value, label]) => h("button", { type: "button", class: "small", onclick: () => { span.control.value = value; } }, label)));
    const made = await ask({
      title: "Rehearse", action: "Begin", wide: true, fields: { from, for: span, until: span, model, seed, events },
      body: [h("div", { class: "form-row" }, from, model), span, chips, seed, events],
      submit: () => {
        const body = { from: from.control.value, for: span.control.value.trim(), model: model.control.value };
        if (numberOf(seed.control) !== null) body.seed = numberOf(seed.control);
        if (events.control.value.trim() !== "") {
          try {
            body.events = JSON.parse(events.control.value);
          } catch (error) {
            throw faultAt(events, `Invalid JSON: ${error.message}.`);
          }
        }
        return call("POST", "/api/world/rehearsals", body);
      },
    });
    if (!made) return;
    shown = "";
    ctx.go(["world", "rehearsals", made.id]);
    await again();
  }

  await read();
  let wait = 0;
  const turn = poll(async () => {
    // While none is under way the list is read now and then.
    wait += LIVE_MS;
    if (!isLive && wait < IDLE_MS) return;
    wait = 0;
    await read();
  }, LIVE_MS, { signal });
  function again() {
    wait = IDLE_MS;
    return turn();
  }
  ctx.onRoute(() => { shown = ""; again().catch(showError); });
}
