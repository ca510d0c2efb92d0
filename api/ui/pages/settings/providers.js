// Providers: whether each can be asked, its key (write only), its endpoint, and a test that shows how long it takes.

import { call, get } from "../../lib/api.js";
import { USUAL } from "../../lib/connect.js";
import { textInput } from "../../lib/controls.js";
import { ask, confirm, faultText, menuButton, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h, refill } from "../../lib/dom.js";
import { ago, count, duration, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { mark } from "../../lib/marks.js";
import { can } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { queryRows } from "../../lib/query.js";
import { causeText, errorText, isKnown, isWithoutKey } from "../../lib/trouble.js";
import { signIn } from "./sign-in.js";

const STATES = { configured: ["good", "ready"], no_key_needed: ["good", "no key required"], not_configured: ["", "no key"] };
const SOURCES = { vault: "key in the vault", oauth: "signed in", environment: "key in the environment" };
/** How the calls to a provider go: the badge, and a sentence. */
const CALLS = { failing: ["bad", "failing", "The last call failed."], limited: ["warn", "rate limited", "Rate limited; calls wait."], paused: ["bad", "paused", "Paused after repeated errors."] };
/** The groups of the list; a provider is in the first that has it. */
const GROUPS = [
  { name: "In use", has: ({ isDefault, agents, auth_status: auth, calls }) => isDefault || agents > 0 || auth === "configured" || Boolean(calls) },
  { name: "Popular", has: ({ name }) => USUAL.includes(name) },
  { name: "On this machine", has: ({ auth_status: auth, local }) => local || auth === "no_key_needed" },
  { name: "More providers", has: () => true },
];
/** How to fix the last error, by its code. */
const ADVICE = { provider_auth: " Replace the key.", provider_timeout: " Check the endpoint and the network." };
const EVERY_MS = 5000;
/** Runtimes that can be looked for on this machine. */
const LOCAL = new Set(["ollama", "lmstudio", "llamacpp", "vllm"]);

/** Do agents call it? */
const isUsed = ({ isDefault, agents }) => isDefault || agents > 0;

/** The words of the daemon as a sentence. */
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

export async function mount(root, ctx) {
  const { signal } = ctx;
  let all = [];
  let filter = (ctx.query.get("filter") ?? "").toLowerCase();
  /** What the last test or look of a provider found, by name. */
  const found = new Map();
  const list = h("div", { class: "stack" });
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", value: filter, placeholder: "Search providers", "aria-label": "Search providers", oninput: () => { filter = search.value.toLowerCase(); show(); } });
  fill(root, h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), list));

  async function read() {
    const status = await get("/api/status?limit=1", { signal }).catch(() => ({}));
    const [{ providers }, users] = await Promise.all([get("/api/providers", { signal }), queryRows("agents group by provider count", { signal }).catch(() => [])]);
    const agentsOf = new Map(users.map((row) => [row.provider, Number(row.count)]));
    const rank = (item) => (CALLS[item.calls?.state] ? -2 : item.name === status.default_provider ? -1 : USUAL.includes(item.name) ? USUAL.indexOf(item.name) : USUAL.length);
    all = providers.map((item) => ({ ...item, agents: agentsOf.get(item.name) ?? 0, isDefault: item.name === status.default_provider, model: status.default_model })).sort((a, b) => rank(a) - rank(b) || a.display_name.localeCompare(b.display_name));
    show();
  }

  /** Takes over how calls go; a card is built anew only where that has changed. */
  async function readCalls() {
    const { providers } = await get("/api/providers", { signal });
    for (const { name, calls, auth_status: auth } of providers) {
      const item = all.find((one) => one.name === name);
      if (!item || (JSON.stringify([item.calls, item.auth_status]) === JSON.stringify([calls, auth]) && !calls?.resumes_at)) continue;
      Object.assign(item, { calls, auth_status: auth });
      showFound(name);
    }
  }

  function show() {
    const rows = all.filter((item) => `${item.name} ${item.display_name}`.toLowerCase().includes(filter));
    const ready = all.filter((item) => item.auth_status === "configured").length;
    counts.textContent = filter === "" ? `${count(all.length, "provider")}, ${number(ready)} with a key` : `${number(rows.length)} of ${count(all.length, "provider")}`;
    refill(list, GROUPS.map(({ name, has }) => {
      const own = rows.filter((item) => GROUPS.find((group) => group.has(item)).has === has);
      return own.length === 0 ? null : h("section", { class: "stack tight-stack", "aria-label": name }, h("h2", {}, name), h("ul", { class: "provider-list" }, own.map(card)));
    }), rows.length === 0 ? h("p", { class: "dim" }, "No matching provider. You can configure others under [providers.<name>].") : null);
  }

  /** Shows what was found of a provider on its card; the others stay, with what is open there and has the focus. */
  function showFound(name) {
    const place = list.querySelector(`[data-name="${CSS.escape(name)}"]`);
    const item = all.find((one) => one.name === name);
    if (!place || !item) return;
    const menu = place.querySelector(":popover-open");
    if (menu) menu.addEventListener("toggle", () => showFound(name), { once: true });
    else refill(place, [...card(item).childNodes]);
  }

  function card(item) {
    // What has the focus keeps it when the cards are built anew.
    const key = (word) => ({ key: `${word} ${item.name}` });
    const [style, word] = STATES[item.auth_status] ?? ["", item.auth_status];
    const needsKey = item.auth_status !== "no_key_needed";
    const isAdmin = can("admin");
    const result = found.get(item.name);
    const isMissing = isUsed(item) && item.auth_status === "not_configured" && !item.calls?.last_success_at;
    const trouble = isMissing ? null : CALLS[item.calls?.state];
    return h("li", { class: "card provider", data: { name: item.name } },
      h("div", { class: "bar-row tight" }, mark(item.name), h("h2", { class: "grow cut" }, item.display_name), item.isDefault ? h("span", { class: "badge accent" }, "default") : null, trouble && !result?.isGood ? h("span", { class: `badge ${trouble[0]}` }, trouble[1]) : h("span", { class: `badge ${isMissing ? "bad" : style}` }, word)),
      h("p", { class: "dim provider-note" }, [SOURCES[item.key_source], count(item.model_count, "model"), item.name === "builtin" ? "runs in the daemon, without network" : item.base_url || "no endpoint set"].filter(Boolean).join(" · ")),
      isUsed(item) ? h("p", { class: "dim provider-note" }, [item.isDefault ? `Default model: ${item.model}` : null, item.agents > 0 ? `Used by ${count(item.agents, "agent")}` : null].filter(Boolean).join(" · ")) : null,
      isMissing && !result ? h("div", { class: "provider-result bad", role: "status" }, icon("alert", 16), h("p", {}, h("b", {}, `${item.display_name} has no API key.`), " Calls of its agents fail until you set one.")) : null,
      trouble && !result ? callsNode(item, trouble) : !result && item.calls?.last_success_at ? h("p", { class: "dim provider-note" }, "Last response ", h("time", { datetime: item.calls.last_success_at, title: when(item.calls.last_success_at) }, ago(item.calls.last_success_at))) : null,
      result ? h("p", { class: `provider-result ${result.isGood ? "good" : "bad"}`, role: "status" }, icon(result.isGood ? "check" : "alert", 16), h("span", {}, result.text)) : null,
      h("div", { class: "buttons" },
        needsKey && isAdmin ? h("button", { type: "button", data: key("key"), onclick: () => setKey(item).catch(showError) }, icon("key", 16), item.auth_status === "configured" ? "Replace key" : "Set key") : null,
        item.device_flow && isAdmin ? h("button", { type: "button", data: key("enter"), onclick: () => enter(item).catch(showError) }, "Sign in") : null,
        LOCAL.has(item.name) ? h("button", { type: "button", data: key("detect"), onclick: (event) => busy(event, () => detect(item)) }, "Detect") : null,
        (item.auth_status === "not_configured" && !item.isDefault && !item.calls?.last_success_at) || !isAdmin ? null : h("button", { type: "button", data: key("test"), onclick: (event) => busy(event, () => test(item)) }, "Test"),
        h("span", { class: "grow" }),
        isAdmin && menuButton({ label: `More for ${item.display_name}`, items: () => [
          { label: "Change endpoint", icon: "edit", run: () => setUrl(item) },
          ...(item.auth_status === "not_configured" && !item.isDefault ? [{ label: "Test", icon: "play", run: () => test(item) }] : []),
          ...(["vault", "oauth"].includes(item.key_source) ? [{ label: "Delete key", icon: "trash", danger: true, run: () => forget(item) }] : []),
        ] })));
  }

  /** What is the matter with a provider, since when, and when its calls go on. */
  function callsNode({ display_name: name, calls: { resumes_at: until, waiting, last_error: error, state } }, [style, , text]) {
    const cause = state === "failing" && error && isKnown(error.code) ? causeText({ provider: name, ...error }) : text;
    const words = error && sentence(errorText({ ...error, name }));
    const left = until ? Math.max(0, new Date(until).getTime() - Date.now()) : 0;
    return h("div", { class: `provider-result ${style}`, role: "status" }, icon("alert", 16), h("div", {},
      h("p", {}, h("b", {}, cause), left > 0 ? ` Retries in ${duration(Math.ceil(left / 1000) * 1000)}.` : "", waiting > 0 ? ` ${count(waiting, "call")} waiting.` : ""),
      error ? h("p", {}, words === cause ? "" : `${words}${isWithoutKey(error.error) ? "" : ADVICE[error.code] ?? ""} `, h("time", { class: "faint", datetime: error.at, title: when(error.at) }, ago(error.at))) : null));
  }

  /** Runs `work` while its button shows that it goes on. */
  async function busy(event, work) {
    const button = event.currentTarget;
    const isHeld = document.activeElement === button;
    button.disabled = true;
    button.prepend(h("span", { class: "spinner" }));
    try {
      await work();
    } catch (error) {
      showError(error);
      button.disabled = false;
      button.querySelector(".spinner")?.remove();
    }
    // A button that is disabled loses the focus.
    if (isHeld && document.activeElement === document.body) list.querySelector(`[data-key="${CSS.escape(button.dataset.key)}"]`)?.focus({ preventScroll: true });
  }

  async function test(item) {
    try {
      const told = await call("POST", `/api/providers/${encodeURIComponent(item.name)}/test`);
      found.set(item.name, { isGood: true, text: `${told.model_tested} responded in ${duration(told.latency_ms)}.` });
    } catch (error) {
      found.set(item.name, { isGood: false, text: `${errorText({ error: faultText(error), name: item.display_name })}${isWithoutKey(error.message) ? "" : ADVICE[error.code] ?? ""}` });
    }
    showFound(item.name);
  }

  async function detect(item) {
    const told = await get(`/api/providers/${encodeURIComponent(item.name)}/detect`, { signal });
    const models = told.models ?? [];
    const names = models.slice(0, 6).map((model) => model.id ?? model.name ?? model).join(", ");
    found.set(item.name, told.available
      ? { isGood: true, text: `Running${told.version ? `, version ${told.version}` : ""}, with ${count(models.length, "model")}${names ? `: ${names}` : ""}.` }
      : { isGood: false, text: told.reason ? sentence(told.reason) : "Not running on this machine." });
    showFound(item.name);
  }

  async function setKey(item) {
    const key = field("API key", textInput("", { type: "password", autocomplete: "off", spellcheck: "false", class: "code" }), { hint: "Stored encrypted in the vault and used from the next call. It cannot be read back." });
    const done = await ask({ title: `Key of ${item.display_name}`, body: [key], fields: { api_key: key }, submit: () => call("POST", `/api/providers/${encodeURIComponent(item.name)}/key`, { api_key: key.control.value.trim() }) });
    if (!done) return;
    toast("Key saved in the vault");
    found.delete(item.name);
    await read();
  }

  async function forget(item) {
    const text = "Calls that need it fail or use fallback models until you set another key.";
    if (!(await confirm({ title: `Delete the key of ${item.display_name}?`, text, action: "Delete", run: () => call("DELETE", `/api/providers/${encodeURIComponent(item.name)}/key`) }))) return;
    toast("Deleted");
    await read();
  }

  async function setUrl(item) {
    const url = field("Endpoint", textInput(item.base_url, { type: "url", spellcheck: "false", class: "code" }), { hint: "The provider's key is sent there. Leave empty to use the configured endpoint. Private addresses need [web.fetch] ssrf_allowed_hosts." });
    const done = await ask({ title: `Endpoint of ${item.display_name}`, body: [url], fields: { url }, submit: () => call("PUT", `/api/providers/${encodeURIComponent(item.name)}/url`, { url: url.control.value.trim() || null }) });
    if (!done) return;
    toast("Saved");
    await read();
  }

  async function enter(item) {
    if (await signIn(item, signal)) {
      toast(`Signed in to ${item.display_name}`);
      await read();
    }
  }

  await read();
  poll(readCalls, EVERY_MS, { signal, isRead: true });
  ctx.onRoute((_, query) => {
    if (!query.has("filter")) return;
    search.value = query.get("filter");
    filter = search.value.toLowerCase();
    show();
  });
}
