// When a schedule runs: common rules by their parts, and any other one as it is written.

import { choice, numberInput, textInput } from "../../lib/controls.js";
import { field, h } from "../../lib/dom.js";
import { moment } from "../../lib/format.js";

/** Rules that are one click away where a rule is written. */
const RULES = ["every 15m", "@hourly", "0 9 * * MON-FRI", "0 0 1 * *", "in 2h"];
const DAYS = [["MON", "Monday"], ["TUE", "Tuesday"], ["WED", "Wednesday"], ["THU", "Thursday"], ["FRI", "Friday"], ["SAT", "Saturday"], ["SUN", "Sunday"]];
const MODES = [["interval", "Every few minutes or hours"], ["daily", "Daily"], ["weekdays", "On weekdays"], ["weekly", "Weekly"], ["monthly", "Monthly"], ["once", "Once"], ["rule", "Cron expression or rule"]];
const ANY = { interval: { every: 15, unit: "m" }, time: "09:00", day: "MON", date: 1 };

/** A date as a control of the browser takes it, in the time zone of the browser. */
const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

/** "7:30", "07.30" or "0730" as hours and minutes; null where it is no time. */
function timeOf(text) {
  const found = /^\s*(\d{1,2})[:.h]?([0-5]\d)\s*$/.exec(text);
  return found && Number(found[1]) < 24 ? [Number(found[1]), Number(found[2])] : null;
}

/** The parts of a rule, and which form shows them. */
function parsed(rule) {
  const every = /^every\s+(\d+)\s*([mhd])$/i.exec(rule);
  if (every) return { mode: "interval", every: every[1], unit: every[2].toLowerCase() };
  const at = /^at\s+(\S+)$/i.exec(rule);
  if (at && moment(at[1])) return { mode: "once", at: local(moment(at[1])) };
  const cron = /^(\d{1,2}) (\d{1,2}) (\*|\d{1,2}) \* (\*|MON-FRI|1-5|[A-Z]{3})$/i.exec(rule);
  if (!cron) return { mode: "rule" };
  const [, minute, hour, date, day] = cron;
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (date !== "*") return day === "*" ? { mode: "monthly", time, date } : { mode: "rule" };
  if (day === "*") return { mode: "daily", time };
  if (/^(MON-FRI|1-5)$/i.test(day)) return { mode: "weekdays", time };
  return DAYS.some(([key]) => key === day.toUpperCase()) ? { mode: "weekly", time, day: day.toUpperCase() } : { mode: "rule" };
}

/**
 * The field of a rule: `read()` gives the rule, "" where a part is missing, `fault(text)` shows what is amiss, and `hasZone()` says whether the
 * rule counts in a time zone. `onchange` is called with each change.
 */
export function ruleField(rule, onchange) {
  const start = rule ? parsed(rule) : { mode: "daily" };
  const text = field("When", textInput(rule ?? "", { class: "code", spellcheck: "false", required: true, placeholder: "*/15 9-17 * * MON-FRI" }), { hint: "A cron expression, @daily, every 15m, in 2h, or at 2026-12-01T09:00Z." });
  const chips = h("div", { class: "chips" }, RULES.map((one) => h("button", { type: "button", class: "small", onclick: () => { text.control.value = one; onchange(); } }, one)));
  const time = field("At", textInput(start.time ?? ANY.time, { inputmode: "numeric", maxlength: 5, placeholder: "09:00", required: true, autocomplete: "off" }), { hint: "Hours and minutes, 00:00 to 23:59." });
  const every = field("Every", numberInput(start.every ?? ANY.interval.every, { min: 1, step: 1, required: true }));
  const unit = field("Unit", choice([["m", "minutes"], ["h", "hours"], ["d", "days"]], start.unit ?? ANY.interval.unit));
  const day = field("Day", choice(DAYS, start.day ?? ANY.day));
  const date = field("Day of the month", numberInput(start.date ?? ANY.date, { min: 1, max: 31, step: 1, required: true }), { hint: "Months without this day are skipped." });
  const at = field("Date and time", h("input", { type: "datetime-local", value: start.at ?? "", required: true }), { hint: "In the time zone of this browser." });
  const repeat = field("Repeat", choice(MODES, start.mode));
  const shown = { interval: [every, unit], daily: [time], weekdays: [time], weekly: [day, time], monthly: [date, time], once: [at], rule: [text, chips] };
  const mode = () => repeat.control.value;
  const place = h("div", { class: "rule-parts" });
  const made = h("div", { class: "form-row" }, repeat, place);

  function show() {
    place.className = `rule-parts ${shown[mode()].length > 1 && mode() !== "rule" ? "form-row" : "stack"}`;
    place.replaceChildren(...shown[mode()]);
  }

  made.fault = (message) => {
    for (const part of [text, ...shown[mode()]]) part.fault?.("");
    shown[mode()][0].fault(message);
  };
  Object.defineProperty(made, "control", { get: () => shown[mode()][0].control });
  made.hasZone = () => !["interval", "once"].includes(mode());
  made.read = () => {
    if (mode() === "rule") return text.control.value.trim();
    if (mode() === "interval") return every.control.value === "" ? "" : `every ${every.control.value}${unit.control.value}`;
    if (mode() === "once") return at.control.value === "" ? "" : `at ${new Date(at.control.value).toISOString().slice(0, 16)}Z`;
    const clock = timeOf(time.control.value);
    if (clock === null) return "";
    const [hour, minute] = clock;
    if (mode() === "monthly") return date.control.value === "" ? "" : `${minute} ${hour} ${date.control.value} * *`;
    return `${minute} ${hour} * * ${{ daily: "*", weekdays: "MON-FRI", weekly: day.control.value }[mode()]}`;
  };
  let last = made.read();
  repeat.control.addEventListener("change", () => {
    // What was chosen by its parts can be written on.
    if (mode() === "rule" && last !== "") text.control.value = last;
    show();
    last = made.read();
    onchange();
  });
  place.addEventListener("input", () => {
    last = made.read();
    onchange();
  });
  show();
  return made;
}
