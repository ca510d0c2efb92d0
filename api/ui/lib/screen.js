// The screen of a terminal: what programs write becomes lines of cells. Control sequences of ECMA-48 and those of xterm that
// editors, pagers and monitors use; others are read and left out.

/** Lines that are kept above the screen. */
const HISTORY = 2_000;
/** Characters of a control sequence; a longer one is left out. */
const SEQUENCE = 256;
const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, faint: false, italic: false, underline: false, inverse: false, struck: false, key: "" });
/** Letters of the set for drawing lines. */
const DRAWING = Object.fromEntries([..."`afgjklmnopqrstuvwxyz{|}~"].map((from, at) => [from, [..."◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"][at]]));
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60]/u;
const MARK = /[\p{Mn}\p{Me}\p{Cf}]/u;

const styled = (style) => ({ ...style, key: JSON.stringify([style.fg, style.bg, style.bold, style.faint, style.italic, style.underline, style.inverse, style.struck]) });

/** A terminal of `cols` and `rows`. `reply(text)` sends what programs ask for. */
export class Screen {
  constructor(cols, rows, reply = () => {}) {
    Object.assign(this, { cols, rows, reply });
    this.reset();
  }

  reset() {
    /** Lines that left the screen at its top, and how many of them are gone. */
    this.dropped = (this.dropped ?? 0) + (this.history?.length ?? 0);
    this.history = [];
    this.style = PLAIN;
    this.lines = Array.from({ length: this.rows }, () => this.blank());
    Object.assign(this, { x: 0, y: 0, top: 0, bottom: this.rows - 1, saved: null, main: null, wraps: true, isLast: false, isShown: true, appKeys: false, pastes: false, sets: ["B", "B"], set: 0, inserts: false });
    Object.assign(this, { state: "ground", sequence: "", last: " " });
  }

  blank() {
    return Array.from({ length: this.cols }, () => this.empty());
  }

  /** A cell without a character has the background that is set. */
  empty() {
    return { text: " ", style: this.style.bg === null ? PLAIN : styled({ ...PLAIN, bg: this.style.bg }) };
  }

  /** Has another size. What does not fit at the top goes into the history. */
  resize(cols, rows) {
    const fitted = (lines) => lines.map((line) => (line.length > cols ? line.slice(0, cols) : [...line, ...Array.from({ length: cols - line.length }, () => ({ text: " ", style: PLAIN }))]));
    this.cols = cols;
    this.lines = fitted(this.lines);
    if (this.main) this.main.lines = fitted(this.main.lines);
    while (this.lines.length > rows) {
      if (this.y < this.lines.length - 1) this.lines.pop();
      else {
        this.keep(this.lines.shift());
        this.y -= 1;
      }
    }
    while (this.lines.length < rows) this.lines.push(this.blank());
    if (this.main) {
      this.main.lines.length = Math.min(this.main.lines.length, rows);
      while (this.main.lines.length < rows) this.main.lines.push(this.blank());
    }
    Object.assign(this, { rows, top: 0, bottom: rows - 1, x: Math.min(this.x, cols - 1), y: Math.min(this.y, rows - 1), isLast: false });
  }

  forget() {
    this.dropped += this.history.length;
    this.history = [];
  }

  keep(line) {
    if (this.main) return;
    this.history.push(line);
    if (this.history.length > HISTORY) {
      this.history.shift();
      this.dropped += 1;
    }
  }

  /** Takes what a program wrote. */
  write(text) {
    for (const letter of text) this[this.state](letter, letter.codePointAt(0));
  }

  ground(letter, code) {
    if (code === 0x1b) return this.begin("escape");
    if (code === 0x9b) return this.begin("csi");
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return this.control(code);
    this.put(this.sets[this.set] === "0" ? (DRAWING[letter] ?? letter) : letter);
  }

  begin(state) {
    this.state = state;
    this.sequence = "";
  }

