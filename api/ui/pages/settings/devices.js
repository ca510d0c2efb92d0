// Devices: phones and the like, which are paired with a code and have a key of their own.

import { call, page } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { textInput } from "../../lib/controls.js";
import { ask, confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h } from "../../lib/dom.js";
import { ago, count, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, me } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";
import { qrPicture } from "../connections/qr.js";

const EVERY_MS = 5_000;
const SCOPES = [["read", "Read"], ["chat", "Chat with agents"], ["write", "Change agents and what belongs to them"], ["admin", "Change the installation"]];
/** What a device may do unless more is chosen. */
const USUAL = ["read", "chat"];

export async function mount(root, ctx) {
  const { signal } = ctx;
  const two = (strong, small) => h("span", { class: "two" }, h("strong", { class: "cut" }, strong), h("small", { class: "faint cut" }, small));
  const time = (moment) => h("time", { class: "cut", datetime: moment, title: when(moment) }, ago(moment));
  const isBelow = (device) => can("admin") && (device.role !== "owner" || me().role === "owner");
  const devices = new Table({
    label: "Devices", signal, rowHeight: 60, slimHeight: 92, fit: true, empty: "No devices yet. Pair a phone to approve calls and be notified there.",
    columns: [
      { label: "Device", width: "minmax(0, 2fr)", cell: (device) => two(device.display_name, [device.platform, device.scopes.length > 0 ? `only ${device.scopes.join(", ")}` : device.role].filter(Boolean).join(" · ")) },
      { label: "Role", width: "100px", side: true, cell: (device) => h("span", { class: "badge" }, device.role) },
      { label: "Paired", width: "minmax(0, 1fr)", side: true, cell: (device) => time(device.paired_at) },
      { label: "Last seen", width: "minmax(0, 1fr)", side: true, cell: (device) => device.last_seen ? time(device.last_seen) : h("span", { class: "dim" }, "never") },
      { label: "Actions", width: "110px", slim: "98px", end: true, cell: (device) => isBelow(device) ? h("button", { type: "button", class: "small", "aria-label": `Remove ${device.display_name}`, onclick: () => remove(device).catch(showError) }, "Remove…") : null },
    ],
  });
  const nothing = emptyState({ icon: icon("key", 28), title: "No device is paired", text: "Pair a phone: it scans a QR code, or you type a code there, and it gets a key of its own that you can revoke." });
  fill(root, h("div", { class: "stack" }, nothing, devices.root));

  async function read() {
    const { items } = await page("/api/pairing/devices", "devices", { limit: 200 }, { signal });
    devices.set(items);
    nothing.hidden = items.length > 0;
    devices.root.hidden = items.length === 0;
    return items;
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
  if (can("admin")) {
    fill(ctx.actions,
      h("button", { type: "button", onclick: () => notify().catch(showError) }, "Send a notification"),
      h("button", { class: "primary", type: "button", onclick: () => pair().catch(showError) }, icon("plus", 18), "Pair a device"));
  }

  /** Makes a code with the chosen rights, and shows it until the dialog is closed. */
  async function pair() {
    const boxes = SCOPES.filter(([scope]) => can(scope)).map(([scope, label]) => [scope, h("input", { type: "checkbox", checked: USUAL.includes(scope) }), label]);
    const made = await ask({
      title: "Pair a device", action: "Create a code",
      body: [h("fieldset", { class: "stack tight-stack" }, h("legend", {}, "Rights of the device"), boxes.map(([, box, label]) => h("label", { class: "switch-line" }, box, ` ${label}`)))],
      fields: {},
      submit: () => {
        const scopes = boxes.filter(([, box]) => box.checked).map(([scope]) => scope);
        if (scopes.length === 0) throw new Error("Select at least one right.");
        return call("POST", "/api/pairing/request", { scopes });
      },
    });
    if (!made) return;
    await ask({
      title: "Pair a device", action: "Done", cancel: null,
      body: [
        h("p", {}, "Scan the QR code with the device, or type the code there."),
        qrPicture(made.qr_uri, "QR code of the device"),
        h("pre", { class: "code-box made-code", tabindex: "0", "aria-label": "The code" }, made.pairing_code),
        h("p", { class: "faint" }, `For one device, until ${when(made.expires_at)}. It is not shown again.`),
        h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => copyText(made.pairing_code) }, icon("copy", 18), "Copy the code")),
      ],
    });
    await again();
  }

  async function notify() {
    const title = field("Title", textInput("", { maxlength: "256" }));
    const message = field("Message", textInput("", { maxlength: "4096" }));
    const sent = await ask({
      title: "Send a notification", action: "Send", body: [title, message], fields: { title, message },
      submit: () => call("POST", "/api/pairing/notify", { title: title.control.value.trim() || undefined, message: message.control.value }),
    });
    if (!sent) return;
    if (sent.notified > 0) toast(`On its way to ${count(sent.notified, "device")} by ${sent.push_provider}.`);
    else toast(sent.push_provider === "none" ? "Nothing was sent: [pairing] push_provider is not set." : "Nothing was sent: no device is paired.");
  }

  async function remove(device) {
    const text = "Its key stops working at once. To use the device again, pair it again.";
    if (!(await confirm({ title: `Remove ${device.display_name}?`, text, action: "Remove", run: () => call("DELETE", `/api/pairing/devices/${device.id}`) }))) return;
    toast("Removed");
    await again();
  }
}
