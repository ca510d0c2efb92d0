// One turn on the screen: what was said, what the agent did, what it answered, and what that took.

import { download } from "../../lib/api.js";
import { codeBlock, copyText } from "../../lib/code.js";
import { showError } from "../../lib/dialogs.js";
import { fill, h, hidden, refill } from "../../lib/dom.js";
import { bytes, count, duration, money, number, when, brief } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { pictures, render } from "../../lib/markdown.js";
import { imageNode, playerNode } from "../../lib/media.js";
import { allowed, can } from "../../lib/me.js";
import { lineOf, triggerLine } from "../../lib/titles.js";
import { PAGES } from "../../pages.js";
import { runAddress } from "../agent/words.js";
import { mayBranch } from "./branch.js";
import { avatar } from "./side.js";
import { readAloudButton } from "./voice.js";

/** Longer texts of a person are folded. */
const FOLD_LINES = 24;
/** A text that was attached, as the API puts it into a message. */
const ATTACHED = /^\[Attached (file|PDF): ([^\]\n]+)\]$/m;

/** Messages that no person wrote, by their origin: how they are called, and their icon. */
const SENDERS = { trigger: ["Trigger", "flag"], schedule: ["Schedule", "automation"], workflow: ["Step of a workflow", "branch"], agent: ["Another agent", "agents"] };

/** A message that a trigger, a schedule, a workflow or an agent sent, folded. */
function sentNode({ content, created_at: at }, [name, glyph]) {
  const line = name === "Trigger" ? triggerLine(content) : lineOf(content);
  return h("div", { class: "said sent" }, h("details", { class: "thinking", data: { fold: "sent" } },
    h("summary", {}, icon("chevron", 15), icon(glyph, 16), h("span", { class: "cut" }, h("b", {}, line.startsWith(`${name}: `) ? line : `${name}: `), line.startsWith(`${name}: `) ? null : line), at ? h("time", { class: "faint", datetime: at, title: when(at) }, brief(at)) : null),
    h("div", { class: "plain" }, content)));
}

/** What was said: `content`, `images`, when, and where it came from (`origin`); of a person it is a bubble. */
export function saidNode(said, edit = null) {
  const { content, images = [], created_at: at, origin = null } = said;
  const sender = SENDERS[origin];
  if (sender) return sentNode({ content: content ?? "", created_at: at }, sender);
  const { text, attached } = split(content ?? "");
  const body = h("div", { class: "bubble" },
    images.length > 0 ? h("div", { class: "images" }, images.map(imageNode)) : null,
    text ? folded(text) : null, attached.map(attachedNode));
  return h("div", { class: "said" }, hidden("You said"), body,
    h("div", { class: "turn-foot" }, edit ? iconButton("edit", "Edit", edit) : "", iconButton("copy", "Copy the message", () => copyText(text)),
      at ? h("time", { datetime: at, title: when(at) }, brief(at)) : null));
}

/** The text of a message without the texts that were attached to it, and those. */
function split(content) {
  const parts = [];
  let rest = content;
  for (let found = ATTACHED.exec(rest); found; found = ATTACHED.exec(rest)) {
    parts.push({ text: rest.slice(0, found.index).trim() });
    parts.push({ kind: found[1], name: found[2] });
    rest = rest.slice(found.index + found[0].length + 1);
  }
  parts.push({ text: rest });
  const attached = [];
  for (let at = 1; at < parts.length; at += 2) attached.push({ ...parts[at], text: parts[at + 1].text });
  return { text: parts[0].text, attached };
}

function folded(text) {
  const lines = text.split("\n").length;
  const body = h("div", { class: "plain" }, text);
  if (lines <= FOLD_LINES) return body;
  body.classList.add("is-folded");
  const more = h("button", { class: "quiet small", type: "button", onclick: () => { body.classList.remove("is-folded"); more.remove(); } }, `Show all ${number(lines)} lines`);
  return h("div", {}, body, more);
}

function attachedNode({ kind, name, text }) {
  return h("details", { class: "attached", data: { fold: `attached ${name}` } }, h("summary", {}, icon("file", 15), name, h("span", { class: "faint" }, kind === "PDF" ? "PDF" : bytes(text.length))), h("pre", { tabindex: "0" }, text));
}

