// A little Markdown, built from text nodes and elements only, so that no answer can bring markup of its own:
// code fences, inline code, bold, and links to http and https.

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`]*$/;
const INLINE = /(`+)([^`]|[^`][^]*?[^`])\1(?!`)|\*\*(?=\S)([^*]|[^*][^]*?\S)\*\*|\[([^\[\]\n]+)\]\((https?:\/\/[^\s()<>]+)\)|https?:\/\/[^\s<>"'`*]+/g;
// Longer paragraphs stay plain: the search for a closing mark would cost more than it gives.
const INLINE_MAX = 20_000;
const TRAILING = /[.,;:!?)\]}]+$/;

/** The nodes of `text`. */
export function render(text) {
  const fragment = document.createDocumentFragment();
  let prose = [];
  const flush = () => {
    for (const part of prose.join("\n").split(/\n{2,}/)) {
      if (part.trim() !== "") fragment.append(inline(document.createElement("p"), part.replace(/^\n+|\n+$/g, "")));
    }
    prose = [];
  };
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const open = FENCE.exec(lines[at]);
    if (!open) {
      prose.push(lines[at]);
      continue;
    }
    flush();
    const code = [];
    // A fence that is still open takes the rest: that is what a half-written answer looks like.
    for (at += 1; at < lines.length && !closes(lines[at], open[1]); at += 1) code.push(lines[at]);
    fragment.append(block(code.join("\n"), open[2]));
  }
  flush();
  return fragment;
}

function closes(line, fence) {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence[0].repeat(mark.length);
}

function block(code, language) {
  const pre = document.createElement("pre");
  if (language) pre.dataset.language = language;
  pre.append(element("code", code));
  return pre;
}

function inline(parent, text) {
  if (text.length > INLINE_MAX) {
    parent.append(text);
    return parent;
  }
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, , code, bold, label, target] = found;
    parent.append(text.slice(from, found.index));
    from = found.index + all.length;
    if (code !== undefined) {
      parent.append(element("code", code));
    } else if (bold !== undefined) {
      parent.append(inline(document.createElement("strong"), bold));
    } else if (target !== undefined) {
      parent.append(link(target, label));
    } else {
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

/** A link, when the browser reads the target as http or https too; else its text. */
function link(target, label) {
  const url = URL.canParse(target) ? new URL(target) : null;
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) return label;
  const anchor = element("a", label);
  anchor.href = url.href;
  anchor.target = "_blank";
  anchor.rel = "noopener noreferrer nofollow";
  return anchor;
}

/** An element of `name` that holds `text`. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
