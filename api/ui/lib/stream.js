// A stream that is followed for as long as a part is open, and begun again when it breaks off.

import { events, pause } from "./api.js";

const PAUSES_MS = [500, 1000, 2000, 5000, 10_000];

/**
 * Follows `path()` until `signal` ends; `onEvent(name, body)` gets its events, `onState("live" | "waiting", error)` is told
 * how it is. A refusal other than one that says to come back ends it, with the state "refused". With `after`, the id of an event,
 * the stream goes on behind that one, and behind the last one seen when it is begun again.
 */
export async function followAlways(path, { signal, onEvent, onState = () => {}, after = null }) {
  let faults = 0;
  let lastId = after;
  const take = (name, body, id) => {
    if (after !== null && id) lastId = id;
    onEvent(name, body);
  };
  while (!signal.aborted) {
    let error = null;
    try {
      await events(path(), take, { signal, lastId, onOpen: () => {
        faults = 0;
        onState("live", null);
      } });
    } catch (fault) {
      if (signal.aborted || fault.name === "AbortError") return;
      error = fault;
      if ([400, 401, 403, 404].includes(fault.status)) {
        onState("refused", fault);
        return;
      }
    }
    faults += 1;
    onState("waiting", error);
    await pause(PAUSES_MS[Math.min(faults - 1, PAUSES_MS.length - 1)], signal).catch(() => {});
  }
}
