// Building elements. No text ever becomes markup here: strings are text nodes, so that nothing an agent, a tool or
// another person wrote can bring elements of its own.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element: `h("button", { class: "quiet", onclick: open }, "Open")`.
 *
 * Of `props`, `on<event>` adds a listener, `style` is an object of CSS properties (custom ones too), `data` one of
 * `data-` attributes, `value`, `checked`, `disabled`, `hidden`, `selected`, `open` and `textContent` are set as
 * properties, everything else as an attribute; what is null, undefined or false is left out. Children are nodes,
 * strings, numbers, arrays of these, or nothing (null, undefined, false).
 */
export function h(name, props = {}, ...children) {
  const made = document.createElement(name);
  apply(made, props ?? {});
  add(made, children);
  return made;
}

/** The same for SVG: `s("path", { d: "M0 0h9" })`. */
export function s(name, props = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  apply(made, props ?? {});
  add(made, children);
  return made;
}

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "open", "textContent", "indeterminate"]);

function apply(made, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on") && typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) made.style.setProperty(key, v);
    else if (name === "data") for (const [key, v] of Object.entries(value)) made.dataset[key] = v;
    else if (PROPERTIES.has(name) && name in made) made[name] = value;
    else if (value !== false) made.setAttribute(name, value === true ? "" : value);
  }
}

function add(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

/** Empties `parent` and puts `children` in. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
  return parent;
}

/** What can have the focus. */
const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
/** What tells the controls of one place apart. */
export const keyOf = (node) => node.dataset.key ?? node.getAttribute("aria-label") ?? node.textContent;

/**
 * As `fill`, for what is built anew while somebody may be in it: the focus goes on to the control that takes the place of the one that
 * had it, which is the one with the same `data-key`, or else with the same words.
 */
export function refill(parent, ...children) {
  const held = document.activeElement;
  const key = held !== parent && parent.contains(held) ? keyOf(held) : null;
  fill(parent, ...children);
  if (key !== null) [...parent.querySelectorAll(CONTROLS)].find((node) => keyOf(node) === key)?.focus({ preventScroll: true });
  return parent;
}

/**
 * Notes what has the focus, for whoever takes it away for a while. The function that it gives puts it back after the page was built
 * anew meanwhile: on the control that took the place of the one that had it, which is that in the same row (`data-row`), or else that
 * with the same key or words; where there is none, on what is around it.
 */
export function holdFocus() {
  const held = document.activeElement;
  if (!held || held === document.body) return () => {};
  const row = held.closest("[data-row]");
  const at = row ? [...row.querySelectorAll(CONTROLS)].indexOf(held) : -1;
  const key = row ? row.dataset.row : keyOf(held);
  const around = [];
  for (let node = held.parentElement; node; node = node.parentElement) around.push(node);
  return () => {
    if (held.isConnected || document.activeElement !== document.body) return;
    const places = around.filter((node) => node.isConnected);
    const [place] = places;
    const successor = row
      ? [...place.querySelectorAll("[data-row]")].find((node) => node.dataset.row === key)?.querySelectorAll(CONTROLS)[at]
      : [...place.querySelectorAll(CONTROLS)].find((node) => keyOf(node) === key);
    (successor ?? places.find((node) => node.matches("[tabindex]")) ?? document.querySelector("main")).focus({ preventScroll: true });
  };
}

/** Text that only a screen reader gets. */
export function hidden(text) {
  return h("span", { class: "sr" }, text);
}

let ids = 0;

/** An id that no other element has, to tie a label or a description to an element. */
export function uniqueId(prefix = "id") {
  ids += 1;
  return `${prefix}-${ids}`;
}

const styles = new Map();

/**
 * Loads a style sheet once; call it with `new URL("../styles/world.css", import.meta.url)` and await it before
 * building, so that nothing is seen unstyled.
 */
export function useStyles(url) {
  const href = String(url);
  if (!styles.has(href)) {
    styles.set(href, new Promise((resolve) => {
      const link = h("link", { rel: "stylesheet", href, onload: resolve, onerror: resolve });
      document.head.append(link);
    }));
  }
  return styles.get(href);
}

/** Calls `run` once, `ms` after the last call. */
export function debounce(run, ms) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), ms);
  };
}

/** A labelled field of a form: label, control, hint and a place for its error (`field.fault(text)`). */
export function field(label, control, { hint = "", id = control.id || uniqueId("field") } = {}) {
  control.id = id;
  const note = h("p", { class: "hint", id: `${id}-hint` }, hint);
  const fault = h("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  control.setAttribute("aria-describedby", hint ? `${id}-hint ${id}-fault` : `${id}-fault`);
  const made = h("div", { class: "field" }, h("label", { for: id }, label), control, hint ? note : null, fault);
  made.control = control;
  made.fault = (text) => {
    fault.textContent = text ?? "";
    if (text) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  };
  return made;
}

/** What a page shows where there is nothing yet: an icon, a title, a sentence on what to do, and buttons. */
export function emptyState({ icon = null, title, text = "", actions = [] }) {
  return h("div", { class: "empty" }, icon, h("h2", {}, title), text ? h("p", {}, text) : null,
    actions.some(Boolean) ? h("div", { class: "buttons" }, actions) : null);
}

/** Grey bars in the place of what is still loading. */
export function skeleton(lines = 3) {
  const bars = Array.from({ length: lines }, () => h("span", { class: "bar" }));
  return h("div", { class: "skeleton", "aria-hidden": "true" }, bars);
}
