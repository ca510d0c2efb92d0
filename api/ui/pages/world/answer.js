// The answer of a query as columns and rows of cells, and as CSV.

/** `columns` (`{ name, type }`) and `rows` (arrays of cells, in their order) of an answer of `/api/world/query`. */
export function rowsOf(answer) {
  const columns = (answer.columns ?? []).map((column) => (typeof column === "string" ? { name: column, type: "" } : column));
  const rows = (answer.rows ?? []).map((row) => (Array.isArray(row) ? row : columns.map(({ name }) => row[name])));
  return { columns, rows };
}

/** A cell as text. */
export const cellText = (cell) => (cell === null || cell === undefined ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell));

/** RFC 4180; a text that a spreadsheet would take for a formula begins with a single quote. */
export function csvOf({ columns, rows }) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (value) => {
    const text = cellText(value);
    return quoted(typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  };
  return [columns.map(({ name }) => quoted(name)), ...rows.map((row) => row.map(cell))].map((line) => line.join(",")).join("\r\n");
}
