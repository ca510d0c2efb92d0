// Queries of the world. The daemon runs four at once, for all its clients: a page asks for at most three, the others wait here.

import { get, withQuery } from "./api.js";

const LANES = 3;
let open = 0;
const waiting = [];

/** The answer to `q`: `{ columns, rows }`. */
export async function query(q, { signal } = {}) {
  if (open < LANES) open += 1;
  else await new Promise((resolve) => { waiting.push(resolve); });
  try {
    signal?.throwIfAborted();
    return await get(withQuery("/api/world/query", { q }), { signal });
  } finally {
    const next = waiting.shift();
    if (next) next();
    else open -= 1;
  }
}

/** Its rows as objects. */
export async function queryRows(q, options) {
  const { columns, rows } = await query(q, options);
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
}
