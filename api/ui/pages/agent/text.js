// The settings of an agent as TOML: checked by the daemon as it is typed.

import { diffNode } from "../../lib/diff.js";
import { faultText } from "../../lib/dialogs.js";
import { debounce, field, fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { fixedBetween } from "./values.js";

const PAUSE_MS = 300;
const INDENT = "  ";

export class SettingsText {
  /** `check(toml)` asks the daemon; `onchange` is called when the text, or what the daemon says to it, changed. */
  constructor({ check, onchange }) {
    Object.assign(this, { ask: check, onchange, round: 0, checked: null, isValid: true, saved: "" });
    this.area = h("textarea", { class: "code toml-text", rows: "26", spellcheck: "false", autocomplete: "off", autocapitalize: "off", wrap: "off", oninput: () => this.typed(), onkeydown: (event) => this.onKey(event) });
    this.field = field("Manifest", this.area, { hint: "TOML. The manifest that the agent was created from, with its later changes." });
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.soon = debounce(() => this.check(), PAUSE_MS);
    this.node = h("div", { class: "card stack" }, this.field, this.verdict);
  }

  set(toml) {
    this.saved = toml;
    this.area.value = toml;
    this.round += 1;
    this.checked = null;
    this.isValid = true;
    this.field.fault("");
    fill(this.verdict);
  }

  isChanged() {
    return this.area.value !== this.saved;
  }

  typed() {
    // What was checked was another text.
    this.isValid = false;
    this.checked = null;
    this.onchange();
    this.soon();
  }

  /** Two spaces instead of leaving the box; Escape gives the Tab key back. */
  onKey(event) {
    if (event.key === "Escape") this.isLeaving = true;
    else if (event.key === "Tab" && !event.shiftKey && !this.isLeaving) {
      event.preventDefault();
      this.area.setRangeText(INDENT, this.area.selectionStart, this.area.selectionEnd, "end");
      this.typed();
    } else this.isLeaving = false;
  }

  async check() {
    const round = ++this.round;
    try {
      const found = await this.ask(this.area.value);
      if (round !== this.round) return;
      this.checked = found;
      this.isValid = true;
      this.field.fault("");
      fill(this.verdict, icon("check", 16), h("span", {}, "Valid."));
    } catch (error) {
      if (round !== this.round) return;
      this.checked = null;
      this.isValid = false;
      fill(this.verdict);
      const { line, column } = error.body ?? {};
      const text = faultText(error).replace(/^manifest_toml: /, "");
      this.field.fault(line && !/line \d/.test(text) ? `Line ${line}, column ${column}: ${text}` : text);
    }
    this.onchange();
  }

  /** The keys that an existing agent keeps, and that the text changes. */
  fixedBy(manifest) {
    return this.checked ? fixedBetween(manifest, this.checked.manifest) : [];
  }

  /** A refusal of what was saved, at the text. */
  fault(error) {
    this.field.fault(error.message);
    this.area.focus();
    return true;
  }

  /** The changed lines. */
  diff(saved) {
    return diffNode(saved, this.area.value, "Changed lines");
  }
}
