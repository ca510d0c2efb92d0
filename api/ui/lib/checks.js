// Checks of forms: all fields at once, each fault at its field, the focus at the first.

import { Failure } from "./api.js";

/** A `Failure` that is shown at `target`, for `submit` of a dialog. */
export function faultAt(target, text) {
  target.fault(text);
  target.control.focus();
  return Object.assign(new Failure(text, 400), { target });
}

/** Fails where `target` is empty. */
export function needed(target, text) {
  if (target.control.value.trim() === "") throw faultAt(target, text);
}

/** Makes all `checks`, functions that may fail, and fails with the first fault; gives what they gave. */
export async function checkAll(...checks) {
  const ends = await Promise.allSettled(checks.map(async (check) => check()));
  const faults = ends.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  const first = faults.find((fault) => !fault.target) ?? faults[0];
  if (first) {
    first.target?.control.focus();
    throw first;
  }
  return ends.map(({ value }) => value);
}
