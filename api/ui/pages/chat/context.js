// How full the context of the open session is: the tokens of its last prompt, of those that the model can read.

import { get, withQuery } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";

/** The context windows of the models of a provider, by its name. */
const windows = new Map();

/** The context window of a model, in tokens; null where it is not known. */
export async function windowOf(provider, model, { signal } = {}) {
  if (!windows.has(provider)) {
    const { models } = await get(withQuery("/api/models", { provider }), { signal });
    windows.set(provider, new Map(models.map(({ id, aliases, context_window: tokens }) => [[id, ...aliases], tokens]).flatMap(([names, tokens]) => names.map((name) => [name, tokens]))));
  }
  return windows.get(provider).get(model) || null;
}

/** The mark in the message box; `set(turns, model)` takes the turns of the session, oldest first. */
export class ContextMark {
  constructor(signal) {
    this.signal = signal;
    this.bar = h("i");
    this.text = h("span");
    this.node = h("span", { class: "context-mark", hidden: true, role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" }, h("span", { class: "meter" }, this.bar), this.text);
    this.round = 0;
  }

  async set(turns, model) {
    const round = ++this.round;
    const last = turns.flatMap(({ trace }) => trace?.steps ?? []).findLast(({ kind, input_tokens: tokens }) => kind === "model" && tokens);
    const window = last && model ? await windowOf(model.provider, model.model, { signal: this.signal }).catch(() => null) : null;
    if (round !== this.round) return;
    this.node.hidden = !window;
    if (!window) return;
    const part = Math.min(1, last.input_tokens / window);
    const percent = part * 100;
    const label = `Context: ${number(last.input_tokens)} of ${number(window)} tokens in the last prompt`;
    this.bar.style.setProperty("--part", `${Math.max(2, percent).toFixed(1)}%`);
    this.node.firstChild.className = `meter ${part > 0.9 ? "bad" : part > 0.7 ? "warn" : ""}`;
    this.text.textContent = `${percent < 1 ? "< 1" : Math.round(percent)} %`;
    this.node.title = label;
    this.node.setAttribute("aria-label", label);
    this.node.setAttribute("aria-valuenow", String(Math.round(percent)));
  }
}
