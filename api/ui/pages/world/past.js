// What the daemon knows of the time before the page was opened: the latest stored events, and from them the rates of each second.

import { events } from "../../lib/api.js";

/** As many as the daemon keeps. */
const KEPT = 200;
/** The stored ones come at once: where none comes for this long, there are no more. */
const QUIET_MS = 300;
/** Seconds over which the daemon takes its rates. */
const SPAN_SECS = 10;

/** The stored events, oldest first; `newest` is the number of events since the start of the daemon. */
export async function storedEvents(newest, signal) {
  const found = [];
  const ending = new AbortController();
  const end = () => ending.abort();
  signal.addEventListener("abort", end, { once: true, signal: ending.signal });
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(end, QUIET_MS);
  };
  try {
    await events(`/api/world/events?last=${KEPT}`, (name, event) => {
      if (name === "event") found.push(event);
      if (found.length >= KEPT || event.number >= newest) end();
      else wait();
    }, { signal: ending.signal, onOpen: wait });
  } catch (error) {
    if (error.name !== "AbortError" || signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return found;
}

const ENDS = new Set(["turn_completed", "turn_failed"]);

/** The turns that were in flight in each of the `seconds` before `now`, oldest first, from the `current` ones back; null before the first known event. */
export function turnsBefore(found, { now, uptimeSecs, seconds, current }) {
  const from = found.length === 0 || found[0].number === 1 ? now - uptimeSecs * 1000 : Date.parse(found[0].at);
  const steps = found.filter(({ kind }) => kind === "turn_started" || ENDS.has(kind)).map(({ at, kind }) => [Date.parse(at), kind === "turn_started" ? -1 : 1]);
  return Array.from({ length: seconds }, (_, index) => {
    const until = now - (seconds - index) * 1000;
    // Turns that were stopped end without an event of their own.
    return until < from ? null : [Math.max(0, steps.reduce((sum, [at, step]) => (at > until ? sum + step : sum), current)), null];
  });
}

/**
 * What the readings of the `seconds` before `now` would have said, oldest first: events and messages per second. Null is what is not
 * known: fires of triggers are no events, and older events are not kept.
 */
export function ratesBefore(found, { now, uptimeSecs, seconds }) {
  const times = found.map(({ at, kind }) => ({ at: Date.parse(at), isMessage: kind === "message_received" }));
  const isWhole = found.length === 0 || found[0].number === 1;
  const from = isWhole ? now - uptimeSecs * 1000 : times[0].at;
  return Array.from({ length: seconds }, (_, index) => {
    const until = now - (seconds - index) * 1000;
    const secs = Math.min(SPAN_SECS, (until - from) / 1000);
    if (secs < 1) return null;
    const within = times.filter(({ at }) => at <= until && at > until - secs * 1000);
    return [within.length / secs, within.filter(({ isMessage }) => isMessage).length / secs, null];
  });
}
