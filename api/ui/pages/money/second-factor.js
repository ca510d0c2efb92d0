// The second factor of approvals: setting one up, confirming it, and giving it up.

import { call } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";

const codeField = (label, hint = "") => field(label, textInput("", { inputmode: "numeric", autocomplete: "one-time-code", class: "code", maxlength: 32 }), { hint });

/** The card about the second factor; `changed()` is called when it is another. */
export function secondFactor(status, changed) {
  const state = status.confirmed ? ["good", "set up"] : status.enrolled ? ["warn", "not confirmed"] : ["", "not set up"];
  const text = status.enforced
    ? (status.confirmed ? `Approving needs a code. ${number(status.remaining_recovery_codes)} recovery codes are left.` : "Approving needs a code, and no authenticator is set up: nothing can be approved until one is.")
    : "Codes are not asked for. Set [approval] second_factor = \"totp\" in config.toml to ask for one with each approval.";
  const button = (label, run, style = null) => h("button", { type: "button", class: style, onclick: () => run(status).then((done) => done && changed()).catch(showError) }, label);
  return h("section", { class: "card stack", "aria-label": "Second factor" },
    h("div", { class: "bar-row" }, icon("shield"), h("h2", { class: "grow" }, "Second factor ", h("span", { class: `badge ${state[0]}` }, state[1])),
      status.enrolled && !status.confirmed ? button("Confirm", confirmSecret, "primary") : null,
      button(status.confirmed ? "Set up another" : "Set up", setUp, status.enrolled ? null : "primary"),
      status.enrolled ? button("Give it up", revoke) : null),
    h("p", { class: "dim" }, text));
}

async function setUp(status) {
  let body = {};
  if (status.confirmed) {
    const code = codeField("Code of the present authenticator, or a recovery code");
    const given = await ask({ title: "Set up another authenticator", action: "Continue", body: [code], fields: { code }, submit: async () => ({ code: code.control.value.trim() }) });
    if (!given) return false;
    body = given;
  }
  const made = await call("POST", "/api/approvals/totp/setup", body);
  const code = codeField("Code that it shows now");
  const done = await ask({
    title: "Add this to your authenticator", action: "Confirm", wide: true, fields: { code },
    body: [
      h("p", {}, "Type the secret into an authenticator app, or open the address on the device that has it. Both are shown once."),
      h("div", { class: "field" }, h("strong", {}, "Secret"), h("pre", { class: "code-box" }, made.secret.replace(/(.{4})/g, "$1 ").trim())),
      h("div", { class: "field" }, h("strong", {}, "Address"), h("pre", { class: "code-box" }, made.otpauth_uri)),
      h("div", { class: "field" }, h("strong", {}, "Recovery codes"), h("p", { class: "hint" }, "Each gives up a lost authenticator once. Keep them somewhere else."), h("pre", { class: "code-box two-columns" }, made.recovery_codes.join("\n"))),
      code,
    ],
    submit: () => call("POST", "/api/approvals/totp/confirm", { code: code.control.value.trim() }),
  });
  if (done) toast("The second factor is set up");
  return true;
}

async function confirmSecret() {
  const code = codeField("Code that the authenticator shows now");
  const done = await ask({ title: "Confirm the authenticator", action: "Confirm", body: [code], fields: { code }, submit: () => call("POST", "/api/approvals/totp/confirm", { code: code.control.value.trim() }) });
  if (done) toast("The second factor is set up");
  return done;
}

async function revoke() {
  const code = codeField("Code, or a recovery code");
  const done = await ask({
    title: "Give up the second factor?", action: "Give it up", danger: true, fields: { code },
    body: [h("p", {}, "Where codes are enforced, nothing can be approved until another one is set up."), code],
    submit: () => call("POST", "/api/approvals/totp/revoke", { code: code.control.value.trim() }),
  });
  if (done) toast("Given up");
  return done;
}
