// How entries and knowledge are described. Everything gives text: what agents and users wrote never becomes markup.

import { followAlways } from "../../lib/stream.js";
import { withQuery } from "../../lib/api.js";
import { nameOf } from "../../lib/agents.js";

export const LEVELS = [["user", "User"], ["session", "Session"], ["agent", "Agent"]];
const LEVEL_TEXTS = { user: "User: kept until it is deleted", session: "Session: expires", agent: "Agent: about its own work" };
const TAINTS = { web: "web content", upload: "an uploaded file", agent: "a message of another agent", event: "a custom event", command: "the output of a command", tool: "the result of a tool", injection: "text that resembles a prompt injection", guest: "a message of a client without a key", peer: "another node" };
const SOURCES = { api: "Added by a client", rules: "Extracted from a conversation by rules", import: "Imported", model: "Extracted from a conversation by a model", llm: "Extracted from a conversation by a model" };
/** How long changes are collected before they are shown, in milliseconds. */
const COLLECT_MS = 300;
/** Changes that are told apart; of more, it is only known that there were some. */
const IDS_MAX = 1000;
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
 * Follows the changes of memory entries (`kind` "memory_updated") or of knowledge ("knowledge_updated"), of the agent that `agent()`
 * gives or of all, and calls `changed(ids)` with the ids of what has changed; null when it is not known, as after a lost
 * connection. Several changes are one call; what takes long is called less often. `changed` does not fail.
 */
export function followChanges(kind, agent, { signal, changed }) {
  const ids = new Set();
  let isUnknown = false;
  let timer = 0;
  let isBusy = false;
  let wasLost = false;

  async function tell() {
    timer = 0;
    const told = isUnknown ? null : [...ids];
    ids.clear();
    isUnknown = false;
    isBusy = true;
    const began = performance.now();
    await changed(told);
    isBusy = false;
    if (ids.size > 0 || isUnknown) plan((performance.now() - began) * 4);
  }

  function plan(ms = 0) {
    if (!isBusy && !signal.aborted) timer ||= setTimeout(tell, Math.max(COLLECT_MS, ms));
  }

  followAlways(() => withQuery("/api/world/events", { kind }), {
    signal,
    onEvent: (name, { event }) => {
      if (name === "lagged") isUnknown = true;
      else if (name !== "event" || (kind === "memory_updated" && !UUID.test(event.key)) || (agent() && event.agent_id !== agent())) return;
      else if (ids.size < IDS_MAX) ids.add(event.key ?? event.agent_id);
      else isUnknown = true;
      plan();
    },
    onState: (how) => {
      if (how === "live" && wasLost) isUnknown = true;
      wasLost = how !== "live";
      if (isUnknown) plan();
    },
  }).catch(() => {});
  signal.addEventListener("abort", () => clearTimeout(timer));
}
