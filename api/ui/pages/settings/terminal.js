// A terminal: a shell on the machine of the daemon, in the sandbox of commands.

import { address, get, key } from "../../lib/api.js";
import { fill, h, useStyles } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { partOff } from "../../lib/off.js";
import { keyText } from "../../lib/screen-keys.js";
import { Screen } from "../../lib/screen.js";

/** Characters by which the width of one is measured. */
const MEASURED = 100;
const MOST = { cols: 1000, rows: 500 };
/** Bytes of one message, with room for its JSON. */
const PIECE = 8 << 10;

export async function mount(root, ctx) {
  const [health] = await Promise.all([get("/api/terminal/health", { signal: ctx.signal }), useStyles(new URL("../../styles/terminal.css", import.meta.url))]);
  if (!health.ok) return unavailable(root, ctx, health);
  const view = new View(root, ctx);
  return () => view.end();
}

/** Says why there is no terminal, and opens one when that has changed. */
function unavailable(root, ctx, health) {
  let end = null;
  fill(root, partOff({ ...refusal(health), again: async () => { end = await mount(root, ctx); } }));
  return () => end?.();
}

function refusal(health) {
  if (!health.enabled) return { title: "The terminal is off", text: "Turn it on to open a shell on the machine of the daemon from here.", key: "terminal.enabled", lines: "[terminal]\nenabled = true" };
  if (!health.allow_remote) return { title: "The terminal is only for this machine", text: "You can open it in a browser on the machine of the daemon, or allow other machines.", key: "terminal.allow_remote", lines: "[terminal]\nallow_remote = true" };
  return { title: "This page cannot open the terminal", text: `Allow pages of ${location.origin} to open it.`, key: "terminal.allowed_origins", lines: `[terminal]\nallowed_origins = ["${location.origin}"]` };
}

class View {
  constructor(root, ctx) {
    this.socket = null;
    this.rows = [];
    this.isDue = false;
    this.status = h("span", { class: "dim", role: "status" });
    this.again = h("button", { type: "button", class: "primary", hidden: true, onclick: () => this.open() }, icon("retry", 18), "Open another one");
    this.stop = h("button", { type: "button", onclick: () => this.socket?.close(1000) }, "End");
    this.input = h("textarea", { class: "term-input", "aria-label": "Terminal", "aria-describedby": "term-help", autocapitalize: "off", autocomplete: "off", autocorrect: "off", spellcheck: "false", rows: "1" });
    this.lines = h("div", { class: "term-lines", "aria-hidden": "true" });
    this.box = h("div", { class: "term", onclick: () => { if (String(getSelection()) === "") this.input.focus({ preventScroll: true }); } }, this.lines, this.input);
    fill(ctx.actions, this.status, this.stop, this.again);
    fill(root, h("div", { class: "stack" }, this.box, h("p", { id: "term-help", class: "faint" }, "The shell sees the files of the system and a directory of its own, and ends with this page. Ctrl+Shift+E leaves the terminal, Ctrl+Shift+V pastes.")));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("input", (event) => {
      if (event.isComposing) return;
      this.send(this.input.value);
      this.input.value = "";
    });
    this.input.addEventListener("compositionend", () => {
      this.send(this.input.value);
      this.input.value = "";
    });
    this.input.addEventListener("paste", (event) => {
      event.preventDefault();
      const text = event.clipboardData.getData("text").replaceAll(/\r?\n/g, "\r").replaceAll("\x1b", "");
      this.send(this.screen?.pastes ? `\x1b[200~${text}\x1b[201~` : text);
    });
    this.sizes = new ResizeObserver(() => this.fit());
    this.sizes.observe(this.box);
    this.open();
  }

  /** How many characters fit. */
  measure() {
    const probe = h("span", { class: "term-probe" }, "0".repeat(MEASURED));
    this.lines.append(probe);
    const { width, height } = probe.getBoundingClientRect();
    probe.remove();
    const style = getComputedStyle(this.lines);
    const inner = this.lines.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
    const high = this.box.clientHeight - Number.parseFloat(style.paddingTop) - Number.parseFloat(style.paddingBottom);
    const within = (value, most) => Math.min(most, Math.max(2, Math.floor(value) || 2));
    return { cols: within(inner / (width / MEASURED || 8), MOST.cols), rows: within(high / (height || 16), MOST.rows) };
  }

