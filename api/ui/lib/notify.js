// Notifications of the desktop for what needs a person, while the tab is in the background. They are off until they are turned on.

import { readInbox } from "./inbox.js";

const CHOICE = "agentsvc-notify";
const EVERY_MS = 20_000;
/** Notifications at a time; the others are in the inbox. */
const SHOWN_MAX = 3;

const exists = () => "Notification" in window && isSecureContext;
const isOn = () => exists() && Notification.permission === "granted" && localStorage.getItem(CHOICE) === "on";

/** May they be offered? Once, and not where the browser refuses them. */
export const mayOffer = () => exists() && Notification.permission !== "denied" && localStorage.getItem(CHOICE) === null;

/** Asks the browser; true when it allows them. */
export async function turnOn() {
  const isAllowed = (await Notification.requestPermission()) === "granted";
  localStorage.setItem(CHOICE, isAllowed ? "on" : "off");
  return isAllowed;
}

export const turnOff = () => localStorage.setItem(CHOICE, "off");

/** Whether they are on: `on`, `off`, `denied` by the browser, or `missing` in it. */
export function notifyState() {
  if (!exists()) return "missing";
  if (Notification.permission === "denied") return "denied";
  return isOn() ? "on" : "off";
}

/** Shows one, to see how they look here. */
export const showExample = () => tell({ id: "example", title: "ops wants to run a command", text: "$ make deploy", href: "#/inbox" });

function tell(item) {
  const told = new Notification(item.title, { body: item.text, tag: item.id, icon: new URL("../icon.svg", import.meta.url).href });
  told.addEventListener("click", () => {
    focus();
    location.hash = item.href;
    told.close();
  });
}

/** Looks at the inbox while nobody sees the page, and tells of what is new since. */
export function watchHidden() {
  let known = null;
  const look = async () => {
    if (!document.hidden || !isOn()) {
      known = null;
      return;
    }
    try {
      const { items } = await readInbox({ isFresh: true });
      const loud = items.filter(({ quiet }) => !quiet);
      if (known) loud.filter(({ id }) => !known.has(id)).slice(0, SHOWN_MAX).forEach(tell);
      known = new Set(loud.map(({ id }) => id));
    } catch {
      // The daemon is not there: the next look.
    }
  };
  document.addEventListener("visibilitychange", look);
  setInterval(look, EVERY_MS);
}
