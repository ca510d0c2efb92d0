// Reading something again and again, gently: not while the tab is hidden, never two calls at once, slower after faults.

/** The longest pause after faults, in milliseconds. */
const PAUSE_MAX_MS = 30_000;

/** Who is told of the faults of what is read until a signal ends, where the reader itself tells nobody. */
const tellers = new WeakMap();

/** `tell({ error, since })` gets each fault of what is polled with `signal` and has no `onFault`, and `null` when it works again. */
export function tellFaults(signal, tell) {
  tellers.set(signal, tell);
}

/**
 * Calls `read(signal)` now and then `ms` after each end, until `signal` ends. `onFault(error)` gets what it throws, and
 * `onFault(null)` is called when it works again; without it the page says since when nothing was read. What `isRead` already is read next
 * after `ms`. Gives `again()`,
 * which reads at once and resolves when that is done.
 */
export function poll(read, ms, { signal, onFault, isRead = false }) {
  let timer = 0;
  let faults = 0;
  let running = null;
  /** When it was read last; pages read once before. */
  let since = new Date();
  onFault ??= (error) => tellers.get(signal)?.(error && { error, since });

  const once = async () => {
    try {
      await read(signal);
      since = new Date();
      if (faults > 0) onFault(null);
      faults = 0;
    } catch (error) {
      if (signal.aborted || error?.name === "AbortError") return;
      faults += 1;
      onFault(error);
    }
  };
  const turn = () => {
    clearTimeout(timer);
    running ??= once().finally(() => {
      running = null;
      plan();
    });
    return running;
  };
  const plan = () => {
    clearTimeout(timer);
    if (signal.aborted || document.hidden) return;
    timer = setTimeout(turn, Math.min(ms * 2 ** Math.min(faults, 6), Math.max(ms, PAUSE_MAX_MS)));
  };
  const onVisible = () => {
    if (!document.hidden) turn();
  };
  document.addEventListener("visibilitychange", onVisible, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  if (isRead) plan();
  else turn();
  return async () => {
    // What is under way may have begun before the change that the caller wants to see.
    if (running) await running;
    return turn();
  };
}

/** Runs `draw` at most once a frame, however often it is called, and not after `signal` has ended. */
export function perFrame(draw, signal) {
  let asked = false;
  return () => {
    if (asked || signal?.aborted) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      if (!signal?.aborted) draw();
    });
  };
}

/** Runs `work(item)` for each of `items`, at most `lanes` at a time. Faults are the work's own. */
export async function inLanes(items, lanes, work) {
  const left = [...items];
  const lane = async () => {
    while (left.length > 0) await work(left.shift());
  };
  await Promise.all(Array.from({ length: Math.min(lanes, left.length) }, lane));
}
