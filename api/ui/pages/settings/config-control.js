// The control of one key of the configuration, as its JSON schema says what it may be.

import { choice, numberInput, textInput } from "../../lib/controls.js";
import { h } from "../../lib/dom.js";
import { number } from "../../lib/format.js";

/** A part of a path as TOML writes it: in quotes where it holds more than letters, digits, "_" and "-". */
export const quoted = (part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part));

/** A path as `POST /api/config/set` takes it: `prices."openai/gpt-4.1".input_per_m`. */
export const addressed = (path) => path.map(quoted).join(".");

const typeOf = (node) => (Array.isArray(node.type) ? node.type.find((type) => type !== "null") : node.type);

/**
 * The control for `node` (of a JSON schema) with `value`: `node` is the element, `input` what is labelled, `read()` the
 * value as JSON, `isChanged()`, `reset()`, and `problem()`, a sentence when the value is none, else "".
 */
export function controlFor(node, value, { disabled = false }) {
  const type = typeOf(node);
  if (node.writeOnly || value === "***" || value === "not set") return fixed(value === "***" ? "set, hidden" : "not set");
  if (type === "boolean") return yesNo(node, value, disabled);
  if (node.enum) return oneOf(node, value, disabled);
  if (type === "integer" || type === "number") return figure(node, value, disabled, type);
  if (type === "array") return lines(node, value, disabled);
  if (type === "object") return fixed(JSON.stringify(value ?? {}));
  return text(node, value, disabled);
}

function fixed(shown) {
  const input = textInput(shown, { disabled: true });
  return { node: input, input, read: () => null, isChanged: () => false, reset: () => {}, problem: () => "" };
}

function yesNo(node, value, disabled) {
  const input = h("input", { type: "checkbox", role: "switch", checked: value === true, disabled });
  return {
    node: h("span", { class: "switch" }, input), input, read: () => input.checked, isChanged: () => input.checked !== (value === true),
    reset: () => { input.checked = value === true; }, problem: () => "",
  };
}

function oneOf(node, value, disabled) {
  const now = value ?? node.default ?? "";
  const options = node.enum.map((word) => [String(word), String(word)]);
  const input = choice(node.enum.includes(now) ? options : [["", "–"], ...options], String(now), { disabled });
  return { node: input, input, read: () => input.value, isChanged: () => input.value !== String(now), reset: () => { input.value = String(now); }, problem: () => (input.value === "" ? "Choose a value." : "") };
}

function figure(node, value, disabled, type) {
  const now = value ?? "";
  const input = numberInput(now, { min: node.minimum, max: node.maximum, step: type === "integer" ? 1 : "any", disabled, placeholder: node.default === undefined ? "not set" : String(node.default) });
  const problem = () => {
    const given = input.value.trim();
    if (given === "") return input.validity.badInput ? "Enter a number." : "Enter a number, or restore the default.";
    if (type === "integer" && !/^-?\d+$/.test(given)) return "Enter a whole number.";
    const least = node.minimum ?? -Infinity;
    const most = node.maximum ?? Infinity;
    return Number(given) < least || Number(given) > most ? `It must be from ${number(least)} to ${number(most)}.` : "";
  };
  return { node: input, input, read: () => Number(input.value), isChanged: () => input.value.trim() !== String(now) || input.validity.badInput, reset: () => { input.value = now; }, problem };
}

/** A list of texts: one on each line. */
function lines(node, value, disabled) {
  const now = (value ?? []).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  const input = h("textarea", { class: "code", rows: Math.min(6, Math.max(2, now.split("\n").length)), spellcheck: "false", value: now, disabled, placeholder: "one per line" });
  return { node: input, input, read: () => input.value.split("\n").map((one) => one.trim()).filter(Boolean), isChanged: () => input.value.trim() !== now.trim(), reset: () => { input.value = now; }, problem: () => "" };
}

function text(node, value, disabled) {
  const now = value ?? "";
  const input = textInput(now, { disabled, spellcheck: "false", placeholder: node.default === undefined || node.default === "" ? (node.examples?.[0] ?? "not set") : String(node.default), type: node.format === "uri" ? "url" : "text" });
  const problem = () => {
    if (node.pattern && !new RegExp(node.pattern, "u").test(input.value)) return `It must look like ${node.pattern}.`;
    return node.format === "uri" && input.value !== "" && !URL.canParse(input.value) ? "Enter a valid URL." : "";
  };
  return { node: input, input, read: () => input.value, isChanged: () => input.value !== String(now), reset: () => { input.value = now; }, problem };
}
