// Setting up a model: paste a key, use a runtime on this machine, or stay offline. A key counts when a call with it succeeded.

import { call, get } from "./api.js";
import { textInput } from "./controls.js";
import { ask, showError } from "./dialogs.js";
import { field, fill, h } from "./dom.js";
import { count, duration } from "./format.js";
import { factsOf } from "./models.js";
import { icon } from "./icons.js";

/** What keys of these providers begin with; the longest that fits is the right one. */
const PREFIXES = [["sk-ant-", "anthropic"], ["sk-or-", "openrouter"], ["sk-proj-", "openai"], ["sk-", "openai"], ["gsk_", "groq"], ["AIza", "gemini"], ["xai-", "xai"], ["pplx-", "perplexity"], ["hf_", "huggingface"], ["csk-", "cerebras"], ["fw_", "fireworks"], ["nvapi-", "nvidia"], ["r8_", "replicate"]];
/** Providers that most people have a key of, first in the list. */
export const USUAL = ["anthropic", "openai", "gemini", "openrouter", "groq", "mistral", "deepseek", "xai"];
/** Runtimes that may run on this machine, and what they are called. */
const LOCAL = { ollama: "Ollama", lmstudio: "LM Studio", llamacpp: "llama.cpp", vllm: "vLLM" };
/** The tiers of the catalog, the best first. */
const TIERS = ["frontier", "smart", "fast"];

/** What the offline model is asked to show how a tool runs. */
export const SAMPLE = "What time is it?";

/** The provider whose keys look like this one; null for none. */
export const providerOf = (key) => PREFIXES.find(([prefix]) => key.startsWith(prefix))?.[1] ?? null;

/** Sorts providers: the usual ones first, then by name. */
function sorted(providers) {
  const rank = ({ name }) => (USUAL.includes(name) ? USUAL.indexOf(name) : USUAL.length);
  return providers.filter(({ auth_status: status }) => status !== "no_key_needed").sort((a, b) => rank(a) - rank(b) || a.display_name.localeCompare(b.display_name));
}

/** Makes a model the default of all agents that name none. */
async function makeDefault(provider, model) {
  const set = (key, value) => call("POST", "/api/config/set", { path: `default_model.${key}`, value });
  const { default_model: before } = await get("/api/status?limit=1");
  // The model first: some providers have none of their own.
  await set("model", model);
  try {
    await set("provider", provider);
  } catch (error) {
    // The provider that stays does not have that model.
    await set("model", before);
    throw error;
  }
}

/** Asks for a key, tests it, and lets a model be chosen; true when a model is set up. */
export async function setUpKey() {
  // With a first key the daemon takes the first model of its provider: that one was not chosen.
  const [{ providers }, before] = await Promise.all([get("/api/providers"), get("/api/status?limit=1")]);
  const all = sorted(providers);
  const key = field("API key", textInput("", { type: "password", autocomplete: "off", spellcheck: "false", class: "code", placeholder: "sk-…" }), { hint: "Stored encrypted on this machine. It cannot be read back." });
  const choice = h("select", {}, all.map((item) => h("option", { value: item.name }, item.display_name)));
  const provider = field("Provider", choice);
  key.control.addEventListener("input", () => {
    const found = providerOf(key.control.value.trim());
    if (found && all.some(({ name }) => name === found)) choice.value = found;
  });
  const state = h("p", { class: "hint", role: "status" });
  let [result, isSaved] = [null, false];
  const save = () => call("POST", `/api/providers/${encodeURIComponent(choice.value)}/key`, { api_key: key.control.value.trim() });
  const saveUntested = h("button", { type: "button", class: "small", hidden: true, onclick: () => save().then(() => {
    isSaved = true;
    saveUntested.closest("dialog").close();
  }).catch(showError) }, "Save without testing");
  for (const control of [key.control, choice]) control.addEventListener("input", () => { saveUntested.hidden = true; });
  const done = await ask({
    title: "Connect a model provider", action: "Connect", body: [key, provider, state, saveUntested], fields: { api_key: key },
    submit: async () => {
      const path = `/api/providers/${encodeURIComponent(choice.value)}`;
      const had = all.find(({ name }) => name === choice.value)?.auth_status === "configured";
      saveUntested.hidden = true;
      await save();
      fill(state, h("span", { class: "spinner" }), " Testing the key…");
      try {
        result = await call("POST", `${path}/test`);
      } catch (error) {
        // A key that does not work is not kept, unless there was another: then the person decides on the page of providers.
        if (!had) await call("DELETE", `${path}/key`).catch(() => {});
        const { errorText } = await import("./trouble.js");
        saveUntested.hidden = error.code === "provider_auth";
        error.message = errorText({ error: error.message, name: choice.selectedOptions[0].text });
        throw error;
      } finally {
        fill(state);
      }
    },
  });
  if (!done && !isSaved) return false;
  return chooseModel(choice.value, all.find(({ name }) => name === choice.value).display_name, result, before.default_provider === choice.value ? before.default_model : null);
}

