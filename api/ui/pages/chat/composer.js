// The message box: text, attachments, commands with completion, and the buttons that send and stop.

import { menuButton, showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { bytes } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";
import { mayBranch } from "./branch.js";
import { ContextMark } from "./context.js";
import { draftOf, keepDraft } from "./place.js";
import { Slash } from "./slash.js";
import { Microphone } from "./voice.js";

/** Attachments of one message (`limit::ATTACHMENTS_MAX` of the daemon). */
const ATTACHMENTS_MAX = 32;

/** The box below the conversation. `chat` is the page: it sends, stops and runs commands. */
export class Composer {
  constructor(chat) {
    this.chat = chat;
    this.files = [];
    /** The turn whose message is in the box to be sent in other words, or null. */
    this.edited = null;
    this.input = h("textarea", {
      id: "prompt", rows: "1", "aria-label": "Message", placeholder: "Select an agent first", disabled: true, autocomplete: "off",
      role: "combobox", "aria-expanded": "false", "aria-haspopup": "listbox", "aria-autocomplete": "list", "aria-controls": "commands", "aria-describedby": "keys-hint",
      oninput: () => this.changed(), onkeydown: (event) => this.onKey(event), onpaste: (event) => this.onPaste(event),
    });
    this.picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach", onchange: () => this.picked() });
    this.attach = h("button", { class: "quiet only-icon", type: "button", "aria-label": "Attach files", title: "Attach files", disabled: true, onclick: () => this.picker.click() }, icon("attach"));
    this.send = h("button", { class: "primary only-icon send", type: "submit", "aria-label": "Send", title: "Send", disabled: true }, icon("send"));
    this.stop = h("button", { class: "stop", type: "button", hidden: true, onclick: () => chat.stop().catch(showError) }, icon("stop", 17), "Stop");
    this.stopMenu = menuButton({ label: "Ways to stop", class: "quiet only-icon stop-menu", items: () => [
      { label: "Stop now", icon: "stop", run: () => chat.stop() },
      { label: "Stop before the next tool call", icon: "pause", run: () => chat.interrupt() },
    ] });
    this.stopMenu.hidden = true;
    this.thinking = h("button", { class: "quiet small thinking-on", type: "button", hidden: true, title: "Extended thinking is on; click to turn it off", onclick: () => this.setThinking(false) }, "Thinking on", icon("close", 13));
    this.microphone = new Microphone({ agentOf: () => chat.agent?.id, insert: (text) => this.insert(text), signal: chat.ctx.signal });
    this.context = new ContextMark(chat.ctx.signal);
    this.model = h("button", { class: "quiet small model-button", type: "button", hidden: true, title: "Change the model of the agent", onclick: () => chat.pickModel().catch(showError) });
    this.editNote = h("p", { class: "edit-note", role: "status", hidden: true });
    this.follow = h("div", { class: "follow-ups", role: "group", "aria-label": "Suggestions", hidden: true });
    this.chips = h("ul", { class: "chips", "aria-label": "Attachments", hidden: true });
    this.slash = new Slash({ input: this.input, agentOf: () => chat.agent, take: (text) => this.set(text), say: () => this.submit({ isMessage: true }) });
    this.row = h("div", { class: "box-row" }, this.attach, this.picker, this.microphone.node, this.model, this.context.node, this.thinking, h("span", { class: "grow" }), this.stop, this.stopMenu, this.send);
    this.node = h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      this.slash.menu,
      h("div", { class: "box" }, this.editNote, this.slash.note, this.chips, this.input, this.row), this.follow,
      h("p", { class: "keys-hint", id: "keys-hint" }, h("kbd", {}, "Enter"), " sends, ", h("kbd", {}, "Shift"), "+", h("kbd", {}, "Enter"), " new line, ", h("kbd", {}, "/"), " commands"));
    this.isThinking = false;
  }

  load() {
    return this.slash.load();
  }

  /** The agent, its session or what runs changed. */
  refresh() {
    const { agent, sessionId } = this.chat;
    const isReady = Boolean(agent && sessionId);
    const isBusy = this.chat.isBusy();
    this.input.disabled = !isReady;
    this.attach.disabled = !isReady;
    this.microphone.refresh(isReady);
    this.input.placeholder = agent ? `Message ${agent.name}` : "Select an agent first";
    const model = agent?.model?.provider === "builtin" ? "offline model" : agent?.model?.model ?? "";
    this.model.hidden = !isReady || !can("write") || !seesAll() || model === "";
    if (this.model.textContent !== model) fill(this.model, h("span", { class: "cut" }, model), icon("chevron", 13));
    this.model.setAttribute("aria-label", `Model: ${model}`);
    this.row.classList.toggle("is-busy", isBusy);
    this.stop.hidden = !isBusy;
    this.stopMenu.hidden = !isBusy;
    const isEmpty = this.input.value.trim() === "" && this.files.length === 0;
    this.send.disabled = !isReady || isEmpty || this.files.some((file) => file.state === "sending");
    this.send.hidden = isBusy && isEmpty;
    if (isBusy || !isEmpty) this.follow.hidden = true;
  }

  focus() {
    this.input.focus();
  }

  /** Puts `text` into the box. */
  set(text) {
    this.input.value = text;
    this.changed();
  }

  /** Puts the message of `turn` into the box; what is sent then takes its place. */
  edit(turn) {
    this.edited = turn;
    const images = turn.said?.images?.length ?? 0;
    fill(this.editNote, icon("edit", 15), h("span", { class: "grow" },
      mayBranch() ? "Sending starts a branch: a new session with the conversation before this message." : "Sending adds the message to this session.",
      images > 0 ? ` Its ${images === 1 ? "picture is" : "pictures are"} sent again.` : ""),
    h("button", { class: "quiet small", type: "button", onclick: () => { this.endEdit(); this.set(""); this.focus(); } }, "Cancel"));
    this.editNote.hidden = false;
    this.set(turn.said?.content ?? "");
    this.focus();
  }

  /** What is in the box is a message like any other. */
  endEdit() {
    this.edited = null;
    this.editNote.hidden = true;
  }

  /** Puts `text` where the cursor is. */
  insert(text) {
    const { value, selectionStart: from, selectionEnd: to } = this.input;
    const [before, after] = [value.slice(0, from), value.slice(to)];
    const start = before + (/\S$/.test(before) ? " " : "") + text;
    this.set(start + (/^\S/.test(after) ? " " : "") + after);
    this.focus();
    this.input.setSelectionRange(start.length, start.length);
  }

  /** Another session is open: the box has what was not sent there. Text for a session that is gone (null) stays. */
  moveTo(session, before) {
    this.endEdit();
    const text = draftOf(session);
    if (before !== null || text !== "") this.set(text);
    else keepDraft(session, this.input.value);
  }

  setThinking(isOn) {
    this.isThinking = isOn;
    this.thinking.hidden = !isOn;
  }

  changed() {
    if (this.edited === null && this.chat.sessionId) keepDraft(this.chat.sessionId, this.input.value);
    // Browsers that know no `field-sizing` get the height that the text needs.
    if (!CSS.supports("field-sizing", "content")) {
      this.input.style.setProperty("height", "auto");
      this.input.style.setProperty("height", `${this.input.scrollHeight}px`);
    }
    this.slash.complete(this.isPlain());
    this.refresh();
  }

  /** Files and edited messages go with a message only. */
  isPlain() {
    return this.files.length > 0 || this.edited !== null;
  }

  /** Sends what is in the box. What begins with a slash is a command, a skill or a mistake, unless it shall be a message. */
  submit({ isMessage = false } = {}) {
    const text = this.input.value.trim();
    if (this.send.disabled) return;
    const isPlain = isMessage || this.isPlain();
    if (!isPlain && this.slash.isUnknown(text)) {
      this.slash.refuse();
      return;
    }
    if (!isPlain && this.slash.isCommand(text)) {
      this.set("");
      this.chat.command(text).catch((error) => {
        // What was refused is not lost.
        if (this.input.value === "") this.set(text);
        showError(error);
      });
      return;
    }
    const kept = this.files.filter((file) => file.state === "kept");
    if (text === "" && kept.length === 0) return;
    this.set("");
    this.files = [];
    this.drawFiles();
    const files = kept.map(({ answer, url }) => ({ ...answer, url }));
    const { edited } = this;
    if (edited === null) {
      this.chat.send(text, files).catch(showError);
      return;
    }
    this.endEdit();
    this.chat.sendEdited(edited, text, files).catch((error) => {
      if (this.input.value === "") {
        this.edit(edited);
        this.set(text);
      }
      showError(error);
    });
  }

  onKey(event) {
    if (this.slash.onKey(event)) return;
    // While an input method composes, Enter takes its suggestion.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "Escape" && this.edited !== null) {
      event.preventDefault();
      this.endEdit();
      this.set("");
    } else if (event.key === "ArrowUp" && this.input.value === "") {
      const last = this.chat.lastSaid();
      if (last) {
        event.preventDefault();
        this.set(last);
      }
    }
  }

  // --- Attachments ---------------------------------------------------------------------------------------------------

  picked() {
    this.add([...this.picker.files]);
    this.picker.value = "";
  }

  onPaste(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    this.add(files);
  }

  /** Uploads `files` at once; they go with the next message. */
  add(files) {
    const { agent } = this.chat;
    if (!agent) return;
    const room = ATTACHMENTS_MAX - this.files.length;
    if (files.length > room) toast(`A message can have at most ${ATTACHMENTS_MAX} attachments.`, { kind: "bad" });
    for (const file of files.slice(0, room)) {
      const entry = { file, state: "sending", url: file.type.startsWith("image/") ? URL.createObjectURL(file) : null, ending: new AbortController() };
      this.files.push(entry);
      this.chat.ctx.api.upload(agent.id, file, { signal: entry.ending.signal }).then((answer) => {
        entry.answer = answer;
        entry.state = "kept";
      }, (error) => {
        this.files = this.files.filter((other) => other !== entry);
        if (error.name !== "AbortError") toast(`${file.name || "The file"}: ${error.message}`, { kind: "bad" });
      }).finally(() => {
        this.drawFiles();
        this.refresh();
      });
    }
    this.drawFiles();
    this.refresh();
    this.focus();
  }

  removeFile(entry) {
    entry.ending.abort();
    this.files = this.files.filter((other) => other !== entry);
    this.drawFiles();
    this.refresh();
    this.focus();
  }

  drawFiles() {
    this.slash.complete(this.isPlain());
    this.chips.hidden = this.files.length === 0;
    fill(this.chips, this.files.map((entry) => {
      const name = entry.answer?.filename ?? (entry.file.name || "pasted");
      return h("li", { class: "chip", data: { state: entry.state } },
        entry.url ? h("img", { src: entry.url, alt: "" }) : icon("file", 18),
        h("span", { class: "grow" }, h("span", { class: "cut name" }, name), h("span", { class: "note" }, entry.state === "sending" ? "uploading …" : bytes(entry.file.size))),
        h("button", { class: "quiet small only-icon", type: "button", "aria-label": `Remove ${name}`, onclick: () => this.removeFile(entry) }, icon("close", 14)));
    }));
  }
}

/** Lets files be dropped anywhere on `place`. */
export function dropOn(place, composer) {
  const veil = h("div", { class: "drop", hidden: true, "aria-hidden": "true" }, icon("attach", 28), "Drop files to attach them");
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const leave = () => { depth = 0; veil.hidden = true; };
  place.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth += 1;
    veil.hidden = false;
  });
  place.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  place.addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) leave(); });
  place.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    leave();
    composer.add([...event.dataTransfer.files]);
  });
  place.append(veil);
}