  control(code) {
    if (code === 0x08) this.x = Math.max(0, this.x - 1);
    else if (code === 0x09) this.x = Math.min(this.cols - 1, (Math.floor(this.x / 8) + 1) * 8);
    else if (code >= 0x0a && code <= 0x0c) this.feed();
    else if (code === 0x0d) this.x = 0;
    else if (code === 0x0e || code === 0x0f) this.set = code === 0x0e ? 1 : 0;
    else return;
    this.isLast = false;
  }

  put(letter) {
    if (MARK.test(letter)) {
      const before = this.lines[this.y][Math.max(0, this.isLast ? this.x : this.x - 1)];
      if (before.text.length < 16) before.text += letter;
      return;
    }
    const width = WIDE.test(letter) && this.cols > 1 ? 2 : 1;
    if (this.wraps && (this.isLast || this.x + width > this.cols)) {
      this.x = 0;
      this.feed();
    }
    const line = this.lines[this.y];
    const x = Math.min(this.x, this.cols - width);
    if (this.inserts) {
      line.splice(x, 0, ...Array.from({ length: width }, () => this.empty()));
      line.length = this.cols;
    }
    line[x] = { text: letter, style: this.style };
    if (width === 2) line[x + 1] = { text: "", style: this.style };
    this.last = letter;
    this.isLast = x + width >= this.cols;
    this.x = this.isLast ? this.cols - 1 : x + width;
  }

  /** The next line; the screen moves where there is none. */
  feed() {
    this.isLast = false;
    if (this.y === this.bottom) this.scroll(1);
    else if (this.y < this.rows - 1) this.y += 1;
  }

  /** Moves the lines of the region up, or down where `count` is negative. */
  scroll(count, top = this.top) {
    const size = this.bottom - top + 1;
    for (let at = Math.min(Math.abs(count), size); at > 0; at -= 1) {
      if (count > 0) {
        const [gone] = this.lines.splice(top, 1);
        if (top === 0) this.keep(gone);
        this.lines.splice(this.bottom, 0, this.blank());
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(top, 0, this.blank());
      }
    }
  }

  escape(letter, code) {
    this.state = "ground";
    if (letter === "[") return this.begin("csi");
    if (letter === "]" || letter === "P" || letter === "^" || letter === "_" || letter === "X") return this.begin("text");
    if (letter === "(" || letter === ")") return this.begin(letter === "(" ? "charset0" : "charset1");
    if (code >= 0x20 && code < 0x30) return this.begin("skip");
    if (letter === "7") this.save();
    else if (letter === "8") this.back();
    else if (letter === "D") this.feed();
    else if (letter === "E") {
      this.x = 0;
      this.feed();
    } else if (letter === "M") {
      if (this.y === this.top) this.scroll(-1);
      else this.y = Math.max(0, this.y - 1);
    } else if (letter === "c") this.reset();
  }

  charset0(letter) {
    this.sets[0] = letter;
    this.state = "ground";
  }

  charset1(letter) {
    this.sets[1] = letter;
    this.state = "ground";
  }

  skip() {
    this.state = "ground";
  }

  /** A title, or something else that is no part of the screen: up to its end. */
  text(letter, code) {
    if (code === 0x07 || code === 0x9c) this.state = "ground";
    else if (code === 0x1b) this.state = "skip";
  }

  csi(letter, code) {
    if (code === 0x1b) return this.begin("escape");
    if (code < 0x20) return this.control(code);
    if (code < 0x40) {
      if (this.sequence.length < SEQUENCE) this.sequence += letter;
      return;
    }
    this.state = "ground";
    if (this.sequence.length >= SEQUENCE) return;
    const prefix = /^[<=>?]/.exec(this.sequence)?.[0] ?? "";
    const rest = this.sequence.slice(prefix.length);
    if (/[^0-9;:]/.test(rest)) {
      if (rest === "!" && letter === "p") this.soft();
      return;
    }
    const values = rest.split(";").map((value) => (value === "" ? null : Number.parseInt(value, 10)));
    if (prefix === "?" && (letter === "h" || letter === "l")) for (const mode of values) this.mode(mode, letter === "h");
    else if (prefix === ">" && letter === "c") this.reply("\x1b[>0;10;0c");
    else if (prefix === "") this.run(letter, values, rest);
  }

