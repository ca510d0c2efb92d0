// The catalog of MCP servers: what can be installed, what an installation needs, and the installation.

import { call, get } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { ask, showError } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { examples, SERVERS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { mark } from "../../lib/marks.js";
import { can } from "../../lib/me.js";
import { commandText, kindText, targetText } from "./words.js";

/** Cards that are shown before the rest is asked for. */
const PAGE = 60;

/** Fields for the variables that a catalog entry requires; `known` are those that have a value. */
export function credentialFields(entry, { known = [] } = {}) {
  const all = (entry.required_env ?? []).map((variable) => {
    const isKnown = known.includes(variable.name);
    const control = textInput("", { type: variable.is_secret === false ? "text" : "password", class: "code", spellcheck: "false", placeholder: isKnown ? "unchanged" : variable.name });
    const part = field(variable.label || variable.name, control, { hint: [variable.help, isKnown ? "Leave empty to keep the stored value." : `Leave empty to use ${variable.name} of the daemon's environment.`].filter(Boolean).join(". ").replace(/\.\. /g, ". ") });
    if (/^https:\/\//.test(variable.get_url ?? "")) part.append(h("p", { class: "hint" }, h("a", { href: variable.get_url, target: "_blank", rel: "noopener noreferrer" }, `Get it at ${new URL(variable.get_url).host}`)));
    return { name: variable.name, part, control };
  });
  return {
    nodes: all.map(({ part }) => part),
    first: all[0]?.part ?? null,
    /** The values that were entered. */
    read: () => Object.fromEntries(all.filter(({ control }) => control.value !== "").map(({ name, control }) => [name, control.value])),
  };
}

/** Asks for what an entry needs and installs it; gives the reply, or null. */
export function installEntry(entry) {
  const credentials = credentialFields(entry);
  const target = entry.transport?.type === "stdio" ? commandText(entry.transport) : targetText(entry.transport);
  return ask({
    title: `Install ${entry.name || entry.id}`, wide: true, action: "Install", fields: credentials.first ? { credentials: credentials.first, env: credentials.first } : {},
    body: [
      entry.description ? h("p", {}, entry.description) : null,
      h("dl", { class: "pairs" }, h("dt", {}, entry.transport?.type === "stdio" ? "Starts" : kindText(entry.transport)), h("dd", { class: "mono" }, target)),
      entry.setup_instructions ? h("div", { class: "field" }, h("span", { class: "label" }, "Set-up instructions"), h("div", { class: "code-box setup", tabindex: "0", role: "region", "aria-label": "Set-up instructions" }, entry.setup_instructions.trim())) : null,
      credentials.nodes,
    ],
    submit: () => call("POST", "/api/mcp/servers", { template_id: entry.id, credentials: credentials.read() }),
  });
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let entries = [];
  let filter = "";
  let shown = PAGE;
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search the catalog", "aria-label": "Search the catalog", oninput: () => { filter = search.value.toLowerCase(); shown = PAGE; show(); } });
  const list = h("ul", { class: "connection-cards", "aria-label": "Catalog" });
  const more = h("button", { type: "button", hidden: true, onclick: () => { shown += PAGE; show(); } }, "Show more");
  const body = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), list, more);
  const nothing = emptyState({ icon: icon("tool", 28), title: "The catalog is empty", text: "Entries of the catalog are servers that are installed with one click: one file <id>.toml each, in the folder mcp/catalog of the daemon's home.", actions: [h("a", { class: "button primary", href: "#/connections?new=1" }, icon("plus", 18), "Add a server")] });
  if (can("admin")) nothing.append(examples(SERVERS, ({ name }) => ctx.go(["connections"], { new: name }), { title: "Add a well-known server" }));

  function show() {
    if (entries.length === 0) return void fill(root, nothing);
    if (body.parentNode !== root) fill(root, body);
    const text = (entry) => [entry.id, entry.name, entry.description, entry.category, ...(entry.tags ?? [])].join(" ").toLowerCase();
    const rows = entries.filter((entry) => text(entry).includes(filter));
    counts.textContent = count(rows.length, "entry", "entries");
    more.hidden = rows.length <= shown;
    refill(list, rows.slice(0, shown).map(card), rows.length === 0 ? h("li", { class: "dim" }, "No matching entry.") : null);
  }

  function card(entry) {
    // The icon is text of the entry: a sign of its own, or a name that this page does not have.
    const sign = entry.icon && !/[:\w]/.test(entry.icon) ? h("span", { class: "card-sign", "aria-hidden": "true" }, [...entry.icon].slice(0, 2).join("")) : mark(entry.id, 32);
    const install = can("admin") && h("button", { type: "button", data: { key: `install ${entry.id}` }, "aria-label": `Install ${entry.name || entry.id}`, onclick: () => add(entry).catch(showError) }, icon("plus", 16), "Install");
    const open = h("a", { class: "button", href: `#/connections/servers/${encodeURIComponent(entry.id)}`, "aria-label": `Open ${entry.name || entry.id}` }, "Open");
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, sign, h("h2", { class: "grow cut" }, entry.name || entry.id), entry.category ? h("span", { class: "badge" }, entry.category) : null),
      h("p", { class: "dim clamp" }, entry.description),
      h("div", { class: "buttons" }, entry.installed ? [open, h("span", { class: "badge good" }, "installed")] : install));
  }

  async function add(entry) {
    // The list is of an earlier moment: the file may be another one now.
    if (await installEntry(await get(`/api/mcp/catalog/${encodeURIComponent(entry.id)}`, { signal }))) ctx.go(["connections", "servers", entry.id]);
  }

  entries = (await get("/api/mcp/catalog", { signal })).entries;
  entries.sort((a, b) => (a.name || a.id).localeCompare(b.name || b.id));
  show();
}
