// Signing in at an MCP server: its page opens in the browser, and the daemon tells when it is done.

import { address, call, get, Failure } from "../../lib/api.js";
import { ask, confirm, faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { pathOf } from "./server-form.js";

const LOOK_MS = 1500;
/** States in which a person can sign in. */
const OPEN = new Set(["needs_auth", "pending_auth", "expired", "error"]);

/** The sign-in of a server as far as this daemon knows of one: `state` and what else its routes say, or null. */
export const signInOf = (server) => (server.auth?.state && server.auth.state !== "not_required" ? server.auth : null);

/** Can a person sign in now? */
export const canSignIn = (server) => OPEN.has(server.auth?.state);

/** What is said of a sign-in. */
export function signInText(auth) {
  return {
    needs_auth: "The server asks you to sign in.", pending_auth: "A sign-in is waiting for you.", expired: "The sign-in has expired. Sign in again.",
    error: "The last sign-in failed. Sign in again.", authorized: "Signed in",
  }[auth.state] ?? auth.state;
}

/** An address that may be opened: of the web, and nothing else. */
function webAddress(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url : null;
  } catch {
    return null;
  }
}

/** Starts a sign-in, opens its page and waits for its end; true when the server is signed in. */
export async function signIn(server, signal) {
  const path = `${pathOf(server.id)}/auth`;
  // The callback comes to where this page was opened.
  const started = await call("POST", `${path}/start`, { base_url: address("").href.replace(/\/$/, "") });
  const url = webAddress(started.auth_url);
  if (!url) throw new Failure("The server's sign-in page is not a web address.", 0);
  const state = h("div", { class: "notice", role: "status" }, h("span", { class: "spinner" }), "Waiting for you to sign in…");
  let isGranted = false;
  let timer = 0;
  let isClosed = false;

  const look = async () => {
    try {
      const { auth } = await get(`${path}/status`, { signal });
      if (isClosed) return;
      // Another sign-in may be the one that works, or waits.
      const own = auth.last_sign_in?.id === started.sign_in_id ? auth.last_sign_in : null;
      if (auth.state === "authorized" && !own?.error) {
        isGranted = true;
        state.closest("dialog")?.close();
        return;
      }
      if (auth.state !== "pending_auth" || own?.error) {
        const why = own?.error ?? auth.message;
        state.className = "notice bad";
        fill(state, icon("alert"), h("span", {}, why ? `The sign-in failed: ${why}` : "The sign-in has ended. Close this and try again."));
        return;
      }
    } catch (error) {
      if (error.name === "AbortError" || isClosed) return;
      fill(state, icon("alert"), h("span", {}, faultText(error)));
    }
    timer = setTimeout(look, LOOK_MS);
  };

  window.open(url.href, "_blank", "noopener,noreferrer");
  timer = setTimeout(look, LOOK_MS);
  await ask({
    title: `Sign in to ${server.name}`, action: "Close", cancel: null,
    body: [h("p", {}, "Sign in on the page that has opened. If your browser has blocked it, open it here: ", h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer" }, url.host)),
      h("p", { class: "hint" }, "Check that you know this address before you enter anything. The daemon keeps the token encrypted in its vault."), state],
  });
  isClosed = true;
  clearTimeout(timer);
  return isGranted;
}

/** Asks, and signs out of a server; true when that was done. */
export function signOut(server) {
  const text = "The daemon deletes the token. Agents cannot call the server's tools until you sign in again.";
  return confirm({ title: `Sign out of ${server.name}?`, text, action: "Sign out", run: () => call("POST", `${pathOf(server.id)}/auth/revoke`) });
}
