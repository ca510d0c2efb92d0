// A QR code drawn from its text: bytes, error correction L, versions 1 to 40 (ISO/IEC 18004).

import { s } from "../../lib/dom.js";

/** Error correction bytes of each block, and the number of blocks, by version, for level L. */
const CHECK = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30];
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
/** Light modules around the code. */
const QUIET = 4;
const LEVEL_L = 1;

const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** Powers of 2 in the field of 256 elements, and their logarithms. */
const POWER = new Uint8Array(512);
const LOG = new Uint8Array(256);
for (let at = 0, value = 1; at < 255; at += 1) {
  POWER[at] = value;
  POWER[at + 255] = value;
  LOG[value] = at;
  value = (value << 1) ^ (value & 0x80 ? 0x11d : 0);
}
const times = (a, b) => (a === 0 || b === 0 ? 0 : POWER[LOG[a] + LOG[b]]);

/** Modules of a version that hold data. */
function dataModules(version) {
  let count = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const marks = Math.floor(version / 7) + 2;
    count -= (25 * marks - 10) * marks - 55;
    if (version >= 7) count -= 36;
  }
  return count;
}

/** Bytes that a version takes, without those of the error correction. */
const room = (version) => Math.floor(dataModules(version) / 8) - CHECK[version - 1] * BLOCKS[version - 1];

/** The bytes of the code before the error correction. */
function encoded(bytes, version) {
  const bits = [];
  const put = (value, count) => { for (let at = count - 1; at >= 0; at -= 1) bits.push((value >>> at) & 1); };
  put(4, 4);
  put(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) put(byte, 8);
  const most = room(version) * 8;
  put(0, Math.min(4, most - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let fill = 0xec; bits.length < most; fill ^= 0xec ^ 0x11) put(fill, 8);
  const out = new Uint8Array(bits.length / 8);
  bits.forEach((bit, at) => { out[at >> 3] |= bit << (7 - (at & 7)); });
  return out;
}

/** The bytes that correct errors in `data`. */
function checks(data, count) {
  let generator = [1];
  for (let at = 0; at < count; at += 1) generator = [...generator, 0].map((value, i) => value ^ (i > 0 ? times(generator[i - 1], POWER[at]) : 0));
  const rest = new Uint8Array(count);
  for (const byte of data) {
    const factor = byte ^ rest[0];
    rest.copyWithin(0, 1);
    rest[count - 1] = 0;
    for (let i = 0; i < count; i += 1) rest[i] ^= times(generator[i + 1], factor);
  }
  return rest;
}

/** Data and error correction of all blocks, as they stand in the code. */
function interleaved(data, version) {
  const [count, length] = [BLOCKS[version - 1], CHECK[version - 1]];
  const short = Math.floor(data.length / count);
  const longer = data.length % count;
  const blocks = [];
  for (let at = 0, from = 0; at < count; at += 1) {
    const upto = from + short + (at >= count - longer ? 1 : 0);
    const part = data.subarray(from, upto);
    blocks.push({ part, check: checks(part, length) });
    from = upto;
  }
  const out = [];
  for (let i = 0; i <= short; i += 1) for (const { part } of blocks) if (i < part.length) out.push(part[i]);
  for (let i = 0; i < length; i += 1) for (const { check } of blocks) out.push(check[i]);
  return out;
}

/** Where the small marks of a version stand, along one side. */
function markPlaces(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const size = version * 4 + 17;
  const step = Math.floor((version * 8 + count * 3 + 5) / (count * 4 - 4)) * 2;
  return [6, ...Array.from({ length: count - 1 }, (_, at) => size - 7 - at * step).reverse()];
}

/** A code without data: `dark` by rows, `fixed` where no data stands. */
function frame(version) {
  const size = version * 4 + 17;
  const dark = Array.from({ length: size }, () => new Uint8Array(size));
  const fixed = Array.from({ length: size }, () => new Uint8Array(size));
  const set = (x, y, value) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y][x] = value ? 1 : 0;
    fixed[y][x] = 1;
  };
  const square = (cx, cy, reach, light) => {
    for (let y = -reach; y <= reach; y += 1) for (let x = -reach; x <= reach; x += 1) set(cx + x, cy + y, !light.includes(Math.max(Math.abs(x), Math.abs(y))));
  };
  for (let at = 0; at < size; at += 1) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) square(x, y, 4, [2, 4]);
  const places = markPlaces(version);
  const last = places.length - 1;
  places.forEach((y, i) => places.forEach((x, j) => {
    if (!(i === 0 && (j === 0 || j === last)) && !(i === last && j === 0)) square(x, y, 2, [1]);
  }));
  const code = { size, dark, fixed, set };
  writeFormat(code, 0);
  writeVersion(code, version);
  return code;
}

