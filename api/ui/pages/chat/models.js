// The choice of a model for the open agent: all models of the providers that can be asked, to search by name.

import { get } from "../../lib/api.js";
import { ask, toast } from "../../lib/dialogs.js";
import { h } from "../../lib/dom.js";
import { money, short } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";

/** What a model costs and how much it reads, in few words. */
function factsOf(model) {
  const price = model.price_known ? (model.input_cost_per_m + model.output_cost_per_m === 0 ? "free" : `${money(model.input_cost_per_m)} / ${money(model.output_cost_per_m)} per 1M`) : null;
  return [model.provider, model.context_window ? `${short(model.context_window)} context` : null, price].filter(Boolean).join(" · ");
}

/** Models of providers that need no key, or have one. */
async function usable() {
  const [{ models }, { providers }] = await Promise.all([get("/api/models"), get("/api/providers")]);
  const ready = new Set(providers.filter(({ auth_status: status }) => status === "configured" || status === "no_key_needed").map(({ name }) => name));
  return models.filter(({ provider }) => ready.has(provider));
}

/** Asks for another model of `agent`; gives true when one was set. */
export async function chooseModel(api, agent) {
  const models = await usable();
  const key = (model) => `${model.provider}/${model.id}`;
  const present = `${agent.model.provider}/${agent.model.model}`;
  let chosen = null;
  const fits = (q) => models.filter((model) => `${model.provider} ${model.id} ${model.display_name} ${model.aliases.join(" ")}`.toLowerCase().includes(q.toLowerCase()));
  const list = new VirtualList({
    label: "Models", rowHeight: 50, keyOf: key,
    row: (model) => h("div", { class: "item" }, icon(key(model) === present ? "check" : "world", 17),
      h("div", { class: "grow" }, h("div", { class: "cut name" }, model.display_name || model.id), h("div", { class: "cut note" }, factsOf(model)))),
    read: async (_, q) => ({ items: fits(q ?? ""), next: null }),
    open: (model) => {
      chosen = model;
      list.select(key(model));
      note.textContent = `${model.display_name || model.id} of ${model.provider}`;
    },
    empty: (q) => h("p", { class: "hint" }, q ? `No model has “${q}” in its name. Providers without a key are left out.` : "No provider has a key. Set one in Settings."),
  });
  const search = h("input", { type: "search", placeholder: "Search models", "aria-label": "Search models", autocomplete: "off", spellcheck: "false", "aria-controls": list.id, oninput: () => list.reload(search.value.trim()) });
  search.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      list.box.focus();
    } else if (event.key === "Enter" && list.items.length > 0 && !chosen) {
      event.preventDefault();
      list.open(list.items[0]);
    }
  });
  const note = h("p", { class: "hint", role: "status" }, `Now: ${present}`);
  list.reload("").then(() => list.select(present));
  const done = await ask({
    title: `Model of ${agent.name}`, action: "Use this model",
    body: [h("div", { class: "type-frame" }, h("div", { class: "search" }, icon("search", 16), search), h("div", { class: "type-list" }, list.node)), note],
    submit: async () => {
      if (!chosen) throw new api.Failure("Select a model from the list.", 400);
      await api.call("PUT", `/api/agents/${agent.id}/model`, { provider: chosen.provider, model: chosen.id });
    },
  });
  if (done) toast(`${agent.name} now uses ${chosen.display_name || chosen.id}.`);
  return Boolean(done);
}
