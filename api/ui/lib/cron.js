// Rules of schedules in words, and moments in the time zone of a rule.

import { CLOCK, moment } from "./format.js";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const SHORT = { "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *" };
const UNITS = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

/** The fields of an expression: the smallest and largest value, and words for them, of which the first three letters count. */
const SECOND = { min: 0, max: 59, words: [] };
const MINUTE = SECOND;
const HOUR = { min: 0, max: 23, words: [] };
const DATE = { min: 1, max: 31, words: [] };
const MONTH = { min: 1, max: 12, words: MONTHS };
const DAY = { min: 0, max: 7, words: DAYS };

/** More times than this are no shorter in words. */
const TIMES_MAX = 6;
/** From so many on, neighbours are a range. */
const RANGE_MIN = 3;

const clock = (...parts) => parts.map((part) => String(part).padStart(2, "0")).join(":");
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : String(words[0]));

/** What a field holds: `values` in their order, whether it takes `all`, begins with a `star`, or names the `last` day; null where it is no field. */
function fieldOf(text, { min, max, words }) {
  const valueOf = (word) => {
    if (/^\d+$/.test(word)) return Number(word);
    const at = words.findIndex((name) => name.slice(0, 3).toUpperCase() === word.toUpperCase());
    return at < 0 ? NaN : at + min;
  };
  const found = new Set();
  let last = false;
  for (const item of text.split(",")) {
    if (max === DATE.max && item.toUpperCase() === "L") {
      last = true;
      continue;
    }
    const parts = /^(\*|\?|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item);
    if (!parts) return null;
    const isAny = parts[1] === "*" || parts[1] === "?";
    const from = isAny ? min : valueOf(parts[1]);
    let to = parts[2] ? valueOf(parts[2]) : isAny ? (max === DAY.max ? 6 : max) : parts[3] ? max : from;
    // A week may end with its Sunday.
    if (max === DAY.max && to === 0 && from > 0) to = 7;
    const step = Number(parts[3] ?? 1);
    if (!(from >= min && to <= max && from <= to && step > 0)) return null;
    for (let value = from; value <= to; value += step) found.add(max === DAY.max ? value % 7 : value);
  }
  const values = [...found].sort((a, b) => a - b);
  return { values, last, star: /^[*?]/.test(text), all: values.length === (max === DAY.max ? 7 : max - min + 1) };
}

/** The distance between all neighbours of a list, or null where it differs. */
function stepOf(values) {
  const step = values[1] - values[0];
  return values.length > 1 && values.every((value, at) => at === 0 || value - values[at - 1] === step) ? step : null;
}

/** How far apart the values are that go around a clock of `size` evenly, such as 15 for 0, 15, 30 and 45; null for others. */
function roundOf(values, size) {
  const step = stepOf(values);
  return step && values[0] === 0 && step * values.length === size ? step : null;
}

const isRange = (values) => values.length >= RANGE_MIN && stepOf(values) === 1;
const every = (step, unit) => (step === 1 ? `every ${unit}` : `every ${step} ${unit}s`);

/** How often within a day: `{ at }` for moments of it, `{ every }` for an interval; null where no words are shorter. */
function timesText(second, minute, hour) {
  const [seconds, minutes, hours] = [second.values, minute.values, hour.values];
  if (!(seconds.length === 1 && seconds[0] === 0)) {
    const step = roundOf(seconds, 60);
    if (step && minute.all && hour.all) return { every: every(step, "second") };
    if (seconds.length !== 1 || minutes.length * hours.length > TIMES_MAX) return null;
    return { at: listed(hours.flatMap((at) => minutes.map((one) => clock(at, one, seconds[0])))) };
  }
  const step = roundOf(minutes, 60);
  if (step) {
    if (hour.all) return { every: every(step, "minute") };
    if (isRange(hours) || hours.length === 1) return { every: `${every(step, "minute")} from ${clock(hours[0], 0)} to ${clock(hours.at(-1), 59)}` };
    return hours.length <= TIMES_MAX ? { every: `${every(step, "minute")} from ${listed(hours.map((one) => `${clock(one, 0)} to ${clock(one, 59)}`))}` } : null;
  }
  if (hours.length === 1 && minutes.length > TIMES_MAX && stepOf(minutes)) return { every: `${every(stepOf(minutes), "minute")} from ${clock(hours[0], minutes[0])} to ${clock(hours[0], minutes.at(-1))}` };
  const within = minutes.length <= TIMES_MAX ? `at ${minutes.length > 1 ? "minutes" : "minute"} ${listed(minutes)}`
    : stepOf(minutes) ? `${every(stepOf(minutes), "minute")} from minute ${minutes[0]} to ${minutes.at(-1)}` : null;
  if (!within) return null;
  const isOnTheHour = minutes.length === 1 && minutes[0] === 0;
  const round = hour.all ? 1 : roundOf(hours, 24);
  // Twice a day is said by its times.
  if (round && (hour.all || hours.length > 2)) return { every: isOnTheHour ? every(round, "hour") : minutes.length > TIMES_MAX ? `${within} of ${every(round, "hour")}` : `${every(round, "hour")} ${within}` };
  if (minutes.length === 1 && hours.length > RANGE_MIN && stepOf(hours) === 1) return { every: `every hour from ${clock(hours[0], minutes[0])} to ${clock(hours.at(-1), minutes[0])}` };
  if (hours.length * minutes.length <= TIMES_MAX) return { at: listed(hours.flatMap((one) => minutes.map((at) => clock(one, at)))) };
  if (minutes.length === 1 && stepOf(hours)) return { every: `${every(stepOf(hours), "hour")} from ${clock(hours[0], minutes[0])} to ${clock(hours.at(-1), minutes[0])}` };
  return null;
}

