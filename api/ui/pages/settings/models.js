// Models: a search over the catalog, aliases, models of one's own, and a newer catalog.

import { call, Failure, get } from "../../lib/api.js";
import { choice, numberInput, numberOf, offered, textInput, toggle } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { count, number, short, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { Table } from "../../lib/table.js";
import { labelOf } from "../../lib/trouble.js";

const TIERS = { frontier: "accent", smart: "good", fast: "" };
/** Dollars for a million tokens; null is not known. */
const price = (value) => (value === null || value === undefined ? "–" : value === 0 ? "free" : `$${value >= 0.01 && Number.isInteger(Math.round(value * 1e6) / 1e4) ? value.toFixed(2).replace(/\.00$/, "") : Number(value.toPrecision(3))}`);
const priceIn = (item) => (item.price_known ? item.input_cost_per_m : null);
const priceOut = (item) => (item.price_known ? item.output_cost_per_m : null);

export async function mount(root, ctx) {
  const { signal } = ctx;
  let models = [];
  let aliases = {};
  let config = {};
  const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  let words = wordsOf(ctx.query.get("filter") ?? "");
  const search = h("input", { type: "search", value: ctx.query.get("filter") ?? "", placeholder: "Search models: claude vision, openai fast, 200k…", "aria-label": "Search models", oninput: () => { words = wordsOf(search.value); show(); } });
  const provider = h("select", { "aria-label": "Provider", onchange: show });
  const tier = choice([["", "Any tier"], ["frontier", "Frontier"], ["smart", "Smart"], ["fast", "Fast"]], "", { "aria-label": "Tier", onchange: show });
  const counts = h("p", { class: "dim", role: "status" });
  const table = new Table({
    label: "Models", signal, rowHeight: 56, open: (item) => details(item), empty: `No matching models.${can("admin") ? " You can add a custom model above." : ""}`,
    columns: [
      { label: "Model", width: "minmax(0, 2.2fr)", sort: (item) => item.display_name || item.id, cell: (item) => h("span", { class: "two" }, h("span", { class: "cut" }, h("strong", {}, item.display_name || item.id), item.source === "custom" ? h("span", { class: "badge accent after" }, "yours") : null), h("small", { class: "faint cut mono" }, item.id)) },
      { label: "Provider", width: "minmax(0, 1fr)", side: true, sort: (item) => item.provider, cell: (item) => labelOf(item.provider) },
      { label: "Tier", width: "84px", side: true, sort: (item) => item.tier ?? "zz", cell: (item) => (item.tier ? h("span", { class: `badge ${TIERS[item.tier] ?? ""}` }, item.tier) : "") },
      { label: "Context", width: "84px", slim: "64px", end: true, sort: (item) => item.context_window, cell: (item) => short(item.context_window) },
      { label: "In / M", width: "76px", slim: "58px", end: true, sort: (item) => priceIn(item) ?? -1, cell: (item) => price(priceIn(item)) },
      { label: "Out / M", width: "82px", slim: "60px", end: true, sort: (item) => priceOut(item) ?? -1, cell: (item) => price(priceOut(item)) },
      { label: "Capabilities", width: "150px", side: true, cell: (item) => h("span", { class: "dim" }, [item.supports_tools && "tools", item.vision_support === "supported" && "vision", item.supports_reasoning && "thinking"].filter(Boolean).join(", ")) },
    ],
  });
  const aliasList = h("div", { class: "chips alias-list", role: "list", "aria-label": "Aliases" });
  const catalog = h("p", { class: "dim" });
  fill(root, h("div", { class: "stack" },
    h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), h("div", { class: "selects" }, provider, tier), counts), table.root,
    h("section", { class: "card stack", "aria-label": "Aliases" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Aliases"), can("admin") && h("button", { type: "button", onclick: () => addAlias().catch(showError) }, icon("plus", 18), "Add")), h("p", { class: "dim" }, "Short names for model ids."), aliasList),
    h("section", { class: "card stack", "aria-label": "Catalog" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Catalog"), can("admin") && h("button", { type: "button", onclick: () => update().catch(showError) }, icon("retry", 18), "Check for updates")), catalog)));
  fill(ctx.actions, can("admin") && h("button", { class: "primary", type: "button", onclick: () => addModel().catch(showError) }, icon("plus", 18), "Add a model"));

  async function read() {
    const [found, names, status, settings] = await Promise.all([get("/api/models", { signal }), get("/api/models/aliases", { signal }), get("/api/catalog/status", { signal }), get("/api/config", { signal })]);
    ({ models } = found);
    ({ aliases } = names);
    config = settings;
    const chosen = provider.value;
    const providers = [...new Set(models.map((item) => item.provider))].sort();
    fill(provider, h("option", { value: "" }, "Any provider"), providers.map((name) => h("option", { value: name, selected: name === chosen }, labelOf(name))));
    fill(aliasList, Object.entries(aliases).sort(([a], [b]) => a.localeCompare(b)).map(([alias, id]) => h("span", { class: "alias", role: "listitem" }, h("code", {}, alias), h("span", { class: "faint cut" }, id),
      can("admin") && h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Remove the alias ${alias}`, onclick: () => removeAlias(alias).catch(showError) }, icon("close", 14)))));
    catalog.textContent = `Version ${status.version} (${status.source}): ${count(status.models, "model")} of ${count(status.providers, "provider")}, ${number(status.custom_models)} custom. ${status.url ? `From ${status.url}${status.last_check ? `, checked ${when(status.last_check.at ?? status.last_check)}` : ""}.` : "No [catalog] url is configured; using the catalog of this release."}`;
    show();
  }

  function show() {
    const text = (item) => `${item.id} ${item.display_name} ${item.provider} ${item.tier} ${item.aliases.join(" ")} ${item.vision_support === "supported" ? "vision" : ""} ${item.supports_reasoning ? "thinking reasoning" : ""} ${item.supports_tools ? "tools" : ""} ${short(item.context_window)}`.toLowerCase();
    const rows = models.filter((item) => (provider.value === "" || item.provider === provider.value) && (tier.value === "" || item.tier === tier.value) && words.every((word) => text(item).includes(word)));
    table.set(rows);
    counts.textContent = count(rows.length, "model");
  }

  function details(item) {
    const isDefault = config.default_model?.provider === item.provider && config.default_model?.model === item.id;
    const rows = [["Id", h("code", {}, item.id)], ["Provider", labelOf(item.provider)], ["Tier", item.tier], ["Context", `${number(item.context_window)} tokens`], ["Max output", item.max_output_tokens && `${number(item.max_output_tokens)} tokens`],
      ["Price in", `${price(priceIn(item))} per million tokens`], ["Price out", `${price(priceOut(item))} per million tokens`], ["Cached input", item.cached_input_cost_per_m !== null && `${price(item.cached_input_cost_per_m)} per million tokens`],
      ["Images", item.vision_support], ["Aliases", item.aliases.join(", ")], ["Source", { builtin: "this release", remote: "remote catalog", custom: "you" }[item.source] ?? item.source]];
    const buttons = [
      isDefault ? h("span", { class: "badge accent" }, "the default model") : can("admin") && h("button", { type: "button", onclick: () => { close(); makeDefault(item).catch(showError); } }, "Make default"),
      item.source === "custom" && can("admin") ? h("button", { type: "button", class: "danger-text", onclick: () => { close(); removeModel(item).catch(showError); } }, icon("trash", 16), "Remove") : null,
    ];
    const close = () => document.querySelector("dialog[open]")?.close();
    return ask({ title: item.display_name || item.id, action: "Close", cancel: null, body: [h("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])), h("div", { class: "buttons" }, buttons)] });
  }

  async function makeDefault(item) {
    await call("POST", "/api/config/set", { path: "default_model.provider", value: item.provider });
    await call("POST", "/api/config/set", { path: "default_model.model", value: item.id });
    toast(`${item.display_name || item.id} is now the default model`);
    await read();
  }

  async function addAlias() {
    const alias = field("Alias", textInput("", { spellcheck: "false", placeholder: "cheap" }));
    const model = field("Model", textInput("", { spellcheck: "false" }));
    model.append(offered(model.control, models.map((item) => item.id)));
    if (!(await ask({ title: "New alias", action: "Add", body: [alias, model], fields: { alias, model_id: model }, submit: () => call("POST", "/api/models/aliases", { alias: alias.control.value.trim(), model_id: model.control.value.trim() }) }))) return;
    toast("Added");
    await read();
  }

  async function removeAlias(alias) {
    if (!(await confirm({ title: `Remove the alias ${alias}?`, text: `Agents that use it will request a model named “${alias}”.`, action: "Remove", run: () => call("DELETE", `/api/models/aliases/${encodeURIComponent(alias)}`) }))) return;
    toast("Removed");
    await read();
  }

  async function addModel() {
    const known = new Set((await get("/api/providers", { signal })).providers.map(({ name }) => name));
    const id = field("Id", textInput("", { spellcheck: "false", class: "code" }), { hint: "The provider's id of the model." });
    const from = field("Provider", textInput("", { spellcheck: "false" }));
    from.append(offered(from.control, [...known].sort()));
    const name = field("Name", textInput(""));
    const context = field("Context in tokens", numberInput("", { min: 1, placeholder: "128000" }));
    const longest = field("Max output", numberInput("", { min: 1, placeholder: "not known" }));
    const input = field("Input price (USD per 1M tokens)", numberInput("", { min: 0, step: "any", placeholder: "not known" }));
    const output = field("Output price (USD per 1M tokens)", numberInput("", { min: 0, step: "any", placeholder: "not known" }));
    const tools = toggle("Supports tool calls", true);
    const vision = toggle("Supports images", false);
    const thinking = toggle("Supports thinking", false);
    const done = await ask({
      title: "Add a model", action: "Add", wide: true,
      fields: { id, provider: from, display_name: name, context_window: context, max_output_tokens: longest, input_cost_per_m: input, output_cost_per_m: output },
      body: [h("div", { class: "form-row three" }, id, from, name), h("div", { class: "form-row" }, context, longest), h("div", { class: "form-row" }, input, output), h("div", { class: "bar-row" }, tools, vision, thinking)],
      submit: () => {
        const of = from.control.value.trim();
        if (of !== "" && !known.has(of)) throw new Failure(`There is no provider “${of}”. Choose one from the list, or add it under [providers.<name>] in the configuration.`, 400, { field: "provider" });
        const body = { id: id.control.value.trim(), provider: from.control.value.trim(), context_window: numberOf(context.control), supports_tools: tools.box.checked, supports_vision: vision.box.checked, supports_reasoning: thinking.box.checked };
        if (name.control.value.trim()) body.display_name = name.control.value.trim();
        for (const [key, made] of [["max_output_tokens", longest], ["input_cost_per_m", input], ["output_cost_per_m", output]]) if (numberOf(made.control) !== null) body[key] = numberOf(made.control);
        return call("POST", "/api/models/custom", body);
      },
    });
    if (!done) return;
    toast("Added");
    await read();
  }

  async function removeModel(item) {
    if (!(await confirm({ title: `Remove ${item.display_name || item.id}?`, text: "This also deletes its aliases. Agents that use it keep requesting it, without a known price and context.", action: "Remove", run: () => call("DELETE", `/api/models/custom/${item.id.split("/").map(encodeURIComponent).join("/")}`) }))) return;
    toast("Removed");
    await read();
  }

  async function update() {
    const told = await call("POST", "/api/catalog/update", {});
    toast(told.status === "updated" ? `The catalog is now version ${told.version}` : "The catalog is up to date");
    await read();
  }

  await read();
  ctx.onRoute((_, query) => { if (query.has("filter")) { search.value = query.get("filter"); words = wordsOf(search.value); show(); } });
}