/** Looks for runtimes on this machine and uses the chosen model of one; true when a model is set up. */
export async function setUpLocal() {
  const found = (await Promise.all(Object.keys(LOCAL).map(async (name) => {
    const told = await get(`/api/providers/${name}/detect`).catch(() => ({}));
    return told.available ? { name, models: (told.models ?? []).map((model) => model.id ?? model.name ?? model) } : null;
  }))).filter((item) => item && item.models.length > 0);
  if (found.length === 0) {
    await ask({
      title: "No local runtime found", action: "Close", cancel: null,
      body: [h("p", {}, "Neither Ollama, LM Studio, llama.cpp nor vLLM answers on this machine with a model."), h("p", { class: "dim" }, "For example, install Ollama, run ", h("code", {}, "ollama pull llama3.2"), ", then try again.")],
    });
    return false;
  }
  const select = h("select", {}, found.flatMap(({ name, models }) => models.map((model) => h("option", { value: JSON.stringify([name, model]) }, `${model} (${LOCAL[name]})`))));
  const done = await ask({
    title: "Use a local model", action: "Use this model", body: [field("Model", select)],
    submit: async () => {
      const [provider, model] = JSON.parse(select.value);
      await call("POST", `/api/providers/${provider}/test?model=${encodeURIComponent(model)}`);
      await makeDefault(provider, model);
    },
  });
  return Boolean(done);
}

/** The best of some models: one that can use tools, of the highest tier; of equal ones the first, for the catalog has the newest first. */
function best(models) {
  const rank = ({ tier, supports_tools: hasTools }) => (hasTools ? 0 : TIERS.length + 1) + (TIERS.includes(tier) ? TIERS.indexOf(tier) : TIERS.length);
  return [...models].sort((a, b) => rank(a) - rank(b))[0];
}

/** Lets the default model be chosen; `chosen` is the one that was chosen earlier. */
async function chooseModel(provider, label, result, chosen) {
  const { models } = await get(`/api/models?provider=${encodeURIComponent(provider)}&limit=200`);
  const present = chosen ?? best(models)?.id;
  const select = h("select", {}, models.map((model) => h("option", { value: model.id, selected: model.id === present }, [model.display_name || model.id, factsOf(model)].filter(Boolean).join(" · "))));
  const body = [
    result ? h("p", { class: "notice good" }, icon("check"), h("span", {}, `${label} answered in ${duration(result.latency_ms)}. The key works.`)) : h("p", { class: "notice warn" }, icon("alert"), h("span", {}, "The key is saved, but was not tested.")),
    models.length > 0 ? field("Default model", select, { hint: `For agents that name no model. Prices are for input and output. ${count(models.length, "model")} known; you can change it in Settings.` }) : null,
  ];
  await ask({ title: "Choose a model", action: "Start chatting", cancel: null, body, submit: () => (models.length > 0 ? makeDefault(provider, select.value) : true) });
  return true;
}

/** The three ways as cards: `[{ label, text, icon, run }]`; `run` gives true when a model is set up. */
export const WAYS = [
  { label: "Paste an API key", text: "OpenAI, Anthropic, Gemini and others. The key is tested at once.", icon: "key", run: setUpKey },
  { label: "Use a local model", text: "Ollama, LM Studio, llama.cpp or vLLM on this machine.", icon: "database", run: setUpLocal },
];

/** A way as a card. */
export const wayCard = ({ icon: name, label, text }, run) => h("li", {}, h("button", { type: "button", class: "way", onclick: () => run().catch(showError) }, icon(name, 22), h("span", {}, h("strong", {}, label), h("small", {}, text))));

/** Asks which way, from anywhere; true when a model is set up. */
export async function setUp() {
  let way = null;
  await ask({
    title: "Set up a model", action: "Close", cancel: null,
    body: [h("ul", { class: "ways" }, WAYS.map((one) => wayCard(one, async () => { way = one; document.querySelector("dialog[open]:has(.ways)").close(); })))],
  });
  return way ? way.run() : false;
}
