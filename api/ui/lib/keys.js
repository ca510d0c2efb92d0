// Keyboard shortcuts: one table for the whole page, shown by `?`.

/** What is pressed may be named otherwise than `event.key` says. */
const NAMES = { " ": "Space", "+": "Plus" };

/** Does a key event press `key`, such as "Mod+Shift+K" (Mod is Ctrl, or Cmd on a Mac)? */
export function presses(event, key) {
  const parts = key.split("+");
  const written = parts.pop();
  const last = written.length === 1 ? written.toUpperCase() : written;
  const name = NAMES[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const wants = (modifier) => parts.includes(modifier);
  if (name !== last || event.altKey !== wants("Alt")) return false;
  // A character such as "?" needs Shift on many keyboards, which says nothing.
  if (event.shiftKey !== wants("Shift") && !(last.length === 1 && /[^\w]/.test(last))) return false;
  if (wants("Mod")) return event.ctrlKey || event.metaKey;
  return event.ctrlKey === wants("Ctrl") && event.metaKey === wants("Meta");
}

/** Is text being typed where the event happened? Then a bare letter is no shortcut. */
export function isTyping(event) {
  return event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]") !== null;
}

/** The shortcuts in force. */
export class Keys {
  constructor() {
    this.list = [];
    /** Functions that give further rows for the dialog of shortcuts: `[{ key, label }]`. */
    this.others = new Set();
    this.prefix = "";
    this.timer = 0;
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /**
   * Adds a shortcut: `keys.add("Mod+K", "Search agents", run)`, or "g c" for two keys one after the other. It holds until
   * `signal` ends. One without a modifier does nothing while text is typed, and none does under an open dialog.
   */
  add(key, label, run, { signal } = {}) {
    const entry = { key, label, run };
    this.list.push(entry);
    signal?.addEventListener("abort", () => {
      this.list = this.list.filter((other) => other !== entry);
    });
  }

  onKey(event) {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const isBare = !event.ctrlKey && !event.metaKey && !event.altKey && event.key.length === 1;
    if (isBare && isTyping(event)) return;
    const typed = this.prefix;
    this.prefix = "";
    const found = this.list.findLast(({ key }) => {
      const [first, second] = key.split(" ");
      return second === undefined ? typed === "" && presses(event, first) : typed === first && event.key === second;
    });
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (isBare && typed === "" && this.list.some(({ key }) => key.startsWith(`${event.key} `))) {
      this.prefix = event.key;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => { this.prefix = ""; }, 1200);
    }
  }
}
