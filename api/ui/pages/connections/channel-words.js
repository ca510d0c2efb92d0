// What is said of a channel: its state, and what became of a message.

import { h } from "../../lib/dom.js";

const STATES = {
  starting: ["accent", "starting"],
  started: ["", "started"],
  active: ["good", "active"],
  restarting: ["warn", "restarting"],
  failed: ["bad", "failed"],
  stopped: ["", "stopped"],
};

/** What each state means. An adapter that runs is not connected yet. */
export const MEANING = {
  starting: "The adapter is starting.",
  started: "The adapter runs. No message has passed yet, so nothing is known of the connection to the platform.",
  active: "Messages have passed since the adapter was started.",
  restarting: "The adapter ended. The daemon starts it again.",
  failed: "The adapter ended and is not started again. Correct the cause, then reload.",
  stopped: "The adapter does not run.",
};

/** The state of a channel as a badge. */
export function stateBadge(channel) {
  const [style, word] = STATES[channel.state] ?? ["", channel.state];
  return h("span", { class: `badge ${style}`, title: MEANING[channel.state] ?? null }, word);
}

const SENDS = { queued: "accent", sent: "good", acknowledged: "good", refused: "bad", unknown: "warn" };

/** What is known of a send as a badge. */
export const sendBadge = (send) => h("span", { class: `badge ${SENDS[send.status] ?? ""}` }, send.status);

/** The path of a channel. */
export const channelPath = (name, rest = "") => `/api/channels/${encodeURIComponent(name)}${rest}`;

/** The sign of a platform: one of its own, or the usual one. */
export const signOf = (entry) => (entry.icon && !/[:\w]/.test(entry.icon) ? [...entry.icon].slice(0, 2).join("") : null);
