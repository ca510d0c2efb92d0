// Trouble with a provider or a budget, in words, and the way to mend it.

import { withQuery } from "./api.js";
import { h } from "./dom.js";
import { duration, money, number, stamp } from "./format.js";
import { can, seesAll } from "./me.js";

const providers = (provider) => withQuery("#/settings", { filter: provider });

/** How to fix an error, by its code: the words of the link, and its address. */
const MENDS = {
  provider_auth: ["Replace the key", providers], provider_rate_limited: ["Show the provider", providers], provider_unreachable: ["Check the endpoint", providers],
  provider_timeout: ["Check the provider", providers], provider_error: ["Show the provider", providers], provider_protocol: ["Check the endpoint", providers],
  provider_refused: ["Show the provider", providers], unknown_provider: ["Choose a provider", () => "#/settings"], budget_exceeded: ["Raise the budget", () => "#/money"],
};

/** What well-known providers are called; others have the name of the configuration. */
const LABELS = {
  builtin: "Built in", anthropic: "Anthropic", openai: "OpenAI", gemini: "Google Gemini", openrouter: "OpenRouter", groq: "Groq", mistral: "Mistral AI", deepseek: "DeepSeek", xai: "xAI", cohere: "Cohere",
  together: "Together AI", perplexity: "Perplexity", fireworks: "Fireworks AI", cerebras: "Cerebras", ollama: "Ollama", lmstudio: "LM Studio", llamacpp: "llama.cpp", vllm: "vLLM",
};
export const labelOf = (provider) => LABELS[provider] ?? provider;

/** What providers do that make calls wait, by the code. */
const DOES = {
  provider_rate_limited: "limits the rate of requests", provider_timeout: "did not respond in time", provider_unreachable: "cannot be reached",
  provider_error: "is failing", provider_auth: "rejects the API key",
};

/** What the daemon says of a call without the key that it needs, and of an endpoint that it did not reach. */
const NO_KEY = /^No key for provider (\S+?)( \(.*\))?: /;
const UNREACHABLE = /^Provider (\S+) at (\S+) is unreachable: (.*?)\.?$/;
/** What keeps an endpoint from being reached, and what to look at. */
const CAUSES = [
  [/DNS lookup failed|lookup address/i, "DNS lookup failed. Check the network or the proxy."],
  [/connection refused/i, "The connection was refused. Check that the server is running and the address is right."],
  [/timed out/i, "The connection timed out. Check the network or the proxy."],
];

/** What the daemon says of a call to a provider whose calls are paused: the seconds were those of that moment. */
const PAUSED = /^Provider (\S+) failed (\d+) times in a row; calls are paused for another \d+ s\.?/;

/** What the daemon says of an answer that is an error: the status, its name, and the provider's own words. */
const ANSWERED = /^Provider (\S+) answered (\d{3})((?: [A-Z][\w']*)*)(?:: (.*))?$/s;
/** What the daemon says of a call that a limit does not cover. */
const BUDGET = /^the (hourly|daily|monthly) (?:budget|token limit) of (all agents|agent \S+|user \S+) (does not cover another call|is exhausted): (\S+) of (\S+) (USD|tokens) (?:spent|used); it resets at (\S+?)\.?$/;

/** "The daily budget of all agents does not cover another call: $0.18 of $5.00 is spent. It resets tomorrow." */
function budgetText([, period, whose, state, spent, limit, unit, resets]) {
  const [amount, done] = unit === "USD" ? [money, "spent"] : [number, "used"];
  const who = whose.startsWith("agent ") ? "this agent" : whose;
  return `The ${period} ${unit === "USD" ? "budget" : "token limit"} of ${who} ${state}: ${amount(Number(spent))} of ${amount(Number(limit))} ${done}. It resets on ${stamp(resets)}.`;
}

/** Is it an error of a call without a key? */
export const isWithoutKey = (error) => NO_KEY.test(error ?? "");

/** The error of a provider in words for the page. `name` is what the provider is called, where that is known. */
export function errorText({ error, provider = "", name = "" }) {
  const called = (id) => name || labelOf(id || provider);
  const missing = NO_KEY.exec(error);
  if (missing) return `${called(missing[1])} has no API key.`;
  const paused = PAUSED.exec(error);
  if (paused) return `${called(paused[1])} failed ${paused[2]} times in a row, so its calls were paused.`;
  const answered = ANSWERED.exec(error);
  if (answered) return `${called(answered[1])} returned ${answered[2]}${answered[3] ? ` (${answered[3].trim()})` : ""}${answered[4] ? `: ${answered[4]}` : "."}`;
  const over = BUDGET.exec(error);
  if (over) return budgetText(over);
  const lost = UNREACHABLE.exec(error);
  if (lost) return `Could not reach ${called(lost[1])} (${lost[2]}): ${CAUSES.find(([pattern]) => pattern.test(lost[3]))?.[1] ?? `${lost[3]}.`}`;
  return error;
}

/** A link to where an error is mended; null where there is no such place, or it is not for this key. */
export function mendLink(code, provider = null, error = "") {
  const mend = MENDS[code];
  if (!mend || !can("admin") || !seesAll()) return null;
  const missing = NO_KEY.exec(error);
  return h("a", { class: "mend", href: mend[1](missing?.[1] ?? provider) }, missing ? "Add a key" : mend[0]);
}

/** Is there a sentence for this code? */
export const isKnown = (code) => code in DOES;

/** Why a call waits, in one sentence: "OpenAI limits the rate of requests." */
export const causeText = ({ provider, code, error }) => (DOES[code] && !isWithoutKey(error) ? `${labelOf(provider)} ${DOES[code]}.` : errorText({ error, provider }));

/** When it goes on: "Try 2 in 12 s." */
export function untilText({ until, tries = 0 }, now = Date.now()) {
  if (!until) return "It retries automatically.";
  const left = Math.max(0, new Date(until).getTime() - now);
  const what = tries > 0 ? `Try ${tries + 1}` : "Retrying";
  return left < 1000 ? `${what} now.` : `${what} in ${duration(Math.ceil(left / 1000) * 1000)}.`;
}
