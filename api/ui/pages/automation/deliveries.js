// Where the answers of a schedule, cron job, trigger or workflow go, and what became of the newest ones.

import { call, get } from "../../lib/api.js";
import { choice, textInput, toggle } from "../../lib/controls.js";
import { ask, toast } from "../../lib/dialogs.js";
import { field, fill, h } from "../../lib/dom.js";
import { when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";

/** Targets that one thing may have. */
const TARGETS_MAX = 16;

/** Kinds of targets: their words, and their fields with label and hint. */
const KINDS = {
  channel: ["Chat of a channel", [["channel_type", "Channel", "Its name, or its type if only one channel has it."], ["recipient", "Chat", "Empty: the channel's default conversation."]]],
  last_channel: ["Chat in which the agent was active last", []],
  webhook: ["Webhook", [["url", "URL", ""], ["secret", "Secret", "Signs deliveries. Empty: the one that is set stays."], ["auth_header", "Authorization header", "Empty: the one that is set stays."]]],
  local_file: ["File of the workspace", [["path", "Path", "In the agent's workspace, such as reports/daily.md."]]],
  email: ["E-mail", [["to", "Address", ""], ["subject_template", "First line", "{name} stands for the name."], ["account_id", "Channel", "Empty: the only channel for mail."]]],
};
const SECRETS = new Set(["secret", "auth_header"]);
const STATES = { acknowledged: "good", sent: "good", queued: "accent", refused: "bad", unknown: "warn" };

/** One target as a group of fields; `value()` gives it as the API takes it. */
function targetFields(target, remove) {
  const kind = field("Target", choice(Object.entries(KINDS).map(([key, [label]]) => [key, label]), target.type ?? "channel"));
  const append = toggle("Add to the file", target.append ?? true);
  const place = h("div", { class: "stack" });
  let inputs = {};
  const arrange = () => {
    const [, fields] = KINDS[kind.control.value];
    inputs = {};
    const made = fields.map(([key, label, hint]) => {
      const input = textInput(target[key] ?? "", { spellcheck: "false", type: SECRETS.has(key) ? "password" : "text", autocomplete: "off" });
      inputs[key] = input;
      return field(label, input, { hint });
    });
    fill(place, ...made, kind.control.value === "local_file" ? append : null);
  };
  kind.control.addEventListener("change", arrange);
  arrange();
  const node = h("fieldset", { class: "card stack" }, kind, place,
    h("button", { type: "button", class: "small", onclick: () => remove(node) }, icon("trash", 16), "Remove target"));
  node.value = () => {
    const made = { type: kind.control.value };
    for (const [key, input] of Object.entries(inputs)) if (input.value.trim() !== "") made[key] = input.value.trim();
    if (made.type === "local_file") made.append = append.box.checked;
    // The thread and the account have no field of their own here: they stay with the chat that they belong to.
    if (made.type === "channel" && made.channel_type === target.channel_type) {
      for (const key of ["thread_id", "account_id"]) if (target[key]) made[key] = target[key];
    }
    return made;
  };
  return node;
}

function outcome(item) {
  return h("tr", {},
    h("td", {}, h("span", { class: `badge ${STATES[item.status] ?? ""}` }, item.status)),
    h("td", { class: "break" }, [item.channel, item.recipient].filter(Boolean).join(" · ") || (KINDS[item.type]?.[0] ?? item.type)),
    h("td", {}, h("time", { datetime: item.created_at }, when(item.created_at))),
    h("td", { class: "break" }, item.reason ?? ""));
}

/** Shows and sets the targets of what is at this address of the API. */
export async function editDeliveries(address, label) {
  const path = `${address}/targets`;
  const { delivery_targets: targets, deliveries } = await get(path);
  const list = h("div", { class: "stack" });
  const add = h("button", { type: "button", onclick: () => append({}) }, icon("plus", 16), "Add target");
  const count = () => { add.disabled = list.children.length >= TARGETS_MAX; };
  const append = (target) => {
    list.append(targetFields(target, (node) => { node.remove(); count(); add.focus(); }));
    count();
  };
  for (const target of targets) append(target);
  count();
  const rows = deliveries.slice(0, 20).map(outcome);
  const table = rows.length === 0 ? h("p", { class: "dim" }, "Nothing was delivered yet.")
    : h("table", {}, h("thead", {}, h("tr", {}, ["Status", "To", "When", "Reason"].map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows));
  const saved = await ask({
    title: "Deliveries", wide: true,
    body: [
      h("p", { class: "dim" }, `${label.slice(0, 160)} · Each target gets the answer.`),
      list, add, h("h3", {}, "Newest deliveries"), table,
    ],
    submit: () => call("PUT", path, { delivery_targets: [...list.children].map((node) => node.value()) }),
  });
  if (saved) toast("Saved");
}
