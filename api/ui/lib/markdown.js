// Markdown, built from elements and text nodes only, so that no answer can bring markup of its own. What is known:
// headings, paragraphs, lists (nested, numbered, with boxes), quotes, tables, code, rules, and in lines bold, italics,
// strikes, code and links to http, https and mailto. Everything else stays the text that it is.

import { codeBlock } from "./code.js";
import { h } from "./dom.js";

// No pattern for a whole line may try two ways for the same character: a line has any length.
const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$/;
const LANGUAGE = /^[ \t]*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+([^]*)$/;
const RULE = /^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+([^]*))?$/;
const QUOTE = /^ {0,3}>[ ]?(.*)$/;
const TABLE_MARK = /^ *:?-+:? *$/;
const INLINE = /(`+)([^`]|[^`][^]*?[^`])\1(?!`)|\*\*(?=\S)([^*]|[^*][^]*?\S)\*\*|~~(?=\S)([^~]+)~~|\*(?=[^\s*])([^*\n]*[^\s*])\*|(?<![\w_])_(?=[^\s_])([^_\n]*[^\s_])_(?![\w_])|!?\[([^[\]\n]*)\]\(((?:https?:\/\/|mailto:)[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)(?: "[^"\n]*")?\)|!\[([^[\]\n]*)\]\(([^\s()<>:]+)\)|https?:\/\/[^\s<>"'`*]+|\\([\\`*_~[\]()#+.!|>-])/g;
// A longer paragraph stays plain: the search for a closing mark would cost more than it gives.
const INLINE_MAX = 20_000;
const DEPTH_MAX = 8;
/** Pictures of one text that are shown; each is a request. */
const PICTURES_MAX = 50;

/**
 * How a picture of an answer is shown: `show(target, label)` gives a node for a target without a scheme (a file of the
 * agent), or null. Pictures of other places are links: the page loads nothing from elsewhere.
 */
export const pictures = { show: () => null };

/** The pictures of one text, in their order: those that are built again stay as they are. */
class Gallery {
  constructor() {
    this.shown = [];
    this.next = 0;
  }

  show(target, label) {
    const at = this.next;
    if (at >= PICTURES_MAX) return null;
    this.next += 1;
    const known = this.shown[at];
    if (known?.target === target && known.label === label) return known.node;
    const picture = pictures.show(target, label);
    // A picture that fails puts something else in its place: the frame stays.
    const node = picture && h("span", {}, picture);
    this.shown[at] = { target, label, node };
    return node;
  }
}

/** That of the text which is being built. */
let gallery = new Gallery();
const TRAILING = /[.,;:!?)\]}]+$/;

/** The nodes of `text`; a text that cannot be shown as Markdown is shown as it is. */
export function render(text) {
  const fragment = document.createDocumentFragment();
  gallery = new Gallery();
  try {
    for (const block of blocksOf(text.split("\n"))) fragment.append(block.build());
  } catch {
    return plain(text);
  }
  return fragment;
}

function plain(text) {
  return h("div", { class: "plain" }, text);
}

/**
 * Text that grows, as Markdown: only its last block is built anew. `live.node` is the element; `live.set(text)` takes the
 * whole text so far, which must begin with what it had before.
 */
export class LiveMarkdown {
  constructor() {
    this.node = h("div", { class: "md" });
    this.from = 0;
    this.tail = [];
    this.gallery = new Gallery();
    /** Pictures before the last block. */
    this.pictures = 0;
  }

  set(text) {
    try {
      this.build(text);
    } catch {
      this.tail = [plain(text)];
      this.from = 0;
      this.pictures = 0;
      this.node.replaceChildren(...this.tail);
    }
  }

  build(text) {
    const lines = text.slice(this.from).split("\n");
    const blocks = blocksOf(lines);
    for (const node of this.tail) node.remove();
    this.tail = [];
    gallery = this.gallery;
    gallery.next = this.pictures;
    const last = blocks.at(-1);
    for (const block of blocks) {
      if (block === last) this.pictures = gallery.next;
      const node = block.build(block === last);
      this.node.append(node);
      if (block === last) this.tail.push(node);
    }
    // What stands before the last block will not change any more.
    if (last) this.from += lines.slice(0, last.line).reduce((sum, line) => sum + line.length + 1, 0);
  }
}

/** The blocks of `lines`: each has the number of its first line, and builds its element. */
function blocksOf(lines, depth = 0) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const line = at;
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [next, build] = fence(lines, at) ?? heading(lines, at) ?? rule(lines, at) ?? (depth < DEPTH_MAX ? quote(lines, at, depth) ?? list(lines, at, depth) : null)
      ?? table(lines, at) ?? paragraph(lines, at);
    blocks.push({ line, build });
    at = next;
  }
  return blocks;
}

function fence(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const code = [];
  let end = at + 1;
  // A fence that is still open takes the rest: that is what a half-written answer looks like.
  while (end < lines.length && !closes(lines[end], open[1])) code.push(lines[end++]);
  return [end + 1, (isLive) => codeBlock(code.join("\n"), LANGUAGE.exec(open[2])[1], { plain: isLive === true })];
}

function closes(line, fence) {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence[0].repeat(mark.length);
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  // The page has h1 and h2 of its own; those of an answer stand below them.
  return found && [at + 1, () => inline(h(`h${Math.min(6, found[1].length + 2)}`), withoutMarks(found[2]))];
}

/** The text of a heading without the marks that close it. */
function withoutMarks(text) {
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trimEnd();
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? [at + 1, () => h("hr")] : null;
}

function quote(lines, at, depth) {
  if (!QUOTE.test(lines[at])) return null;
  const inner = [];
  let end = at;
  for (; end < lines.length && lines[end].trim() !== ""; end += 1) inner.push(QUOTE.exec(lines[end])?.[1] ?? lines[end]);
  return [end, () => h("blockquote", {}, blocksOf(inner, depth + 1).map((block) => block.build()))];
}

function list(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first) return null;
  const isNumbered = /\d/.test(first[2]);
  const items = [];
  let end = at;
  let next = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    const indent = lines[end].length - lines[end].trimStart().length;
    if (found && indent <= first[1].length + 1 && !RULE.test(lines[end])) {
      if (/\d/.test(found[2]) !== isNumbered) break;
      items.push({ width: found[1].length + found[2].length + 1, lines: [found[3] ?? ""] });
    } else if (lines[end].trim() === "") {
      // An empty line belongs to the item when what follows does.
      // Looked for once, however many they are.
      while (next < lines.length && (next < end || lines[next].trim() === "")) next += 1;
      const following = lines[next];
      const goesOn = following !== undefined && (/^\s{2,}/.test(following) || (ITEM.test(following) && following.search(/\S/) <= first[1].length + 1));
      if (!goesOn) break;
      items.at(-1).lines.push("");
    } else if (indent >= 2 || lines[end - 1]?.trim() !== "") {
      const { width } = items.at(-1);
      items.at(-1).lines.push(lines[end].slice(Math.min(indent, width)));
    } else {
      break;
    }
    end += 1;
  }
  const start = isNumbered ? Number.parseInt(first[2], 10) : 1;
  return [end, () => h(isNumbered ? "ol" : "ul", { start: isNumbered && start !== 1 ? start : null }, items.map((item) => listItem(item.lines, depth)))];
}

function listItem(lines, depth) {
  const box = /^\[([ xX])\] /.exec(lines[0]);
  if (box) lines[0] = lines[0].slice(4);
  const blocks = blocksOf(lines, depth + 1).map((block) => block.build());
  // One paragraph is the item's text itself.
  const children = blocks.flatMap((node, at) => (at === 0 && node.nodeName === "P" ? [...node.childNodes] : [node]));
  const mark = box && h("span", { class: "task", role: "img", "aria-label": box[1] === " " ? "open" : "done" }, box[1] === " " ? "☐" : "☑");
  return h("li", { class: box ? "has-task" : null }, mark, children);
}

function table(lines, at) {
  if (!lines[at].includes("|") || !isTableRule(lines[at + 1] ?? "")) return null;
  const sides = cells(lines[at + 1]).map((mark) => (mark.endsWith(":") ? (mark.startsWith(":") ? "center" : "right") : null));
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim() !== "") end += 1;
  const row = (line, name) => h("tr", {}, cells(line).map((text, n) => inline(h(name, { class: sides[n] ?? null }), text)));
  return [end, () => h("div", { class: "table-scroll", tabindex: "0", role: "group", "aria-label": "Table" },
    h("table", {}, h("thead", {}, row(lines[at], "th")), h("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td")))))];
}

function isTableRule(line) {
  return /^[-:| ]+$/.test(line) && line.trim().replace(/^\||\|$/g, "").split("|").every((mark) => TABLE_MARK.test(mark));
}

function cells(line) {
  return line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines, at) {
  let end = at + 1;
  const ends = (line) => line.trim() === "" || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line) || /^ {0,3}([-*+]|1[.)])[ \t]+\S/.test(line);
  while (end < lines.length && !ends(lines[end])) end += 1;
  return [end, () => inline(h("p"), lines.slice(at, end).join("\n"))];
}

/** Puts `text` with its marks into `parent`. */
function inline(parent, text, depth = 0) {
  if (text.length > INLINE_MAX || depth > DEPTH_MAX) {
    parent.append(text);
    return parent;
  }
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, , code, bold, strike, star, under, label, target, alt, file, escaped] = found;
    parent.append(text.slice(from, found.index));
    from = found.index + all.length;
    if (code !== undefined) parent.append(h("code", {}, code.replace(/^ (.*\S.*) $/, "$1")));
    else if (bold !== undefined) parent.append(inline(h("strong"), bold, depth + 1));
    else if (strike !== undefined) parent.append(inline(h("s"), strike, depth + 1));
    else if (star !== undefined || under !== undefined) parent.append(inline(h("em"), star ?? under, depth + 1));
    else if (target !== undefined) parent.append(link(target, label || target));
    else if (file !== undefined) parent.append(gallery.show(file, alt) ?? all);
    else if (escaped !== undefined) parent.append(escaped);
    else {
      const bare = withoutTrailing(all);
      parent.append(link(bare, bare), all.slice(bare.length));
    }
  }
  parent.append(text.slice(from));
  return parent;
}

/** A bare address without the punctuation of the sentence around it; a bracket that it opens itself stays. */
function withoutTrailing(address) {
  const bare = address.replace(TRAILING, "");
  return address[bare.length] === ")" && bare.lastIndexOf("(") > bare.lastIndexOf(")") ? `${bare})` : bare;
}

/** A link, when the browser reads the target as one of the harmless kinds too; else its text. */
function link(target, label) {
  const url = URL.canParse(target) ? new URL(target) : null;
  if (!url || !["https:", "http:", "mailto:"].includes(url.protocol)) return label;
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}
