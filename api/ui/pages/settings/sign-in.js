// Signing in to a provider by a device flow: the code to type there, and the wait until it is done.

import { call, get } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { ask, faultText, showError } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

/** The pause after a look that failed, in seconds. */
const FAULT_SECS = 10;

/** Begins a sign-in and shows it until it is over; true when it was granted. */
export async function signIn(item, signal) {
  const path = `/api/providers/${encodeURIComponent(item.name)}/oauth`;
  const place = h("p");
  const code = h("pre", { class: "code-box user-code" });
  const state = h("div", { class: "notice", role: "status" });
  let begun = null;
  let isGranted = false;
  let isClosed = false;
  let timer = 0;

  async function begin() {
    clearTimeout(timer);
    begun = await call("POST", `${path}/start`);
    const link = begun.verification_uri_complete || begun.verification_uri;
    fill(place, "Open ", /^https:/.test(link) ? h("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, begun.verification_uri) : begun.verification_uri, " and enter this code:");
    code.textContent = begun.user_code;
    state.className = "notice";
    fill(state, h("span", { class: "spinner" }), "Waiting for you to enter the code…");
    plan(begun.interval ?? 5);
  }

  function plan(secs) {
    if (!isClosed && !signal.aborted) timer = setTimeout(look, Math.max(1, secs) * 1000);
  }

  async function look() {
    const of = begun;
    try {
      const told = await get(`${path}/poll/${of.poll_id}`, { signal });
      if (isClosed || of !== begun) return;
      if (told.status === "pending") plan(told.retry_after ?? of.interval ?? 5);
      else if (told.status === "authorized") {
        isGranted = true;
        code.closest("dialog")?.close();
      } else {
        state.className = "notice bad";
        fill(state, icon("alert"), h("span", { class: "grow" }, told.status === "denied" ? "The provider refused the sign-in." : "The code expired."), again());
      }
    } catch (error) {
      if (error.name === "AbortError" || of !== begun) return;
      fill(state, icon("alert"), h("span", { class: "grow" }, faultText(error)), again());
      plan(FAULT_SECS);
    }
  }

  const again = () => h("button", { type: "button", class: "small", onclick: () => begin().catch(showError) }, "Start again");

  await begin();
  await ask({
    title: `Sign in to ${item.display_name}`, action: "Close", cancel: null,
    body: [place, h("div", { class: "user-code-row" }, code, h("button", { type: "button", onclick: () => copyText(begun.user_code).catch(showError) }, icon("copy", 18), "Copy the code")), state],
  });
  isClosed = true;
  clearTimeout(timer);
  return isGranted;
}
