// Rules of schedules in words, and moments in the time zone of a rule.

import { CLOCK, moment } from "./format.js";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SHORT = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const NAMED = { "@yearly": "Every year on 1 January at 00:00", "@annually": "Every year on 1 January at 00:00", "@monthly": "On day 1 of each month at 00:00", "@weekly": "Every Sunday at 00:00", "@daily": "Every day at 00:00", "@midnight": "Every day at 00:00", "@hourly": "Every hour" };
const UNITS = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

const dayOf = (word) => (/^\d$/.test(word) ? Number(word) % 7 : SHORT.indexOf(word.toUpperCase()));
const monthOf = (word) => (/^\d+$/.test(word) ? Number(word) - 1 : MONTHS.findIndex((name) => name.slice(0, 3).toUpperCase() === word.toUpperCase()));
const clock = (hour, minute) => `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words[0]);
const isNumbers = (text) => /^\d+(,\d+)*$/.test(text);
const isAny = (text) => text === "*" || text === "?";
/** More times than this are no shorter in words. */
const TIMES_MAX = 6;

/** "MON-FRI" as "on weekdays"; null where it is another form. */
function daysText(text) {
  if (isAny(text)) return "every day";
  const range = /^(\w+)-(\w+)$/.exec(text);
  if (range) {
    const [from, to] = [dayOf(range[1]), dayOf(range[2])];
    if (from < 0 || to < 0) return null;
    return from === 1 && to === 5 ? "on weekdays" : `${DAYS[from]} to ${DAYS[to]}`;
  }
  const days = text.split(",").map(dayOf);
  if (days.includes(-1)) return null;
  if (days.length === 2 && days.includes(0) && days.includes(6)) return "on weekends";
  return `every ${listed(days.map((day) => DAYS[day]))}`;
}

/** Days of a month, such as "on the last day of each month"; null where it is another form. */
function datesText(text) {
  if (text.toUpperCase() === "L") return "on the last day of each month";
  if (isNumbers(text)) return `on ${text.includes(",") ? "days" : "day"} ${listed(text.split(","))} of each month`;
  const range = /^(\d+)-(\d+)$/.exec(text);
  return range ? `on days ${range[1]} to ${range[2]} of each month` : null;
}

/** Months, such as "in January and July"; "" for all, null where it is another form. */
function monthsText(text) {
  if (text === "*") return "";
  const range = /^(\w+)-(\w+)$/.exec(text);
  const months = (range ? [range[1], range[2]] : text.split(",")).map(monthOf);
  if (months.some((month) => !MONTHS[month])) return null;
  return range ? `from ${MONTHS[months[0]]} to ${MONTHS[months[1]]}` : `in ${listed(months.map((month) => MONTHS[month]))}`;
}

/** How often within a day: `{ at }` for moments of it, `{ every }` for an interval; null where it is another form. */
function timesText(minute, hour) {
  const hours = /^(?:\*|(\d+)-(\d+))(?:\/(\d+))?$/.exec(hour);
  const step = /^\*(?:\/(\d+))?$/.exec(minute);
  if (step && hours && !hours[3]) {
    const every = step[1] && step[1] !== "1" ? `every ${step[1]} minutes` : "every minute";
    return { every: hours[1] ? `${every} from ${clock(hours[1], 0)} to ${clock(hours[2], 59)}` : every };
  }
  if (!isNumbers(minute)) return null;
  const minutes = minute.split(",");
  if (hours) {
    const every = hours[3] && hours[3] !== "1" ? `every ${hours[3]} hours` : "every hour";
    if (hours[1]) return minutes.length === 1 ? { every: `${every} from ${clock(hours[1], minute)} to ${clock(hours[2], minute)}` } : null;
    return { every: minute === "0" ? every : `${every} at ${minutes.length > 1 ? "minutes" : "minute"} ${listed(minutes)}` };
  }
  if (!isNumbers(hour)) return null;
  const times = hour.split(",").flatMap((one) => minutes.map((at) => clock(one, at)));
  return times.length > TIMES_MAX ? null : { at: listed(times) };
}

/** A rule in words, such as "On weekdays at 08:00"; null where there are none that are shorter than the rule. */
export function ruleText(rule) {
  const text = rule.trim();
  if (NAMED[text]) return NAMED[text];
  const every = /^every\s+(\d+)\s*([smhdw])$/i.exec(text);
  if (every) return `Every ${every[1] === "1" ? "" : `${every[1]} `}${UNITS[every[2].toLowerCase()]}${every[1] === "1" ? "" : "s"}`;
  const parts = text.split(/\s+/);
  // The first of six fields are seconds.
  if (parts.length === 6) {
    const seconds = /^\*\/(\d+)$/.exec(parts[0]);
    if (seconds && parts.slice(1).every(isAny)) return `Every ${seconds[1]} seconds`;
    if (parts.shift() !== "0") return null;
  }
  if (parts.length !== 5) return null;
  const [minute, hour, date, month, day] = parts;
  const times = timesText(minute, hour);
  const months = monthsText(month);
  // With both, a rule counts on either.
  const days = isAny(date) ? daysText(day) : isAny(day) ? datesText(date) : null;
  if (!times || months === null || days === null) return null;
  const words = times.at ? `${days} at ${times.at}` : [times.every, days === "every day" ? "" : days].filter(Boolean).join(" ");
  return `${words[0].toUpperCase()}${words.slice(1)}${months ? `, ${months}` : ""}`;
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
