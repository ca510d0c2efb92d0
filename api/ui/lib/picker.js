// A dialog that chooses several of what there is: searched by name and description, in groups, with what patterns cover.

import { ask } from "./dialogs.js";
import { h, refill, useStyles } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { fits } from "./rights.js";

const isPattern = (word) => /[*?]/.test(word);

/**
 * Asks which of `rows` are chosen. A row is `{ name, text, group, note }`: `text` says what it is, `note` is a short mark. `chosen` are words: names
 * of rows, patterns, and names that no row has. `all` is a row above all others, such as `{ name: "*", title: "All tools" }`; `none` says what
 * there is to do where there are no rows. Gives the words, or null where it was left.
 */
export async function pickWords({ title, rows, chosen, all = null, none = "There is nothing to choose from yet." }) {
  await useStyles(new URL("../styles/picker.css", import.meta.url));
  let words = new Set(chosen);
  const known = new Set([...(all ? [all.name] : []), ...rows.map(({ name }) => name)]);
  // What no row has stays where it can be taken away.
  const strange = chosen.filter((word) => !known.has(word)).map((name) => ({ name, text: isPattern(name) ? `Pattern for ${count(rows.filter((row) => fits(name, row.name)).length, "entry", "entries")} of this list` : "Not in this list", group: "Typed" }));
  const groups = [...new Set([...strange, ...rows].map(({ group }) => group ?? ""))];
  const list = h("div", { class: "pick-list", tabindex: "0", role: "group", "aria-label": title });
  const told = h("p", { class: "hint", role: "status" });
  /** Only what is chosen is listed. */
  let isNarrow = false;
  const narrow = h("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => { isNarrow = !isNarrow; narrow.setAttribute("aria-pressed", String(isNarrow)); show(); } }, "Only chosen");
  const search = h("input", { type: "search", placeholder: "Search by name or description", "aria-label": "Search", autocomplete: "off", spellcheck: "false", data: { first: "" }, oninput: () => show() });
  search.addEventListener("keydown", (event) => {
    // Enter takes what was searched for; the dialog is confirmed by its button.
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const [only, ...more] = fitting();
    if (only && more.length === 0 && !coverOf(only.name)) turn(only.name, !words.has(only.name));
  });

  /** The pattern that has a name without it being chosen itself. */
  const coverOf = (name) => [...words].find((word) => word !== name && isPattern(word) && fits(word, name));
  const fitting = () => {
    const asked = search.value.trim().toLowerCase();
    return [...(all ? [all] : []), ...strange, ...rows].filter(({ name, text = "", group = "" }) => `${name} ${text} ${group}`.toLowerCase().includes(asked) && (!isNarrow || words.has(name) || coverOf(name)));
  };

  function turn(name, isOn) {
    if (isOn) words.add(name);
    else words.delete(name);
    show();
  }

  function row({ name, title: label, text, note }) {
    const cover = coverOf(name);
    const box = h("input", { type: "checkbox", checked: words.has(name) || Boolean(cover), disabled: Boolean(cover), data: { key: name }, onchange: () => turn(name, box.checked) });
    return h("li", {}, h("label", { class: "pick-row" }, box, h("span", { class: "grow two" }, h("span", {}, label ? h("strong", {}, label) : h("code", {}, name), note ? h("span", { class: "badge warn" }, note) : null, cover ? h("span", { class: "badge" }, `by ${cover}`) : null), text ? h("small", { class: "faint" }, text) : null)));
  }

  function show() {
    const found = fitting();
    const parts = groups.map((group) => [group, found.filter((one) => one !== all && (one.group ?? "") === group)]).filter(([, own]) => own.length > 0);
    const top = all && found.includes(all) ? h("ul", {}, row(all)) : null;
    const { scrollTop } = list;
    refill(list, top, parts.map(([group, own]) => section(group, own)),
      rows.length === 0 && strange.length === 0 ? h("p", { class: "pick-none" }, none) : found.length === 0 ? h("p", { class: "pick-none" }, search.value.trim() === "" ? "Nothing is chosen." : `Nothing matches “${search.value.trim()}”.`) : null);
    list.scrollTop = scrollTop;
    const reached = rows.filter(({ name }) => words.has(name) || coverOf(name)).length;
    told.textContent = `${reached} of ${rows.length} chosen`;
  }

  function section(group, own) {
    const free = own.filter(({ name }) => !coverOf(name));
    const isAll = free.length > 0 && free.every(({ name }) => words.has(name));
    const every = h("button", {
      type: "button", class: "quiet small", disabled: free.length === 0, data: { key: `all ${group}` }, "aria-label": `${isAll ? "Choose none" : "Choose all"} of ${group}`,
      onclick: () => { for (const { name } of free) if (isAll) words.delete(name); else words.add(name); show(); },
    }, isAll ? "None" : "All");
    return h("section", { "aria-label": group || title }, group ? h("div", { class: "pick-group" }, h("h3", { class: "grow" }, group), every) : null, h("ul", {}, own.map(row)));
  }

  show();
  const done = await ask({
    title, wide: true, action: "Use these",
    body: [h("div", { class: "pick-frame" }, h("div", { class: "search" }, icon("search", 16), search), list), h("div", { class: "bar-row" }, h("span", { class: "grow" }, told), narrow, h("button", { type: "button", class: "quiet small", onclick: () => { words = new Set(); show(); } }, "Clear"))],
    submit: async () => true,
  });
  // The words stay in the order that they had; new ones follow in that of the list.
  return done ? [...chosen.filter((word) => words.has(word)), ...[...words].filter((word) => !chosen.includes(word))] : null;
}
