// A call that waits for a person, as a card that says what it would do, with the decision.

import { answerForm } from "./answer.js";
import { call } from "./api.js";
import { callBody, callNote, callTitle } from "./calls.js";
import { ask, showError, toast } from "./dialogs.js";
import { field, h } from "./dom.js";
import { ago, when } from "./format.js";
import { icon } from "./icons.js";
import { can } from "./me.js";

/** The card of `approval`, of the agent `name`; `decided(decision)` is called after it. */
export function approvalCard(approval, { name, signal, decided = () => {} }) {
  const note = callNote(approval);
  return h("section", { class: "approval", "aria-label": `Approval of ${approval.action}` },
    h("div", { class: "approval-head" }, icon("shield", 18), h("b", { class: "grow" }, callTitle(approval, name)), h("code", { class: "faint" }, approval.action),
      h("span", { class: "faint", title: when(approval.expires_at) }, `expires ${ago(approval.expires_at)}`)),
    note ? h("p", { class: "dim" }, note) : null,
    callBody(approval, { signal }),
    decisionButtons(approval, { name, decided }));
}

/** The buttons that decide on `approval`; `size` is "small" where they stand in a line. */
export function decisionButtons(approval, { name, decided = () => {}, size = "" }) {
  const run = (decision) => decide(approval, callTitle(approval, name), decision).then((isDone) => isDone && decided(decision)).catch(showError);
  return h("div", { class: "buttons", hidden: !can("admin") },
    h("button", { class: `primary ${size}`, type: "button", data: { key: `approve ${approval.id}` }, onclick: () => run("approve") }, approval.answer_schema ? "Answer" : "Approve"),
    h("button", { type: "button", class: size, data: { key: `reject ${approval.id}` }, onclick: () => run("reject") }, "Reject"));
}

/** Asks for the answer that the approval needs. A missing code is for the caller to ask for. */
async function answer(approval, form, send) {
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

/** Sends the decision; asks for the code of the second factor when the daemon wants one. True when it was sent. */
async function decide(approval, title, decision) {
  const send = (body) => call("POST", `/api/approvals/${approval.id}/${decision}`, body);
  const form = decision === "approve" && approval.answer_schema ? answerForm(approval.answer_schema) : null;
  const given = () => (form ? { answer: form.read() } : {});
  try {
    if (!form) await send({});
    else if (!(await answer(approval, form, () => send(given())))) return false;
  } catch (error) {
    if (error.field !== "totp_code") throw error;
    const control = h("input", { type: "text", inputmode: "numeric", autocomplete: "one-time-code", maxlength: "8" });
    const code = field("Code from your authenticator app", control);
    const done = await ask({ title: `Approve ${approval.action}`, action: "Approve", body: [h("p", {}, title), code], fields: { totp_code: code }, submit: () => send({ totp_code: control.value.trim(), ...given() }) });
    if (!done) return false;
  }
  toast(decision === "approve" ? `${approval.action} is approved.` : `${approval.action} is rejected.`);
  return true;
}
