// Answers to the same question: a message that was sent again takes the place of the turn before it, and the others are a step away.

import { h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

/** The turn that stands for all that answer the same message: the first of them. */
export const groupOf = (turn) => turn.said?.repeats ?? turn.id;

export class Variants {
  constructor() {
    /** The turn that is shown of a group, by the group. */
    this.shown = new Map();
  }

  /** The turns of `list` in groups: each repeats those right before it. */
  groupsOf(list) {
    const groups = [];
    for (const node of list.querySelectorAll(":scope > article.turn")) {
      const { repeats } = node.dataset;
      const [first] = groups.at(-1) ?? [];
      if (repeats && first && (first.dataset.repeats ?? first.dataset.turn) === repeats) groups.at(-1).push(node);
      else groups.push([node]);
    }
    return groups;
  }

  /** Shows one turn of each group, with a way to the others. */
  arrange(list) {
    for (const node of list.querySelectorAll(".variant-steps")) node.remove();
    for (const group of this.groupsOf(list)) {
      const wanted = group.findIndex((node) => node.dataset.turn && node.dataset.turn === this.shown.get(node.dataset.repeats ?? node.dataset.turn));
      // What is being written is what one waits for.
      const at = group.at(-1).classList.contains("live") || wanted < 0 ? group.length - 1 : wanted;
      group.forEach((node, index) => { node.hidden = index !== at; });
      if (group.length > 1) group[at].querySelector(".said .turn-foot")?.append(this.steps(list, group, at));
    }
  }

  steps(list, group, at) {
    const to = (index) => {
      const { repeats, turn } = group[index].dataset;
      this.shown.set(repeats ?? turn, turn);
      this.arrange(list);
      group[index].querySelector(`.variant-steps button:${index < at ? "first" : "last"}-of-type`)?.focus();
    };
    const button = (label, index, turned) => h("button", { type: "button", class: `quiet small only-icon${turned ? " turned" : ""}`, "aria-label": label, title: label, disabled: index < 0 || index >= group.length, onclick: () => to(index) }, icon("chevron", 14));
    // The newest that the model answered, or answers, is what later prompts have.
    const counting = group.findLastIndex((node) => node.classList.contains("live") || node.dataset.answered === "true");
    return h("span", { class: "variant-steps", role: "group", "aria-label": "Answers to this message" },
      button("Earlier answer", at - 1, true), h("span", {}, `${at + 1} / ${group.length}`), button("Later answer", at + 1, false),
      counting >= 0 && counting !== at ? h("span", { class: "variant-note" }, "Left out of later prompts. Branch here to continue from it.") : null);
  }
}
