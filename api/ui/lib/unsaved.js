// Changes that are not saved: whatever leads away from them asks before they are lost.

import { confirm } from "./dialogs.js";

const holds = new Set();
let isAsking = false;

/** Asks before the page is left while `isChanged()`; ends with `signal`, or with the function that it gives. */
export function holdPage({ isChanged, text, signal }) {
  const one = { isChanged, text };
  const release = () => holds.delete(one);
  holds.add(one);
  signal.addEventListener("abort", release, { once: true });
  return release;
}

const changed = () => [...holds].filter((one) => one.isChanged());

/** Would something be lost? */
export const isHeld = () => changed().length > 0;

/** May the page be left? Asks where something would be lost; what is given up does not ask again. */
export async function mayLeave() {
  const lost = changed();
  if (lost.length === 0) return true;
  if (isAsking) return false;
  isAsking = true;
  try {
    if (!(await confirm({ title: "Discard the changes?", text: lost[0].text, action: "Discard" }))) return false;
    for (const one of lost) holds.delete(one);
    return true;
  } finally {
    isAsking = false;
  }
}

// The browser asks before the tab is closed or loaded anew.
addEventListener("beforeunload", (event) => { if (isHeld()) event.preventDefault(); });
