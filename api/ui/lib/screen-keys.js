// What a terminal is sent for a key of the keyboard, as xterm sends it.

const ARROWS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const NUMBERED = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const LETTERED = { F1: "P", F2: "Q", F3: "R", F4: "S" };
const CONTROLS = { "@": 0, " ": 0, "[": 27, "\\": 28, "]": 29, "^": 30, _: 31, "?": 127 };

/** The characters for a `keydown`, or null where the key is not for the terminal, or comes as text. */
export function keyText(event, { appKeys = false } = {}) {
  const { key, ctrlKey, altKey, metaKey, shiftKey } = event;
  if (metaKey || event.isComposing) return null;
  const modifier = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
  if (key in ARROWS) return modifier > 1 ? `\x1b[1;${modifier}${ARROWS[key]}` : `\x1b${appKeys ? "O" : "["}${ARROWS[key]}`;
  if (key in NUMBERED) return modifier > 1 ? `\x1b[${NUMBERED[key]};${modifier}~` : `\x1b[${NUMBERED[key]}~`;
  if (key in LETTERED) return modifier > 1 ? `\x1b[1;${modifier}${LETTERED[key]}` : `\x1bO${LETTERED[key]}`;
  const escape = altKey ? "\x1b" : "";
  if (key === "Enter") return `${escape}\r`;
  if (key === "Backspace") return `${escape}${ctrlKey ? "\b" : "\x7f"}`;
  if (key === "Escape") return `${escape}\x1b`;
  if (key === "Tab") return shiftKey ? "\x1b[Z" : "\t";
  if (key.length !== 1) return null;
  if (ctrlKey && !(shiftKey && "CV".includes(key.toUpperCase()))) {
    const upper = key.toUpperCase();
    if (upper >= "A" && upper <= "Z") return escape + String.fromCharCode(upper.charCodeAt(0) - 64);
    return key in CONTROLS ? escape + String.fromCharCode(CONTROLS[key]) : null;
  }
  return altKey && !ctrlKey ? `\x1b${key}` : null;
}