/** `value` followed by its remainder, which corrects errors in it. */
function guarded(value, by, bits) {
  let rest = value;
  for (let at = 0; at < bits; at += 1) rest = (rest << 1) ^ ((rest >>> (bits - 1)) * by);
  return (value << bits) | rest;
}

function writeFormat({ size, set }, mask) {
  const bits = guarded((LEVEL_L << 3) | mask, 0x537, 10) ^ 0x5412;
  const bit = (at) => (bits >>> at) & 1;
  for (let at = 0; at < 6; at += 1) set(8, at, bit(at));
  set(8, 7, bit(6));
  set(8, 8, bit(7));
  set(7, 8, bit(8));
  for (let at = 9; at < 15; at += 1) set(14 - at, 8, bit(at));
  for (let at = 0; at < 8; at += 1) set(size - 1 - at, 8, bit(at));
  for (let at = 8; at < 15; at += 1) set(8, size - 15 + at, bit(at));
  set(8, size - 8, 1);
}

function writeVersion({ size, set }, version) {
  if (version < 7) return;
  const bits = guarded(version, 0x1f25, 12);
  for (let at = 0; at < 18; at += 1) {
    const [long, short] = [size - 11 + (at % 3), Math.floor(at / 3)];
    set(long, short, (bits >>> at) & 1);
    set(short, long, (bits >>> at) & 1);
  }
}

/** Writes the bytes in columns of two, upwards and downwards in turn. */
function writeData({ size, dark, fixed }, bytes) {
  let at = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    const isUp = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step += 1) {
      for (const x of [right, right - 1]) {
        const y = isUp ? size - 1 - step : step;
        if (fixed[y][x] || at >= bytes.length * 8) continue;
        dark[y][x] = (bytes[at >> 3] >>> (7 - (at & 7))) & 1;
        at += 1;
      }
    }
  }
}

/** How hard a code is to read; the smallest is best. */
function penalty(dark) {
  const size = dark.length;
  let sum = 0;
  let total = 0;
  const line = (read) => {
    let text = "";
    for (let at = 0; at < size; at += 1) text += read(at);
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2;
    const padded = `0000${text}0000`;
    for (let at = 0; at + 11 <= padded.length; at += 1) {
      const part = padded.slice(at, at + 11);
      if (part === "10111010000" || part === "00001011101") sum += 40;
    }
  };
  for (let y = 0; y < size; y += 1) {
    line((at) => dark[y][at]);
    line((at) => dark[at][y]);
    for (let x = 0; x < size; x += 1) {
      total += dark[y][x];
      if (x > 0 && y > 0 && dark[y][x] === dark[y - 1][x] && dark[y][x] === dark[y][x - 1] && dark[y][x] === dark[y - 1][x - 1]) sum += 3;
    }
  }
  return sum + Math.floor(Math.abs(total * 20 - size * size * 10) / (size * size)) * 10;
}

/** The modules of the code of `text`, by rows, 1 for dark; null when it is too long. `mask` (0 to 7) is chosen if not given. */
export function modules(text, mask = null) {
  const bytes = new TextEncoder().encode(text);
  const fits = (version) => bytes.length + (version < 10 ? 2 : 3) <= room(version);
  const version = Array.from({ length: 40 }, (_, at) => at + 1).find(fits);
  if (version === undefined) return null;
  const data = interleaved(encoded(bytes, version), version);
  let best = null;
  for (const chosen of mask === null ? MASKS.keys() : [mask]) {
    const code = frame(version);
    writeData(code, data);
    code.dark.forEach((row, y) => row.forEach((_, x) => { if (!code.fixed[y][x] && MASKS[chosen](x, y)) row[x] ^= 1; }));
    writeFormat(code, chosen);
    const cost = penalty(code.dark);
    if (best === null || cost < best.cost) best = { cost, dark: code.dark };
  }
  return best.dark;
}

/** The picture of the code of `text`, called `label`; null when the text is too long for a code. */
export function qrPicture(text, label) {
  const dark = modules(text);
  if (dark === null) return null;
  const side = dark.length + 2 * QUIET;
  let d = "";
  dark.forEach((row, y) => row.forEach((value, x) => { if (value) d += `M${x + QUIET} ${y + QUIET}h1v1h-1z`; }));
  return s("svg", { class: "qr", viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" },
    s("rect", { class: "qr-light", width: side, height: side }), s("path", { class: "qr-dark", d }));
}