  soft() {
    Object.assign(this, { style: PLAIN, top: 0, bottom: this.rows - 1, wraps: true, isShown: true, appKeys: false, inserts: false, sets: ["B", "B"], set: 0 });
  }

  run(letter, values, rest) {
    const count = Math.min(Math.max(1, values[0] ?? 1), 10_000);
    const line = this.lines[this.y];
    const isMove = "ABCDEFGHfd`ae".includes(letter);
    if (isMove) this.isLast = false;
    switch (letter) {
      case "A": this.y = Math.max(this.y >= this.top ? this.top : 0, this.y - count); break;
      case "B": case "e": this.y = Math.min(this.y <= this.bottom ? this.bottom : this.rows - 1, this.y + count); break;
      case "C": case "a": this.x = Math.min(this.cols - 1, this.x + count); break;
      case "D": this.x = Math.max(0, this.x - count); break;
      case "E": this.x = 0; this.run("B", values, rest); break;
      case "F": this.x = 0; this.run("A", values, rest); break;
      case "G": case "`": this.x = Math.min(this.cols, count) - 1; break;
      case "d": this.y = Math.min(this.rows, count) - 1; break;
      case "H": case "f": this.y = Math.min(this.rows, count) - 1; this.x = Math.min(this.cols, Math.max(1, values[1] ?? 1)) - 1; break;
      case "J": this.erase(values[0] ?? 0); break;
      case "K": this.eraseLine(values[0] ?? 0); break;
      case "L": if (this.y >= this.top && this.y <= this.bottom) this.scroll(-count, this.y); break;
      case "M": if (this.y >= this.top && this.y <= this.bottom) this.drop(count); break;
      case "P": line.splice(this.x, count); while (line.length < this.cols) line.push(this.empty()); break;
      case "@": line.splice(this.x, 0, ...Array.from({ length: Math.min(count, this.cols) }, () => this.empty())); line.length = this.cols; break;
      case "X": for (let x = this.x; x < Math.min(this.cols, this.x + count); x += 1) line[x] = this.empty(); break;
      case "S": this.scroll(count); break;
      case "T": this.scroll(-count); break;
      case "b": for (let at = Math.min(count, this.cols * this.rows); at > 0; at -= 1) this.put(this.last); break;
      case "m": this.paint(rest); break;
      case "r": this.region(values); break;
      case "s": this.save(); break;
      case "u": this.back(); break;
      case "h": case "l": if (values.includes(4)) this.inserts = letter === "h"; break;
      case "n": if (values[0] === 6) this.reply(`\x1b[${this.y + 1};${this.x + 1}R`); else if (values[0] === 5) this.reply("\x1b[0n"); break;
      case "c": this.reply("\x1b[?1;2c"); break;
      default:
    }
  }

  /** Takes lines out; those below move up. Nothing goes into the history. */
  drop(count) {
    for (let at = Math.min(count, this.bottom - this.y + 1); at > 0; at -= 1) {
      this.lines.splice(this.y, 1);
      this.lines.splice(this.bottom, 0, this.blank());
    }
  }

  region(values) {
    const [top, bottom] = [(values[0] || 1) - 1, Math.min(values[1] || this.rows, this.rows) - 1];
    if (top < bottom) Object.assign(this, { top, bottom, x: 0, y: 0, isLast: false });
  }

  erase(what) {
    if (what === 0 || what === 1) this.eraseLine(what);
    const [from, upto] = what === 0 ? [this.y + 1, this.rows] : what === 1 ? [0, this.y] : what === 2 ? [0, this.rows] : [0, 0];
    for (let y = from; y < upto; y += 1) this.lines[y] = this.blank();
    if (what === 3) this.forget();
  }

