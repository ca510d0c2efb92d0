// Numbers, moments and sizes as people read them. Everything takes what the API gives and gives text.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en");
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** 1234567 as "1,234,567". */
export const number = (value) => exact.format(value ?? 0);

/** 1234567 as "1.2M"; small numbers stay as they are. */
export const short = (value) => ((value ?? 0) < 10_000 ? plain.format(value ?? 0) : compact.format(value));

/** A count with its word: `count(1, "message")` is "1 message", `count(2, ...)` "2 messages". */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** The clock of the whole page: a day of 24 hours, whatever the locale has. */
export const CLOCK = { hourCycle: "h23" };

/** Dollars, with cents, or with as many digits as less than a cent needs: "$0.0012", "$0.23", "$12.40". */
export function money(usd) {
  const value = Number(usd ?? 0);
  if (value === 0) return "$0";
  if (Math.abs(value) < 0.000_1) return "< $0.0001";
  return `$${value.toFixed(Math.abs(value) < 0.01 ? 4 : 2)}`;
}

/** Dollars at the axis of a chart, with the digits that the number has: "$0.025", "$5". */
export const moneyMark = (usd) => `$${Number(Number(usd ?? 0).toPrecision(3))}`;

/** The model of an agent in words. */
export const modelText = (provider, model) => (provider === "builtin" ? "offline model" : [provider, model].filter(Boolean).join(" / "));

/** Bytes as "12 KB"; the units of 1,024. */
export function bytes(value) {
  let left = Number(value ?? 0);
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (left < 1024) return `${plain.format(left)} ${unit}`;
    left /= 1024;
  }
  return `${plain.format(left)} TB`;
}

/** Milliseconds as "340 ms", "2.4 s", "3 min 20 s", "2 h 5 min". */
export function duration(ms) {
  const value = Number(ms ?? 0);
  if (value < 1000) return `${Math.round(value)} ms`;
  if (value < 60_000) return `${plain.format(value / 1000)} s`;
  const minutes = Math.floor(value / 60_000);
  const pair = (large, big, little, small) => (little > 0 ? `${large} ${big} ${little} ${small}` : `${large} ${big}`);
  if (minutes < 60) return pair(minutes, "min", Math.floor((value % 60_000) / 1000), "s");
  if (minutes < 1440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  return pair(Math.floor(minutes / 1440), "d", Math.floor((minutes % 1440) / 60), "h");
}

/** A moment of the API as a date, or null. */
export function moment(text) {
  const date = text ? new Date(text) : null;
  return date && !Number.isNaN(date.getTime()) ? date : null;
}

/** A moment as "21 Nov 2026, 10:55", in the time zone of the browser; "" for none. */
export const when = (text) => moment(text)?.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short", ...CLOCK }) ?? "";

/** A moment as "10:55" when it is today, else as "21 Nov" (with the year when it is another one). */
export function brief(text) {
  const date = moment(text);
  if (!date) return "";
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString(undefined, { timeStyle: "short", ...CLOCK });
  const year = date.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(undefined, { day: "numeric", month: "short", year });
}

/** A moment as "22 Nov, 10:55", with the year when it is another one: for narrow places. */
export function stamp(text) {
  const date = moment(text);
  if (!date) return "";
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleString(undefined, { day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit", ...CLOCK });
}

/** A moment as "3 minutes ago" or "in 2 hours"; "" for none. */
export function ago(text, now = Date.now()) {
  const date = moment(text);
  if (!date) return "";
  const seconds = (date.getTime() - now) / 1000;
  for (const [unit, size] of [["year", 31_557_600], ["month", 5_259_600], ["day", 86_400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / (unit === "month" ? 2_629_800 : size)), unit);
  }
  return relative.format(Math.round(seconds), "second");
}