/** Shows the pictures of an answer that name a file of the agent's workspace or an upload. */
export function showPicturesOf(agentId) {
  pictures.show = (target, label) => {
    const upload = /^\/?api\/uploads\/([\da-f-]{36})$/.exec(target);
    const file = upload ? null : fileOf(target);
    if (!upload && file === null) return null;
    return imageNode({ path: upload ? `/api/uploads/${upload[1]}` : `/api/agents/${agentId}/files/${file}`, filename: label || target });
  };
}

/** The path of a file in a URL; null for one that could lead to another route, which the key would open. */
function fileOf(target) {
  const parts = target.replace(/^(\.?\/)+/, "").split("/").map(decoded);
  return parts.includes(".") || parts.includes("..") ? null : parts.map((part) => encodeURIComponent(part)).join("/");
}

/** A part of a URL without its escapes; as it is, where they are none. */
function decoded(part) {
  try {
    return decodeURI(part);
  } catch {
    return part;
  }
}

/** The tools whose results name the files that they made, and a line of a result that does. */
const MEDIA_TOOLS = new Set(["image_generate", "text_to_speech", "video_generate", "video_status", "music_generate"]);
const MADE = /^File ([\da-f-]{36}): \/api\/uploads\/\1, ((image|audio|video)\/[\w.+-]+)/gm;

/** The images and players of the files that a tool made. */
function madeNodes(result) {
  return [...result.matchAll(MADE)].map(([, id, , kind]) => (kind === "image" ? imageNode({ file_id: id, filename: "generated image" }) : playerNode(`/api/uploads/${id}`, kind)));
}

function iconButton(name, label, run) {
  return h("button", { class: "quiet small only-icon", type: "button", "aria-label": label, title: label, onclick: () => Promise.resolve(run()).catch(showError) }, icon(name, 15));
}

/**
 * A tool call, folded: its name, input, result and time. `tool.set({ result, isError, ms, cut, status })` completes it,
 * `tool.input(value)` tells what it was called with.
 */
export class ToolNode {
  constructor(name, input = undefined) {
    this.name = name;
    this.state = h("span", { class: "tool-state" }, h("span", { class: "spinner" }), hidden("running"));
    this.preview = h("span", { class: "tool-preview cut" });
    this.body = h("div", { class: "tool-body" });
    this.node = h("details", { class: "tool", data: { fold: `tool ${name}` } },
      h("summary", {}, icon("chevron", 15), icon("tool", 16), h("b", {}, name), this.preview, this.state), this.body);
    this.known = {};
    if (input !== undefined) this.input(input);
  }

  input(value) {
    this.known.input = value;
    this.preview.textContent = preview(value);
    this.draw();
  }

  set(known) {
    Object.assign(this.known, known);
    this.draw();
  }

  draw() {
    const { input, result, isError, ms, cut, status } = this.known;
    const isDone = result !== undefined || status !== undefined;
    this.node.classList.toggle("failed", Boolean(isError));
    if (isDone) {
      const word = isError ? "failed" : (status && status !== "ok" ? status : "");
      this.showMade();
      fill(this.state, icon(isError ? "alert" : "check", 15), hidden(isError ? "failed" : "done"), [word, ms === undefined ? "" : duration(ms)].filter(Boolean).join(" · "));
    }
    refill(this.body,
      input === undefined ? null : [h("h3", {}, "Input"), codeBlock(typeof input === "string" ? input : JSON.stringify(input, null, 2), "json")],
      result === undefined ? (isDone ? null : h("p", { class: "hint" }, "Running …")) : [h("h3", {}, isError ? "Error" : "Result"), codeBlock(pretty(result), looksLikeJson(result) ? "json" : "text"), cut ? h("p", { class: "hint" }, `${bytes(cut)} more are not shown.`) : null]);
  }

  /** Puts what the tool made below the call, once. */
  showMade() {
    const { result, isError } = this.known;
    if (this.made || isError || typeof result !== "string" || !MEDIA_TOOLS.has(this.name)) return;
    const nodes = madeNodes(result);
    if (nodes.length === 0) return;
    this.made = h("div", { class: "images made" }, nodes);
    this.node.after(this.made);
  }
}

