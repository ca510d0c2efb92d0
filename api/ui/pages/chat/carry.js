// A turn is built anew when more of it is known: what was open in it stays open, and the focus stays where it was.

import { keyOf } from "../../lib/dom.js";

/** What in a turn can have the focus. */
const CONTROLS = "a[href], button, summary, [tabindex]";

/** `nodes` by their names; of those with one name each is told by how many came before. */
function named(nodes, nameOf) {
  const times = new Map();
  return new Map([...nodes].map((node) => {
    const name = nameOf(node);
    times.set(name, (times.get(name) ?? 0) + 1);
    return [`${times.get(name)} ${name}`, node];
  }));
}

const foldsOf = (turn) => named(turn.querySelectorAll("details"), (fold) => fold.dataset.fold);

function controlsOf(turn) {
  const nameOf = new Map([...foldsOf(turn)].map(([name, fold]) => [fold, name]));
  // A summary says how far its call is: it is known by its fold alone.
  return named(turn.querySelectorAll(CONTROLS), (node) => `${nameOf.get(node.closest("details")) ?? ""} ${node.matches("summary") ? "" : keyOf(node)}`);
}

/**
 * Notes what is open in the element of a turn, and what of it has the focus. The function that it gives is called when another
 * element has taken its place: `give(made, log)` opens the same there and puts the focus there, or on `log`.
 */
export function hold(turn) {
  const open = [...foldsOf(turn)].filter(([, fold]) => fold.open).map(([name]) => name);
  const isWhole = turn.querySelector(".said .plain:not(.is-folded)") !== null;
  const held = document.activeElement;
  const control = turn.contains(held) ? ([...controlsOf(turn)].find(([, node]) => node === held)?.[0] ?? "") : null;
  return (made, log) => {
    const folds = foldsOf(made);
    for (const name of open) folds.get(name)?.setAttribute("open", "");
    if (isWhole) made.querySelector(".said .is-folded + button")?.click();
    if (control !== null) (controlsOf(made).get(control) ?? log).focus({ preventScroll: true });
  };
}
