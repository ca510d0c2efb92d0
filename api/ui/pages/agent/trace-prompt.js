// What a model was sent: the system text, the messages and the tools, as they went out, with what each takes of the context.

import { copyText, codeBlock } from "../../lib/code.js";
import { showError } from "../../lib/dialogs.js";
import { fill, h, skeleton } from "../../lib/dom.js";
import { bytes, count, duration, number, short } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { lineOf } from "../../lib/titles.js";
import { promptOf } from "./trace-data.js";

/** The parts of a prompt, in the order of the bar, with the number of their colour. */
const PARTS = [["system", "System prompt", 0], ["tools", "Tools", 2], ["user", "Messages", 1], ["assistant", "Responses", 4], ["results", "Tool results", 3]];
const ROLES = { User: ["Message", "user"], Assistant: ["Response", "agents"], Tool: ["Tool result", "tool"] };
/** Letters of a text that is open from the beginning. */
const OPEN_MAX = 600;

/** How a prompt fills the context, as a bar of its parts with a legend; `window` may be null. `sent` is a call of the list. */
export function contextBar(sent, window) {
  const { tokens } = sent;
  const used = PARTS.reduce((sum, [key]) => sum + tokens[key], 0);
  const whole = Math.max(window ?? 0, used, 1);
  const shown = PARTS.filter(([key]) => tokens[key] > 0);
  return h("div", { class: "stack tight-stack" },
    h("div", { class: "parts-bar", role: "img", "aria-label": shown.map(([key, name]) => `${name}: ${count(tokens[key], "token")}`).join(", ") },
      shown.map(([key, name, series]) => h("i", { class: `part-${series}`, title: `${name}: about ${count(tokens[key], "token")}`, style: { "--part": `${Math.max(0.4, (tokens[key] / whole) * 100).toFixed(2)}%` } }))),
    h("div", { class: "parts-legend" }, shown.map(([key, name, series]) => h("span", { class: `part-key part-${series}` }, name, " ", h("b", {}, short(tokens[key])))),
      window && window > used ? h("span", { class: "part-key part-free" }, "Free ", h("b", {}, short(window - used))) : null));
}

/** The prompt of a call, read when it is shown. `before` is the call that the same turn made before it, or null. */
export function promptView({ agentId, turnId, sent, before, signal }) {
  const holder = h("div", { class: "stack" }, skeleton(4));
  promptOf(agentId, turnId, sent.id, signal).then((prompt) => fill(holder, prompt ? promptNodes(prompt, sent, before) : goneNote())).catch(showError);
  return holder;
}

/** What stands where the prompt is not kept. */
export const goneNote = () => h("p", { class: "hint" }, "The prompt as sent is no longer kept: the daemon has those of the newest calls in memory, until it restarts.");

function promptNodes(prompt, sent, before) {
  const known = before?.messages ?? Infinity;
  return [
    h("div", { class: "bar-row tight" },
      h("span", { class: "dim grow" }, `${count(prompt.messages.length, "message")}, ${count(prompt.tools.length, "tool")}${sent.temperature === null ? "" : `, temperature ${sent.temperature.toFixed(2).replace(/\.?0+$/, "")}`}${sent.max_tokens === null ? "" : `, at most ${number(sent.max_tokens)} tokens`}`),
      h("button", { type: "button", class: "small", onclick: () => copyText(JSON.stringify({ model: `${sent.provider}/${sent.model}`, system: prompt.system, messages: prompt.messages, tools: prompt.tools }, null, 2)) }, icon("copy", 15), "Copy as JSON")),
    sent.cut ? h("p", { class: "notice warn" }, icon("alert"), h("span", {}, "Earlier messages were left out: they did not fit the context window.")) : null,
    h("div", { class: "sent-list" },
      prompt.system === "" ? null : sentNode({ name: "System prompt", glyph: "settings", line: lineOf(prompt.system), tokens: prompt.system_tokens, isOpen: prompt.system.length <= OPEN_MAX, body: [h("div", { class: "plain" }, prompt.system)] }),
      prompt.messages.map((message, index) => messageNode(message, index >= known, index >= prompt.messages.length - 1)),
      prompt.tools.length === 0 ? null : toolsNode(prompt.tools)),
  ];
}

