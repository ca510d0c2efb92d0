// The voice of the chat: a microphone whose words come into the message box, and answers that are read aloud. Both are there where a
// provider of media is set up for them.

import { call, get, send, withQuery } from "../../lib/api.js";
import { showError, toast } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { playAt } from "../../lib/media.js";

/** Characters that are read aloud at once (`MEDIA_SPEECH_CHARS_MAX` of the daemon). */
const SPEECH_CHARS_MAX = 10_000;
/** The longest recording, in milliseconds: it is far below what the daemon takes. */
const RECORDING_MS_MAX = 5 * 60_000;
const BITS_PER_SECOND = 32_000;
/** What browsers record, the first that this one can. */
const TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];

/** What providers of media are set up for. */
const known = { transcribes: false, speaks: false };

/** Asks which providers are set up. */
export async function loadVoice() {
  const { defaults = {} } = await get("/api/media/providers");
  known.transcribes = Boolean(defaults.SpeechToText);
  known.speaks = Boolean(defaults.TextToSpeech);
}

/** Pages that came over plain HTTP from another machine get no microphone. */
const canRecord = () => Boolean(navigator.mediaDevices?.getUserMedia && window.MediaRecorder);

/** The microphone of the message box. `composer` takes the words; `agentOf()` gives whose budget pays. */
export class Microphone {
  constructor({ agentOf, insert, signal }) {
    Object.assign(this, { agentOf, insert, signal, state: "off" });
    this.button = h("button", { class: "quiet only-icon", type: "button", onclick: () => this.press().catch(showError) });
    this.time = h("span", { class: "note", "aria-hidden": "true" });
    this.status = h("span", { class: "sr", role: "status" });
    this.discard = h("button", { class: "quiet small", type: "button", onclick: () => this.cancel() }, "Discard");
    this.node = h("span", { class: "microphone", hidden: true }, this.button, this.time, this.discard, this.status);
    signal.addEventListener("abort", () => this.cancel());
    this.draw();
  }

  /** Is it to be seen, and may it be used? */
  refresh(isReady) {
    this.node.hidden = !(known.transcribes && canRecord());
    if (this.isReady === isReady) return;
    this.isReady = isReady;
    this.draw();
  }

  draw() {
    const { state } = this;
    const [name, label] = { off: ["microphone", "Dictate"], asking: ["microphone", "Dictate"], on: ["stop", "Stop and transcribe"], sending: ["microphone", "Transcribing"] }[state];
    // One that has the focus keeps it.
    this.button.disabled = state === "off" && !this.isReady;
    this.button.setAttribute("aria-disabled", String(state === "asking" || state === "sending"));
    this.button.classList.toggle("is-recording", state === "on");
    this.button.setAttribute("aria-label", label);
    this.button.title = label;
    fill(this.button, state === "sending" ? h("span", { class: "spinner" }) : icon(name));
    this.discard.hidden = state !== "on" && state !== "sending";
    const said = { off: "", asking: "", on: "Recording", sending: "Transcribing the recording" }[state];
    if (this.status.textContent !== said) this.status.textContent = said;
    this.drawTime();
  }

  drawTime() {
    const seconds = this.state === "on" ? Math.floor((Date.now() - this.began) / 1000) : 0;
    this.time.textContent = this.state === "on" ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "";
  }

  async press() {
    if (this.state === "on") return this.recorder.stop();
    if (this.state === "off") await this.start();
  }

  async start() {
    this.set("asking");
    const agent = this.agentOf();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      this.set("off");
      const text = error.name === "NotFoundError" ? "No microphone was found." : "The browser does not allow this page to use the microphone. Allow it in the site settings, then try again.";
      return toast(text, { kind: "bad" });
    }
    const off = () => stream.getTracks().forEach((track) => track.stop());
    if (this.signal.aborted) return off();
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    const recorder = new MediaRecorder(stream, { mimeType, audioBitsPerSecond: BITS_PER_SECOND });
    const pieces = [];
    recorder.ondataavailable = ({ data }) => pieces.push(data);
    recorder.onstop = () => {
      clearInterval(this.timer);
      off();
      if (this.recorder !== recorder) return;
      this.transcribe(new Blob(pieces, { type: recorder.mimeType }), agent).catch(showError);
    };
    Object.assign(this, { recorder, began: Date.now() });
    this.timer = setInterval(() => {
      this.drawTime();
      if (Date.now() - this.began > RECORDING_MS_MAX && recorder.state === "recording") recorder.stop();
    }, 250);
    recorder.start();
    this.set("on");
    this.button.focus();
  }

  async transcribe(recording, agent) {
    const ending = new AbortController();
    this.ending = ending;
    this.set("sending");
    try {
      const path = withQuery("/api/media/transcribe", { agent_id: agent });
      const response = await send("POST", path, { body: recording, type: recording.type.split(";")[0], signal: ending.signal });
      const text = (await response.json()).text.trim();
      if (ending.signal.aborted || this.agentOf() !== agent) return;
      if (text === "") toast("No words were recognized.", { kind: "bad" });
      else this.insert(text);
    } finally {
      if (this.ending === ending) this.set("off");
    }
  }

  /** Throws the recording away. */
  cancel() {
    const { recorder } = this;
    this.recorder = null;
    if (recorder && recorder.state !== "inactive") recorder.stop();
    this.ending?.abort();
    this.ending = null;
    this.set("off");
  }

  set(state) {
    const hadFocus = this.node.contains(document.activeElement);
    this.state = state;
    this.draw();
    if (hadFocus && this.discard.hidden) this.button.focus();
  }
}

/** What of rendered Markdown is read aloud: its words, without code. */
function wordsOf(parts) {
  const words = [...parts.querySelectorAll(".md")].map((node) => {
    const copy = node.cloneNode(true);
    for (const other of copy.querySelectorAll(".code, pre, button, .sr, svg")) other.remove();
    for (const block of copy.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, td, th, blockquote")) block.append("\n");
    return copy.textContent.trim().replace(/\n{2,}/g, "\n");
  });
  return words.filter(Boolean).join("\n");
}

/** A text that is not longer than what is read at once: it ends with a sentence where it can. */
function fitting(text) {
  const chars = [...text];
  if (chars.length <= SPEECH_CHARS_MAX) return text;
  const cut = chars.slice(0, SPEECH_CHARS_MAX).join("");
  const end = Math.max(cut.lastIndexOf(". "), cut.lastIndexOf("\n"));
  return end > cut.length / 2 ? cut.slice(0, end + 1) : cut;
}

/** A button that reads the answer in `parts` aloud, for `agentId` to pay; null where nothing can. It is made once. */
export function readAloudButton(parts, agentId) {
  if (!known.speaks || wordsOf(parts) === "") return null;
  let player = null;
  const button = h("button", { class: "quiet small only-icon", type: "button", "aria-label": "Read aloud", title: "Read aloud" }, icon("speaker", 15));
  button.onclick = async () => {
    if (player) return player.paused ? player.play().catch(() => {}) : player.pause();
    button.disabled = true;
    const place = h("p", { class: "faint", role: "status" }, "Making the recording …");
    parts.append(place);
    try {
      const whole = wordsOf(parts);
      const text = fitting(whole);
      if (text !== whole) toast("The answer is long: its beginning is read aloud.");
      const { url } = await call("POST", "/api/media/speech", { text, agent_id: agentId });
      player = await playAt(place, url, "audio", "The answer, read aloud");
    } catch (error) {
      place.remove();
      showError(error);
    } finally {
      button.disabled = false;
    }
  };
  return button;
}