  open() {
    const { cols, rows } = this.measure();
    this.screen = new Screen(cols, rows, (text) => this.send(text));
    this.said = "";
    this.rows = [];
    this.dropped = 0;
    fill(this.lines);
    const url = new URL(address(`/api/terminal/ws?cols=${cols}&rows=${rows}`), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const token = key.get();
    const socket = new WebSocket(url, token ? ["bearer", token, "json"] : ["json"]);
    this.socket = socket;
    this.tell("Connecting…", true);
    socket.onmessage = ({ data }) => this.hear(JSON.parse(data));
    socket.onclose = ({ reason }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.tell(this.said || (reason ? `Ended: ${reason}.` : "The connection was lost, or the daemon refused it."), false);
    };
    this.input.focus({ preventScroll: true });
    this.draw();
  }

  tell(text, isOpen) {
    this.status.textContent = text;
    this.stop.hidden = !isOpen;
    this.again.hidden = isOpen;
  }

  hear(frame) {
    if (frame.type === "output") this.write(frame);
    else if (frame.type === "started") this.tell(`${frame.shell}${frame.isRoot ? " (root)" : ""}`, true);
    else if (frame.type === "exit") this.said = frame.signal ? `The shell was ended by signal ${frame.signal}.` : `The shell has ended with code ${frame.code}.`;
    else if (frame.type === "error") this.said = `Ended: ${frame.content}.`;
  }

  write({ data, binary }) {
    const text = binary ? new TextDecoder().decode(Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0))) : data;
    this.screen.write(text);
    this.draw();
  }

  send(text) {
    for (let at = 0; at < text.length && this.socket?.readyState === WebSocket.OPEN;) {
      let upto = Math.min(text.length, at + PIECE);
      // No character is cut in two.
      if (upto < text.length && text.charCodeAt(upto - 1) >= 0xd800 && text.charCodeAt(upto - 1) < 0xdc00) upto -= 1;
      this.socket.send(JSON.stringify({ type: "input", data: text.slice(at, upto) }));
      at = upto;
    }
  }

  key(event) {
    if (event.ctrlKey && event.shiftKey && event.key.toUpperCase() === "E") {
      event.preventDefault();
      return (this.stop.hidden ? this.again : this.stop).focus();
    }
    const text = keyText(event, this.screen);
    if (text === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.box.scrollTop = this.box.scrollHeight;
    this.send(text);
  }

  fit() {
    const size = this.measure();
    if (size.cols === this.screen.cols && size.rows === this.screen.rows) return;
    this.screen.resize(size.cols, size.rows);
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "resize", ...size }));
    this.draw();
  }

  /** Draws with the next frame, however much is written until then. */
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.paint();
    });
  }

  /** Only lines that are not as they were are made anew. */
  paint() {
    const { screen } = this;
    const isAtEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
    for (const { node } of this.rows.splice(0, screen.dropped - this.dropped)) node.remove();
    this.dropped = screen.dropped;
    const all = [...screen.history, ...screen.lines];
    const cursor = screen.isShown && this.socket ? screen.history.length + screen.y : -1;
    all.forEach((line, at) => {
      const isPast = at < screen.history.length;
      if (isPast && this.rows[at]?.past === line) return;
      const x = at === cursor ? screen.x : -1;
      const now = `${x} ${line.map((cell) => `${cell.text}\u0000${cell.style.key}`).join("\u0001")}`;
      const past = isPast ? line : null;
      if (this.rows[at]?.now === now) return void (this.rows[at].past = past);
      const made = h("div", { class: "term-line" }, runs(line, x));
      if (this.rows[at]) this.rows[at].node.replaceWith(made);
      else this.lines.append(made);
      this.rows[at] = { now, past, node: made };
    });
    for (const { node } of this.rows.splice(all.length)) node.remove();
    if (isAtEnd) this.box.scrollTop = this.box.scrollHeight;
  }

  end() {
    this.sizes.disconnect();
    const { socket } = this;
    this.socket = null;
    socket?.close(1000);
  }
}

/** The cells of a line, those of one look together. */
function runs(line, cursor) {
  const nodes = [];
  let [text, style] = ["", null];
  const flush = () => {
    if (text !== "") nodes.push(style.key === "" ? text : h("span", looks(style), text));
    text = "";
  };
  line.forEach((cell, x) => {
    if (x === cursor) {
      flush();
      nodes.push(h("span", { class: "term-cursor" }, cell.text || " "));
      return;
    }
    if (style === null || cell.style.key !== style.key) {
      flush();
      style = cell.style;
    }
    text += cell.text;
  });
  flush();
  return nodes;
}

function looks({ fg, bg, bold, faint, italic, underline, inverse, struck }) {
  const [front, back] = inverse ? [bg ?? "back", fg ?? "front"] : [fg, bg];
  const color = (value) => (typeof value === "number" ? `var(--term-${value})` : value === "back" ? "var(--term-back)" : value === "front" ? "var(--term-front)" : value);
  const style = {};
  if (front !== null) style.color = color(front);
  if (back !== null) style["background-color"] = color(back);
  return { style, class: [bold && "bold", faint && "dimmed", italic && "italic", underline && "underline", struck && "struck"].filter(Boolean).map((name) => `term-${name}`).join(" ") || null };
}
