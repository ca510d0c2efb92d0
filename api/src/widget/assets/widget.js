// Web chat. Put it on a site with one line:
//   <script src="https://daemon/widget.js" data-token="..." async></script>
// A site with a Content-Security-Policy needs the daemon's origin in script-src and connect-src, and nothing else:
// styles are constructed sheets, and no text of an agent becomes markup except through the DOM calls below.
(() => {
  "use strict";
  const script = document.currentScript;
  const token = script && script.dataset.token;
  if (!token) return console.error("web chat: the script needs data-token");
  const TAG = "agentsvc-chat";
  // A page that has the line twice has one chat.
  const all = (window[Symbol.for(TAG)] ||= new Set());
  if (all.has(token)) return;
  all.add(token);
  const base = new URL("api/web-chat/" + encodeURIComponent(token) + "/", script.src).href;
  const key = "agentsvc-chat:" + token;
  const TEXT_MAX = 4000, SHOWN_MAX = 500, RETRY_MIN = 500, RETRY_MAX = 30000;
  // A stream is quiet for 15 s at most. One that no person sees for a while is closed.
  const QUIET_MAX = 45000, HIDDEN_MAX = 60000, LOOKS_MAX = 10;

  const CSS = `
.w{all:initial;direction:ltr;--c:#2457d6;--bg:#fff;--fg:#1b1d22;--soft:#eef0f4;--line:#7b8190;color-scheme:light;
 position:fixed;z-index:2147483000;bottom:20px;right:20px;font:15px/1.45 system-ui,sans-serif}
.w[data-position=left]{right:auto;left:20px}
.w[data-theme=dark]{--bg:#17191e;--fg:#eceef2;--soft:#272a32;--line:#8b91a0;color-scheme:dark}
@media(prefers-color-scheme:dark){.w[data-theme=auto]{--bg:#17191e;--fg:#eceef2;--soft:#272a32;--line:#8b91a0;color-scheme:dark}}
*{box-sizing:border-box}[hidden]{display:none!important}
button,textarea{font:inherit;color:inherit}
:focus-visible{outline:3px solid var(--fg);outline-offset:2px}
.open{width:56px;height:56px;border:0;border-radius:50%;background:var(--c);color:var(--on,#fff);cursor:pointer;box-shadow:0 2px 10px #0005;position:relative}
.open svg{width:26px;height:26px;fill:currentColor;vertical-align:middle}
.badge{position:absolute;top:-4px;right:-4px;min-width:22px;height:22px;border-radius:11px;background:#b3161b;color:#fff;font-size:13px;line-height:22px;padding:0 5px}
.panel{width:370px;height:min(560px,calc(100vh - 40px));display:flex;flex-direction:column;background:var(--bg);color:var(--fg);border:1px solid var(--line);border-radius:14px;overflow:hidden;box-shadow:0 6px 30px #0005;animation:in .15s}
@keyframes in{from{transform:translateY(12px);opacity:0}}
header{display:flex;align-items:center;background:var(--c);color:var(--on,#fff);padding:10px 8px 10px 16px}
h2{flex:1;margin:0;font-size:16px}
.close{border:0;background:none;width:40px;height:40px;font-size:22px;cursor:pointer}
.log{flex:1;overflow-y:auto;padding:14px;overscroll-behavior:contain}
.m{max-width:88%;width:fit-content;margin:0 0 10px;padding:8px 12px;border-radius:12px;background:var(--soft);overflow-wrap:anywhere}
.m.user{margin-left:auto;background:var(--c);color:var(--on,#fff);white-space:pre-wrap}
.m p,.m ul,.m ol,.m pre{margin:0 0 8px}.m>:last-child{margin-bottom:0}.m ul,.m ol{padding-left:22px}
.m h3{margin:0 0 8px;font-size:inherit}.m a{color:inherit}.m pre{overflow-x:auto;padding:8px;border:1px solid var(--line);border-radius:6px}
.m code{font:13px ui-monospace,monospace}
.state{padding:4px 14px;font-size:13px;min-height:26px}
form{display:flex;gap:8px;padding:10px;border-top:1px solid var(--line)}
textarea{flex:1;resize:none;height:44px;padding:10px;border:1px solid var(--line);border-radius:10px;background:var(--bg)}
.send{border:0;border-radius:10px;padding:0 16px;background:var(--c);color:var(--on,#fff);cursor:pointer}
.send:disabled{opacity:.6;cursor:default}
.hint{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
@media(max-width:480px){.w[data-open]{inset:0!important}.panel{width:100%;height:100dvh;border:0;border-radius:0}textarea{font-size:16px}}
@media(prefers-reduced-motion:reduce){.panel{animation:none}}`;

  const el = (tag, props, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(props || {})) {
      if (name in node) node[name] = value; else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // Markdown: paragraphs, headings, lists, fenced code, bold, italic, code and links. Text only ever becomes text nodes. The
  // pattern takes time in proportion to the text: each part ends at the next character of its kind, or after so many.
  const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^[\]\n]{1,500})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"'`*()[\]]{1,2000})/g;
  const link = (label, target) => {
    let url;
    try { url = new URL(target); } catch { return label; }
    if (!["http:", "https:", "mailto:"].includes(url.protocol)) return label;
    return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
  };
  const inline = (into, text) => {
    let at = 0;
    for (const m of text.matchAll(INLINE)) {
      into.append(text.slice(at, m.index));
      if (m[1]) into.append(el("code", null, m[1]));
      else if (m[2]) into.append(el("strong", null, m[2]));
      else if (m[3]) into.append(el("em", null, m[3]));
      else if (m[4]) into.append(link(m[4], m[5]));
      else {
        const address = m[6].replace(/[.,:;!?]+$/, "");
        into.append(link(address, address), m[6].slice(address.length));
      }
      at = m.index + m[0].length;
    }
    into.append(text.slice(at));
  };
  const markdown = (into, text) => {
    into.replaceChildren();
    let block = null, code = null;
    for (const line of text.split("\n")) {
      if (/^\s*```/.test(line)) {
        block = null;
        if (code) code = null;
        else into.append(el("pre", { tabIndex: 0 }, code = el("code")));
      } else if (code) {
        code.append(line + "\n");
      } else {
        const item = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/.exec(line);
        const words = item ? item[2] : line.replace(/^#{1,6}\s+/, "");
        const tag = item ? (item[1] ? "OL" : "UL") : words === line ? "P" : "H3";
        if (!words.trim()) { block = null; continue; }
        if (!block || block.tagName !== tag || tag === "H3") {
          into.append(block = el(tag));
          if (item && item[1]) block.start = Number(item[1]);
        } else if (!item) block.append(el("br"));
        if (item) { const li = el("li"); inline(li, words); block.append(li); } else inline(block, words);
      }
    }
  };

  // A site may forbid storage: the visitor is then new with each page.
  const stored = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const store = (value) => { try { localStorage.setItem(key, value); } catch { /* forbidden */ } };
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

  let visitor = stored(), lastEvent = "", unread = 0, isOpen = false, failures = 0, wake = () => {}, opened = () => {};
  let stop = new AbortController(), unanswered = 0, pending = null, site = {};
  const shown = new Map();

  // Rules of the site may reach the host, so that the look is that of an element inside.
  const host = el(TAG);
  const root = host.attachShadow({ mode: "open" });
  const frame = el("div", { className: "w", lang: "en" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(CSS);
  root.adoptedStyleSheets = [sheet];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M4 3h16a2 2 0 0 1 2 2v11a2 2 0 0 1-2 2H9l-5 4v-4a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2z");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  const badge = el("span", { className: "badge", hidden: true });
  const opener = el("button", { className: "open", type: "button", "aria-label": "Open chat", "aria-expanded": "false" }, svg, badge);
  const title = el("h2", { id: "t" }, "Chat");
  const close = el("button", { className: "close", type: "button", "aria-label": "Close chat" }, "\u00d7");
  const log = el("div", { className: "log", role: "log", tabIndex: 0, "aria-live": "polite", "aria-label": "Messages" });
  const state = el("div", { className: "state", role: "status" });
  const input = el("textarea", { id: "i", maxLength: TEXT_MAX, rows: 1 });
  const send = el("button", { className: "send", type: "submit" }, "Send");
  const form = el("form", null, el("label", { className: "hint", htmlFor: "i" }, "Message"), input, send);
  const panel = el("div", { className: "panel", role: "dialog", "aria-modal": "true", "aria-labelledby": "t", hidden: true },
    el("header", null, title, close), log, state, form);
  frame.append(opener, panel);
  root.append(frame);

  const count = (n) => {
    unread = n;
    badge.hidden = n === 0;
    badge.textContent = n > 99 ? "99+" : String(n);
    opener.setAttribute("aria-label", n ? `Open chat, ${n} unread` : "Open chat");
  };
  const toggle = (open) => {
    isOpen = open;
    panel.hidden = !open;
    opener.hidden = open;
    opener.setAttribute("aria-expanded", String(open));
    frame.toggleAttribute("data-open", open);
    if (open) { opened(); count(0); log.scrollTop = log.scrollHeight; input.focus(); } else opener.focus();
  };
  opener.onclick = () => toggle(true);
  close.onclick = () => toggle(false);
  // Shortcuts of the site are not meant here.
  for (const kind of ["keydown", "keyup", "keypress"]) panel.addEventListener(kind, (event) => event.stopPropagation());
  panel.onkeydown = (event) => {
    if (event.key === "Escape") return toggle(false);
    if (event.key !== "Tab") return;
    const stops = [...panel.querySelectorAll("button:not(:disabled),a[href],textarea,[tabindex='0']")];
    const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
    if (root.activeElement === edge) {
      event.preventDefault();
      (event.shiftKey ? stops[stops.length - 1] : stops[0]).focus();
    }
  };

  // Shows a message, or its newer text. A message that streams is not read aloud until it is whole.
  const show = (id, role, text, isWhole) => {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    let entry = shown.get(id);
    if (!entry) {
      entry = { node: el("div", { className: "m " + (role === "user" ? "user" : "agent"), dir: "auto", lang: "" }), text: "", isWhole: false, isUsers: role === "user" };
      shown.set(id, entry);
      log.append(entry.node);
      if (shown.size > SHOWN_MAX) {
        const [oldest, { node }] = shown.entries().next().value;
        node.remove();
        shown.delete(oldest);
      }
    }
    const isNew = isWhole && !entry.isWhole;
    entry.text = text;
    entry.isWhole = isWhole;
    entry.node.setAttribute("aria-busy", String(!isWhole));
    if (role === "user") entry.node.textContent = text; else markdown(entry.node, text);
    if (isAtEnd || role === "user") log.scrollTop = log.scrollHeight;
    return isNew;
  };

  const forget = (id) => {
    if (shown.has(id)) shown.get(id).node.remove();
    shown.delete(id);
  };
  const greet = () => { if (site.greeting && !shown.size) show("greeting", "agent", site.greeting, true); };

  const look = () => {
    title.textContent = site.title || "Chat";
    frame.dataset.theme = ["light", "dark"].includes(site.theme) ? site.theme : "auto";
    frame.dataset.position = site.position === "left" ? "left" : "right";
    const colour = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(site.colour || "");
    if (colour) {
      const [r, g, b] = colour.slice(1).map((hex) => {
        const c = parseInt(hex, 16) / 255;
        return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
      });
      frame.style.setProperty("--c", site.colour);
      frame.style.setProperty("--on", 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff");
    }
  };

  // The visitor goes in a header: addresses end in logs.
  const call = (what, options) => fetch(base + what, {
    credentials: "omit", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(QUIET_MAX), ...options,
    headers: { ...(visitor && what !== "look" && { "X-Visitor": visitor }), ...options.headers },
  });
  const post = (what, body) => call(what, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });

  const hear = (kind, id, data) => {
    if (id) lastEvent = id;
    let value;
    try { value = JSON.parse(data); } catch { return; }
    clearTimeout(unanswered);
    if (kind === "delta") {
      const entry = shown.get(value.id);
      if (!entry || !entry.isWhole) show(value.id, "agent", (entry ? entry.text : "") + value.text, false);
    } else if (kind === "message") {
      state.textContent = "";
      if (show(value.id, value.role, value.text, true) && value.role !== "user" && !isOpen) count(unread + 1);
    } else if (kind === "typing") {
      state.textContent = value.on ? "Writing\u2026" : "";
      // The message comes about now; a turn that failed has none.
      const last = [...shown.values()].pop();
      if (!value.on && last && last.isUsers) {
        unanswered = setTimeout(() => { state.textContent = "No answer came. You can write again."; }, 3000);
      }
    }
  };
  // The connection is given up when nothing comes for so long.
  const inTime = (coming) => {
    const quiet = setTimeout(() => stop.abort(), QUIET_MAX);
    return coming.finally(() => clearTimeout(quiet));
  };
  const read = async (body) => {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "", kind = "", id = "", data = [];
    for (;;) {
      const { done, value } = await inTime(reader.read());
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const raw of lines) {
        const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
        const at = line.indexOf(":");
        const [field, text] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1).replace(/^ /, "")];
        if (line === "") {
          if (data.length) hear(kind || "message", id, data.join("\n"));
          kind = id = ""; data = [];
        } else if (field === "event") kind = text;
        else if (field === "id") id = text;
        else if (field === "data") data.push(text);
      }
    }
  };
  const pause = async () => {
    const most = Math.min(RETRY_MAX, RETRY_MIN * 2 ** Math.min(failures++, 10));
    const woken = new Promise((done) => { wake = done; });
    await Promise.race(document.hidden ? [woken] : [woken, wait(most / 2 + Math.random() * most / 2)]);
  };
  addEventListener("online", () => wake());
  addEventListener("offline", () => { state.textContent = "You are offline."; });
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => stop.abort(), HIDDEN_MAX); else wake();
  });

  const connect = async () => {
    stop = new AbortController();
    const begun = await post("session", {});
    if (begun.status === 401 && visitor) {
      visitor = null;
      lastEvent = "";
      for (const id of [...shown.keys()]) forget(id);
      return;
    }
    if (!begun.ok) throw new Error("session");
    site = await begun.json();
    store(visitor = site.visitor);
    look();
    if (!lastEvent) {
      const past = await call("messages", { cache: "no-store" });
      if (!past.ok) throw new Error("history");
      const { messages } = await past.json();
      if (messages.length) forget("greeting");
      for (const message of messages) show(message.id, message.role, message.text, true);
    }
    greet();
    const headers = { Accept: "text/event-stream", ...(lastEvent && { "Last-Event-ID": lastEvent }) };
    const events = await inTime(call("events", { cache: "no-store", headers, signal: stop.signal }));
    if (!events.ok) throw new Error("events");
    failures = 0;
    send.disabled = false;
    state.textContent = "";
    await read(events.body);
  };
  const run = async () => {
    // What is only looked at costs the daemon no stream and no visitor.
    for (;;) {
      try {
        const seen = await call("look", {});
        if (seen.ok) { site = await seen.json(); break; }
      } catch { /* the next try tells */ }
      if (failures === LOOKS_MAX) {
        return console.error("web chat: no answer from " + base + "; does allowed_origins have " + location.origin + "?");
      }
      await pause();
    }
    look();
    failures = 0;
    document.body.append(host);
    state.textContent = "Connecting\u2026";
    if (!visitor) {
      greet();
      await new Promise((done) => { opened = done; });
    }
    while (host.isConnected) {
      try { await connect(); } catch { /* the next try tells */ }
      // Text that only half came is told again whole or from its start.
      for (const [id, entry] of shown) if (!entry.isWhole) forget(id);
      state.textContent = navigator.onLine ? "Connecting\u2026" : "You are offline.";
      await pause();
    }
  };

  // The id makes a message that is sent again the same message, also when the visitor sends it again.
  form.onsubmit = async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text || send.disabled) return;
    if (!pending || pending.text !== text) pending = { id: newId(), text };
    const { id } = pending;
    send.disabled = true;
    input.value = "";
    clearTimeout(unanswered);
    show(id, "user", text, true);
    let failed = "The message could not be sent.", told = false;
    for (let tries = 0; tries < 6 && failed; tries++) {
      try {
        const answer = await post("messages", pending);
        if (answer.ok) { failed = ""; break; }
        if (answer.status !== 429 && answer.status < 500) break;
        told = true;
        state.textContent = answer.status === 429 ? "Too many messages. Please wait a moment." : "Not sent yet; trying again\u2026";
        const after = Number(answer.headers.get("Retry-After"));
        await wait(Math.min(Math.max(after * 1000 || 1000, 1000), 60000));
      } catch {
        told = true;
        state.textContent = "Not sent yet; trying again\u2026";
        await wait(1000 * 2 ** tries);
      }
    }
    if (failed) {
      forget(id);
      input.value = input.value ? text + "\n" + input.value : text;
      state.textContent = failed;
    } else {
      pending = null;
      if (told) state.textContent = "";
    }
    send.disabled = false;
    if (isOpen) input.focus();
  };
  input.onkeydown = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  };

  send.disabled = true;
  if (document.body) run(); else addEventListener("DOMContentLoaded", run, { once: true });
})();
