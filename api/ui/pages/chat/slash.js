// What begins with a slash in the message box: the commands of the chat and the skills of the agent, offered while they are typed.

import { get } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { seesAll } from "../../lib/me.js";

/** Text up to its first white space, when it begins with a slash. */
const nameOf = (text) => /^\s*\/(\S*)/.exec(text)?.[1].toLowerCase() ?? null;

export class Slash {
  /** `input` is the message box. `agentOf()` is the open agent; `take(text)` puts text into the box; `say()` sends what is in it as a message. */
  constructor({ input, agentOf, take, say }) {
    Object.assign(this, { input, agentOf, put: take, commands: [], skills: [], matches: [], active: 0 });
    this.menu = h("ul", { class: "commands", id: "commands", role: "listbox", "aria-label": "Commands", hidden: true });
    this.words = h("span", { class: "grow", role: "status" });
    this.sayButton = h("button", { class: "small", type: "button", onclick: () => { say(); input.focus(); } }, "Send as a message");
    this.note = h("div", { class: "slash-note", hidden: true }, icon("alert", 15), this.words, this.sayButton);
  }

  async load() {
    const { commands } = await get("/api/commands");
    this.commands = commands;
    // Other keys may not see them; the daemon knows them all the same.
    if (!seesAll()) return;
    const { skills } = await get("/api/skills");
    this.skills = skills.filter(({ enabled }) => enabled).map(({ name, description }) => ({ name: name.toLowerCase(), command: `/${name}`, argument: "[text]", description, isSkill: true }));
  }

  /** The commands and the skills that the open agent has. */
  all() {
    const names = this.agentOf()?.skills ?? [];
    const known = new Set(this.commands.map(({ name }) => name));
    return [...this.commands, ...this.skills.filter(({ name }) => !known.has(name) && (names.length === 0 || names.some((one) => one.toLowerCase() === name)))];
  }

  /** Is `text` a command, and not a message, or a skill, which is one? */
  isCommand(text) {
    // Before they are known, the daemon decides.
    if (this.commands.length === 0) return nameOf(text) !== null;
    return this.commands.some(({ name }) => name === nameOf(text));
  }

  /** Does `text` begin with a slash and a name that there is not? */
  isUnknown(text) {
    const name = nameOf(text);
    return name !== null && this.commands.length > 0 && !this.all().some((one) => one.name === name);
  }

  /** The text in the box changed; one that `isPlain` is a message whatever it says. */
  complete(isPlain = false) {
    const value = isPlain ? "" : this.input.value;
    const isName = /^\s*\/\S*$/.test(value);
    this.matches = isName ? this.all().filter(({ name }) => name.startsWith(nameOf(value))) : [];
    this.active = 0;
    this.draw();
    const isUnknown = this.matches.length === 0 && this.isUnknown(value);
    this.note.hidden = !isUnknown;
    this.words.textContent = isUnknown ? `There is no command or skill “/${nameOf(value).slice(0, 40)}”.` : "";
  }

  draw() {
    this.menu.hidden = this.matches.length === 0;
    this.input.setAttribute("aria-expanded", String(!this.menu.hidden));
    fill(this.menu, this.matches.map((command, at) => h("li", {
      id: `command-${at}`, role: "option", "aria-selected": String(at === this.active),
      onpointerdown: (event) => { event.preventDefault(); this.take(command); },
    }, h("b", {}, command.command), command.argument ? h("span", { class: "mono faint" }, command.argument) : null, h("span", { class: "grow dim" }, command.description), command.isSkill ? h("span", { class: "badge" }, "skill") : null)));
    if (this.menu.hidden) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", `command-${this.active}`);
      this.menu.children[this.active].scrollIntoView({ block: "nearest" });
    }
  }

  take(command) {
    this.put(command.argument ? `${command.command} ` : command.command);
    this.hide();
    this.input.focus();
  }

  hide() {
    this.matches = [];
    this.draw();
  }

  /** Handles a key while commands are offered; true when it was used. */
  onKey(event) {
    if (this.menu.hidden) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = this.matches[this.active];
    if (step) {
      this.active = (this.active + step + this.matches.length) % this.matches.length;
      this.draw();
    } else if (event.key === "Tab" || (event.key === "Enter" && !event.isComposing && chosen.command.toLowerCase() !== this.input.value.trim().toLowerCase())) this.take(chosen);
    else if (event.key === "Escape") {
      event.stopPropagation();
      this.hide();
    } else return false;
    event.preventDefault();
    return true;
  }

  /** What is in the box is not sent as it is: Enter once more sends it as a message. */
  refuse() {
    this.complete();
    this.hide();
    this.sayButton.focus();
  }
}
