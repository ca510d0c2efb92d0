// One entry: what it says, where it comes from, its earlier contents, and the forms that add and change entries.

import { call } from "../../lib/api.js";
import { agentField, agentLink } from "../../lib/agents.js";
import { choice, numberInput, textBox, textInput } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { ago, count, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { LEVELS, categoryText, confidenceText, levelText, sourceText, taintText } from "./words.js";

const pathOf = (entry) => `/api/memory/items/${encodeURIComponent(entry.id)}`;

/** A moment with its distance; a dash for none. */
const moment = (text) => (text ? h("time", { datetime: text, title: when(text) }, `${when(text)} (${ago(text)})`) : "–");

/** The conversation that an entry was learned in, as its metadata names it; null without one. */
function conversationOf(entry) {
  const { session_id: session, turn_id: turn } = entry.metadata ?? {};
  if (typeof session !== "string") return null;
  const address = `#/chat/${encodeURIComponent(entry.agent_id)}/${encodeURIComponent(session)}`;
  return [h("a", { href: address }, "Open the conversation"), typeof turn === "string" ? h("span", { class: "faint" }, ` turn ${turn.slice(0, 8)}`) : null];
}

/** The page of an entry. `back` is the address of the list; `edited(entry)` and `deleted()` are called after changes. */
export function entryView(entry, { back, edited, deleted }) {
  const taint = taintText(entry.taint);
  const versions = [...(entry.versions ?? [])].reverse();
  const hasMore = Object.keys(entry.metadata ?? {}).length > 0;
  const pair = (name, value) => [h("dt", {}, name), h("dd", {}, value)];
  return h("div", { class: "stack" },
    h("a", { class: "back-link", href: back }, icon("chevron", 18), "All entries"),
    h("section", { class: "card stack", "aria-label": "Memory entry" },
      h("div", { class: "bar-row" }, h("h2", { class: "grow", tabindex: "-1" }, "Memory entry"),
        can("write") && h("div", { class: "buttons" },
          h("button", { type: "button", onclick: () => edit(entry, edited).catch(showError) }, icon("edit", 18), "Edit"),
          h("button", { type: "button", class: "danger-text", onclick: () => remove(entry, deleted).catch(showError) }, icon("trash", 18), "Delete"))),
      h("p", { class: "entry-content" }, entry.content),
      taint ? h("p", { class: "notice warn" }, icon("alert", 18), h("span", {}, `${taint}. An answer that uses it is treated as untrusted.`)) : null,
      h("dl", { class: "pairs" },
        pair("Agent", agentLink(entry.agent_id)),
        pair("User", entry.user_id ? h("a", { href: `#/memory?user=${encodeURIComponent(entry.user_id)}` }, entry.user_id) : "None"),
        pair("Level", levelText(entry.level)),
        pair("Category", categoryText(entry.category)),
        pair("Tags", entry.tags.length > 0 ? h("span", { class: "chips" }, entry.tags.map((tag) => h("span", { class: "badge" }, tag))) : "None"),
        pair("Confidence", confidenceText(entry.confidence)),
        pair("Source", [sourceText(entry.source), conversationOf(entry) ? [" · ", conversationOf(entry)] : null]),
        pair("Created", moment(entry.created_at)),
        pair("Changed", moment(entry.updated_at)),
        pair("Used", entry.access_count > 0 ? [`${count(entry.access_count, "time")}, last `, moment(entry.accessed_at)] : "Not yet"),
        entry.expires_at ? pair("Expires", moment(entry.expires_at)) : null),
      hasMore ? h("details", {}, h("summary", {}, "Metadata"), h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Metadata" }, JSON.stringify(entry.metadata, null, 2))) : null),
    h("section", { class: "card stack", "aria-label": "History" }, h("h2", {}, "History"),
      versions.length === 0 ? h("p", { class: "dim" }, "The content has not changed.")
        : h("ol", { class: "entry-versions", "aria-label": "Earlier contents, newest first" }, versions.map((version) => h("li", {}, h("p", { class: "entry-content" }, version.content), h("small", { class: "faint" }, "Replaced ", moment(version.replaced_at)))))));
}

/** The fields that describe an entry, and what they hold as the body of a request. */
function entryFields(entry = {}) {
  const content = field("Content", textBox(entry.content, 5, { maxlength: "16384" }), { hint: "One fact, in one or two sentences." });
  const level = field("Level", choice(LEVELS, entry.level ?? "user"), { hint: "Entries of a session expire." });
  const category = field("Category", textInput(entry.category, { placeholder: "preference" }));
  const tags = field("Tags", textInput((entry.tags ?? []).join(", ")), { hint: "Separated by commas." });
  const confidence = field("Confidence", numberInput(entry.confidence === undefined ? 1 : Number(entry.confidence.toFixed(3)), { min: 0, max: 1, step: "any" }), { hint: "0 to 1. Decides the rank in searches." });
  return {
    fields: { content, level, category, tags, confidence },
    body: [content, h("div", { class: "form-row" }, level, category), h("div", { class: "form-row" }, tags, confidence)],
    read: () => ({
      content: content.control.value, level: level.control.value, category: category.control.value.trim(),
      tags: tags.control.value.split(",").map((tag) => tag.trim()).filter(Boolean),
      confidence: confidence.control.value.trim() === "" ? null : Number(confidence.control.value),
    }),
  };
}

async function edit(entry, edited) {
  const { fields, body, read } = entryFields(entry);
  const submit = () => {
    const { content, confidence, ...rest } = read();
    // A content that is sent, also the same again, would be a version of its own; a rounded confidence would be a change.
    const isSame = confidence === Number(entry.confidence.toFixed(3));
    return call("PUT", pathOf(entry), { ...rest, content: content === entry.content ? undefined : content, confidence: isSame ? undefined : confidence });
  };
  if (!(await ask({ title: "Edit the entry", body, fields, submit }))) return;
  toast("Saved");
  await edited();
}

async function remove(entry, deleted) {
  const text = "The entry and its history are deleted. This cannot be undone.";
  if (!(await confirm({ title: "Delete this entry?", text, run: () => call("DELETE", pathOf(entry)) }))) return;
  toast("Deleted");
  deleted();
}

/** Asks for a new entry, for `agent` about `user` unless another is chosen; gives the entry that was stored, or null. It begins as `draft`. */
export async function addEntry(agent, user, draft = {}) {
  const { fields, body, read } = entryFields(draft);
  const agent_id = agentField("Agent", { id: agent });
  const user_id = field("User", textInput(user, { placeholder: "no user" }), { hint: "Whom it is about." });
  const added = await ask({
    title: "Add an entry", action: "Add", fields: { agent_id, user_id, ...fields },
    body: [h("div", { class: "form-row" }, agent_id, user_id), ...body],
    submit: async () => call("POST", "/api/memory", { ...read(), agent_id: await agent_id.read(), user_id: user_id.control.value.trim() || undefined }),
  });
  return added?.memory ?? null;
}
