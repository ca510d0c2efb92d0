// Signing in to a provider by a device flow: the code to type there, and the wait until it is done.

import { call, get } from "../../lib/api.js";
import { ask, faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";

/** Begins a sign-in and shows it until it is over; true when it was granted. */
export async function signIn(item, signal) {
  const path = `/api/providers/${encodeURIComponent(item.name)}/oauth`;
  const begun = await call("POST", `${path}/start`);
  const state = h("p", { class: "notice", role: "status" }, h("span", { class: "spinner" }), "Waiting for you to type the code there…");
  const link = begun.verification_uri_complete || begun.verification_uri;
  let isGranted = false;
  let isOver = false;
  let timer = 0;

  const look = async () => {
    try {
      const told = await get(`${path}/poll/${begun.poll_id}`, { signal });
      isGranted = told.status === "authorized";
      isOver = told.status !== "pending";
      if (isGranted) return fill(state, "Signed in. You can close this.");
      if (isOver) return fill(state, told.status === "denied" ? "The provider refused it. Begin again." : "The code ran out. Begin again.");
      timer = setTimeout(look, Math.max(1, told.retry_after ?? begun.interval ?? 5) * 1000);
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      fill(state, faultText(error));
      timer = setTimeout(look, 10_000);
    }
    return undefined;
  };
  timer = setTimeout(look, Math.max(1, begun.interval ?? 5) * 1000);
  await ask({
    title: `Sign in to ${item.display_name}`, action: "Done", cancel: null,
    body: [h("p", {}, "Open ", /^https:/.test(link) ? h("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, begun.verification_uri) : begun.verification_uri, " and type this code:"), h("pre", { class: "code-box user-code" }, begun.user_code), state],
  });
  clearTimeout(timer);
  return isGranted;
}
