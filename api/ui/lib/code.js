// Code with a header, a button that copies it, and the colours of a few kinds of words.

import { h } from "./dom.js";
import { toast } from "./dialogs.js";
import { icon } from "./icons.js";

/** From this length on code stays in one colour. */
const COLOURED_MAX = 60_000;

const C_LIKE = "as async await break case catch class const continue default defer do else enum export extends extern final finally fn for from func function go if impl implements import in instanceof interface let loop match mod move mut new of package private protected pub public return self static struct super switch this throw trait try type typeof union unsafe use var void where while yield null undefined true false nil None Some Ok Err int float double bool boolean char string str u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64";
const SCRIPTS = "and as assert async await begin break case class continue def del do done elif else elsif end esac except export fi finally for from function global if import in is lambda local module nil nonlocal not or pass raise require rescue return self set super then try unless until when while with yield None True False true false echo";
const SQL = "select from where insert into values update set delete create table index view drop alter add column primary key foreign references join left right inner outer on group by order having limit offset union all distinct as and or not null is in between like exists case when then else end begin commit rollback with";

/** What a language has: words, the mark of a comment to the end of the line, and whether `/* *\/` is one. */
const LANGUAGES = new Map();
const define = (names, words, line, isBlock) => names.split(" ").forEach((name) => LANGUAGES.set(name, { words: new Set(words.split(" ")), line, isBlock }));
define("js javascript mjs ts typescript jsx tsx rust rs go java c h cpp c++ cs csharp kotlin swift php scala dart zig", C_LIKE, "//", true);
define("py python rb ruby sh bash zsh shell console perl r yaml yml toml ini conf dockerfile make makefile", SCRIPTS, "#", false);
define("sql", SQL, "--", true);
define("json json5 jsonc", "true false null", "//", true);
define("css scss less", "", null, true);

/** Code in a frame: `codeBlock("let x = 1;", "js")`. `plain` leaves the colours out, while it is still written. */
export function codeBlock(code, language = "", { plain = false } = {}) {
  const body = h("code", {}, plain || code.length > COLOURED_MAX ? code : coloured(code, language.toLowerCase()));
  const copy = h("button", { class: "quiet small", type: "button", "aria-label": "Copy the code", onclick: () => copyText(code) }, icon("copy", 15), "Copy");
  return h("div", { class: "code" }, h("div", { class: "code-head" }, h("span", {}, language || "text"), copy),
    h("pre", { tabindex: "0", role: "group", "aria-label": language ? `Code in ${language}` : "Code" }, body));
}

/** Puts `text` on the clipboard and says so. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that came over plain http from another machine have no clipboard: a selection still can be copied.
    const box = h("textarea", { class: "sr", readonly: true, value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
  toast("Copied");
}

/** The nodes of `code`: words, strings, numbers and comments of a known language in spans. */
function coloured(code, language) {
  const known = LANGUAGES.get(language);
  if (!known) return code;
  const comment = [known.line && `${known.line.replace(/[/-]/g, "\\$&")}[^\\n]*`, known.isBlock && "\\/\\*[^]*?(?:\\*\\/|$)"].filter(Boolean).join("|");
  const pattern = new RegExp(`(${comment})|("(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`)|(\\b(?:0x[\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:e[+-]?\\d+)?)\\b)|([A-Za-z_][\\w]*)`, "g");
  const nodes = [];
  let from = 0;
  for (const found of code.matchAll(pattern)) {
    const [all, remark, text, number, word] = found;
    const isWord = word !== undefined && known.words.has(language === "sql" ? word.toLowerCase() : word);
    const kind = remark !== undefined ? "c" : text !== undefined ? "s" : number !== undefined ? "n" : isWord ? "k" : null;
    if (!kind) continue;
    nodes.push(code.slice(from, found.index), h("span", { class: `t-${kind}` }, all));
    from = found.index + all.length;
  }
  nodes.push(code.slice(from));
  return nodes;
}
