// The shell: which page is open, the navigation, the theme, whether the daemon is there, and the login.

import * as api from "./lib/api.js";
import { emptyState, fill, h, skeleton } from "./lib/dom.js";
import { closeDialogs, faultText, menuButton, show, showError, toast } from "./lib/dialogs.js";
import { icon } from "./lib/icons.js";
import { Keys } from "./lib/keys.js";
import { askForKey } from "./lib/login.js";
import { applyDensity, densityName, nextDensity } from "./lib/density.js";
import { allowed, isLearned, learn, me } from "./lib/me.js";
import { isHeld, mayLeave } from "./lib/unsaved.js";
import { LOST, PAGES } from "./pages.js";

const THEME = "agentsvc-theme";
/** How often the daemon is asked whether it is there, and how long it may take: a frozen one is noticed within two seconds. */
const HEALTH_EVERY_MS = 1000;
const HEALTH_MS_MAX = 900;

/** A phone, as styles/shell.css has it. */
const SLIM = matchMedia("(max-width: 720px)");

const root = document.getElementById("page");
const rail = document.getElementById("rail");
const keys = new Keys();
const health = h("span", { class: "health", role: "status" });

/**
 * What a page gets beside its element:
 *
 * - `api`: everything of lib/api.js
 * - `path`: what follows the page in the address, decoded: `#/chat/a/b` is `["a", "b"]`
 * - `query`: `URLSearchParams` of what follows a `?` in the address
 * - `signal`: ends when the page is left; hand it to calls, streams and listeners
 * - `go(path, query)`: changes the address within the page, or to another: `ctx.go(["world", "events"])`;
 *   `{ replace: true }` as third value leaves no step in the history
 * - `onRoute(run)`: `run(path, query)` is called when the address changes within the page
 * - `setInbox(count, approvals)`: how many items the inbox has, and how many of them are approvals
 * - `setTitle(text)`: the title of the browser's tab
 * - `key(key, label, run)`: a keyboard shortcut while the page is open
 * - `showKeys(list)`: `list()` gives shortcuts that the page handles itself, for the dialog of shortcuts: `[{ key, label }]`
 * - `claim`: set it to a function that takes the keyboard event of the palette's key and says whether the page used it
 * - `every(ms, run)`: calls `run` now and then, while the page is open and seen; its errors are shown once
 */
class Context {
  constructor(page, path, query) {
    this.api = api;
    this.page = page;
    this.path = path;
    this.query = query;
    this.ending = new AbortController();
    this.signal = this.ending.signal;
    this.routes = [];
    this.claim = () => false;
  }

  go(path, query = {}, { replace = false } = {}) {
    // What began before the page was left ends without a word: another page is open.
    if (replace && this.signal.aborted) return;
    const hash = addressOf(path, query);
    if (!replace && location.hash !== hash && isHeld()) {
      mayLeave().then((may) => may && this.go(path, query)).catch(showError);
      return;
    }
    if (replace) history.replaceState(null, "", hash);
    else if (location.hash !== hash) history.pushState(null, "", hash);
    route();
  }

  /** What the open inbox counted stands at its badge. */
  setInbox(count, approvals) {
    setInbox(count, approvals);
  }

  onRoute(run) {
    this.routes.push(run);
  }

  setTitle(text) {
    title = text ? `${text} · agentsvc` : "agentsvc";
    showTitle();
  }

  key(key, label, run) {
    keys.add(key, label, run, { signal: this.signal });
  }

  showKeys(list) {
    keys.others.add(list);
    this.signal.addEventListener("abort", () => keys.others.delete(list));
  }

  every(ms, run) {
    let failing = false;
    let busy = false;
    const tick = async () => {
      if (busy || this.signal.aborted || document.visibilityState === "hidden") return;
      busy = true;
      try {
        await run();
        failing = false;
      } catch (error) {
        if (!failing) showError(error);
        failing = true;
      } finally {
        busy = false;
      }
    };
    const timer = setInterval(tick, ms);
    this.signal.addEventListener("abort", () => clearInterval(timer));
    return tick();
  }
}

/** Opens an address from anywhere. */
function go(path, query = {}) {
  if (current) current.go(path, query);
  else location.hash = addressOf(path, query);
}

/** `["chat", id]` and `{ q: "x" }` as "#/chat/<id>?q=x". */
function addressOf(path, query) {
  return api.withQuery(`#/${path.map(encodeURIComponent).join("/")}`, query);
}

