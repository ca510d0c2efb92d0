// Small marks for providers, channels and services: simple drawings of our own on a coloured tile, so that a list is scanned by its shapes.
// They are no trademarks: a name without a drawing gets its first letter.

import { h, s, useStyles } from "./dom.js";

/** Strokes on a grid of 24, by the beginning of a name. */
const DRAWINGS = {
  anthropic: "M6.500 18 12 6l5.500 12M8.500 14.500h7", azure: "M5 18 12 5l7 13zM9.500 18l5-6", bedrock: "M12 5l7 3.500-7 3.500-7-3.500zM5 12l7 3.500 7-3.500M5 15.500l7 3.500 7-3.500",
  builtin: "M6 8h12v9H6zM9.500 12h.01m5 0h.01M12 8V5", cerebras: "M12 5a7 7 0 1 0 7 7M12 8.500a3.500 3.500 0 1 0 3.500 3.500", cohere: "M10 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm5 1.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5z",
  deepseek: "M4 14c3-6 5-6 8-2s5 4 8-2M4 18c3-4 5-4 8-1s5 3 8-1", fireworks: "M12 4v5m0 6v5M4 12h5m6 0h5M6.500 6.500l3 3m5 5 3 3m0-11-3 3m-5 5-3 3", gemini: "M12 4c.8 5 3 7.200 8 8-5 .8-7.200 3-8 8-.8-5-3-7.200-8-8 5-.8 7.200-3 8-8z",
  google: "M12 4c.8 5 3 7.200 8 8-5 .8-7.200 3-8 8-.8-5-3-7.200-8-8 5-.8 7.200-3 8-8z", groq: "M13 4 6 13.500h5L10 20l7-9.500h-5z", huggingface: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zm-3.500-6.500c1.500 2.500 5.500 2.500 7 0M9 9.500h.01m6 0h.01",
  llama: "M8 19v-7l-1.500-7 3 3h5l3-3L16 12v7M10.500 12h.01m3 0h.01", lmstudio: "M5 7h14v10H5zM9 20h6M9 11h3m-3 3h6", mistral: "M5 6v12m14-12v12M5 6h4v4h6V6h4M9 14h6", moonshot: "M17 14.500A7 7 0 1 1 9.500 6 5.500 5.500 0 0 0 17 14.500z",
  nvidia: "M4 12s3-5 8-5 8 5 8 5-3 5-8 5-8-5-8-5zm8 2.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5z", ollama: "M8 19v-6a4 4 0 0 1 8 0v6M9 9V5.500M15 9V5.500M10.500 13.500h.01m3 0h.01", openai: "M12 4.500 18.500 8v8L12 19.500 5.500 16V8zM12 4.500V12m6.500-4L12 12m0 7.500V12M5.500 16 12 12",
  openrouter: "M5 12h5c3 0 3-5 6-5h3m-3-2.500L19 7l-3 2.500M10 12c3 0 3 5 6 5h3m-3-2.500 3 2.500-3 2.500", perplexity: "M12 4v16M5 8l7 4 7-4M5 16l7-4 7 4", qwen: "M12 5a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm3 9 4 5", together: "M9 8a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9zm6 0a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z",
  vllm: "M5 6l5 12 3-7m1-5 5 0-4 12", xai: "M6 5l12 14M18 5 6 19", zai: "M6 6h12L6 18h12",
  discord: "M6 8c4-2 8-2 12 0 1.500 3 2 6 1.500 9l-3.500 1.500-1-2c-2 .6-4 .6-6 0l-1 2L4.500 17C4 14 4.500 11 6 8zm3.500 5h.01m5 0h.01", email: "M4 6.500h16v11H4zm0 .5 8 6 8-6", mail: "M4 6.500h16v11H4zm0 .5 8 6 8-6", imap: "M4 6.500h16v11H4zm0 .5 8 6 8-6", smtp: "M4 6.500h16v11H4zm0 .5 8 6 8-6",
  irc: "M9 5 7 19m9-14-2 14M5 9.500h14m-15 5h14", line: "M5 6h14v9h-6l-4 4v-4H5zM9 10.500h6", matrix: "M8 5H5v14h3m8-14h3v14h-3M10 10v4m0-4c2-1.500 3 0 3 1V14", mattermost: "M12 5a7 7 0 1 0 7 7M12 12l5-6", mastodon: "M6 8a6 4 0 0 1 12 0v5c0 2-2 3-6 3m-6-8v7c0 3 3 5 8 4M9 13V9.500a1.500 1.500 0 0 1 3 0 1.500 1.500 0 0 1 3 0V13",
  ntfy: "M6 17h12l-1.500-2.500V11a4.500 4.500 0 0 0-9 0v3.500zM10.500 20h3", signal: "M12 5a7 6.500 0 1 1-4 12l-3 1 1-3a6.500 6.500 0 0 1 6-10z", slack: "M9.500 5v9.500m5-4.500V19M5 14.500h9.500M9.500 9.500H19", sms: "M5 6h14v9h-7l-4 4v-4H5zM9 10.500h.01m3 0h.01m3 0h.01", teams: "M5 7h9v10H5zM8 10h4m-2 0v4M16 10h3v6h-5", telegram: "M4 12 20 5l-3 14-5-4-2 4-1-5.500zM9 13.500 17 8",
  twitch: "M6 5h13v8l-4 4h-3l-3 3v-3H6zM11 9v3m4-3v3", web: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM4 12h16M12 4c3 3 3 13 0 16-3-3-3-13 0-16z", whatsapp: "M12 5a7 7 0 1 1-4 12.500L5 18.500l1-3A7 7 0 0 1 12 5zm-2 5c0 2.500 2 4.500 4.500 4.500", webhook: "M10 9.500a3 3 0 1 1 4 0l2.500 5M7 20a3 3 0 1 1 1-5.500L10.500 9.500M17 20a3 3 0 1 0-1.500-5.500H10", xmpp: "M5 6c2 6 4 9 10 12M19 6c-2 6-4 9-10 12",
  github: "M8 20v-3c-3 0-3-2-4-2.500M16 20v-4c0-1-.3-1.500-.8-2 3 0 4.300-1.500 4.300-4.500 0-1.500-.5-2.500-1-3 .3-1 .2-2-.1-2.500-1 0-2 .5-3 1.200a10 10 0 0 0-5 0C9.400 4.500 8.400 4 7.400 4c-.4.7-.4 1.700-.1 2.500-.5.500-1 1.500-1 3 0 3 1.300 4.500 4.300 4.500-.5.500-.8 1-.8 2v4",
  browser: "M4 6h16v12H4zM4 9.500h16M6.500 7.800h.01", files: "M4.500 7h5l2 2h8v9h-15z", git: "M8 5v14M8 14.500c5 0 8-1 8-5V8m-2.500 2L16 7.500l2.500 2.500", http: "M8 8l-4 4 4 4m8-8 4 4-4 4m-5 2 2-12", time: "M12 5a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm0 3.500V12l3 2",
};
/** Colours of the tiles, in styles/marks.css. */
const COLOURS = 8;
const NAMES = Object.keys(DRAWINGS).sort((a, b) => b.length - a.length);

useStyles(new URL("../styles/marks.css", import.meta.url));

/** A number that is the same for the same name. */
const numberOf = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);

/** The mark of a provider, channel or service, hidden from screen readers: its name stands beside it. */
export function mark(name, size = 28) {
  const plain = String(name).toLowerCase().replace(/[^a-z0-9]/g, "");
  const known = NAMES.find((one) => plain.startsWith(one)) ?? NAMES.find((one) => one.length > 3 && plain.includes(one));
  const inner = known
    ? s("svg", { class: "icon", viewBox: "0 0 24 24", width: size * 0.68, height: size * 0.68 }, s("path", { d: DRAWINGS[known] }))
    : h("span", {}, (plain[0] ?? "?").toUpperCase());
  return h("span", { class: `mark mark-${numberOf(known ?? plain) % COLOURS}`, "aria-hidden": "true", style: { "--size": `${size}px` } }, inner);
}
