// The command palette: finds pages, actions, agents, sessions and messages as you type, from anywhere (Ctrl+K).

import { Failure, page } from "./api.js";
import { removeDialog, showError } from "./dialogs.js";
import { debounce, fill, h, holdFocus, uniqueId } from "./dom.js";
import { icon } from "./icons.js";
import { excerptText } from "./titles.js";

const PAUSE_MS = 120;
const FOUND_MAX = 6;
/** From this rank on a word was found in the middle of another. */
export const INSIDE = 5;

/** How well `text` fits the words typed: null when one of them is missing, else smaller is better. */
export function rank(text, typed) {
  const low = text.toLowerCase();
  let sum = 0;
  for (const word of typed.toLowerCase().split(/\s+/).filter(Boolean)) {
    const at = low.indexOf(word);
    if (at < 0) return null;
    // The start of a word counts more than its middle, and an early word more than a late one.
    sum += at === 0 ? 0 : /[\s›/_-]/.test(low[at - 1]) ? 1 + at / 100 : INSIDE + at / 100;
  }
  return sum + low.length / 1000;
}

/**
 * Opens the palette. `entries()` gives what does not come from the daemon: `[{ group, label, hint, icon, run }]`; `go(path, query)`
 * opens an address; `find(typed, signal)` gives further entries that the daemon knows. One is open at a time.
 */
export function openPalette({ entries, find, go }) {
  if (document.querySelector("dialog[open]")) return;
  const id = uniqueId("palette");
  const giveBack = holdFocus();
  let shown = [];
  let active = 0;
  let round = 0;
  let asking = null;
  let isTaken = false;
  const state = h("p", { class: "sr", role: "status" });
  const list = h("ul", { class: "palette-list", id, role: "listbox", "aria-label": "Results" });
  const input = h("input", {
    type: "text", placeholder: "Search agents, messages, pages and actions", "aria-label": "Search everything", autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "true", "aria-autocomplete": "list", "aria-controls": id, oninput: () => { show(local(), []); soon(); }, onkeydown: onKey,
  });
  const dialog = h("dialog", { class: "palette", "aria-label": "Command palette" },
    h("div", { class: "palette-head" }, icon("search", 18), input, h("kbd", {}, "Esc")), list, state);

  const local = () => {
    const typed = input.value.trim();
    if (typed === "") return entries().filter(({ isFirst }) => isFirst !== false);
    return entries().map((entry) => ({ entry, at: rank(`${entry.label} ${entry.group} ${entry.hint ?? ""}`, typed) }))
      .filter(({ at }) => at !== null).sort((a, b) => a.at - b.at).slice(0, FOUND_MAX * 2).map(({ entry, at }) => ({ ...entry, isInside: at >= INSIDE }));
  };

  async function ask() {
    const typed = input.value.trim();
    const mine = (round += 1);
    asking?.abort();
    if (typed === "") return;
    asking = new AbortController();
    const { signal } = asking;
    const none = { items: [] };
    // What is busy or refused leaves the others as they are.
    const orNone = (found) => found.catch((error) => {
      if (error instanceof Failure) return none;
      throw error;
    });
    try {
      const [agents, sessions, others] = await Promise.all([
        orNone(page("/api/agents", "agents", { q: typed, limit: FOUND_MAX }, { signal })),
        orNone(page("/api/sessions/search", "sessions", { q: typed, limit: FOUND_MAX * 2 }, { signal })),
        find(typed, signal),
      ]);
      if (mine !== round || !dialog.open) return;
      const found = agents.items.map((agent) => ({ group: "Agents", label: agent.name, hint: agent.state === "Running" ? "" : agent.state, icon: "agents", run: () => go(["chat", agent.id]) }));
      for (const agent of agents.items.slice(0, 3)) found.push({ group: "Agent pages", label: `${agent.name}: overview and settings`, hint: "", icon: "settings", run: () => go(["agent", agent.id]) });
      found.push(...others);
      // A session whose agent alone has the name says nothing that the agent does not.
      for (const session of sessions.items.filter(({ matched }) => matched !== "agent_name").slice(0, FOUND_MAX)) {
        found.push({ group: session.excerpt ? "Messages" : "Sessions", label: session.excerpt ? excerptText(session.excerpt, typed) : session.label ?? "Session", hint: [session.agent_name, session.excerpt && session.label].filter(Boolean).join(" · "), icon: "chat", run: () => go(["chat", session.agent_id, session.session_id ?? session.id]) });
      }
      show(local(), found);
    } catch (error) {
      if (error.name !== "AbortError") state.textContent = error.message;
    }
  }

  const soon = debounce(ask, PAUSE_MS);

  function show(own, found) {
    // Agents stand before pages: there are more of them, and they are what is looked for by name. What has the words inside of others is last.
    shown = [...found.filter(({ group }) => group === "Agents"), ...own.filter(({ isInside }) => !isInside), ...found.filter(({ group }) => group !== "Agents"), ...own.filter(({ isInside }) => isInside)];
    active = Math.min(active, Math.max(0, shown.length - 1));
    if (own.length + found.length > 0 && found.length === 0) active = 0;
    draw();
  }

  function draw() {
    let group = "";
    const rows = [];
    shown.forEach((entry, at) => {
      if (entry.group !== group) rows.push(h("li", { class: "palette-group", role: "presentation" }, (group = entry.group)));
      rows.push(h("li", {
        id: `${id}-${at}`, role: "option", "aria-selected": String(at === active),
        onpointermove: () => { if (active !== at) select(at); }, onclick: () => take(entry),
      }, icon(entry.icon ?? "chevron", 17), h("span", { class: "cut grow" }, entry.label), entry.hint ? h("span", { class: "faint cut palette-hint" }, entry.hint) : null));
    });
    if (shown.length === 0) rows.push(h("li", { class: "palette-none", role: "presentation" }, "No results."));
    fill(list, rows);
    state.textContent = shown.length === 0 ? "No results." : `${shown.length} ${shown.length === 1 ? "result" : "results"}`;
    mark();
  }

  function select(at) {
    active = at;
    for (const row of list.querySelectorAll("[role=option]")) row.setAttribute("aria-selected", String(row.id === `${id}-${at}`));
    mark();
  }

  function mark() {
    const row = document.getElementById(`${id}-${active}`);
    if (row) input.setAttribute("aria-activedescendant", row.id);
    else input.removeAttribute("aria-activedescendant");
    row?.scrollIntoView({ block: "nearest" });
  }

  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length > 0) {
      event.preventDefault();
      select((active + step + shown.length) % shown.length);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (shown[active]) take(shown[active]);
    }
  }

  function take(entry) {
    isTaken = true;
    dialog.close();
    Promise.resolve(entry.run()).catch(showError);
  }

  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    asking?.abort();
    removeDialog(dialog);
    // What is opened takes the focus itself.
    if (!isTaken) giveBack();
  });
  document.body.append(dialog);
  show(local(), []);
  dialog.showModal();
  input.focus();
}
