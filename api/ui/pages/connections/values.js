// Names with values that are written and never shown again: environment variables and headers of an MCP server.

import { h, uniqueId } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

/**
 * A part of a form that edits names with secret values. `known` are the names that have a value already: it stays unless another
 * one is entered. Has `fault(text)` and `control` as a field; `read()` gives `{ name: value }` with null for values that stay, or
 * undefined when nothing was changed.
 */
export function valuesField(label, { known = [], hint = "", add = "Add", placeholder = "NAME" } = {}) {
  const id = uniqueId("values");
  const rows = h("div", { class: "value-rows" });
  const fault = h("p", { class: "fault", id: `${id}-fault`, role: "alert" });
  const more = h("button", { type: "button", class: "small", onclick: () => addRow("", false).name.focus() }, icon("plus", 16), add);
  const made = h("div", { class: "field", role: "group", "aria-labelledby": id }, h("span", { class: "label", id }, label), rows, h("div", { class: "buttons" }, more), hint ? h("p", { class: "hint" }, hint) : null, fault);
  const lines = new Set();

  function addRow(text, isKnown) {
    const name = h("input", { type: "text", class: "code", value: text, readonly: isKnown, placeholder, autocomplete: "off", spellcheck: "false", "aria-label": `${label}: name`, "aria-describedby": `${id}-fault` });
    const value = h("input", { type: "password", class: "code", autocomplete: "off", spellcheck: "false", placeholder: isKnown ? "unchanged" : "value", "aria-label": text ? `Value of ${text}` : `${label}: value` });
    const line = { name, value, isKnown };
    const remove = h("button", { type: "button", class: "quiet only-icon", "aria-label": text ? `Remove ${text}` : "Remove this line", onclick: () => { lines.delete(line); row.remove(); more.focus(); } }, icon("close", 16));
    const row = h("div", { class: "value-row" }, name, value, remove);
    lines.add(line);
    rows.append(row);
    return line;
  }

  for (const name of known) addRow(name, true);
  made.fault = (text) => {
    fault.textContent = text ?? "";
    for (const { name } of lines) {
      if (text) name.setAttribute("aria-invalid", "true");
      else name.removeAttribute("aria-invalid");
    }
  };
  Object.defineProperty(made, "control", { get: () => rows.querySelector("input:not([readonly])") ?? more });
  made.read = () => {
    const values = {};
    let isChanged = lines.size !== known.length;
    for (const { name, value, isKnown } of lines) {
      const key = name.value.trim();
      if (key === "" && value.value === "") continue;
      isChanged ||= !isKnown || value.value !== "";
      values[key] = isKnown && value.value === "" ? null : value.value;
    }
    return isChanged ? values : undefined;
  };
  return made;
}
