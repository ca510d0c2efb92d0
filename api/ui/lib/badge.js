// The number at the inbox, on every page: pending approvals are asked for often, everything else now and then.

import { fill } from "./dom.js";
import { pendingApprovals, readInbox } from "./inbox.js";
import { watchHidden } from "./notify.js";
import { poll } from "./poll.js";

const APPROVALS_EVERY_MS = 5000;
const INBOX_EVERY_MS = 60_000;

/** The number of pending approvals as it was counted last. */
let approvals = 0;
const listeners = new Set();

/** Calls `run` with the number of pending approvals, now and with each change, until `signal` ends. */
export function onApprovals(run, signal) {
  listeners.add(run);
  signal.addEventListener("abort", () => listeners.delete(run), { once: true });
  run(approvals);
}

/** Keeps `mark` up to date and tells the shell each count; gives a function that takes what the open inbox has counted. */
export function watch({ mark, tell }) {
  const { signal } = new AbortController();
  let others = 0;
  const show = () => {
    const waiting = approvals + others;
    mark.hidden = waiting === 0;
    fill(mark, waiting > 99 ? "99+" : String(waiting));
    mark.parentNode.setAttribute("aria-label", waiting === 0 ? "Inbox" : `Inbox, ${waiting} ${waiting === 1 ? "item needs" : "items need"} you`);
    for (const run of listeners) run(approvals);
    tell(waiting);
  };
  poll(async () => {
    approvals = await pendingApprovals({ signal });
    show();
  }, APPROVALS_EVERY_MS, { signal, onFault: () => {} });
  poll(async () => {
    const { items, count, more } = await readInbox({ signal });
    others = count - more - items.filter(({ kind }) => kind === "approval").length;
    show();
  }, INBOX_EVERY_MS, { signal, onFault: () => {} });
  watchHidden();
  return (count, pending) => {
    approvals = pending;
    others = count - pending;
    show();
  };
}
