// The inbox: what needs a person, in one place, with the decision at hand where it is one click.

import { agentLink, learnAll, nameOf } from "../lib/agents.js";
import { call, Failure, get, withQuery } from "../lib/api.js";
import { callBody, callNote, callOrigin, callTitle } from "../lib/calls.js";
import { ask, showError, toast } from "../lib/dialogs.js";
import { textInput } from "../lib/controls.js";
import { emptyState, field, fill, h, refill, useStyles } from "../lib/dom.js";
import { ago, count, duration, number, when } from "../lib/format.js";
import { icon } from "../lib/icons.js";
import { dismiss, pendingOf, readInbox } from "../lib/inbox.js";
import { can } from "../lib/me.js";
import { mayOffer, turnOff, turnOn } from "../lib/notify.js";
import { poll } from "../lib/poll.js";
import { runAddress } from "./agent/words.js";

export const title = "Inbox";

const EVERY_MS = 10_000;
/** Inputs of ended runs are kept up to 8 KiB: a longer one was cut. */
const INPUT_MAX = 8 << 10;

const GROUPS = [
  { kind: "approval", title: "Approvals", icon: "shield" },
  { kind: "proposal", title: "Proposed changes of skills", icon: "book" },
  { kind: "budget", title: "Budgets", icon: "money" },
  { kind: "turn", title: "Failed turns", icon: "chat" },
  { kind: "failed", title: "Failed runs", icon: "alert" },
  { kind: "provider", title: "Providers", icon: "key" },
  { kind: "delivery", title: "Failed deliveries", icon: "send" },
  { kind: "agent", title: "Agents", icon: "agents" },
  { kind: "connection", title: "Connections", icon: "link" },
  { kind: "paused", title: "Paused schedules", icon: "pause" },
];

