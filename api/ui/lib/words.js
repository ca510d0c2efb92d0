// A field that takes a list of words: each is a chip with a button that removes it.

import { offered } from "./controls.js";
import { showError } from "./dialogs.js";
import { field, fill, h } from "./dom.js";
import { icon } from "./icons.js";

/**
 * `const tags = wordsField("Tags", ["a"], { hint, offers, onchange })`: `tags.read()` gives the words, `tags.set(words)` replaces them.
 * Enter, a comma or leaving the field takes what was typed; Backspace in an empty box removes the last word. With `choose`, what
 * `pickWords` takes beside the words, the button that it names as `button` opens the list of what there is.
 */
export function wordsField(label, values, { hint = "", offers = [], choose = null, onchange = () => {} } = {}) {
  let words = [...values];
  const input = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: choose ? "Type a name…" : "Add…", onkeydown: onKey, onchange: () => take(), oninput: () => { if (input.value.endsWith(",")) take(); } });
  const list = h("ul", { class: "word-list" });
  const made = field(label, input, { hint });
  // The words stand before the box where the next is typed.
  const frame = h("div", { class: "word-box", onclick: (event) => { if (event.target === frame) input.focus(); } });
  input.replaceWith(frame);
  const pick = choose && h("button", { type: "button", class: "small word-pick", "aria-label": choose.button, onclick: () => chooseWords().catch(showError) }, icon("search", 14), "Choose…");
  frame.append(list, input, offered(input, offers), pick ?? "");

  async function chooseWords() {
    take();
    const { pickWords } = await import("./picker.js");
    const chosen = await pickWords({ title: label, ...choose, chosen: words });
    if (!chosen) return;
    words = chosen;
    changed();
  }

  function onKey(event) {
    if (event.key === "Enter" && !event.isComposing && input.value.trim() !== "") {
      event.preventDefault();
      take();
    } else if (event.key === "Backspace" && input.value === "" && words.length > 0) {
      words = words.slice(0, -1);
      changed();
    }
  }

  function take() {
    const more = input.value.split(",").map((word) => word.trim()).filter((word) => word !== "" && !words.includes(word));
    input.value = "";
    if (more.length === 0) return;
    words = [...words, ...new Set(more)];
    changed();
  }

  function changed() {
    draw();
    onchange();
  }

  function draw() {
    list.hidden = words.length === 0;
    fill(list, words.map((word) => h("li", { class: "word" }, h("span", { class: "cut" }, word),
      h("button", { type: "button", class: "quiet only-icon", "aria-label": `Remove ${word}`, onclick: () => { words = words.filter((other) => other !== word); changed(); input.focus(); } }, icon("close", 13)))));
  }

  draw();
  made.read = () => words;
  made.set = (next) => {
    words = [...next];
    draw();
  };
  return made;
}
