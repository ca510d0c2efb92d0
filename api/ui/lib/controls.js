// Controls of forms with less writing: text, numbers, choices, switches.

import { h, uniqueId } from "./dom.js";

/** A line of text. */
export const textInput = (value = "", props = {}) => h("input", { type: "text", autocomplete: "off", value: value ?? "", ...props });

/** A number; empty is nothing. */
export const numberInput = (value = "", props = {}) => h("input", { type: "number", inputmode: "decimal", value: value ?? "", ...props });

/** Text of several lines. */
export const textBox = (value = "", rows = 4, props = {}) => h("textarea", { rows, value: value ?? "", ...props });

/** A choice: `choice([["skip", "Skip"]], "skip")`. */
export function choice(options, value, props = {}) {
  return h("select", props, options.map(([key, label]) => h("option", { value: key, selected: key === value }, label)));
}

/** A switch with its name: `const on = toggle("Enabled", true)`, then `on.box.checked`. */
export function toggle(label, checked, props = {}) {
  const box = h("input", { type: "checkbox", role: "switch", checked, ...props });
  const made = h("label", { class: "switch" }, box, h("span", {}, label));
  made.box = box;
  return made;
}

/** A control that offers `options` and takes anything: gives the control and the list beside it. */
export function offered(control, options) {
  const list = h("datalist", { id: uniqueId("offers") }, options.map((value) => h("option", { value })));
  control.setAttribute("list", list.id);
  return list;
}

/** What a number field holds: null when it is empty. */
export function numberOf(control) {
  const text = control.value.trim();
  return text === "" ? null : Number(text);
}

/** A tick box that stands in a table; the label is for screen readers. */
export const tick = (label, checked, onchange) => h("input", { type: "checkbox", checked, "aria-label": label, onchange });
