// The bindings of keys and events: read from the daemon, matched here, carried out by the page.

import { call } from "./api.js";
import { presses } from "./keys.js";

/** What holds until the daemon has answered, or when it cannot. */
const FALLBACK = [
  { event: "key", key: "Mod+K", command: "search" },
  { event: "key", key: "Escape", command: "stop" },
];

/** Keys and events, and what is to be done at them. */
export class Bindings {
  /** `run` carries out a command: the name of an action, or a text that begins with a slash. */
  constructor(run) {
    this.run = run;
    this.list = FALLBACK;
  }

  /** Reads the bindings of the daemon. */
  async load() {
    this.list = (await call("GET", "/api/bindings")).bindings ?? FALLBACK;
  }

  /** What a key is bound to; undefined for nothing. */
  commandOf(event) {
    return this.list.find((binding) => binding.event === "key" && presses(event, binding.key))?.command;
  }

  /** Carries out what a key is bound to; false when it is bound to nothing. */
  onKey(event) {
    const command = this.commandOf(event);
    if (command) this.run(command);
    return Boolean(command);
  }

  /** Carries out everything that is bound to an event of a turn. */
  onEvent(name) {
    for (const binding of this.list) if (binding.event === name) this.run(binding.command);
  }
}
