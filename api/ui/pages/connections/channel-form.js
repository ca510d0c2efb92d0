// The forms of channels: values as the adapter describes them, a test message, a chat that is allowed.

import { call, get } from "../../lib/api.js";
import { faultAt } from "../../lib/checks.js";
import { choice, numberInput, textInput, toggle } from "../../lib/controls.js";
import { ask, toast } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { when } from "../../lib/format.js";
import { installation, isPackageMissing } from "./channel-package.js";
import { channelPath } from "./channel-words.js";

/** A control for one value; `read()` gives its text, `undefined` when it stays, null when it is removed. */
function valueField(value) {
  const stored = value.value ?? "";
  const label = value.label || value.key;
  if (value.type === "bool") {
    const isOn = /^(1|true|yes|on)$/i.test(stored);
    const part = toggle(label, isOn);
    return { value, part, read: () => (part.box.checked === isOn ? undefined : String(part.box.checked)) };
  }
  const isKept = value.type === "secret" && value.is_set;
  const props = { class: "code", spellcheck: "false", required: value.required && !isKept, placeholder: isKept ? "unchanged" : (value.placeholder ?? "") };
  const control = value.type === "select" ? choice([["", "Default"], ...(value.options ?? []).map((option) => [option, option])], stored)
    : value.type === "number" ? numberInput(stored, props)
      : textInput(stored, { ...props, type: value.type === "secret" ? "password" : "text", autocomplete: "off" });
  const hints = [value.type === "list" ? "Separate entries with commas." : "", isKept ? "Leave empty to keep the stored value." : "", value.key === label ? "" : value.key];
  const part = field(label, control, { hint: hints.filter(Boolean).join(" ") });
  const read = () => {
    const text = control.value.trim();
    if (text === (isKept ? "" : stored)) return undefined;
    return text === "" ? null : text;
  };
  return { value, part, control, isKept, read };
}

/** The fields of a schema, common ones first, the rest folded away; `places` has those that can show the fault of a value. */
function valueFields(fields) {
  const all = fields.map(valueField);
  const rare = all.filter(({ value }) => value.advanced && !value.required);
  const common = all.filter((one) => !rare.includes(one));
  const more = h("details", { class: "oauth-part" }, h("summary", {}, "More settings"), h("div", { class: "stack" }, rare.map(({ part }) => part)));
  for (const { part } of rare.filter((one) => one.control)) {
    const { fault } = part;
    part.fault = (text) => {
      if (text) more.open = true;
      fault(text);
    };
  }
  const nodes = [common.map(({ part }) => part), rare.length > 0 ? more : null];
  const places = Object.fromEntries(all.filter(({ control }) => control).map(({ value, part }) => [value.key, part]));
  /** The values that were entered. */
  const read = () => {
    const missing = all.find(({ value, control, isKept }) => value.required && control && !isKept && control.value.trim() === "");
    if (missing) throw faultAt(missing.part, "Enter a value.");
    return Object.fromEntries(all.map(({ value, read }) => [value.key, read()]).filter(([, text]) => text !== undefined));
  };
  return { nodes, places, read };
}

/** Says what was stored, and what it does not change. */
function tellSaved(saved) {
  const parts = [saved.created ? `Added ${saved.name}` : "Saved", ...(saved.hot_actions_applied ?? [])];
  if (saved.shadowed_secrets?.length > 0) parts.push(`not used, because the environment or config.toml has another value: ${saved.shadowed_secrets.join(", ")}`);
  if (saved.restart_required) parts.push("restart the daemon to apply it");
  toast(parts.join("; "));
  return saved;
}

/** Says why an adapter has not told which values it takes, and what to do. */
function tellUnknown(title, why) {
  const body = isPackageMissing(why) ? [h("p", {}, "Channels need the Python package librefang-sdk, which is not installed."), installation()]
    : [h("p", {}, "The adapter has not told which values it takes:"), h("p", { class: "server-text" }, why)];
  return ask({ title, body, action: "Close", cancel: null });
}

