// The choice of a model: all models of the providers that can be asked, to search by name.

import { Failure, get } from "../../lib/api.js";
import { offered, textInput } from "../../lib/controls.js";
import { ask, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { VirtualList } from "../../lib/list.js";
import { mark } from "../../lib/marks.js";
import { factsOf } from "../../lib/models.js";

/** How soon a runtime on this machine must answer to count as running, in milliseconds. */
const DETECT_MS = 1500;

/** Is a runtime on this machine there? */
const isRunning = ({ name, calls }) => (calls?.last_success_at ? true : get(`/api/providers/${encodeURIComponent(name)}/detect`, { signal: AbortSignal.timeout(DETECT_MS) }).then(({ available }) => available, () => false));

/**
 * Models of providers that need no key, or have one: those that can be used first, the ones of `provider` before others. `missing` are
 * the providers on this machine that do not run, `names` the names of all by their ids.
 */
async function usable(provider) {
  const [{ models }, { providers }] = await Promise.all([get("/api/models"), get("/api/providers")]);
  const ready = new Set(providers.filter(({ auth_status: status, name }) => status === "configured" || status === "no_key_needed" || name === provider).map(({ name }) => name));
  const local = providers.filter(({ name, local: isLocal }) => isLocal && ready.has(name) && models.some((model) => model.provider === name));
  const areThere = await Promise.all(local.map(isRunning));
  const missing = new Set(local.filter((_, at) => !areThere[at]).map(({ name }) => name));
  const rank = (model) => (missing.has(model.provider) ? 3 : model.provider === provider ? 0 : model.provider === "builtin" ? 2 : 1);
  const found = models.filter((model) => ready.has(model.provider)).map((model, at) => ({ model, at })).sort((a, b) => rank(a.model) - rank(b.model) || a.at - b.at);
  return { models: found.map(({ model }) => model), missing, names: new Map(providers.map(({ name, display_name: text }) => [name, text || name])) };
}

/**
 * Asks for a model: `present` has the `provider` and the `model` that are in use, `submit(model)` is called with the chosen one.
 * Gives the model, or null when it was left.
 */
export async function pickModel({ title, action = "Use this model", present, submit = async () => {} }) {
  const { models, missing, names } = await usable(present.provider);
  const providerOf = (model) => names.get(model.provider) ?? model.provider;
  const key = (model) => `${model.provider}/${model.id}`;
  const now = `${present.provider}/${present.model}`;
  let chosen = null;
  const fits = (q) => models.filter((model) => `${model.provider} ${providerOf(model)} ${model.id} ${model.display_name} ${model.aliases.join(" ")}`.toLowerCase().includes(q.toLowerCase()));
  const list = new VirtualList({
    label: "Models", rowHeight: 50, keyOf: key,
    row: (model) => h("div", { class: "item" }, mark(model.provider, 28),
      h("div", { class: "grow" }, h("div", { class: "cut name" }, model.display_name || model.id), h("div", { class: "cut note" }, factsOf(model, providerOf(model) === model.display_name ? null : providerOf(model)))), missing.has(model.provider) ? h("span", { class: "badge" }, "not running") : null, key(model) === now ? icon("check", 17) : null),
    read: async (_, q) => ({ items: fits(q ?? ""), next: null }),
    open: (model) => {
      chosen = model;
      for (const made of [provider, id]) made.control.value = "";
      list.select(key(model));
      note.textContent = `${model.display_name || model.id} of ${providerOf(model)}`;
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
  // The daemon asks a provider for whatever model is named; the list has only those that it knows.
  const provider = field("Provider", textInput(""));
  provider.append(offered(provider.control, [...names.keys()].sort()));
  const id = field("Model id", textInput("", { spellcheck: "false" }), { hint: "As the provider calls it." });
  const typed = h("details", { class: "typed-model", oninput: () => { chosen = null; list.select(null); } }, h("summary", {}, "A model that is not listed"), h("div", { class: "stack" }, provider, id));
  const note = h("p", { class: "hint", role: "status" }, present.model ? `Now: ${providerOf(present)}, ${present.model}` : "Now: the default model");
  /** The model that was typed, or null. */
  const written = () => {
    const [of, name] = [provider, id].map((made) => made.control.value.trim());
    if (of === "" && name === "") return null;
    if (of === "") throw new Failure("Enter the provider of the model.", 400, { field: "provider" });
    if (!names.has(of)) throw new Failure(`There is no provider “${of}”. Choose one from the list, or add it under [providers.<name>] in the configuration.`, 400, { field: "provider" });
    if (name === "") throw new Failure("Enter the id of the model.", 400, { field: "model" });
    return { provider: of, id: name };
  };
  list.reload("").then(() => list.select(now));
  const done = await ask({
    title, action,
    body: [h("div", { class: "type-frame" }, h("div", { class: "search" }, icon("search", 16), search), h("div", { class: "type-list" }, list.node)), typed, note],
    fields: { provider, model: id },
    submit: async () => {
      chosen ??= written();
      if (!chosen) throw new Failure("Select a model from the list.", 400);
      await submit(chosen);
    },
  });
  return done ? chosen : null;
}

/** Asks for another model of `agent`; gives true when one was set. */
export async function chooseModel(api, agent) {
  const chosen = await pickModel({
    title: `Model of ${agent.name}`, present: agent.model,
    submit: (model) => api.call("PUT", `/api/agents/${agent.id}/model`, { provider: model.provider, model: model.id }),
  });
  if (chosen) toast(`${agent.name} now uses ${chosen.display_name || chosen.id}.`);
  return chosen !== null;
}
