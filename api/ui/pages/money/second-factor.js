// The second factor of approvals: setting one up, confirming it, and giving it up.

import { call } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";

const codeField = (label, hint = "") => field(label, textInput("", { inputmode: "numeric", autocomplete: "one-time-code", class: "code", maxlength: 32 }), { hint });

/** The card about the second factor; `changed()` is called when it is another. */
export function secondFactor(status, changed) {
  const state = status.confirmed ? ["good", "set up"] : status.enrolled ? ["warn", "not confirmed"] : ["", "not set up"];
  const text = status.enforced
    ? (status.confirmed ? `Approvals need a code. ${number(status.remaining_recovery_codes)} recovery codes are left.` : "Approvals need a code, but no authenticator is set up. Set one up before you approve anything.")
    : "Approvals do not need a code. Set [approval] second_factor = \"totp\" in config.toml to require one.";
  const button = (label, run, style = null) => can("admin") && h("button", { type: "button", class: style, onclick: () => run(status).then((done) => done && changed()).catch(showError) }, label);
  return h("section", { class: "card stack", "aria-label": "Second factor" },
    h("div", { class: "bar-row" }, icon("shield"), h("h2", { class: "grow" }, "Second factor ", h("span", { class: `badge ${state[0]}` }, state[1])),
      status.enrolled && !status.confirmed ? button("Confirm", confirmSecret, "primary") : null,
      button(status.confirmed ? "Replace" : "Set up", setUp, status.enrolled ? null : "primary"),
      status.enrolled ? button("Revoke", revoke) : null),
    h("p", { class: "dim" }, text));
}

async function setUp(status) {
  let body = {};
  if (status.confirmed) {
    const code = codeField("Code from the current authenticator, or a recovery code");
    const given = await ask({ title: "Set up another authenticator", action: "Continue", body: [code], fields: { code }, submit: async () => ({ code: code.control.value.trim() }) });
    if (!given) return false;
    body = given;
  }
  const made = await call("POST", "/api/approvals/totp/setup", body);
  const code = codeField("Code from the app");
  const done = await ask({
    title: "Add this to your authenticator app", action: "Confirm", wide: true, fields: { code },
    body: [
      h("p", {}, "Enter the secret in an authenticator app, or open the address on the device with the app. Both are shown only once."),
      h("div", { class: "field" }, h("strong", {}, "Secret"), h("pre", { class: "code-box" }, made.secret.replace(/(.{4})/g, "$1 ").trim())),
      h("div", { class: "field" }, h("strong", {}, "Address"), h("pre", { class: "code-box" }, made.otpauth_uri)),
      h("div", { class: "field" }, h("strong", {}, "Recovery codes"), h("p", { class: "hint" }, "Each code can replace a lost authenticator once. Store them in a safe place."), h("pre", { class: "code-box two-columns" }, made.recovery_codes.join("\n"))),
      code,
    ],
    submit: () => call("POST", "/api/approvals/totp/confirm", { code: code.control.value.trim() }),
  });
  if (done) toast("Second factor enabled");
  return true;
}

async function confirmSecret() {
  const code = codeField("Code from the authenticator");
  const done = await ask({ title: "Confirm the authenticator", action: "Confirm", body: [code], fields: { code }, submit: () => call("POST", "/api/approvals/totp/confirm", { code: code.control.value.trim() }) });
  if (done) toast("Second factor enabled");
  return done;
}

async function revoke() {
  const code = codeField("Code or recovery code");
  const done = await ask({
    title: "Revoke the second factor?", action: "Revoke", danger: true, fields: { code },
    body: [h("p", {}, "If codes are required, nothing can be approved until you set up a new one."), code],
    submit: () => call("POST", "/api/approvals/totp/revoke", { code: code.control.value.trim() }),
  });
  if (done) toast("Revoked");
  return done;
}