  eraseLine(what) {
    const [from, upto] = what === 0 ? [this.x, this.cols] : what === 1 ? [0, this.x + 1] : [0, this.cols];
    for (let x = from; x < upto; x += 1) this.lines[this.y][x] = this.empty();
  }

  save() {
    this.saved = { x: this.x, y: this.y, style: this.style, sets: [...this.sets], set: this.set };
  }

  back() {
    const { x, y, style, sets, set } = this.saved ?? { x: 0, y: 0, style: PLAIN, sets: ["B", "B"], set: 0 };
    Object.assign(this, { x: Math.min(x, this.cols - 1), y: Math.min(y, this.rows - 1), style, sets: [...sets], set, isLast: false });
  }

  mode(mode, on) {
    if (mode === 1) this.appKeys = on;
    else if (mode === 7) this.wraps = on;
    else if (mode === 25) this.isShown = on;
    else if (mode === 2004) this.pastes = on;
    else if (mode === 1048) on ? this.save() : this.back();
    else if (mode === 47 || mode === 1047 || mode === 1049) this.other(on, mode === 1049);
  }

  /** The second screen, which editors use: without history, and gone when they end. */
  other(on, saves) {
    if (on && !this.main) {
      if (saves) this.save();
      this.main = { lines: this.lines };
      this.lines = Array.from({ length: this.rows }, () => this.blank());
    } else if (!on && this.main) {
      this.lines = this.main.lines;
      this.main = null;
      if (saves) this.back();
    }
    Object.assign(this, { top: 0, bottom: this.rows - 1 });
  }

  /** Colors and weights. */
  paint(rest) {
    const values = rest.split(/[;:]/).map((value) => (value === "" ? 0 : Number.parseInt(value, 10)));
    let style = { ...this.style };
    for (let at = 0; at < values.length; at += 1) {
      const value = values[at];
      if (value === 0) style = { ...PLAIN };
      else if (value === 1) style.bold = true;
      else if (value === 2) style.faint = true;
      else if (value === 3) style.italic = true;
      else if (value === 4) style.underline = true;
      else if (value === 7) style.inverse = true;
      else if (value === 9) style.struck = true;
      else if (value === 22) style.bold = style.faint = false;
      else if (value === 23) style.italic = false;
      else if (value === 24) style.underline = false;
      else if (value === 27) style.inverse = false;
      else if (value === 29) style.struck = false;
      else if (value >= 30 && value <= 37) style.fg = value - 30;
      else if (value >= 90 && value <= 97) style.fg = value - 82;
      else if (value >= 40 && value <= 47) style.bg = value - 40;
      else if (value >= 100 && value <= 107) style.bg = value - 92;
      else if (value === 39) style.fg = null;
      else if (value === 49) style.bg = null;
      else if (value === 38 || value === 48) {
        const name = value === 38 ? "fg" : "bg";
        if (values[at + 1] === 5) style[name] = indexed(values[at + 2] ?? 0);
        else if (values[at + 1] === 2) style[name] = rgb(values[at + 2], values[at + 3], values[at + 4]);
        at += values[at + 1] === 5 ? 2 : 4;
      }
    }
    this.style = styled(style);
  }
}

const byte = (value) => Math.min(255, Math.max(0, Number.isFinite(value) ? value : 0));
const rgb = (red, green, blue) => `rgb(${byte(red)} ${byte(green)} ${byte(blue)})`;

/** A color of the 256: one of the theme's 16 by its number, others as they are. */
function indexed(value) {
  if (value < 16) return byte(value);
  if (value >= 232) return rgb(8 + (value - 232) * 10, 8 + (value - 232) * 10, 8 + (value - 232) * 10);
  const part = (at) => [0, 95, 135, 175, 215, 255][Math.floor((value - 16) / at) % 6];
  return rgb(part(36), part(6), part(1));
}