/** Days of the week, such as "on weekdays". */
function daysText({ values, all }) {
  if (all) return "every day";
  // A week begins with Monday.
  const days = values.map((day) => (day + 6) % 7).sort((a, b) => a - b);
  if (days.join() === "0,1,2,3,4") return "on weekdays";
  if (days.join() === "5,6") return "on weekends";
  const names = days.map((day) => DAYS[(day + 1) % 7]);
  return isRange(days) ? `${names[0]} to ${names.at(-1)}` : `every ${listed(names)}`;
}

/** Months, such as "January and July" or "June to August"; "" for all. */
function monthsText({ values, all }) {
  if (all) return "";
  const names = values.map((month) => MONTHS[month - 1]);
  return isRange(values) ? `${names[0]} to ${names.at(-1)}` : listed(names);
}

/** Days of a month, such as "on the last day of each month"; `months` are those that count, "" for all. */
function datesText({ values, last }, months) {
  if (MONTHS.includes(months) && values.length === 1 && !last) return `on ${values[0]} ${months}`;
  const of = months ? `of ${months}` : "of each month";
  const step = stepOf(values);
  const days = values.length === 0 ? [] : isRange(values) ? [`days ${values[0]} to ${values.at(-1)}`]
    : step && values.length > TIMES_MAX ? [`every ${step === 2 ? "second" : step === 3 ? "third" : `${step}th`} day from day ${values[0]} to ${values.at(-1)}`]
      : [`${values.length > 1 ? "days" : "day"} ${listed(values)}`];
  return `on ${listed([...days, ...(last ? ["the last day"] : [])])} ${of}`;
}

/** A rule in words, such as "On weekdays at 08:00"; null where there are none that are shorter than the rule. */
export function ruleText(rule) {
  const text = rule.trim();
  const interval = /^every\s+(\d+)\s*([smhdw])$/i.exec(text);
  if (interval) return `E${every(Number(interval[1]), UNITS[interval[2].toLowerCase()]).slice(1)}`;
  const parts = (SHORT[text.toLowerCase()] ?? text).split(/\s+/);
  // The first of six fields are seconds.
  if (parts.length === 5) parts.unshift("0");
  if (parts.length !== 6) return null;
  const [second, minute, hour, date, month, day] = [SECOND, MINUTE, HOUR, DATE, MONTH, DAY].map((kind, at) => fieldOf(parts[at], kind));
  if (![second, minute, hour, date, month, day].every(Boolean)) return null;
  const times = timesText(second, minute, hour);
  if (!times) return null;
  const months = monthsText(month);
  const said = daysOf(date, day, months);
  if (said === null) return null;
  const isDaily = said === "every day";
  const words = times.at ? `${said} at ${times.at}` : [times.every, isDaily ? "" : said].filter(Boolean).join(" ");
  const season = months && (date.all || !said.includes(months)) ? `${month.values.length >= RANGE_MIN && isRange(month.values) ? ", from" : ", in"} ${months}` : "";
  return `${words[0].toUpperCase()}${words.slice(1)}${season}`;
}

/** The days of a rule; null where both of its fields must fit, which no few words say. */
function daysOf(date, day, months) {
  if (date.all) return daysText(day);
  if (day.all) return datesText(date, months);
  // With both, a rule counts on either.
  return date.star || day.star || months ? null : `${datesText(date, months)} and ${daysText(day)}`;
}

/** A moment in a time zone with the zone's name, such as "22 Nov 2026, 08:00 CET"; in that of the browser where the zone is not known. */
export function whenIn(text, zone) {
  const date = moment(text);
  if (!date) return "";
  const shape = { day: "numeric", month: "short", year: date.getFullYear() === new Date().getFullYear() ? undefined : "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short", ...CLOCK };
  try {
    return date.toLocaleString(undefined, { ...shape, timeZone: zone || "UTC" });
  } catch {
    return date.toLocaleString(undefined, shape);
  }
}

/** The time zone of the browser. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** A moment in the time zone of the browser, with the zone's name. */
export const whenHere = (text) => whenIn(text, HERE);

/** Does a rule count in a time zone? Intervals and moments do not. */
export const hasZone = (rule) => !/^(every|in|at)\s/i.test(rule.trim());
