// Completion of queries: kinds first, then the fields of the kind, what they lead to, and the words of the language.

import { fill, h, uniqueId } from "../../lib/dom.js";

const WORDS = ["where", "and", "or", "not", "in", "sort by", "group by", "select", "limit", "count", "sum", "avg", "min", "max", "asc", "desc", "now", "true", "false", "null"];
const OFFERED_MAX = 12;

/** `kinds` of the schema, each with `name`, `text`, `fields` and `relations`, whatever of these it has. */
function kindsOf(schema) {
  return schema.kinds.map((kind) => ({ ...kind, fields: kind.fields ?? [], relations: kind.relations ?? [] }));
}

/** A list of offers below a text box. `node` stands behind the box, in a place that is `position: relative`. */
export class Completion {
  constructor(box, schema, { signal }) {
    this.box = box;
    this.kinds = kindsOf(schema);
    this.words = WORDS;
    this.offers = [];
    this.at = 0;
    this.id = uniqueId("offers");
    this.node = h("ul", { class: "offers", role: "listbox", id: this.id, "aria-label": "Completions", hidden: true });
    box.setAttribute("role", "combobox");
    box.setAttribute("aria-controls", this.id);
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-expanded", "false");
    box.addEventListener("input", () => this.open(), { signal });
    box.addEventListener("keydown", (event) => this.onKey(event), { signal });
    box.addEventListener("blur", () => setTimeout(() => this.close(), 150), { signal });
  }

  /** The word before the caret, and what stands before it. */
  word() {
    const before = this.box.value.slice(0, this.box.selectionStart);
    const part = /[\w.]*$/.exec(before)[0];
    return { part, before: before.slice(0, before.length - part.length) };
  }

  kind() {
    const name = /^\s*(\w+)/.exec(this.box.value)?.[1]?.toLowerCase();
    return this.kinds.find((kind) => kind.name === name);
  }

  /** What may stand here. */
  candidates({ part, before }) {
    const words = this.wordsFor(before);
    // Within quotes texts are typed, not names; of a word there are only some.
    if ((before.match(/"/g)?.length ?? 0) % 2 === 1) return words.map((text) => ({ text, note: "" }));
    if (words.length > 0) return words.map((text) => ({ text: `"${text}"`, note: "" }));
    if (before.trim() === "") return this.kinds.map(({ name, text }) => ({ text: name, note: text ?? "" }));
    const kind = this.kind();
    if (!kind) return [];
    const dot = part.lastIndexOf(".");
    if (dot >= 0) {
      const name = part.slice(0, dot);
      const relation = kind.relations.find((one) => one.name === name);
      const target = this.kinds.find((one) => one.name === relation?.to);
      return (target?.fields ?? []).map((field) => ({ text: `${name}.${field.name}`, note: field.text ?? field.type ?? "" }));
    }
    return [
      ...kind.fields.map((field) => ({ text: field.name, note: `${field.type ?? ""}${field.text ? `, ${field.text}` : ""}` })),
      ...kind.relations.map((one) => ({ text: `${one.name}.`, note: one.text })),
      ...this.words.map((text) => ({ text, note: "" })),
    ];
  }

  /** The words that the field may be which is compared right before the caret. */
  wordsFor(before) {
    const name = /([\w.]+)\s*(?:!?=|in\s*\([^)]*)\s*"?$/.exec(before)?.[1];
    const kind = this.kind();
    if (!name || !kind) return [];
    const dot = name.lastIndexOf(".");
    const relation = dot < 0 ? null : kind.relations.find((one) => one.name === name.slice(0, dot));
    const of = dot < 0 ? kind : this.kinds.find((one) => one.name === relation?.to);
    return of?.fields.find((field) => field.name === name.slice(dot + 1))?.words ?? [];
  }

  open() {
    const word = this.word();
    const part = word.part.toLowerCase();
    const plain = (text) => text.toLowerCase().replace(/^"/, "");
    const fits = this.candidates(word).filter(({ text }) => plain(text).startsWith(part) && plain(text) !== part);
    const isAsked = part !== "" || word.before.trim() === "" || this.wordsFor(word.before).length > 0;
    this.offers = isAsked ? fits.slice(0, OFFERED_MAX) : [];
    this.at = 0;
    this.draw();
  }

  draw() {
    this.node.hidden = this.offers.length === 0;
    this.box.setAttribute("aria-expanded", String(!this.node.hidden));
    fill(this.node, this.offers.map((offer, at) => h("li", { role: "option", id: `${this.id}-${at}`, "aria-selected": String(at === this.at), onpointerdown: (event) => { event.preventDefault(); this.take(at); } },
      h("code", {}, offer.text), h("span", { class: "faint cut" }, offer.note))));
    if (this.node.hidden) this.box.removeAttribute("aria-activedescendant");
    else this.box.setAttribute("aria-activedescendant", `${this.id}-${this.at}`);
  }

  take(at) {
    const { part, before } = this.word();
    const text = this.offers[at].text;
    const rest = this.box.value.slice(before.length + part.length);
    const space = text.endsWith(".") || rest.startsWith(" ") ? "" : " ";
    this.box.value = `${before}${text}${space}${rest}`;
    const caret = before.length + text.length + space.length;
    this.box.setSelectionRange(caret, caret);
    this.close();
    if (text.endsWith(".")) this.open();
  }

  onKey(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.open();
      if (this.offers.length === 0) {
        this.offers = this.candidates(this.word()).slice(0, OFFERED_MAX);
        this.draw();
      }
      return;
    }
    if (this.node.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      this.at = (this.at + step + this.offers.length) % this.offers.length;
      this.draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) {
      event.preventDefault();
      this.take(this.at);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }

  close() {
    this.offers = [];
    this.draw();
  }
}
