// Rules of schedules in words, and moments in the time zone of a rule.

import { CLOCK, moment } from "./format.js";

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const SHORT = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const NAMED = { "@yearly": "Every year on 1 January at 00:00", "@annually": "Every year on 1 January at 00:00", "@monthly": "On day 1 of each month at 00:00", "@weekly": "Every Sunday at 00:00", "@daily": "Every day at 00:00", "@midnight": "Every day at 00:00", "@hourly": "Every hour" };
const UNITS = { s: "second", m: "minute", h: "hour", d: "day", w: "week" };

const dayOf = (word) => (/^\d$/.test(word) ? Number(word) % 7 : SHORT.indexOf(word.toUpperCase()));
const clock = (hour, minute) => `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;

/** "MON-FRI" as "on weekdays"; null where it is another form. */
function daysText(text) {
  if (text === "*" || text === "?") return "every day";
  const range = /^(\w+)-(\w+)$/.exec(text);
  if (range) {
    const [from, to] = [dayOf(range[1]), dayOf(range[2])];
    if (from < 0 || to < 0) return null;
    return from === 1 && to === 5 ? "on weekdays" : `${DAYS[from]} to ${DAYS[to]}`;
  }
  const days = text.split(",").map(dayOf);
  if (days.includes(-1)) return null;
  if (days.length === 2 && days.includes(0) && days.includes(6)) return "on weekends";
  const names = days.map((day) => DAYS[day]);
  return `every ${names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]}`;
}

/** A rule in words, such as "On weekdays at 08:00"; null where there are none that are shorter than the rule. */
export function ruleText(rule) {
  const text = rule.trim();
  if (NAMED[text]) return NAMED[text];
  const every = /^every\s+(\d+)\s*([smhdw])$/i.exec(text);
  if (every) return `Every ${every[1] === "1" ? "" : `${every[1]} `}${UNITS[every[2].toLowerCase()]}${every[1] === "1" ? "" : "s"}`;
  const parts = text.split(/\s+/);
  if (parts.length !== 5) return null;
  const [minute, hour, date, month, day] = parts;
  if (month !== "*") return null;
  const step = /^\*\/(\d+)$/.exec(minute);
  if (step && hour === "*" && date === "*" && day === "*") return `Every ${step[1]} minutes`;
  if (!/^\d+$/.test(minute)) return null;
  if (hour === "*" && date === "*" && day === "*") return minute === "0" ? "Every hour" : `Every hour at minute ${minute}`;
  const hours = /^\*\/(\d+)$/.exec(hour);
  if (hours && date === "*" && day === "*") return `Every ${hours[1]} hours at minute ${minute}`;
  if (!/^\d+(,\d+)*$/.test(hour)) return null;
  const times = hour.split(",").map((one) => clock(one, minute)).join(" and ");
  if (/^\d+$/.test(date) && day === "*") return `On day ${date} of each month at ${times}`;
  const days = date === "*" ? daysText(day) : null;
  return days ? `${days[0].toUpperCase()}${days.slice(1)} at ${times}` : null;
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
