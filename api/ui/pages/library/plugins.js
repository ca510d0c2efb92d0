// Plugins: those that are installed, and the plugin whose name is in the address.

import { call, get } from "../../lib/api.js";
import { choice, textInput, toggle } from "../../lib/controls.js";
import { ask, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { PluginView } from "./plugin.js";
import { lineList } from "./words.js";

const RUNTIMES = ["python", "node", "bash", "native", "deno", "bun", "go", "ruby", "php", "lua", "v"];

function installPlugin() {
  const source = field("Source", textInput("", { placeholder: "keyword-memory" }), { hint: "A name in the registry, the path of a folder or archive on the daemon's machine, or the https URL of a Git repository." });
  const branch = field("Branch", textInput(), { hint: "Optional, for a Git repository." });
  const network = toggle("Let its hooks use the network if it asks for that", false);
  return ask({
    title: "Install a plugin", action: "Install", fields: { source, branch }, body: [source, branch, h("div", { class: "switch-place" }, network)],
    submit: () => call("POST", "/api/plugins/install", { source: source.control.value.trim(), branch: branch.control.value.trim() || undefined, allow_network: network.box.checked }),
  });
}

function createPlugin() {
  const name = field("Name", textInput("", { placeholder: "notes" }));
  const description = field("Description", textInput());
  const runtime = field("Runtime", choice(RUNTIMES.map((one) => [one, one]), "python"));
  return ask({
    title: "Create a plugin", action: "Create", fields: { name, description, runtime }, body: [h("p", {}, "The daemon writes a folder with hooks that do nothing yet. You then edit them."), name, description, runtime],
    submit: () => call("POST", "/api/plugins/scaffold", { name: name.control.value.trim(), description: description.control.value, runtime: runtime.control.value }),
  });
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let plugins = [];
  let failed = [];
  const counts = h("p", { class: "dim", role: "status" });
  const list = h("ul", { class: "connection-cards", "aria-label": "Plugins" });
  const faults = h("div", {});
  const body = h("div", { class: "stack" }, counts, list, faults);
  const nothing = emptyState({
    icon: icon("link", 28), title: "No plugins yet", text: "A plugin brings memories to conversations, changes what models read, or keeps records of its own.",
    actions: [can("admin") && h("button", { type: "button", class: "primary", onclick: () => add(installPlugin, "Installed").catch(showError) }, icon("plus", 18), "Install a plugin")],
  });

  async function read() {
    ({ plugins, failed } = await get("/api/plugins", { signal }));
    show();
  }

  function show() {
    if (plugins.length + failed.length === 0) return void fill(root, nothing);
    if (body.parentNode !== root) fill(root, body);
    counts.textContent = `${count(plugins.length, "plugin")}, ${plugins.filter((plugin) => plugin.active).length} active`;
    refill(list, plugins.map(card));
    fill(faults, failed.length === 0 ? null : h("section", { class: "card stack", "aria-label": "Cannot be used" }, h("h2", {}, "Cannot be used"),
      lineList(failed.map(({ name, error }) => `${name}: ${error}`), { label: "Folders that cannot be used", none: "", sign: "alert" })));
  }

  function card(plugin) {
    const [style, word] = plugin.active ? ["good", "active"] : plugin.enabled ? ["", "not in use"] : ["warn", "disabled"];
    const verb = plugin.enabled ? "Disable" : "Enable";
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("link", 20), h("h2", { class: "grow cut" }, h("a", { href: `#/library/plugins/${encodeURIComponent(plugin.name)}`, data: { plugin: plugin.name } }, plugin.name)), h("span", { class: `badge ${style}` }, word)),
      h("p", { class: "dim clamp" }, plugin.description),
      h("p", { class: plugin.hooks_valid ? "faint" : "fault" }, plugin.hooks_valid ? [plugin.version, ...plugin.hooks].join(" · ") : "The file of a hook is missing."),
      can("admin") && h("div", { class: "buttons" }, h("button", { type: "button", "aria-label": `${verb} ${plugin.name}`, data: { key: `enable ${plugin.name}` }, onclick: () => enable(plugin).catch(showError) }, icon(plugin.enabled ? "pause" : "play", 16), verb)));
  }

  async function enable({ name, enabled }) {
    await call("POST", `/api/plugins/${encodeURIComponent(name)}/${enabled ? "disable" : "enable"}`);
    toast(enabled ? "Disabled" : "Enabled");
    await read();
  }

  async function add(form, word) {
    const told = await form();
    if (!told) return;
    toast(word);
    ctx.go(["library", "plugins", told.name]);
  }

  const buttons = () => [
    h("button", { type: "button", onclick: () => add(createPlugin, "Created").catch(showError) }, icon("edit", 18), "Create"),
    h("button", { type: "button", class: "primary", onclick: () => add(installPlugin, "Installed").catch(showError) }, icon("plus", 18), "Install"),
  ];

  /** Shows the list, or the plugin that the address names. */
  async function route([name]) {
    fill(ctx.actions, name === undefined && can("admin") ? buttons() : []);
    if (name === undefined) return read();
    const view = new PluginView({ name, signal, gone: () => ctx.go(["library", "plugins"]) });
    await view.read();
    fill(root, view.node);
    view.focus();
  }

  ctx.onRoute((path) => route(path).catch(showError));
  if (can("admin")) ctx.key("n", "Install a plugin", () => add(installPlugin, "Installed").catch(showError));
  await route(ctx.path);
}