const sentNode = ({ name, glyph, line, tokens, isOpen = false, isNew = false, body }) => h("details", { class: "sent-part", open: isOpen },
  h("summary", {}, icon("chevron", 14), icon(glyph, 15), h("b", {}, name), isNew ? h("span", { class: "badge accent" }, "new") : null, h("span", { class: "cut grow faint" }, line), h("span", { class: "faint num" }, `${short(tokens)} tokens`)),
  h("div", { class: "sent-body" }, body));

function messageNode(message, isNew, isLast) {
  const [role, glyph] = ROLES[message.role] ?? [message.role, "chat"];
  const [first] = message.parts;
  const calls = message.parts.filter(({ type }) => type === "tool_call");
  const name = message.role === "Tool" && first?.name ? `Result of ${first.name}` : role;
  const text = message.parts.find(({ type }) => type === "text")?.text ?? first?.content ?? "";
  const line = text ? lineOf(text) : calls.length > 0 ? `calls ${calls.map((call) => call.name).join(", ")}` : "";
  return sentNode({ name, glyph, line, tokens: message.tokens, isNew, isOpen: isLast && text.length <= OPEN_MAX, body: message.parts.map(partNode) });
}

function partNode(part) {
  if (part.type === "text") return h("div", { class: "plain" }, part.text);
  if (part.type === "thinking") return h("details", { class: "thinking" }, h("summary", {}, icon("chevron", 14), "Thinking"), h("div", { class: "plain" }, part.text || "Only the provider can read it."));
  if (part.type === "tool_call") return h("div", { class: "field" }, h("h3", {}, `Calls ${part.name}`), codeBlock(pretty(part.input), "json"));
  if (part.type === "tool_result") return h("div", { class: "field" }, part.is_error ? h("h3", { class: "danger-text" }, "Error") : null, codeBlock(part.content, ""));
  return h("p", { class: "dim" }, `A picture (${part.media_type}, ${bytes(part.bytes)}).`);
}

const toolsNode = (tools) => sentNode({
  name: count(tools.length, "tool"), glyph: "tool", line: tools.map(({ name }) => name).join(", "), tokens: tools.reduce((sum, tool) => sum + tool.tokens, 0),
  body: tools.toSorted((a, b) => b.tokens - a.tokens).map((tool) => sentNode({ name: tool.name, glyph: "tool", line: tool.description, tokens: tool.tokens, body: [h("p", {}, tool.description), codeBlock(JSON.stringify(tool.input_schema, null, 2), "json")] })),
});

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The tries of a call that was not answered at once, as a list; null for one that was. `sent` are the calls of a step. */
export function triesNode(sent) {
  const tries = sent.flatMap((one) => one.tries.map((each) => ({ ...each, model: `${one.provider}/${one.model}` })));
  if (tries.length === 0 || (tries.length === 1 && !tries[0].code)) return null;
  return h("div", { class: "field" }, h("h3", {}, "Tries"), h("ol", { class: "tries" }, tries.map((one, index) => {
    const next = tries[index + 1];
    const pause = next ? new Date(next.started_at) - new Date(one.started_at) - one.duration_ms : 0;
    return h("li", { class: one.code ? "bad" : "good" }, icon(one.code ? "alert" : "check", 15),
      h("span", { class: "grow" }, h("b", {}, one.model), one.error ? ` failed after ${duration(one.duration_ms)}: ${one.error}` : ` answered in ${duration(one.duration_ms)}`, pause > 50 ? h("small", { class: "faint" }, `Then the daemon waited ${duration(pause)}.`) : null));
  })));
}
