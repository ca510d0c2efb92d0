// The login: asks for the API key, checks it with the daemon, and keeps it for this tab only. Where the daemon knows identity
// providers or passwords, people sign in there instead, and the browser keeps a cookie.

import { address, failure, key } from "./api.js";
import { removeDialog } from "./dialogs.js";
import { field, fill, h } from "./dom.js";

/** Asks until a key is accepted; resolves to true. Everything else of the page waits below it. `reason` is about the key, `notice` about anything else. */
export function askForKey(reason, notice = "") {
  return new Promise((resolve) => {
    const control = h("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
    const input = field("API key", control, { hint: "The api_key from the daemon's config.toml. It is kept in this tab until you close it." });
    const button = h("button", { class: "primary", type: "submit" }, "Sign in");
    const form = h("form", { class: "stack", method: "dialog", novalidate: true }, input, button);
    const others = h("div", { class: "stack", hidden: true });
    const card = h("div", { class: "login-card" },
      h("img", { src: new URL("../icon.svg", import.meta.url), alt: "", width: 44, height: 44 }),
      h("h1", { id: "login-title" }, "Sign in to agentsvc"), notice ? h("p", { class: "notice", role: "alert" }, notice) : null, form, others);
    const dialog = h("dialog", { class: "login", "aria-labelledby": "login-title" }, card);
    const done = () => {
      dialog.close();
      removeDialog(dialog);
      return resolve(true);
    };
    // There is nothing behind it that could be used without a key.
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const given = control.value.trim();
      if (given === "") return input.fault("Enter the key.");
      button.disabled = true;
      const fault = await check(given);
      button.disabled = false;
      if (fault) {
        input.fault(fault);
        control.select();
        return undefined;
      }
      key.set(given);
      return done();
    });
    document.body.append(dialog);
    dialog.showModal();
    input.fault(reason);
    control.focus();
    offer(others, done);
  });
}

/** Shows how else people sign in here. */
async function offer(place, done) {
  let ways;
  try {
    ways = await (await fetch(address("/api/auth/providers"), { cache: "no-store" })).json();
  } catch {
    return;
  }
  const providers = (ways.providers ?? []).map(({ id, display_name: name }) =>
    h("a", { class: "button", href: address(`/api/auth/login/${encodeURIComponent(id)}`).href }, `Sign in with ${name}`));
  fill(place, providers, ways.password ? passwordForm(done) : null);
  place.hidden = providers.length === 0 && !ways.password;
}

/** A name and a password, and a code where the daemon asks for one. */
function passwordForm(done) {
  const name = field("Name", h("input", { type: "text", autocomplete: "username", required: true }));
  const password = field("Password", h("input", { type: "password", autocomplete: "current-password", required: true }));
  const code = field("Code", h("input", { type: "text", autocomplete: "one-time-code", inputmode: "numeric" }), { hint: "The code of your authenticator." });
  code.hidden = true;
  const button = h("button", { type: "submit" }, "Sign in with a password");
  const form = h("form", { class: "stack", method: "dialog", novalidate: true }, name, password, code, button);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    for (const input of [name, password, code]) input.fault("");
    const body = { username: name.control.value.trim(), password: password.control.value };
    if (code.control.value.trim() !== "") body.totp_code = code.control.value.trim();
    button.disabled = true;
    try {
      const headers = { "content-type": "application/json" };
      const response = await fetch(address("/api/auth/dashboard-login"), { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
      if (response.ok) {
        key.forget();
        return done();
      }
      const fault = await failure(response);
      if (fault.field === "totp_code") code.hidden = false;
      ({ username: name, totp_code: code }[fault.field] ?? password).fault(fault.message);
    } catch {
      password.fault("The daemon is unreachable. Check that it is running, then try again.");
    } finally {
      button.disabled = false;
    }
    return undefined;
  });
  return form;
}

/** What is wrong with a key; "" when the daemon takes it. */
async function check(given) {
  let response;
  try {
    response = await fetch(address("/api/version"), { headers: { authorization: `Bearer ${given}` }, cache: "no-store" });
  } catch (error) {
    // Headers cannot carry every character; no key that the daemon takes has such a one.
    return error instanceof TypeError && /header|ByteString|ISO-8859/i.test(error.message)
      ? "A key cannot contain these characters." : "The daemon is unreachable. Check that it is running, then try again.";
  }
  if (response.ok) return "";
  if (response.status === 401) return "The key is not valid. Check api_key in config.toml.";
  return (await failure(response)).message;
}
