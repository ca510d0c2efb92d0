// Notifications of the desktop in this browser, and the entries of the inbox that were dismissed in it.

import { toggle } from "../../lib/controls.js";
import { showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { dismissedCount, restoreDismissed } from "../../lib/inbox.js";
import { notifyState, showExample, turnOff, turnOn } from "../../lib/notify.js";

const TEXTS = {
  on: "On. You are told of new approvals and failures while this tab is in the background.",
  off: "Off. Turn them on to be told of new approvals and failures while this tab is in the background.",
  denied: "This browser blocks notifications of this page. Allow them in the settings of the site, beside the address, then turn them on here.",
  missing: "This browser shows no notifications for this page. They need HTTPS, or an address on this machine such as 127.0.0.1.",
};

export function mount(root) {
  const place = h("div", { class: "stack" });
  fill(root, place);

  function show() {
    const state = notifyState();
    const control = toggle("Desktop notifications", state === "on");
    control.box.disabled = state === "missing";
    control.box.addEventListener("change", () => change(control.box.checked).catch(showError));
    const dismissed = dismissedCount();
    fill(place,
      h("section", { class: "card stack", "aria-label": "Desktop notifications" }, control, h("p", { class: state === "denied" ? "notice warn" : "dim", role: "status" }, TEXTS[state]),
        state === "on" ? h("div", { class: "buttons" }, h("button", { type: "button", onclick: showExample }, icon("inbox", 17), "Show an example")) : null),
      h("section", { class: "card stack", "aria-label": "Dismissed entries" }, h("h2", {}, "Dismissed entries"),
        h("p", { class: "dim" }, dismissed === 0 ? "No entry of the inbox was dismissed in this browser." : `${count(dismissed, "entry", "entries")} of the inbox ${dismissed === 1 ? "was" : "were"} dismissed in this browser.`),
        dismissed > 0 ? h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => { restoreDismissed(); toast("Restored"); show(); } }, "Restore")) : null),
      h("p", { class: "hint" }, "These settings are kept in this browser. To be told elsewhere, send events to a ", h("a", { href: "#/connections/channels" }, "channel"), "."));
  }

  async function change(isOn) {
    if (isOn) {
      if (!(await turnOn())) toast("The browser does not allow notifications.", { kind: "bad" });
    } else turnOff();
    show();
    place.querySelector("input").focus();
  }

  show();
}
