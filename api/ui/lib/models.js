// What is said of a model where one is chosen.

import { money, short } from "./format.js";

/** How much a model reads and what it costs, in few words; `provider` is the name of its provider. */
export function factsOf(model, provider = null) {
  const price = model.price_known ? (model.input_cost_per_m + model.output_cost_per_m === 0 ? "free" : `${money(model.input_cost_per_m)} / ${money(model.output_cost_per_m)} per 1M`) : null;
  return [provider, model.context_window ? `${short(model.context_window)} context` : null, price].filter(Boolean).join(" · ");
}
