// The conversation on the screen: messages of the past, and one that is being written.

import { element, render } from "./markdown.js";

// Messages shown at once; earlier ones on demand, so that a long session opens quickly.
const SHOWN_MAX = 100;
// From this length on, an answer is shown as plain text until it is complete.
const LIVE_MARKDOWN_MAX = 20_000;

const log = document.getElementById("log");

/** Shows `messages` (`{role, content}`) of `agent`, the last ones first in sight. */
export function showHistory(messages, agent) {
  let from = Math.max(0, messages.length - SHOWN_MAX);
  log.replaceChildren(...messages.slice(from).map((message) => past(message, agent)));
  const earlier = element("button", "Show earlier messages", "quiet earlier");
  earlier.type = "button";
  earlier.addEventListener("click", () => {
    const before = Math.max(0, from - SHOWN_MAX);
    const height = log.scrollHeight;
    earlier.after(...messages.slice(before, from).map((message) => past(message, agent)));
    log.scrollTop += log.scrollHeight - height;
    from = before;
    earlier.hidden = from === 0;
  });
  if (from > 0) log.prepend(earlier);
  if (messages.length === 0) showEmpty(`Say hello to ${agent}`, "Nothing has been said in this session yet.");
  toEnd();
}

/** An empty conversation with a word on what to do. */
export function showEmpty(title, text) {
  const empty = element("div", "", "empty");
  empty.append(element("b", title), element("span", text));
  log.replaceChildren(empty);
}

function past({ role, content }, agent) {
  return /^user$/i.test(role) ? userMessage(String(content)) : answer(agent, String(content));
}

/** What the user said, as it was typed. */
export function userMessage(text) {
  const message = element("article", "", "message user");
  message.append(element("span", "You said", "hidden"), element("div", text, "body"));
  return message;
}

function answer(agent, text) {
  const message = element("article", "", "message");
  const body = element("div", "", "body");
  body.append(render(text));
  message.append(element("div", agent, "who"), body);
  return message;
}

/** Adds `nodes` at the end of the conversation. */
export function append(...nodes) {
  log.querySelector(".empty")?.remove();
  log.append(...nodes);
  toEnd();
}

/** Scrolls to the last message. */
export function toEnd() {
  log.scrollTop = log.scrollHeight;
}

function nearEnd() {
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

/** An answer that is being written. It may leave the screen and come back: `node` is all there is to show. */
export class LiveAnswer {
  constructor(agent) {
    this.node = element("article", "", "message writing");
    this.node.setAttribute("aria-busy", "true");
    this.tools = element("div");
    this.body = element("div", "", "body");
    this.node.append(element("div", agent, "who"), this.tools, this.body);
    this.text = "";
    this.frame = 0;
  }

  /** A piece of the answer. Pieces that come faster than the screen are drawn together. */
  chunk(content) {
    this.text += content;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const follow = nearEnd();
    if (this.text.length <= LIVE_MARKDOWN_MAX || !this.node.classList.contains("writing")) {
      this.body.replaceChildren(render(this.text));
    } else {
      this.plain ??= this.body.appendChild(element("p"));
      if (this.body.firstChild !== this.plain) this.body.replaceChildren(this.plain);
      this.plain.append(this.text.slice(this.plain.textContent.length));
    }
    if (follow) toEnd();
  }

  /** The agent calls a tool. */
  toolUse(tool) {
    this.step(() => {
      const line = element("div", "", "tool");
      line.dataset.tool = tool;
      line.append("Using ", element("b", tool), " …");
      this.tools.append(line);
    });
  }

  /** A tool call completed: its line now tells what it was called with. */
  toolResult(tool, input) {
    this.step(() => {
      const lines = [...this.tools.querySelectorAll("div.tool")];
      const open = lines.find((line) => line.dataset.tool === tool);
      const done = element("details", "", "tool");
      const summary = element("summary", "Used ");
      summary.append(element("b", tool));
      done.append(summary, element("pre", JSON.stringify(input ?? {}, null, 2)));
      if (open) open.replaceWith(done);
      else this.tools.append(done);
    });
  }

  /** A remark under the answer; `bad` when something went wrong. */
  note(text, bad = false) {
    this.step(() => {
      const note = element("p", text, bad ? "note bad" : "note");
      if (bad) note.setAttribute("role", "alert");
      this.node.append(note);
    });
  }

  /** The answer is complete; `foot` is a line about it. */
  end(foot = "") {
    cancelAnimationFrame(this.frame);
    this.node.classList.remove("writing");
    this.step(() => {
      this.draw();
      if (foot) this.node.append(element("div", foot, "foot"));
    });
    this.node.removeAttribute("aria-busy");
  }

  /** Changes the node and keeps the end in sight when it was. */
  step(change) {
    const follow = nearEnd();
    change();
    if (follow) toEnd();
  }
}
