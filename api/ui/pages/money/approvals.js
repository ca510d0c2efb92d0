// Approvals: what waits for a person, one by one or several at once, with the code where one is needed; and the history.

import { answerForm } from "../../lib/answer.js";
import { call, get, page } from "../../lib/api.js";
import { agentLink, learnAll, nameOf } from "../../lib/agents.js";
import { callBody, callLine, callNote, callOrigin, callTitle } from "../../lib/calls.js";
import { textInput } from "../../lib/controls.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { secondFactor } from "./second-factor.js";

const PAGE = 100;
/** Cards that are shown; what is decided makes room for the next. */
const SHOWN_MAX = 50;
const EVERY_MS = 2000;
/** A click on "Approve" so soon after another was a double one, and meant for the card that stood there before. */
const DOUBLE_MS = 500;
const expiry = (at) => `expires ${ago(at)}`;
const BADGES = { approved: "good", rejected: "bad", expired: "warn", pending: "accent" };

export async function mount(root, ctx) {
  const { signal } = ctx;
  let pending = [];
  let total = 0;
  let shown = null;
  /** When an approval was given by one click. */
  let approvedAt = 0;
  let factor = await get("/api/approvals/totp/status", { signal });
  const chosen = new Set();

  const batch = {
    box: h("input", { type: "checkbox", "aria-label": "Select all", onchange: () => {
      for (const item of pending.slice(0, SHOWN_MAX)) if (batch.box.checked) chosen.add(item.id); else chosen.delete(item.id);
      showPending();
      showBar();
    } }),
    text: h("span", { role: "status" }),
    reject: h("button", { type: "button", onclick: () => decide([...chosen], "reject").catch(showError) }, icon("close", 18), "Reject"),
    approve: h("button", { type: "button", class: "primary", onclick: () => decide([...chosen], "approve").catch(showError) }, icon("check", 18), "Approve"),
  };
  const bar = h("div", { class: "bar-row batch-bar", hidden: true }, h("label", { class: "switch" }, batch.box, batch.text), h("span", { class: "grow" }), batch.reject, batch.approve);
  const cards = h("ul", { class: "approval-list", "aria-label": "Pending approvals" });
  const nothing = emptyState({ icon: icon("check", 28), title: "No pending approvals", text: "Tool calls that need your approval appear here. The agent waits for your decision." });
  const history = new Table({
    label: "Decided approvals", signal, rowHeight: 56, empty: "No decisions yet. Approvals that you decide, and those that expire, are kept here.", open: details,
    columns: [
      { label: "Action", width: "minmax(0, 1.4fr)", cell: (item) => h("span", { class: "two" }, h("strong", { class: "cut" }, callTitle(item, nameOf(item.agent_id))), h("small", { class: "faint cut" }, item.action)) },
      { label: "What", width: "minmax(0, 2fr)", side: true, cell: (item) => h("span", { class: "dim" }, callLine(item) || callNote(item)) },
      { label: "Decision", width: "110px", slim: "96px", cell: (item) => h("span", { class: `badge ${BADGES[item.status] ?? ""}` }, item.status) },
      { label: "When", width: "150px", slim: "96px", end: true, cell: (item) => h("time", { datetime: item.decided_at, title: when(item.decided_at) }, ago(item.decided_at)) },
    ],
  });
  const factorPlace = h("div");
  fill(root, h("div", { class: "stack" }, bar, cards, h("section", { class: "stack tight-stack", "aria-label": "History" }, h("h2", {}, "Decided"), history.root), factorPlace));
  await showFactor();

  async function showFactor() {
    factor = await get("/api/approvals/totp/status", { signal });
    fill(factorPlace, secondFactor(factor, () => showFactor().catch(showError)));
  }

  async function read() {
    const [open, done] = await Promise.all([
      page("/api/approvals", "approvals", { status: "pending", limit: PAGE }, { signal }),
      page("/api/approvals/audit", "approvals", { limit: PAGE }, { signal }),
    ]);
    pending = open.items;
    total = open.total ?? pending.length;
    for (const id of chosen) if (!pending.some((item) => item.id === id)) chosen.delete(id);
    const before = new Map(history.rows.map((item) => [item.id, item]));
    history.set(done.items.map((item) => before.get(item.id) ?? item));
    ctx.badge("approvals", total > 0 ? number(total) : "");
    const text = pending.map((item) => item.id).join();
    if (text !== shown) showPending();
    shown = text;
    for (const node of cards.querySelectorAll("[data-expires]")) node.textContent = expiry(node.dataset.expires);
    showBar();
    learnAll([...pending, ...done.items].map((item) => item.agent_id), () => { showPending(); history.redraw(); }, { signal });
  }

  function showPending() {
    refill(cards, pending.slice(0, SHOWN_MAX).map(card), pending.length === 0 ? h("li", {}, nothing) : null,
      total > SHOWN_MAX ? h("li", { class: "dim" }, `${number(total - SHOWN_MAX)} more are pending.`) : null);
  }

  /** The bar is made once, so that what has the focus keeps it. */
  function showBar() {
    const all = pending.slice(0, SHOWN_MAX);
    bar.hidden = all.length < 2 || !can("admin");
    batch.box.checked = all.length > 0 && all.every((item) => chosen.has(item.id));
    batch.box.indeterminate = !batch.box.checked && chosen.size > 0;
    batch.text.textContent = chosen.size > 0 ? `${number(chosen.size)} of ${number(all.length)} chosen` : `Select all ${number(all.length)}`;
    batch.approve.disabled = batch.reject.disabled = chosen.size === 0;
  }

  function card(item) {
    // What has the focus keeps it when the cards are built anew, and never hands it to another approval.
    const key = (word) => ({ key: `${word} ${item.id}` });
    const box = h("input", { type: "checkbox", data: key("choose"), checked: chosen.has(item.id), "aria-label": `Select ${item.action}`, onchange: () => { if (box.checked) chosen.add(item.id); else chosen.delete(item.id); showBar(); } });
    return h("li", { class: "card approval", data: { id: item.id } },
      h("div", { class: "bar-row" }, pending.length > 1 && can("admin") ? box : null, h("h2", { class: "approval-title" }, callTitle(item, nameOf(item.agent_id))), h("code", { class: "faint" }, item.action),
        h("span", { class: "grow" }), agentLink(item.agent_id, { data: key("open") }), h("span", { class: "badge warn", data: { expires: item.expires_at }, title: when(item.expires_at) }, expiry(item.expires_at))),
      callNote(item) ? h("p", {}, callNote(item)) : null,
      callBody(item, { signal }), callOrigin(item, { signal }),
      can("admin") && h("div", { class: "buttons end" },
        h("button", { type: "button", class: "primary", data: key("approve"), onclick: () => decide([item.id], "approve").catch(showError) }, item.answer_schema ? "Answer" : "Approve"),
        h("button", { type: "button", data: key("reject"), onclick: () => decide([item.id], "reject").catch(showError) }, "Reject")));
  }

  /** Decides; asks for the code where one is needed, and for nothing else when it is one that is approved. */
  async function decide(ids, decision) {
    const isApproval = decision === "approve";
    const needsCode = isApproval && factor.enforced;
    const one = ids.length === 1 ? pending.find((item) => item.id === ids[0]) : null;
    const form = isApproval && one?.answer_schema ? answerForm(one.answer_schema) : null;
    const isDirect = isApproval && !needsCode && !form && ids.length === 1;
    if (isDirect && Date.now() - approvedAt < DOUBLE_MS) return;
    const reason = field("Reason", textInput("", { maxlength: 500 }), { hint: "Optional. Stored with the decision." });
    const code = field("Code from your authenticator app", textInput("", { inputmode: "numeric", autocomplete: "one-time-code", maxlength: 12, class: "code" }));
    const send = () => {
      const body = { ...(reason.control.value.trim() ? { reason: reason.control.value.trim() } : {}), ...(needsCode && code.control.value.trim() ? { totp_code: code.control.value.trim() } : {}), ...(form ? { answer: form.read() } : {}) };
      if (ids.length === 1) return call("POST", `/api/approvals/${ids[0]}/${decision}`, body);
      return call("POST", "/api/approvals/batch", { ids, decision, ...body });
    };
    let done = null;
    if (isDirect) {
      approvedAt = Date.now();
      done = await send();
    } else {
      const what = ids.length === 1 ? one?.action : count(ids.length, "action");
      done = await ask({
        title: isApproval ? `Approve ${what}?` : `Reject ${what}?`, action: isApproval ? "Approve" : "Reject", danger: !isApproval,
        fields: { totp_code: code, reason, ...form?.fields }, body: [form ? h("p", { class: "notice warn" }, "The fields are those of the asker. Do not enter passwords or keys.") : null, form?.body, needsCode && !factor.confirmed ? h("p", { class: "notice warn" }, "No second factor is set up. Set one up below before you approve.") : null, needsCode ? code : null, reason], submit: send,
      });
    }
    if (!done) return;
    for (const id of ids) chosen.delete(id);
    toast(isApproval ? (ids.length === 1 ? "Approved" : `Approved ${number(ids.length)}`) : (ids.length === 1 ? "Rejected" : `Rejected ${number(ids.length)}`));
    await again();
    // The next card stands there now.
    if (isDirect) approvedAt = Date.now();
  }

  function details(item) {
    const rows = [["Agent", nameOf(item.agent_id)], ["Decision", item.status], ["Reason", item.reason], ["Requested", when(item.created_at)], ["Decided", when(item.decided_at)], ["Call", item.call_hash]].filter(([, value]) => value);
    return ask({
      title: callTitle(item, nameOf(item.agent_id)), action: "Close", cancel: null, wide: true,
      body: [callNote(item) ? h("p", {}, callNote(item)) : null, h("dl", { class: "pairs" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])), item.payload ? h("pre", { class: "code-box" }, JSON.stringify(item.payload, null, 2)) : null],
    });
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
}
