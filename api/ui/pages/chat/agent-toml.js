// Single values of a manifest, changed in its TOML text: everything else of the text, with its comments, stays as it was written.
// Nothing here reads values: that is for the daemon (`POST /api/agents/check`). Where the text cannot be followed, nothing is changed.

const BARE = /[A-Za-z0-9_-]/;

/** `text` as a TOML string; one of several lines stands in three quotes. */
export function tomlString(text) {
  const isLong = text.includes("\n");
  const escaped = text.toWellFormed().replace(/\\/g, "\\\\").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  // Of several quotes in a row, and at the end, none may be taken for the closing ones.
  return isLong ? `"""\n${escaped.replace(/"(?="|$)/g, '\\"')}"""` : `"${escaped.replace(/"/g, '\\"')}"`;
}

/** A text, a number, true or false, or a list of texts as TOML; null for what is empty. */
export function literal(value) {
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return null;
  if (Array.isArray(value)) return `[${value.map(tomlString).join(", ")}]`;
  return typeof value === "string" ? tomlString(value) : String(value);
}

/**
 * Where the keys and the headers of `text` stand: `{ path, start, end, from, to, isHeader, isMany }`, offsets of the line, and of the value of a key.
 * Null where the text is no TOML as far as this can tell.
 */
export function statements(text) {
  const found = [];
  let table = { path: [], isMany: false };
  let at = 0;
  try {
    for (at = blank(text, at); at < text.length; at = blank(text, at)) {
      const start = text.lastIndexOf("\n", at - 1) + 1;
      if (text[at] === "[") {
        const isMany = text[at + 1] === "[";
        const key = keyAt(text, at + (isMany ? 2 : 1));
        if (!text.startsWith(isMany ? "]]" : "]", key.at)) throw new SyntaxError("a header is not closed");
        table = { path: key.path, isMany };
        at = lineEnd(text, key.at + (isMany ? 2 : 1));
        found.push({ path: key.path, start, end: at, isHeader: true, isMany });
      } else {
        const key = keyAt(text, at);
        if (text[key.at] !== "=") throw new SyntaxError("a key has no value");
        const from = spaces(text, key.at + 1);
        const to = valueEnd(text, from);
        at = lineEnd(text, to);
        found.push({ path: [...table.path, ...key.path], start, end: at, from, to, isHeader: false, isMany: table.isMany });
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return found;
}

/** The statements of `text`, and behind each that is a table in one value those of that table: they have the statement as `table`. */
function entries(text) {
  try {
    return statements(text)?.flatMap((one) => [one, ...(one.isHeader ? [] : inside(text, one))]) ?? null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

const isTable = (text, one) => !one.isHeader && text[one.from] === "{";

/** What stands in the table that is the value of `table`; nothing where that is none. */
function inside(text, table) {
  const found = [];
  if (!isTable(text, table)) return found;
  for (let at = blank(text, table.from + 1); text[at] !== "}";) {
    const key = keyAt(text, at);
    if (text[key.at] !== "=") throw new SyntaxError("a key has no value");
    const from = blank(text, key.at + 1);
    const to = valueEnd(text, from, ",}#\r\n");
    const one = { path: [...table.path, ...key.path], start: at, end: to, from, to, isHeader: false, isMany: table.isMany, table };
    found.push(one, ...inside(text, one));
    at = blank(text, to);
    if (text[at] === ",") at = blank(text, at + 1);
    else if (text[at] !== "}") throw new SyntaxError("a table is not closed");
  }
  return found;
}

/** Behind white space, line ends and comments. */
function blank(text, at) {
  while (at < text.length) {
    if (/\s/.test(text[at])) at += 1;
    else if (text[at] === "#") at = endOfLine(text, at);
    else break;
  }
  return at;
}

function spaces(text, at) {
  while (text[at] === " " || text[at] === "\t") at += 1;
  return at;
}

const endOfLine = (text, at) => (text.indexOf("\n", at) + 1 || text.length + 1) - 1;

/** The end of the line behind a statement, where only a comment may follow; its line end belongs to it. */
function lineEnd(text, at) {
  const rest = spaces(text, at);
  if (rest < text.length && !"#\r\n".includes(text[rest])) throw new SyntaxError("something follows a value");
  return Math.min(text.length, endOfLine(text, rest) + 1);
}

/** A key with its dots. */
function keyAt(text, at) {
  const path = [];
  for (;;) {
    at = spaces(text, at);
    if (text[at] === '"' || text[at] === "'") {
      const end = stringEnd(text, at);
      path.push(text.slice(at + 1, end - 1));
      at = end;
    } else {
      const start = at;
      while (at < text.length && BARE.test(text[at])) at += 1;
      if (at === start) throw new SyntaxError("a key is empty");
      path.push(text.slice(start, at));
    }
    at = spaces(text, at);
    if (text[at] !== ".") return { path, at };
    at += 1;
  }
}

function stringEnd(text, at) {
  const quote = text[at];
  const isLong = text.startsWith(quote.repeat(3), at);
  const close = isLong ? quote.repeat(3) : quote;
  for (let next = at + close.length; next < text.length; next += 1) {
    if (quote === '"' && text[next] === "\\") next += 1;
    else if (!isLong && text[next] === "\n") break;
    else if (text.startsWith(close, next)) {
      next += close.length;
      // Up to two quotes stand before the closing ones.
      while (isLong && text[next] === quote) next += 1;
      return next;
    }
  }
  throw new SyntaxError("a string is not closed");
}

function valueEnd(text, at, ends = "#\r\n") {
  const start = at;
  let depth = 0;
  while (at < text.length) {
    const char = text[at];
    if (char === '"' || char === "'") at = stringEnd(text, at);
    else if (depth > 0 && char === "#") at = endOfLine(text, at);
    else if (depth === 0 && ends.includes(char)) break;
    else {
      if (char === "[" || char === "{") depth += 1;
      if (char === "]" || char === "}") depth -= 1;
      at += 1;
    }
  }
  if (depth !== 0) throw new SyntaxError("a list or a table is not closed");
  while (at > start && " \t".includes(text[at - 1])) at -= 1;
  if (at === start) throw new SyntaxError("a value is missing");
  return at;
}

const same = (a, b) => a.length === b.length && a.every((part, at) => part === b[at]);
const within = (path, table) => path.length > table.length && same(path.slice(0, table.length), table);

/**
 * `text` with `value` at the first of `paths` that it has, or else at the first; at the others there is nothing. An empty value is
 * taken out. Null where the text cannot be followed, or has something else than a table where the key would stand.
 */
export function withValue(text, paths, value) {
  const has = (path) => entries(text)?.find((one) => !one.isHeader && !one.isMany && same(one.path, path));
  const kept = literal(value) === null ? null : (paths.find(has) ?? paths[0]);
  for (const path of paths) {
    if (path === kept) continue;
    const old = has(path);
    if (old) text = without(text, old);
  }
  if (kept === null) return entries(text) === null || paths.some((path) => isClosed(text, path)) ? null : text;
  const old = has(kept);
  if (old) return text.slice(0, old.from) + literal(value) + text.slice(old.to);
  return added(text, kept, literal(value));
}

/** Stands something else where the table of `path` would? */
const isClosed = (text, path) => entries(text).some((one) => !one.isHeader && !isTable(text, one) && within(path, one.path));

/** `text` without a statement, and without the header that then stands above nothing. */
function without(text, old) {
  if (old.table) {
    const beside = entries(text).filter(({ table }) => table?.from === old.table.from);
    const at = beside.findIndex(({ from }) => from === old.from);
    if (beside.length === 1) return without(text, old.table);
    const [from, to] = at + 1 < beside.length ? [old.start, beside[at + 1].start] : [beside[at - 1].to, old.to];
    return text.slice(0, from) + text.slice(to);
  }
  const next = text.slice(0, old.start) + text.slice(old.end);
  const all = statements(next) ?? [];
  const header = all.findLast((one) => one.isHeader && one.start < old.start);
  if (!header || header.isMany || !within(old.path, header.path)) return next;
  const behind = all[all.indexOf(header) + 1];
  const section = next.slice(header.end, behind?.start);
  return (behind && !behind.isHeader) || section.trim() !== "" ? next : next.slice(0, header.start) + next.slice(header.end).replace(/^\s*\n/, "");
}

function added(text, path, value) {
  const all = statements(text);
  const known = entries(text);
  if (known === null || isClosed(text, path)) return null;
  const open = known.findLast((one) => isTable(text, one) && !one.isMany && within(path, one.path));
  if (open) {
    const last = known.findLast(({ table }) => table?.from === open.from);
    const entry = `${path.slice(open.path.length).join(".")} = ${value}`;
    return last ? `${text.slice(0, last.to)}, ${entry}${text.slice(last.to)}` : `${text.slice(0, open.from)}{ ${entry} }${text.slice(open.to)}`;
  }
  const table = path.slice(0, -1);
  const header = table.length === 0 ? null : all.find((one) => one.isHeader && !one.isMany && same(one.path, table));
  const line = `${path.at(-1)} = ${value}\n`;
  if (table.length > 0 && !header) {
    // A table that dots have begun goes on with dots.
    const dotted = all.findLast((one) => !one.isHeader && !one.isMany && within(one.path, table) && !all.some((other) => other.isHeader && other.start < one.start));
    if (dotted) return inserted(text, dotted.end, `${path.join(".")} = ${value}\n`);
    return `${text.trimEnd()}${text.trim() === "" ? "" : "\n\n"}[${table.join(".")}]\n${line}`;
  }
  const first = header ? all.indexOf(header) : -1;
  const next = all.findIndex((one, at) => at > first && one.isHeader);
  const last = all[(next === -1 ? all.length : next) - 1] ?? header;
  return inserted(text, last ? last.end : 0, line);
}

/** `line` at `at`, where a line begins, or the text ends without a line end. */
const inserted = (text, at, line) => text.slice(0, at) + (at > 0 && text[at - 1] !== "\n" ? "\n" : "") + line + text.slice(at);

/** The keys of `text`, in their order, each once, with the first two parts of their names; those below `[[...]]` as the name of the list. */
export const keysOf = (text) => [...new Set((entries(text) ?? []).filter((one) => (!one.isHeader || one.isMany) && !isTable(text, one)).map(({ path, isMany }) => path.slice(0, isMany ? 1 : 2).join(".")))];

/** Does `text` have a value at `path`? */
export const hasValue = (text, path) => (entries(text) ?? []).some((one) => !one.isHeader && !one.isMany && same(one.path, path));

/** The text at `path`; "" where there is none, and null where it cannot be read without the daemon. */
export function textAt(text, path) {
  const one = entries(text)?.find((one) => !one.isHeader && !one.isMany && same(one.path, path));
  const value = one ? text.slice(one.from, one.to) : '""';
  if (/^'[^']*'$/.test(value)) return value.slice(1, -1);
  try {
    return String(JSON.parse(value));
  } catch {
    return null;
  }
}
