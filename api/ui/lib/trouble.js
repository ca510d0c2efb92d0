// Trouble with a provider or a budget, in words, and the way to mend it.

import { withQuery } from "./api.js";
import { h } from "./dom.js";
import { duration } from "./format.js";
import { can, seesAll } from "./me.js";

const providers = (provider) => withQuery("#/settings", { filter: provider });

/** How to fix an error, by its code: the words of the link, and its address. */
const MENDS = {
  provider_auth: ["Set another key", providers], provider_rate_limited: ["Show the provider", providers], provider_unreachable: ["Check the endpoint", providers],
  provider_timeout: ["Check the provider", providers], provider_error: ["Show the provider", providers], provider_protocol: ["Check the endpoint", providers],
  provider_refused: ["Show the provider", providers], unknown_provider: ["Choose a provider", () => "#/settings"], budget_exceeded: ["Raise the budget", () => "#/money"],
};

/** What providers do that make calls wait, by the code. */
const DOES = {
  provider_rate_limited: "limits how often it may be asked", provider_timeout: "did not respond in time", provider_unreachable: "cannot be reached",
  provider_error: "responds with errors", provider_auth: "refuses the key",
};

/** A link to where an error is mended; null where there is no such place, or it is not for this key. */
export function mendLink(code, provider = null) {
  const mend = MENDS[code];
  if (!mend || !can("admin") || !seesAll()) return null;
  return h("a", { class: "mend", href: mend[1](provider) }, mend[0]);
}

/** Is there a sentence for this code? */
export const isKnown = (code) => code in DOES;

/** Why a call waits, in one sentence: "openai limits how often it may be asked." */
export const causeText = ({ provider, code, error }) => (DOES[code] ? `${provider} ${DOES[code]}.` : error);

/** When it goes on: "Next try in 12 s." */
export function untilText({ until, tries = 0 }, now = Date.now()) {
  if (!until) return "It goes on by itself.";
  const left = Math.max(0, new Date(until).getTime() - now);
  const what = tries > 0 ? `Try ${tries + 1}` : "It goes on";
  return left < 1000 ? `${what} now.` : `${what} in ${duration(Math.ceil(left / 1000) * 1000)}.`;
}
