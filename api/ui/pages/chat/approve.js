// Tool calls that wait for a person, decided where they are asked.

import { answerForm } from "../../lib/answer.js";
import { codeBlock } from "../../lib/code.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";

const LOOK_EVERY_MS = 1_500;

/** While an answer runs, looks for approvals that it waits for. `chat` is the page. */
export class Approvals {
  constructor(chat) {
    this.chat = chat;
    this.shown = new Map();
    // Only those decide who may see what all agents ask for.
    if (seesAll()) chat.ctx.every(LOOK_EVERY_MS, () => this.look());
  }

  async look() {
    const { chat } = this;
    const live = chat.running();
    if (!live) return this.shown.clear();
    const { api, signal } = chat.ctx;
    const path = api.withQuery("/api/approvals", { status: "pending", agent_id: chat.agent.id, limit: 20 });
    const { approvals } = await api.get(path, { signal });
    const waiting = new Set(approvals.map(({ id }) => id));
    for (const [id, node] of this.shown) {
      if (waiting.has(id)) continue;
      node.remove();
      this.shown.delete(id);
    }
    for (const approval of approvals) {
      // The answer that it stood at may have been drawn anew.
      if (this.shown.get(approval.id)?.isConnected) continue;
      const node = this.node_of(approval);
      this.shown.set(approval.id, node);
      live.add(node);
    }
    return undefined;
  }

  node_of(approval) {
    const decide = (decision) => this.decide(approval, decision).catch(showError);
    return h("section", { class: "approval", "aria-label": `Approval of ${approval.action}` },
      h("div", { class: "approval-head" }, icon("shield", 18), h("span", { class: "grow" }, "Approval needed: ", h("b", {}, approval.action)),
        h("span", { class: "faint" }, `until ${when(approval.expires_at)}`)),
      approval.description ? h("p", { class: "dim" }, approval.description) : null,
      codeBlock(JSON.stringify(approval.payload ?? {}, null, 2), "json"),
      h("div", { class: "buttons", hidden: !can("admin") },
        h("button", { class: "primary", type: "button", onclick: () => decide("approve") }, approval.answer_schema ? "Answer" : "Approve"),
        h("button", { type: "button", onclick: () => decide("reject") }, "Reject")));
  }

  /** Asks for the answer that the approval needs. A missing code is for the caller to ask for. */
  async answer(approval, form, send) {
    let missing = null;
    const done = await ask({
      title: `Answer ${approval.action}`, action: "Answer", fields: form.fields,
      body: [h("p", { class: "notice warn" }, "The fields are those of the asker. Do not enter passwords or keys."), form.body],
      submit: async () => {
        try {
          await send();
        } catch (error) {
          if (error.field !== "totp_code") throw error;
          missing = error;
        }
      },
    });
    if (missing) throw missing;
    return done;
  }

  /** Sends the decision; asks for the code of the second factor when the daemon wants one. */
  async decide(approval, decision) {
    const { api } = this.chat.ctx;
    const send = (body) => api.call("POST", `/api/approvals/${approval.id}/${decision}`, body);
    const form = decision === "approve" && approval.answer_schema ? answerForm(approval.answer_schema) : null;
    const given = () => (form ? { answer: form.read() } : {});
    try {
      if (!form) await send({});
      else if (!(await this.answer(approval, form, () => send(given())))) return;
    } catch (error) {
      if (error.field !== "totp_code") throw error;
      const control = h("input", { type: "text", inputmode: "numeric", autocomplete: "one-time-code", maxlength: "8" });
      const code = field("Code from your authenticator app", control);
      const done = await ask({ title: `Approve ${approval.action}`, action: "Approve", body: [code], fields: { totp_code: code }, submit: () => send({ totp_code: control.value.trim(), ...given() }) });
      if (!done) return;
    }
    this.shown.get(approval.id)?.remove();
    this.shown.delete(approval.id);
    toast(decision === "approve" ? `${approval.action} is approved.` : `${approval.action} is rejected.`);
  }
}
