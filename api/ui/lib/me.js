// Who uses this page, and what that key may do: the page makes no call, and shows no button, that the daemon would refuse.

import { get } from "./api.js";

/** Until the daemon has said: the key of an installation that has one. */
let known = { role: "owner", scopes: ["read", "chat", "write", "admin"] };
let isKnown = false;

/** What `GET /api/whoami` said last. */
export const me = () => known;

/** Has the daemon said who this is? */
export const isLearned = () => isKnown;

/** May this key act in a scope: `read`, `chat`, `write` or `admin`? */
export const can = (scope) => known.scopes.includes(scope);

/** Is everything of the installation for this key, not only what belongs to its user? */
export const seesAll = () => known.role === "owner" || known.role === "admin";

/** Those of some items, such as pages or lines of a menu, that are for this key: each may have `scope`, and `all: true`. */
export const allowed = (items) => items.filter(({ scope, all }) => (!scope || can(scope)) && (!all || seesAll()));

/** Asks the daemon who this is. */
export async function learn() {
  known = await get("/api/whoami");
  isKnown = true;
}
