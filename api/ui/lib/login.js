// The login: asks for the API key, checks it with the daemon, and keeps it for this tab only.

import { address, failure, key } from "./api.js";
import { removeDialog } from "./dialogs.js";
import { field, h } from "./dom.js";

/** Asks until a key is accepted; resolves to true. Everything else of the page waits below it. */
export function askForKey(reason) {
  return new Promise((resolve) => {
    const control = h("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
    const input = field("API key", control, { hint: "The api_key from the daemon's config.toml. It is kept in this tab until you close it." });
    const button = h("button", { class: "primary", type: "submit" }, "Sign in");
    const form = h("form", { class: "login-card", method: "dialog", novalidate: true },
      h("img", { src: new URL("../icon.svg", import.meta.url), alt: "", width: 44, height: 44 }),
      h("h1", { id: "login-title" }, "Sign in to agentsvc"), input, button);
    const dialog = h("dialog", { class: "login", "aria-labelledby": "login-title" }, form);
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
      dialog.close();
      removeDialog(dialog);
      return resolve(true);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.fault(reason);
    control.focus();
  });
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
