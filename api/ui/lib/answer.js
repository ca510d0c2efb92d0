// The answer that an approval asks for: a form made of its flat JSON schema.

import { choice, numberInput, textInput } from "./controls.js";
import { field, h } from "./dom.js";

const TYPES = { email: "email", uri: "url", date: "date" };

/** The options of a field, as `[value, label]`; null where any text will do. */
function optionsOf(schema, key) {
  if (schema?.enum) return schema.enum.map((value, at) => [value, schema.enumNames?.[at] ?? value]);
  return schema?.[key]?.map((option) => [option.const, option.title ?? option.const]) ?? null;
}

/** The control of a field, and what it holds; undefined is nothing. */
function controlOf(schema) {
  const preset = schema.default;
  if (schema.type === "boolean") {
    const control = choice([["", "Choose…"], ["true", "Yes"], ["false", "No"]], preset === undefined ? "" : String(preset));
    return [control, () => (control.value === "" ? undefined : control.value === "true")];
  }
  if (schema.type === "number" || schema.type === "integer") {
    const control = numberInput(preset ?? "", { step: schema.type === "integer" ? "1" : "any" });
    return [control, () => (control.value.trim() === "" ? undefined : Number(control.value))];
  }
  if (schema.type === "array") {
    const options = optionsOf(schema.items, "anyOf") ?? [];
    const control = h("select", { multiple: true, size: Math.min(options.length, 6) }, options.map(([value, label]) => h("option", { value, selected: Array.isArray(preset) && preset.includes(value) }, label)));
    return [control, () => [...control.selectedOptions].map((option) => option.value)];
  }
  const options = optionsOf(schema, "oneOf");
  const control = options ? choice([["", "Choose…"], ...options], preset ?? "") : textInput(preset ?? "", { type: TYPES[schema.format] ?? "text" });
  return [control, () => (control.value === "" ? undefined : control.value)];
}

/** The fields of a schema: `body` for a dialog, its `fields` by the names in errors, and `read()` for the answer. */
export function answerForm(schema) {
  const required = new Set(schema.required ?? []);
  const parts = Object.entries(schema.properties ?? {}).map(([name, of]) => {
    const [control, read] = controlOf(of);
    const label = `${of.title ?? name}${required.has(name) ? "" : " (optional)"}`;
    return { name, read, node: field(label, control, { hint: of.description ?? "" }) };
  });
  // The longest first: errors are matched by the beginning of their field.
  const byLength = [...parts].sort((one, other) => other.name.length - one.name.length);
  return {
    body: parts.map(({ node }) => node),
    fields: Object.fromEntries(byLength.map(({ name, node }) => [`answer.${name}`, node])),
    read: () => {
      const given = parts.map(({ name, read }) => [name, read(), required.has(name)]);
      // Nothing chosen of what need not be chosen is left out.
      return Object.fromEntries(given.filter(([, value, needed]) => value !== undefined && (needed || !Array.isArray(value) || value.length > 0)).map(([name, value]) => [name, value]));
    },
  };
}
