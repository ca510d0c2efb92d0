// Answers to the same question: a message that was sent again takes the place of the turn before it, and the others are a step away.

import { h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

const KEPT = "agentsvc-variants";
/** Repetitions that this browser knows; beyond that the oldest are shown one below the other, as in every other browser. */
const KEPT_MAX = 300;

function read() {
  try {
    return new Map(JSON.parse(localStorage.getItem(KEPT)) ?? []);
  } catch {
    return new Map();
  }
}

export class Variants {
  constructor() {
    /** Turns that repeat another, by their ids. */
    this.repeats = read();
    /** The turn that is shown of a group, by the id of its first. */
    this.shown = new Map();
  }

  /** Notes that the turn `id` repeats another. */
  add(id, of) {
    this.repeats = new Map([...read(), [id, of]].slice(-KEPT_MAX));
    localStorage.setItem(KEPT, JSON.stringify([...this.repeats]));
  }

  /** The turns of `list` in groups: each repeats the one right before it. */
  groupsOf(list) {
    const groups = [];
    for (const node of list.querySelectorAll(":scope > article.turn")) {
      const of = node.dataset.repeats ?? this.repeats.get(node.dataset.turn);
      const before = groups.at(-1);
      if (of && before?.some((other) => other.dataset.turn === of)) before.push(node);
      else groups.push([node]);
    }
    return groups;
  }

  /** Shows one turn of each group, with a way to the others. */
  arrange(list) {
    for (const node of list.querySelectorAll(".variant-steps")) node.remove();
    for (const group of this.groupsOf(list)) {
      const [first] = group;
      const wanted = group.findIndex((node) => node.dataset.turn && node.dataset.turn === this.shown.get(first.dataset.turn));
      // What is being written is what one waits for.
      const at = group.at(-1).classList.contains("live") || wanted < 0 ? group.length - 1 : wanted;
      group.forEach((node, index) => { node.hidden = index !== at; });
      if (group.length > 1) group[at].querySelector(".said .turn-foot")?.append(this.steps(list, group, at));
    }
  }

  steps(list, group, at) {
    const to = (index) => {
      this.shown.set(group[0].dataset.turn, group[index].dataset.turn);
      this.arrange(list);
      group[index].querySelector(`.variant-steps button:${index < at ? "first" : "last"}-of-type`)?.focus();
    };
    const button = (label, index, turned) => h("button", { type: "button", class: `quiet small only-icon${turned ? " turned" : ""}`, "aria-label": label, title: label, disabled: index < 0 || index >= group.length, onclick: () => to(index) }, icon("chevron", 14));
    return h("span", { class: "variant-steps", role: "group", "aria-label": "Answers to this message" }, button("Earlier answer", at - 1, true), h("span", {}, `${at + 1} / ${group.length}`), button("Later answer", at + 1, false));
  }
}