/** Is it JSON, as far as that can be told without much work? */
function looksLikeJson(text) {
  if (!/^\s*[[{]/.test(text)) return false;
  if (text.length > 200_000) return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function pretty(text) {
  if (!looksLikeJson(text) || text.length > 200_000) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The input of a call in a few words. */
function preview(input) {
  if (input === null || typeof input !== "object") return String(input ?? "");
  return Object.values(input).map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(", ").slice(0, 160);
}

/** What the model thought, folded. */
export function thinkingNode(text) {
  return h("details", { class: "thinking", data: { fold: "thinking" } }, h("summary", {}, icon("chevron", 15), "Thinking"), h("div", { class: "plain" }, text));
}

/** The frame of an answer: who, the parts, and the foot. */
export function answerFrame(agentName) {
  const parts = h("div", { class: "parts" });
  const foot = h("div", { class: "turn-foot" });
  const node = h("div", { class: "answer" }, avatar(agentName), h("div", { class: "grow" }, h("div", { class: "who" }, agentName), parts, foot));
  return { node, parts, foot };
}

/** A remark that a turn failed, with the way to mend it where there is one; `model` is the one that was asked, if that is known. */
export function failure(text, code, { model = null, agentId = null, actions = [] } = {}) {
  const node = remark(text, "bad", actions);
  const provider = model?.split("/")[0];
  // Seldom needed, so it is not part of the first load.
  if (code) import("../../lib/trouble.js").then(({ errorText, isWithoutKey, mendLink }) => {
    fill(node.querySelector(".grow"), errorText({ error: text, provider }));
    node.append(mendLink(code, provider, text) ?? "");
    if (agentId && isWithoutKey(text) && can("write")) node.append(h("a", { class: "mend", href: `#/agent/${encodeURIComponent(agentId)}/settings` }, "Change the model"));
  }).catch(() => {});
  return node;
}

/** A remark below an answer: that it failed, was stopped, or a note to the owner. */
export function remark(text, kind = "", actions = []) {
  return h("div", { class: `remark ${kind}`, role: kind === "bad" ? "alert" : null }, icon(kind === "bad" ? "alert" : kind === "note" ? "flag" : "stop", 16), h("span", { class: "grow" }, text), actions);
}

/**
 * A turn that is over (or waits), from its stored messages and, where it ended, its trace. `retry(turn)` says it again, `edit(turn)`
 * in other words, `branch(turn)` goes on from here elsewhere.
 * `turn` is `{ id, said, steps, trace }`: the person's message and the others in order.
 */
export function storedTurn(turn, agentName, { retry, edit = null, branch = null, isOpen = false, agentId }) {
  const node = h("article", { class: "turn", data: { turn: turn.id, answered: turn.steps.some(({ role }) => role === "Assistant"), ...repeatsOf(turn.said) } });
  if (turn.said) node.append(saidNode(turn.said, edit && can("chat") ? () => edit(turn) : null));
  if (isOpen) {
    node.append(h("div", { class: "answer waits" }, h("span", { class: "spinner" }), h("span", { class: "dim" }, "Queued …")));
    return node;
  }
  const { node: answer, parts, foot } = answerFrame(agentName);
  const text = fillParts(parts, turn);
  const again = () => retry(turn);
  addEnd(parts, turn, again, agentId);
  const memories = memoriesNode(turn.trace, agentId);
  if (memories) parts.append(memories);
  foot.append(...footOf(turn), turn.trace ? h("a", { class: "button quiet small only-icon", href: runAddress(agentId, turn.trace), title: "Show the trace", "aria-label": "Show the trace" }, icon("trace", 15)) : "", iconButton("copy", "Copy the response", () => copyText(text)), ...(can("chat") ? [readAloudButton(parts, agentId), iconButton("retry", "Ask again", again)].filter(Boolean) : []),
    branch && mayBranch() ? iconButton("branch", "Branch from here", () => branch(turn)) : "");
  node.append(answer);
  return node;
}

/** The data of a turn that answers again what another answered. */
export const repeatsOf = (said) => (said?.repeats ? { repeats: said.repeats } : {});

/** Puts thoughts, texts and tool calls into `parts`, in their order; gives all the text. */
function fillParts(parts, turn) {
  const texts = [];
  const tools = new Map();
  const times = (turn.trace?.steps ?? []).filter((step) => step.kind === "tool");
  let asked = null;
  for (const message of turn.steps) {
    if (message.role === "Assistant") {
      asked = message.created_at;
      if (message.thinking) parts.append(thinkingNode(message.thinking));
      if (message.content) {
        texts.push(message.content);
        parts.append(h("div", { class: "md" }, render(message.content)));
      }
      for (const call of message.tool_calls ?? []) {
        const tool = new ToolNode(call.name, call.input);
        tools.set(call.id, tool);
        parts.append(tool.node);
      }
    }
    for (const result of message.tool_results ?? []) {
      const tool = tools.get(result.call_id) ?? new ToolNode(result.name);
      const at = times.findIndex((step) => step.name === result.name);
      const [step] = at >= 0 ? times.splice(at, 1) : [];
      const ms = step?.duration_ms ?? (asked ? new Date(message.created_at) - new Date(asked) : undefined);
      tool.set({ result: result.content, isError: result.is_error, cut: result.cut_bytes, ms });
    }
  }
  for (const tool of tools.values()) if (tool.known.result === undefined) tool.set({ status: "not run" });
  return texts.join("\n\n");
}

/** What the model was given of the agent's memory, folded: a quiet line below the answer. */
function memoriesNode(trace, agentId) {
  const memories = trace?.memories ?? [];
  if (memories.length === 0) {
    const isMissing = trace?.memory_search === "late" || trace?.memory_search === "failed";
    return isMissing ? h("p", { class: "recalled faint" }, trace.memory_search === "late" ? "Answered without memory: the search took too long." : "Answered without memory: the search failed.") : null;
  }
  const hasPage = allowed(PAGES).some(({ name }) => name === "memory");
  const item = ({ id, content, category, taint = [], score, mode }) => h("li", { title: `${mode}, score ${score.toFixed(3)}` },
    hasPage ? h("a", { href: `#/memory?agent=${agentId}&entry=${id}` }, content) : content,
    category ? h("span", { class: "faint" }, ` ${category.replaceAll("_", " ")}`) : null,
    taint.length > 0 ? h("span", { class: "badge" }, `untrusted: ${taint.join(", ")}`) : null);
  return h("details", { class: "recalled", data: { fold: "recalled" } },
    h("summary", {}, icon("chevron", 15), memories.length === 1 ? "Recalled 1 memory" : `Recalled ${number(memories.length)} memories`),
    h("ul", {}, memories.map(item)));
}

/** How a turn ended, where it did not end well. */
function addEnd(parts, turn, again, agentId) {
  const { trace } = turn;
  const isStopped = trace?.status === "stopped" || turn.steps.some((message) => message.stopped);
  const retry = h("button", { class: "small", type: "button", onclick: again }, icon("retry", 15), "Try again");
  for (const notice of trace?.notices ?? []) parts.append(remark(typeof notice === "string" ? notice : notice.text, "note"));
  if (trace?.status === "failed") parts.append(failure(trace.error || "The turn failed.", trace.code, { model: trace.steps.findLast(({ kind }) => kind === "model")?.name, agentId, actions: can("chat") ? [retry] : [] }));
  else if (isStopped) parts.append(remark("Stopped."));
  else if (trace?.status === "interrupted") parts.append(remark("Interrupted before its next tool call."));
  else if (parts.childElementCount === 0) parts.append(h("p", { class: "faint" }, "No response."));
}

/** Time, tokens, cost and model of a turn. */
function footOf(turn) {
  const answers = turn.steps.filter((message) => message.usage);
  const sum = (name) => answers.reduce((total, message) => total + (message.usage[name] ?? 0), 0);
  const { trace } = turn;
  const last = turn.steps.at(-1);
  const tokensIn = trace?.input_tokens ?? sum("input_tokens");
  const tokensOut = trace?.output_tokens ?? sum("output_tokens");
  const model = answers.at(-1)?.model;
  const items = [];
  if (last) items.push(h("time", { datetime: last.created_at, title: when(last.created_at) }, brief(last.created_at)));
  if (trace?.duration_ms !== undefined && trace?.duration_ms !== null) items.push(h("span", { title: "Time from the message to the end of the turn" }, duration(trace.duration_ms)));
  if (tokensIn || tokensOut) items.push(h("span", { class: "tokens", title: `${count(tokensIn, "token")} in, ${count(tokensOut, "token")} out` }, `${number(tokensIn)} → ${number(tokensOut)} tokens`));
  const cost = trace?.cost_usd ?? sum("cost_usd");
  if (tokensIn || tokensOut) items.push(h("span", { class: "cost", title: "Cost of the model calls" }, money(cost)));
  if (model) items.push(h("span", { class: "model cut", title: model }, model === "builtin/builtin" ? "offline model" : model));
  return items;
}

/** Offers a session as a file: `format` is json or jsonl. */
export function exportTrajectory(agent, sessionId, format) {
  const name = `${agent.name}-${sessionId.slice(0, 8)}.${format}`;
  return download(`/api/agents/${agent.id}/sessions/${sessionId}/trajectory?format=${format}`, name);
}
