// The editor of config.toml, made from its JSON schema: one row for each key, with what it may be, when it takes effect,
// and whether it may be set over the API.

import { call, download, get } from "../../lib/api.js";
import { textInput } from "../../lib/controls.js";
import { ask, faultText, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { count } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { addressed, controlFor, quoted } from "./config-control.js";

/** Sections in the order in which people look for them; the others follow by name. */
const FIRST = ["", "default_model", "providers", "budget", "prices", "approval", "security", "triggers", "queue", "web", "exec_policy", "tool_invoke"];

/** Why a key cannot be set here. */
const LOCKED = "Keys marked “file only” can only be set in config.toml, because they protect the daemon from API clients.";

/** A description, with what stands between backticks as code. */
const prose = (text) => text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));

/** The names that stand in a table beside those that the schema knows. */
const freeNames = (node, value) => (node.additionalProperties && typeof node.additionalProperties === "object" ? Object.keys(value ?? {}).filter((key) => !node.properties?.[key]) : []);

/** The free names of a table and of those in it. */
function namesIn(node, value) {
  const names = freeNames(node, value);
  const tables = Object.entries(node.properties ?? {}).filter(([, child]) => child.type === "object" && child.properties);
  return [names, names.map((name) => namesIn(node.additionalProperties, value[name])), tables.map(([key, child]) => namesIn(child, value?.[key]))];
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let schema = null;
  let values = {};
  /** The tables that have a section, by name; "" is what stands in none. */
  const groups = new Map([["", []]]);
  /** The lines by address. */
  const rows = new Map();
  /** The address may name a key, as from a part that is off. */
  let filter = (ctx.query.get("q") ?? "").toLowerCase();
  let only = "all";
  /** What was sent of the lines that were saved since the last reading: they show what is stored, unless one types on. */
  const saved = new Map();
  let readings = 0;
  const notices = h("div", { class: "stack tight-stack", role: "status" });
  const counts = h("p", { class: "dim", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search keys", value: filter, "aria-label": "Search keys", oninput: () => { filter = search.value.toLowerCase(); sift(); } });
  const kind = h("select", { "aria-label": "Show", onchange: () => { only = kind.value; sift(); } },
    [["all", "All keys"], ["set", "Changed from the default"], ...(can("admin") ? [["writable", "Can be set here"]] : []), ["restart", "Need a restart"]].map(([value, label]) => h("option", { value }, label)));
  const sections = h("div", { class: "stack" });
  const nav = h("ul", { class: "side-list config-nav", "aria-label": "Sections" });
  fill(ctx.actions,
    h("button", { type: "button", onclick: () => download("/api/config/export?format=toml", "config.toml", { accept: "application/toml" }).catch(showError) }, icon("download", 18), "Export"),
    can("admin") && h("button", { type: "button", onclick: () => reload().catch(showError) }, icon("retry", 18), "Reload the file"));
  fill(root, h("div", { class: "stack" }, h("div", { class: "bar-row" }, h("div", { class: "search-field" }, search), h("div", { class: "selects" }, kind), counts), h("p", { class: "hint" }, can("admin") ? LOCKED : "Your key may not change the configuration."), notices, h("div", { class: "config-split" }, nav, sections)));

  async function read() {
    const reading = (readings += 1);
    const [found, now, detail] = await Promise.all([schema ?? get("/api/config/schema", { signal }), get("/api/config", { signal }), get("/api/health/detail", { signal })]);
    // One that was begun later shows what this one has, and more.
    if (reading !== readings) return;
    values = now;
    fill(notices, (detail.config_warnings ?? []).map((text) => h("p", { class: "notice warn" }, icon("alert"), h("span", {}, text))));
    if (schema) {
      renew();
    } else {
      schema = found;
      build();
    }
    saved.clear();
    sift();
  }

  /** Builds all sections. */
  function build() {
    const idle = [];
    for (const [key, node] of Object.entries(schema.properties)) {
      if (node.type === "object" || (Array.isArray(node.type) && node.type.includes("object"))) groups.set(key, node);
      else if (node["x-takes-effect"] === "never") idle.push(key);
      else groups.get("").push([key, node]);
    }
    const names = [...groups.keys()].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
    const future = names.filter((name) => name !== "" && groups.get(name)["x-takes-effect"] === "never");
    const shown = names.filter((name) => !future.includes(name));
    fill(sections, shown.map((name) => section(name)), future.length + idle.length > 0 ? h("p", { class: "hint" }, `Without effect in this release: ${[...idle, ...future].join(", ")}.`) : null);
    fill(nav, shown.map((name) => h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => sections.querySelector(`[data-name="${name}"]`)?.scrollIntoView({ block: "start", behavior: "smooth" }) }, name === "" ? "General" : name))));
  }

  /** Puts other lines in the place of those whose value has changed. The others stay, with the focus, the caret and what is typed. */
  function renew() {
    const held = document.activeElement;
    const words = sections.contains(held) ? held.textContent : "";
    const within = [...rows].find(([address, row]) => row.node.contains(held) || (held === document.body && saved.get(address)?.isHeld))?.[0];
    for (const old of [...rows.values()]) {
      const row = lineOf(old.path, old.schema, old.path.reduce((at, key) => at?.[key], values));
      if (row !== old) old.node.replaceWith(row.node);
    }
    for (const part of sections.querySelectorAll(".config-section")) {
      if (part.dataset.shape !== shapeOf(part.dataset.name)) part.replaceWith(section(part.dataset.name));
    }
    for (const [address, row] of rows) if (!sections.contains(row.node)) rows.delete(address);
    if (document.activeElement === held && held !== document.body) return;
    const same = () => words !== "" && [...sections.querySelectorAll("button")].find((one) => one.textContent === words);
    const next = sections.contains(held) ? held : rows.get(within)?.control.input || same();
    if (next) next.focus({ preventScroll: true });
  }

  /** The names in the tables of a section whose names are free: with other names it has other lines. */
  function shapeOf(name) {
    return name === "" ? "" : JSON.stringify(namesIn(groups.get(name), values[name]));
  }

  /** The line of a key: the one that there is, if it shows this value already. What is typed in another one and not saved goes on. */
  function lineOf(path, node, value) {
    const address = addressed(path);
    const old = rows.get(address);
    if (old && !saved.has(address) && JSON.stringify(old.value) === JSON.stringify(value)) return old;
    const row = line(path, node, value);
    rows.set(address, row);
    if (old?.control.isChanged() && saved.get(address)?.typed !== old.typed()) row.type(old.typed());
    return row;
  }

  function place(name) {
    const at = FIRST.indexOf(name);
    return at < 0 ? FIRST.length : at;
  }

  function section(name) {
    const group = groups.get(name);
    const lines = name === "" ? group.map(([key, node]) => lineOf([key], node, values[key]).node) : inside([name], group, values[name] ?? {});
    return h("section", { class: "card config-section", data: { name, shape: shapeOf(name) }, "aria-label": name || "General" },
      h("header", {}, h("h2", {}, name === "" ? "General" : h("code", {}, `[${name}]`)), name !== "" && group.description ? h("p", { class: "dim" }, prose(group.description)) : null), lines);
  }

  /** The lines of a table, and of those in it. A table with free names has a line for each name, and a way to add one. */
  function inside(path, node, value) {
    const lines = [];
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      if (child.type === "object" && child.properties) lines.push(h("h3", { class: "config-sub" }, h("code", {}, `[${[...path, key].join(".")}]`)), inside([...path, key], child, value?.[key] ?? {}));
      else lines.push(lineOf([...path, key], child, value?.[key]).node);
    }
    const free = node.additionalProperties;
    if (free && typeof free === "object") {
      const names = freeNames(node, value);
      for (const name of names) lines.push(h("h3", { class: "config-sub" }, h("code", {}, `[${path.join(".")}.${quoted(name)}]`)), inside([...path, name], free, value[name] ?? {}));
      const writable = can("admin") && Object.values(free.properties ?? {}).some((child) => child["x-writable"]);
      if (names.length === 0) lines.push(h("p", { class: "hint" }, "None."));
      if (writable) lines.push(h("div", { class: "buttons" }, h("button", { type: "button", class: "small", onclick: () => addNamed(path, free).catch(showError) }, icon("plus", 16), `Add one under [${path.join(".")}]`)));
    }
    return lines;
  }

  function line(path, node, value) {
    const address = addressed(path);
    const effect = node["x-takes-effect"];
    const isWritable = node["x-writable"] === true;
    const mayChange = isWritable && can("admin");
    const isDefault = node.default === undefined ? value === null || value === undefined : JSON.stringify(node.default) === JSON.stringify(value) || node.writeOnly;
    const control = controlFor(node, value, { disabled: !mayChange });
    const status = h("p", { class: "fault", role: "alert" });
    const save = h("button", { type: "button", class: "primary small", hidden: true, onclick: () => put(false) }, "Save");
    const undo = h("button", { type: "button", class: "quiet small", hidden: true, onclick: () => { control.reset(); changed(); } }, "Undo");
    const clear = mayChange && !isDefault ? h("button", { type: "button", class: "quiet small only-icon", "aria-label": `Restore the default of ${address}`, title: "Restore the default", onclick: () => put(true) }, icon("retry", 15)) : null;
    const changed = () => {
      const isChanged = control.isChanged();
      save.hidden = undo.hidden = !isChanged;
      status.textContent = isChanged ? control.problem() : "";
      save.disabled = status.textContent !== "";
      control.input.setAttribute("aria-invalid", String(status.textContent !== ""));
    };
    const typed = () => (control.input.type === "checkbox" ? control.input.checked : control.input.value);
    function type(what) {
      if (control.input.type === "checkbox") control.input.checked = what;
      else control.input.value = what;
      changed();
    }
    async function put(toDefault) {
      const sent = { typed: typed(), isHeld: made.contains(document.activeElement) };
      save.disabled = true;
      status.textContent = "";
      try {
        const told = await call("POST", "/api/config/set", { path: address, value: toDefault ? null : control.read() });
        saved.set(address, sent);
        toast(told.restart_required ? `${address} saved; takes effect at the next start` : `${address} is now in effect`);
        await read();
      } catch (error) {
        status.textContent = faultText(error) + (error.code === "config_invalid" ? ` Correct line ${error.body.problems?.[0]?.line ?? "?"} of config.toml first.` : "");
        save.disabled = false;
      }
    }
    control.input.addEventListener("input", changed);
    control.input.addEventListener("change", changed);
    const id = `config-${address.replaceAll(/[^\w]/g, "-")}`;
    control.input.id = id;
    control.input.setAttribute("aria-describedby", `${id}-note`);
    const made = h("div", { class: `config-line${mayChange ? "" : " locked"}`, data: { key: address } },
      h("div", { class: "config-what" }, h("label", { for: id, class: "mono" }, path.at(-1)),
        h("span", { class: "config-tags" }, isDefault ? null : h("span", { class: "badge accent" }, "set"), effect === "restart" ? h("span", { class: "badge warn" }, "needs a restart") : effect === "never" ? h("span", { class: "badge" }, "not yet supported") : null,
          isWritable ? null : h("span", { class: "badge", title: LOCKED }, icon("key", 12), "file only")),
        h("p", { class: "hint", id: `${id}-note` }, prose(node.description ?? ""))),
      h("div", { class: "config-control" }, h("div", { class: "bar-row tight" }, control.node, clear), status, h("div", { class: "buttons" }, save, undo)));
    return { node: made, path, schema: node, value, control, typed, type, text: `${address} ${node.description ?? ""}`.toLowerCase(), isWritable, isSet: !isDefault, effect };
  }

  function sift() {
    let shown = 0;
    for (const row of rows.values()) {
      const fits = row.text.includes(filter) && (only === "all" || (only === "set" && row.isSet) || (only === "writable" && row.isWritable) || (only === "restart" && row.effect === "restart"));
      row.node.hidden = !fits;
      if (fits) shown += 1;
    }
    const isSifted = filter !== "" || only !== "all";
    for (const part of sections.querySelectorAll(".config-section")) {
      part.hidden = isSifted && part.querySelector(".config-line:not([hidden])") === null;
      for (const sub of part.querySelectorAll(".config-sub")) sub.hidden = isSifted;
    }
    counts.textContent = count(shown, "key");
  }

  async function addNamed(path, node) {
    const keys = Object.entries(node.properties).filter(([, child]) => child["x-writable"]);
    const name = field("Name", textInput("", { spellcheck: "false", class: "code", placeholder: path[0] === "prices" ? "openai/gpt-4.1" : "name" }), { hint: path[0] === "prices" ? "Provider and model; * matches all other models of the provider." : "" });
    const controls = keys.map(([key, child]) => [key, field(key, controlFor(child, undefined, {}).input, { hint: child.description })]);
    const done = await ask({
      title: `Add under [${path.join(".")}]`, action: "Add", body: [name, controls.map(([, made]) => made)], fields: { name },
      submit: async () => {
        const wanted = controls.map(([key, made]) => [key, made.control.value.trim()]).filter(([, text]) => text !== "");
        if (name.control.value.trim() === "" || wanted.length === 0) throw new Error("Enter a name and at least one value.");
        for (const [key, text] of wanted) {
          const value = ["number", "integer"].includes(node.properties[key].type) ? Number(text) : text;
          await call("POST", "/api/config/set", { path: addressed([...path, name.control.value.trim(), key]), value });
        }
        return true;
      },
    });
    if (!done) return;
    toast("Added");
    await read();
  }

  async function reload() {
    const told = await call("POST", "/api/config/reload", {});
    const later = told.restart_required?.length ? ` ${told.restart_required.join(", ")} at the next start.` : "";
    toast(told.status === "unchanged" ? `The file is unchanged.${later}` : `In effect: ${told.applied.join(", ") || "nothing yet"}.${later}`);
    await read();
  }

  await read();
}
