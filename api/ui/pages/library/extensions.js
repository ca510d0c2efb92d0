// Extensions: services of the catalog, with the access data that each needs.

import { call, get } from "../../lib/api.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { examples, SERVERS } from "../../lib/examples.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { credentialFields } from "../connections/catalog.js";
import { sign } from "./words.js";

const STATUS = { ready: ["good", "ready"], connecting: ["accent", "connecting"], setup: ["warn", "needs set-up"], error: ["bad", "error"] };

export async function mount(root, ctx) {
  const { signal } = ctx;
  let rows = [];
  let filter = "";
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search extensions", "aria-label": "Search extensions", oninput: () => { filter = search.value.toLowerCase(); show(); } });
  const list = h("ul", { class: "connection-cards", "aria-label": "Extensions" });
  const body = h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), counts), list);
  const nothing = emptyState({ icon: icon("tool", 28), title: "The catalog is empty", text: "Extensions are the entries of the MCP catalog that ask for access data. There are none yet; add a server by its command or address instead.", actions: [h("a", { class: "button primary", href: "#/connections?new=1" }, icon("plus", 18), "Add a server")] });
  if (can("admin")) nothing.append(examples(SERVERS, ({ name }) => ctx.go(["connections"], { new: name }), { title: "Add a well-known server" }));

  async function read() {
    rows = (await get("/api/extensions?available=true", { signal })).extensions;
    rows.sort((a, b) => Number(b.installed) - Number(a.installed) || (a.display_name || a.name).localeCompare(b.display_name || b.name));
    show();
  }

  function show() {
    if (rows.length === 0) return void fill(root, nothing);
    if (body.parentNode !== root) fill(root, body);
    const found = rows.filter((row) => [row.name, row.display_name, row.description, row.category, ...(row.tags ?? [])].join(" ").toLowerCase().includes(filter));
    counts.textContent = `${count(found.length, "extension")}, ${found.filter((row) => row.installed).length} installed`;
    refill(list, found.map(card), found.length === 0 ? h("li", { class: "dim" }, "No matching extension.") : null);
  }

  function card(row) {
    const name = row.display_name || row.name;
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, sign(row.icon, "link"), h("h2", { class: "grow cut" }, name), row.installed ? h("span", { class: `badge ${STATUS[row.status]?.[0] ?? ""}` }, STATUS[row.status]?.[1] ?? row.status) : row.category ? h("span", { class: "badge" }, row.category) : null),
      h("p", { class: "dim clamp" }, row.description),
      row.error ? h("p", { class: "fault" }, row.error) : row.installed ? h("p", { class: "faint" }, count(row.tool_count, "tool")) : null,
      h("div", { class: "buttons" }, row.installed
        ? [h("a", { class: "button", href: `#/connections/servers/${encodeURIComponent(row.name)}`, "aria-label": `Open ${name}` }, "Open"), can("admin") && h("button", { type: "button", "aria-label": `Remove ${name}`, data: { key: `remove ${row.name}` }, onclick: () => remove(row).catch(showError) }, icon("trash", 16), "Remove")]
        : can("admin") && h("button", { type: "button", "aria-label": `Install ${name}`, data: { key: `install ${row.name}` }, onclick: () => install(row).catch(showError) }, icon("plus", 16), "Install")));
  }

  async function install(row) {
    const entry = await get(`/api/extensions/${encodeURIComponent(row.name)}`, { signal });
    const credentials = credentialFields(entry);
    const told = await ask({
      title: `Install ${entry.display_name || entry.name}`, wide: true, action: "Install", fields: credentials.first ? { credentials: credentials.first } : {},
      body: [
        h("p", {}, entry.description),
        entry.setup_instructions ? h("div", { class: "field" }, h("span", { class: "label" }, "Set-up instructions"), h("div", { class: "code-box setup", tabindex: "0", role: "region", "aria-label": "Set-up instructions" }, entry.setup_instructions.trim())) : null,
        credentials.nodes,
      ],
      submit: () => call("POST", "/api/extensions/install", { name: entry.name, credentials: credentials.read() }),
    });
    if (!told) return;
    toast(told.connected ? "Installed and connected" : "Installed. It is still connecting.");
    await read();
  }

  async function remove(row) {
    const text = "The daemon stops it and deletes its access data. Agents can no longer use its tools.";
    if (!(await confirm({ title: `Remove ${row.display_name || row.name}?`, text, action: "Remove", run: () => call("POST", "/api/extensions/uninstall", { name: row.name }) }))) return;
    toast("Removed");
    await read();
  }

  await read();
}