export async function mount(root, ctx) {
  await Promise.all([useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/inbox.css", import.meta.url))]);
  const { signal } = ctx;
  let inbox = { items: [], count: 0, more: 0 };
  let shown = null;
  let isCodeNeeded = false;
  const text = h("p", { class: "tab-text", role: "status" });
  const clear = h("button", { type: "button", hidden: true, onclick: () => { dismiss(inbox.items.filter(({ kind }) => kind !== "approval" && kind !== "proposal").map(({ id }) => id)); again().catch(showError); } }, "Dismiss all failures");
  const place = h("div", { class: "stack inbox" });
  const offer = h("div", { class: "notice", hidden: !mayOffer() }, icon("inbox"), h("span", { class: "grow" }, "Get a desktop notification of new approvals and failures while this tab is in the background."),
    h("button", { type: "button", class: "small", onclick: () => { turnOff(); offer.hidden = true; } }, "Not now"),
    h("button", { type: "button", class: "small primary", onclick: () => turnOn().then((isOn) => { offer.hidden = true; toast(isOn ? "Notifications are on" : "The browser does not allow notifications.", isOn ? {} : { kind: "bad" }); }).catch(showError) }, "Turn on"));
  fill(root, h("div", { class: "scroll" }, h("div", { class: "page-body narrow-body" },
    h("header", { class: "page-head" }, h("div", { class: "grow" }, h("h1", {}, title), text), h("div", { class: "buttons tab-actions" }, clear, h("a", { class: "button quiet only-icon", href: "#/settings/notifications", title: "Notifications", "aria-label": "Notifications" }, icon("settings")))), offer, place)));

  async function read() {
    inbox = await readInbox({ signal, isFresh: true });
    ctx.setInbox?.(inbox.count, pendingOf(inbox));
    const now = JSON.stringify(inbox);
    if (now !== shown) show();
    shown = now;
    for (const node of place.querySelectorAll("time[datetime]")) node.textContent = ago(node.getAttribute("datetime"));
    learnAll(inbox.items.map(({ agent }) => agent), show, { signal });
  }

  function show() {
    const { items, more } = inbox;
    text.textContent = inbox.count === 0 ? "Nothing needs you." : `${count(inbox.count, "item")} ${inbox.count === 1 ? "needs" : "need"} you.`;
    clear.hidden = !items.some(({ kind }) => kind !== "approval" && kind !== "proposal");
    if (items.length === 0) {
      return void fill(place, emptyState({ icon: icon("check", 28), title: "All clear", text: "Approvals, failed turns, runs and deliveries, providers in trouble, exceeded budgets and paused schedules appear here." }));
    }
    return void refill(place, GROUPS.map((group) => {
      const own = items.filter(({ kind }) => kind === group.kind);
      if (own.length === 0) return null;
      return h("section", { class: "card inbox-group", "aria-label": group.title },
        h("div", { class: "bar-row tight" }, icon(group.icon, 18), h("h2", { class: "grow" }, group.title), h("span", { class: "badge" }, number(own.length + (group.kind === "approval" ? more : 0)))),
        h("ul", { class: "inbox-list" }, own.map(entry)));
    }));
  }

  /** A call that waits: what it would do, the message that led to it, and the decision. */
  function approvalEntry({ approval, agent, at, href }) {
    const note = callNote(approval);
    return h("li", { class: "inbox-item inbox-approval", data: { row: `approval ${approval.id}` } },
      h("div", { class: "grow stack" },
        h("strong", {}, h("a", { class: "inbox-link", href }, callTitle(approval, nameOf(agent)))),
        note ? h("span", { class: "dim inbox-text" }, note) : null, callBody(approval, { signal }), callOrigin(approval, { signal }),
        h("small", { class: "faint" }, h("code", {}, approval.action), " · ", agentLink(agent), " · ", h("time", { datetime: at, title: when(at) }, ago(at)))),
      h("div", { class: "row-actions" }, decisions({ approval })));
  }

  function entry(item) {
    if (item.kind === "approval") return approvalEntry(item);
    return h("li", { class: "inbox-item", data: { row: item.id } },
      h("div", { class: "grow two" },
        h("strong", { class: "cut" }, h("a", { class: "inbox-link", href: item.href }, item.title)),
        h("span", { class: "dim inbox-text" }, item.text),
        h("small", { class: "faint" }, item.agent ? agentLink(item.agent) : null, item.agent && item.at ? " · " : null, item.at ? h("time", { datetime: item.at, title: when(item.at) }, ago(item.at)) : null)),
      h("div", { class: "row-actions" }, failureActions(item),
        item.kind !== "proposal" ? h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Dismiss ${item.title}`, title: "Dismiss", onclick: () => { dismiss([item.id]); again().catch(showError); } }, icon("close", 15)) : null));
  }

  /** The run that failed, and another one. */
  function failureActions(item) {
    const button = (label, run) => h("button", { type: "button", class: "small", "aria-label": `${label}: ${item.title}`, data: { key: `${label} ${item.id}` }, onclick: () => run(item).catch(showError) }, label);
    return [
      item.run?.href ? h("a", { class: "button small", href: item.run.href, "aria-label": `Open run: ${item.title}` }, "Open run") : item.run ? button("Open run", openRun) : null,
      item.mend ? h("a", { class: "button small", href: item.mend.href, "aria-label": `${item.mend.label}: ${item.title}` }, item.mend.label) : null,
      item.test && can("admin") ? button("Test", testProvider) : null,
      item.open ? h("a", { class: "button small", href: item.href, "aria-label": `${item.open}: ${item.title}` }, item.open) : null,
      item.retry && can("chat") ? button("Retry", retry) : null,
      item.resume && can("write") ? button("Resume", resume) : null,
      item.again && can("write") && can("chat") ? button("Run again", runAgain) : null,
    ];
  }

  /** Opens the run that ended at that moment; where it is not kept any more, the runs of the agent. */
  async function openRun({ run }) {
    const agent = encodeURIComponent(run.agent);
    const { traces } = await get(`/api/agents/${agent}/traces?limit=100`, { signal });
    const found = traces.find(({ origin, ended_at: end }) => origin === "schedule" && end === run.endedAt);
    location.hash = found ? runAddress(run.agent, found) : `#/agent/${agent}/runs`;
  }

  async function runAgain({ id, again: { path, workflowRun } }) {
    let body;
    if (workflowRun) {
      const { input } = await get(`/api/workflows/runs/${workflowRun}`, { signal });
      if (new TextEncoder().encode(input).length >= INPUT_MAX - 4) throw new Failure("The input of this run is too long to be kept whole. Run the workflow on its page.", 400);
      body = { input, async: true };
    }
    await call("POST", path, body);
    // The run that failed stays failed.
    if (workflowRun) dismiss([id]);
    toast("Started");
    await again();
  }

  /** A very short call: one that succeeds ends the trouble. */
  async function testProvider({ test }) {
    toast("Testing…");
    const told = await call("POST", `/api/providers/${encodeURIComponent(test)}/test`);
    toast(`${told.model_tested} responded in ${duration(told.latency_ms)}.`);
    await again();
  }

  /** Sends the message of a failed turn again; its answer takes the place of the failure. */
  async function retry({ agent, retry: run, href }) {
    const path = `/api/sessions/${encodeURIComponent(run.session_id)}/messages`;
    const { messages } = await get(withQuery(path, { limit: 200 }), { signal });
    const said = messages.find(({ role, turn_id: turn }) => role === "User" && turn === run.turn_id);
    if (!said?.content) return void (location.hash = href);
    toast("Sent again");
    await call("POST", `/api/agents/${encodeURIComponent(agent)}/message`, { message: said.content, session_id: run.session_id, repeats: run.turn_id });
    await again();
  }

  async function resume({ resume: path }) {
    await call("PUT", path, { enabled: true });
    toast("Resumed");
    await again();
  }

  /** One click where nothing else is asked for; else the page of approvals has the form. */
  function decisions({ approval }) {
    if (!can("admin")) return null;
    const isOneClick = !isCodeNeeded && !approval.answer_schema;
    const button = (label, run, style = "") => h("button", { type: "button", class: `small ${style}`, "aria-label": `${label} ${approval.action}`, data: { key: `${label} ${approval.id}` }, onclick: () => run().catch(showError) }, label);
    return [
      isOneClick ? button("Approve", () => decide(approval, "approve", {}), "primary") : h("a", { class: "button small primary", href: "#/money/approvals" }, approval.answer_schema ? "Answer" : "Open"),
      button("Reject", () => reject(approval)),
    ];
  }

  async function decide(approval, decision, body) {
    await call("POST", `/api/approvals/${approval.id}/${decision}`, body);
    toast(decision === "approve" ? "Approved" : "Rejected");
    await again();
  }

  async function reject(approval) {
    const reason = field("Reason", textInput("", { maxlength: 500 }), { hint: "Optional. Stored with the decision." });
    await ask({
      title: `Reject ${approval.action}?`, action: "Reject", danger: true, body: [reason], fields: { reason },
      submit: () => decide(approval, "reject", reason.control.value.trim() ? { reason: reason.control.value.trim() } : {}),
    });
  }

  isCodeNeeded = await get("/api/approvals/totp/status", { signal }).then(({ enforced }) => enforced, () => true);
  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
