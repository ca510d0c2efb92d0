// How entries and knowledge are described. Everything gives text: what agents and users wrote never becomes markup.

import { followAlways } from "../../lib/stream.js";
import { withQuery } from "../../lib/api.js";
import { nameOf } from "../../lib/agents.js";

export const LEVELS = [["user", "User"], ["session", "Session"], ["agent", "Agent"]];
const LEVEL_TEXTS = { user: "User: kept until it is deleted", session: "Session: expires", agent: "Agent: about its own work" };
const TAINTS = { web: "web content", mcp: "an MCP server", upload: "an uploaded file", file: "a file", channel: "a channel message", a2a: "an external agent", peer: "a peer", email: "an email" };
const SOURCES = { api: "Added by a client", rules: "Extracted from a conversation by rules", import: "Imported", model: "Extracted from a conversation by a model", llm: "Extracted from a conversation by a model" };
/** How long changes are collected before they are shown, in milliseconds. */
const COLLECT_MS = 300;
/** Keys of entries are UUIDs; those of the key-value memory are names. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const levelText = (level) => LEVEL_TEXTS[level] ?? level;
export const sourceText = (source) => SOURCES[source] ?? source ?? "Unknown";
export const categoryText = (category) => (category ? category.replaceAll("_", " ") : "uncategorized");

/** 0.82 as "High (0.82)". */
export function confidenceText(value) {
  const word = value >= 0.75 ? "High" : value >= 0.4 ? "Medium" : value >= 0.05 ? "Low" : "Very low; the next cleanup deletes it";
  return `${word} (${Number(value).toFixed(2)})`;
}

/** How well a result fits, beside the best one. */
export function matchText(score, best) {
  const part = best > 0 ? score / best : 0;
  return part >= 0.999 ? "Best" : part >= 0.75 ? "Strong" : part >= 0.4 ? "Fair" : "Weak";
}

/** Untrusted sources as a sentence, or "". */
export function taintText(taint) {
  if (!taint?.length) return "";
  const words = taint.map((word) => TAINTS[word] ?? word.replaceAll("_", " "));
  return `Made from ${words.length === 1 ? words[0] : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`}`;
}

/** `nameOf`, or "all agents". */
export const agentText = (id) => (id ? nameOf(id) : "all agents");

/**
 * Follows the changes of memory entries (`kind` "memory_updated") or of knowledge ("knowledge_updated") and calls `changed(ids)` with
 * the ids of several at once; `null` after a lost connection, when anything may have changed.
 */
export function followChanges(kind, agent, { signal, changed }) {
  const ids = new Set();
  let timer = 0;
  let wasLost = false;
  const tell = () => {
    timer = 0;
    if (signal.aborted) return;
    const told = [...ids];
    ids.clear();
    changed(told);
  };
  followAlways(() => withQuery("/api/world/events", { kind, agent_id: agent() }), {
    signal,
    onEvent: (name, body) => {
      if (name === "lagged") changed(null);
      if (name !== "event" || (kind === "memory_updated" && !UUID.test(body.event.key))) return;
      ids.add(body.event.key ?? body.event.agent_id);
      timer ||= setTimeout(tell, COLLECT_MS);
    },
    onState: (how) => {
      if (how === "live" && wasLost) changed(null);
      wasLost = how !== "live";
    },
  }).catch(() => {});
  signal.addEventListener("abort", () => clearTimeout(timer));
}
