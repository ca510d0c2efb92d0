// The difference of two texts by lines.

import { h } from "./dom.js";

/** Texts of more lines are not compared line by line: the table of the comparison has one cell for each pair. */
const LINES_MAX = 1500;
/** Lines of context around a change. */
const CONTEXT = 2;

/** The lines of both texts in order: `[mark, line]`, where the mark is " ", "-" or "+". */
export function lineDiff(before, after) {
  // Nothing has no line.
  const [old, young] = [before, after].map((text) => (text === "" ? [] : text.split("\n")));
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < young.length - start && old.at(-1 - end) === young.at(-1 - end)) end += 1;
  const [a, b] = [old.slice(start, old.length - end), young.slice(start, young.length - end)];
  const middle = a.length > LINES_MAX || b.length > LINES_MAX ? [...a.map((line) => ["-", line]), ...b.map((line) => ["+", line])] : compared(a, b);
  return [...old.slice(0, start).map((line) => [" ", line]), ...middle, ...old.slice(old.length - end).map((line) => [" ", line])];
}

/** By the longest common subsequence. */
function compared(a, b) {
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push([" ", a[i]]);
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) found.push(["-", a[i++]]);
    else found.push(["+", b[j++]]);
  }
  return found;
}

/** The changed lines with a few around them, as an element; null where nothing changed. */
export function diffNode(before, after, label) {
  const lines = lineDiff(before, after);
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(([mark]) => mark !== " "));
  if (!near.includes(true)) return null;
  const names = { "-": "removed", "+": "added" };
  const rows = [];
  lines.forEach(([mark, line], at) => {
    if (near[at]) rows.push(h("span", { class: `diff-line ${names[mark] ?? ""}` }, h("span", { class: "diff-mark" }, mark), line === "" ? " " : line));
    else if (at === 0 || near[at - 1]) rows.push(h("span", { class: "diff-line gap" }, "⋯"));
  });
  return h("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": label }, rows);
}