/** Sets up a channel for a platform of the registry; gives the reply, or null. */
export async function addChannel(entry) {
  const detail = await get(`/api/channels/registry/${encodeURIComponent(entry.id)}`);
  const { schema } = detail;
  if (!schema) {
    await tellUnknown("This channel cannot be set up yet", detail.schema_error);
    return null;
  }
  const taken = detail.channels ?? [];
  const name = field("Name", textInput(taken.length === 0 ? entry.id : `${entry.id}-${taken.length + 1}`, { class: "code", spellcheck: "false" }), { hint: "Letters, digits, -, _ and ." });
  const agent = field("Agent", textInput("", { placeholder: "Name of an agent" }), { hint: "Answers the messages. Without one, bindings decide, or people choose with /agent." });
  const values = valueFields(schema.fields);
  return ask({
    title: `Set up ${schema.display_name || entry.name || entry.id}`, wide: true, action: "Set up", fields: { ...values.places, name, agent },
    body: [schema.description ? h("p", { class: "server-text" }, schema.description) : null, name, agent, values.nodes],
    submit: async () => {
      const wanted = name.control.value.trim();
      if (wanted === "") throw faultAt(name, "Enter a name.");
      const given = agent.control.value.trim();
      const body = { adapter: detail.adapter, values: values.read(), ...(given ? { agent: given } : {}) };
      return tellSaved(await call("POST", channelPath(wanted, "/configure"), body));
    },
  });
}

/** Changes the values of a channel; gives the reply, or null. */
export async function editChannel(name) {
  const channel = await get(channelPath(name));
  if (!channel.fields) {
    await tellUnknown("This channel cannot be edited yet", channel.fields_error);
    return null;
  }
  const agent = field("Agent", textInput(channel.agent ?? "", { placeholder: "Name of an agent" }), { hint: "Empty: bindings decide, or people choose with /agent." });
  const values = valueFields(channel.fields);
  return ask({
    title: `Edit ${name}`, wide: true, fields: { ...values.places, agent }, body: [agent, values.nodes],
    submit: async () => {
      const given = agent.control.value.trim();
      const body = { values: values.read(), ...(given === (channel.agent ?? "") ? {} : { agent: given || null }) };
      return tellSaved(await call("POST", channelPath(name, "/configure"), body));
    },
  });
}

/** Sends a test message; gives the reply, or null. */
export function testChannel(name) {
  const recipient = field("Conversation", textInput("", { class: "code", spellcheck: "false" }), { hint: "As the platform names it. Empty: the channel's default_conversation." });
  const message = field("Message", textInput("", { placeholder: "This is a test message." }));
  return ask({
    title: `Send a test message to ${name}`, action: "Send", fields: { recipient, message }, body: [recipient, message],
    submit: async () => {
      const body = Object.fromEntries([["recipient", recipient], ["message", message]].map(([key, { control }]) => [key, control.value.trim()]).filter(([, text]) => text !== ""));
      const sent = await call("POST", channelPath(name, "/test"), body);
      toast(`${sent.status}: test message to ${sent.recipient}`);
      return sent;
    },
  });
}

/** Makes a code that lets a chat in, and shows it: it is shown this once. Gives true when one was made. */
export async function pairChat(names, chosen = names[0]) {
  const channel = field("Channel", choice(names.map((name) => [name, name]), chosen));
  const chat = field("Conversation", textInput("", { class: "code", spellcheck: "false" }), { hint: "Empty: make a code, for a chat that you do not know yet." });
  const made = await ask({
    title: "Allow a chat", action: "Continue", fields: { channel, conversation: chat }, body: [channel, chat],
    submit: () => {
      const given = chat.control.value.trim();
      return call("POST", "/api/channels/pairings", { channel: channel.control.value, ...(given ? { conversation: given } : {}) });
    },
  });
  if (!made) return false;
  if (!made.code) {
    toast(`${made.conversation} is allowed`);
    return true;
  }
  await ask({
    title: "Send this message from the chat", action: "Done", cancel: null,
    body: [h("pre", { class: "code-box pair-code", tabindex: "0", role: "region", "aria-label": "Code" }, `/start ${made.code}`), h("p", { class: "hint" }, `To ${made.channel}, until ${when(made.expires_at)}. The code works once and is not shown again.`)],
  });
  return true;
}