let current = null;
let unmount = null;
let title = "agentsvc";
/** What needs a person: the number at the inbox. */
let waiting = 0;
/** Tells the badge what the open inbox has counted. */
let setInbox = () => {};

function showTitle() {
  document.title = waiting > 0 ? `(${waiting}) ${title}` : title;
}

/** The address that is shown, and its place in the history where the browser tells it. */
let shown = { hash: null, at: null };
/** The address that a question about unsaved changes is open for. */
let asked = null;

/** Another address was opened: by a link, by hand, or by Back. A dialog belongs to what it was opened over. */
async function move() {
  if (location.hash === shown.hash || location.hash === asked) return;
  closeDialogs();
  if (asked !== null) return;
  if (isHeld()) {
    asked = location.hash;
    const may = await mayLeave();
    asked = null;
    if (!may) return stay();
  }
  route();
}

/** Goes back to the address of what is shown. */
function stay() {
  const at = window.navigation?.currentEntry?.index ?? null;
  if (at !== null && shown.at !== null && at !== shown.at) history.go(shown.at - at);
  else if (location.hash !== shown.hash) history.pushState(null, "", shown.hash || "#/");
}

/** Opens what the address names. */
function route() {
  shown = { hash: location.hash, at: window.navigation?.currentEntry?.index ?? null };
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").filter(Boolean).map(decoded);
  const pages = allowed(PAGES);
  const page = pages.find((page) => page.name === name) ?? (name && !PAGES.some((page) => page.name === name) ? LOST : pages.find((page) => !page.isInner));
  const values = new URLSearchParams(query ?? "");
  if (current?.page === page) {
    current.path = rest;
    current.query = values;
    for (const run of current.routes) run(rest, values);
    return;
  }
  open(page, rest, values).catch(showError);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function open(page, path, query) {
  leave();
  const ctx = new Context(page, path, query);
  current = ctx;
  for (const link of rail.querySelectorAll("a[data-page]")) {
    if (link.dataset.page === page.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  ctx.setTitle(page.label);
  fill(root, h("div", { class: "page-loading" }, skeleton(6)));
  try {
    const module = await page.load();
    if (current !== ctx) return;
    const place = h("div", { class: `page-root page-${page.name}` });
    fill(root, place);
    ctx.setTitle(module.title);
    const end = await module.mount(place, ctx);
    if (current === ctx) unmount = end ?? null;
    else end?.();
  } catch (error) {
    if (current !== ctx || error.name === "AbortError") return;
    leave();
    showFailed(page, path, query, error);
  }
}

/** A page that did not come: after an update of the daemon its files have other addresses. */
function showFailed(page, path, query, error) {
  const isGone = /dynamically imported module|module script/i.test(String(error?.message));
  const text = isGone ? "The page's files could not be loaded. The daemon was updated or is unreachable." : faultText(error);
  const again = h("button", { class: "primary", type: "button", onclick: () => (isGone ? location.reload() : open(page, path, query)) }, "Try again");
  fill(root, emptyState({ icon: icon("alert", 28), title: `${page.label} could not be opened`, text, actions: [again] }));
}

function leave() {
  current?.ending.abort();
  try {
    unmount?.();
  } finally {
    unmount = null;
    current = null;
  }
}

// --- Navigation ------------------------------------------------------------------------------------------------------

/** The pages of the navigation. */
const listed = () => allowed(PAGES).filter(({ isInner }) => !isInner);

const linkOf = (page) => h("a", { href: `#/${page.name}`, "aria-current": current?.page === page ? "page" : null, data: { page: page.name } }, icon(page.icon), h("span", {}, page.short ?? page.label));

function buildRail() {
  const hasHome = allowed(PAGES).some(({ name }) => name === "home");
  const brand = h("a", { class: "brand", href: hasHome ? "#/home" : "#/", "aria-label": hasHome ? "Overview" : "agentsvc", title: hasHome ? "Overview" : null, data: hasHome ? { page: "home" } : {} },
    h("img", { src: new URL("icon.svg", import.meta.url), alt: "", width: 30, height: 30 }), h("span", { class: "brand-name" }, "agentsvc"));
  const links = listed().map(linkOf);
  const more = menuButton({
    label: "More",
    class: "rail-button",
    items: () => [
      // A phone has room for a few pages beside each other.
      ...(SLIM.matches ? [{ heading: "Pages" }, ...listed().map((page) => ({ label: page.label, icon: page.icon, run: () => go([page.name]) })), { heading: "More" }] : []),
      { label: "Search everything", icon: "search", run: () => showPalette() },
      { label: `Theme: ${themeName()}`, icon: document.documentElement.dataset.theme === "dark" ? "moon" : "sun", run: nextTheme },
      { label: `Tables: ${densityName()}`, icon: "menu", run: changeDensity },
      { label: "Set up a model", icon: "settings", all: true, scope: "admin", run: setUpModel },
      { label: "Keyboard shortcuts", icon: "key", run: showKeys },
      { label: "API description", icon: "file", all: true, run: showApi },
      ...(me().user_id ? [{ label: "Your account", icon: "user", run: showAccount }] : []),
      ...(isSignedIn() ? [{ label: me().name ? `Sign out ${me().name}` : "Sign out", icon: "out", run: signOut }] : []),
    ],
  });
  const find = h("button", { class: "rail-button rail-search", type: "button", title: `Search (${keyText("Mod+K").map((part) => part.textContent ?? part).join("+")})`, "aria-label": "Search everything", onclick: () => showPalette().catch(showError) }, icon("search"), h("span", {}, "Search"));
  const inbox = hasHome && h("a", { class: "rail-button rail-inbox", href: "#/inbox", title: "Inbox", "aria-label": "Inbox", data: { page: "inbox" } }, icon("inbox"), h("span", {}, "Inbox"), h("span", { class: "rail-badge", hidden: true }));
  fill(rail, brand, find, inbox, h("div", { class: "rail-links" }, links), h("div", { class: "rail-foot" }, health, more));
  for (const page of allowed(PAGES).filter(({ key }) => key)) keys.add(`g ${page.key}`, `Go to ${page.label}`, () => go([page.name]));
  keys.add("Mod+K", "Search everything", (event) => current?.claim(event) || showPalette().catch(showError));
  keys.add("?", "Show the shortcuts", showKeys);
}

function showKeys() {
  const all = [...keys.list, ...[...keys.others].flatMap((list) => list())];
  const rows = all.map(({ key, label }) => h("div", { class: "key-row" }, h("dt", {}, keyText(key)), h("dd", {}, label)));
  return show({ title: "Keyboard shortcuts", wide: false, body: [h("dl", { class: "key-list" }, rows)] });
}

function keyText(key) {
  const mod = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
  return key.split(" ").flatMap((part, at) => [at > 0 ? " then " : "", ...part.split("+").map((name) => h("kbd", {}, name === "Mod" ? mod : name))]);
}

async function showApi() {
  const description = await import("./lib/description.js");
  await description.showApi();
}

async function setUpModel() {
  const { setUp } = await import("./lib/connect.js");
  if (await setUp()) go(["chat"]);
}

async function showAccount() {
  const account = await import("./lib/account.js");
  await account.showAccount();
}

/** Opens the palette with the actions of the shell. */
async function showPalette() {
  const { openWith } = await import("./lib/palette-entries.js");
  return openWith({ go, pages: listed(), actions: [
    { label: "Set up a model", icon: "settings", all: true, scope: "admin", run: setUpModel },
    { label: "Change the theme", icon: "sun", hint: themeName(), run: nextTheme },
    { label: "Change the density of tables", icon: "menu", hint: densityName(), run: changeDensity, isFirst: false },
    { label: "Keyboard shortcuts", icon: "key", hint: "?", run: showKeys, isFirst: false },
    { label: "API description", icon: "file", all: true, run: showApi, isFirst: false },
    ...(me().user_id ? [{ label: "Your account", icon: "user", run: showAccount, isFirst: false }] : []),
    ...(isSignedIn() ? [{ label: "Sign out", icon: "out", run: signOut, isFirst: false }] : []),
  ] });
}

/** With a key of this tab, or as a person with a session. */
const isSignedIn = () => api.key.get() !== null || me().kind === "session";

/** Asks about changes that are not saved before the session ends, which can then still be saved. */
async function signOut() {
  if (!(await mayLeave())) return;
  if (me().kind === "session") await api.call("POST", "/api/auth/logout");
  api.key.forget();
  sessionStorage.clear();
  location.reload();
}

// --- Theme and health ------------------------------------------------------------------------------------------------

const themeName = () => ({ light: "light", dark: "dark" })[localStorage.getItem(THEME)] ?? "system";

function applyTheme() {
  const theme = localStorage.getItem(THEME);
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function nextTheme() {
  const next = { null: "light", light: "dark", dark: null }[localStorage.getItem(THEME)] ?? null;
  if (next) localStorage.setItem(THEME, next);
  else localStorage.removeItem(THEME);
  applyTheme();
  toast(`Theme: ${themeName()}`);
}

/** Tables take their height when they are made: the open page is made anew. */
async function changeDensity() {
  if (!(await mayLeave())) return undefined;
  nextDensity();
  toast(`Tables: ${densityName()}`);
  return current ? open(current.page, current.path, current.query) : undefined;
}

function setHealth(isUp, text) {
  health.className = `health ${isUp ? "up" : "down"}`;
  if (health.textContent !== text) health.textContent = text;
}

let healthTimer = 0;

/** Answers that did not come in time, one after the other. */
let late = 0;

async function checkHealth() {
  clearTimeout(healthTimer);
  if (document.visibilityState === "hidden") return;
  try {
    const { status } = await api.get("/api/health", { signal: AbortSignal.timeout(HEALTH_MS_MAX) });
    late = 0;
    setHealth(status === "ok", status === "ok" ? "online" : status);
    // It was not there when the page came.
    if (!isLearned()) await introduce();
  } catch (error) {
    // One late answer says little on a busy machine.
    late = error.name === "TimeoutError" ? late + 1 : 2;
    if (late > 1) setHealth(false, error.name === "TimeoutError" ? "not responding" : "offline");
  }
  clearTimeout(healthTimer);
  healthTimer = setTimeout(checkHealth, late === 1 ? 0 : HEALTH_EVERY_MS);
}

/** The badge of the inbox, where this key may see it. */
async function watchInbox() {
  const mark = rail.querySelector(".rail-badge");
  if (!mark) return;
  const { watch } = await import("./lib/badge.js");
  setInbox = watch({ mark, tell: (count) => (waiting = count, showTitle()) });
}

/** A node of a cluster has a page for it in the navigation. */
async function showCluster() {
  const page = allowed(PAGES).find(({ name }) => name === "cluster");
  if (!page || !(await api.get("/api/cluster")).enabled) return;
  page.isInner = false;
  rail.querySelector(".rail-links").append(linkOf(page));
}

// --- Start -----------------------------------------------------------------------------------------------------------

/** Without an address, a daemon whose agents have worked opens with the overview, and a new one with the chat, which sets up a model. */
async function choosePage() {
  if (!["", "#", "#/"].includes(location.hash) || !allowed(PAGES).some(({ name }) => name === "home")) return;
  try {
    const { days } = await api.get("/api/usage/daily?days=30", { signal: AbortSignal.timeout(HEALTH_MS_MAX) });
    if (days.some(({ request_count: calls }) => calls > 0)) history.replaceState(null, "", "#/home");
  } catch {
    // The first page says what is wrong.
  }
}

/** Learns who this is; another person, role or scopes than the one that the page was built for needs another page. */
async function introduce() {
  const before = me();
  await learn();
  if (isBuilt && [(of) => of.role, (of) => of.user_id ?? "", (of) => of.scopes.join()].some((part) => part(me()) !== part(before))) location.reload();
}

let isBuilt = false;

async function start() {
  applyTheme();
  applyDensity();
  api.onKeyNeeded(async (reason) => {
    const isGiven = await askForKey(reason, me().kind === "session" ? "Your session has ended. Sign in again." : "");
    await introduce();
    return isGiven;
  });
  api.onReach((how) => {
    if (how === "up" || health.classList.contains("down")) return;
    setHealth(false, how === "exchanging" ? "restoring" : "offline");
  });
  try {
    await introduce();
  } catch {
    // The daemon is not there: the page says so, and learns it when it is.
  }
  buildRail();
  isBuilt = true;
  const onMove = () => move().catch(showError);
  addEventListener("hashchange", onMove);
  addEventListener("popstate", onMove);
  addEventListener("unhandledrejection", (event) => showError(event.reason));
  // A link to the element that follows must not become an address of the router.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    root.focus();
  });
  watchInbox().catch(showError);
  showCluster().catch(() => {});
  checkHealth();
  document.addEventListener("visibilitychange", checkHealth);
  await choosePage();
  route();
}

start();
