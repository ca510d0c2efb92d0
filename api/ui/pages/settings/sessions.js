// Sessions of people who signed in at an identity provider or with a password.

import { call, page } from "../../lib/api.js";
import { confirm, showError, toast } from "../../lib/dialogs.js";
import { emptyState, fill, h } from "../../lib/dom.js";
import { ago, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can, me } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";
import { Table } from "../../lib/table.js";

const EVERY_MS = 10_000;

export async function mount(root, { signal }) {
  const two = (strong, small) => h("span", { class: "two" }, h("strong", { class: "cut" }, strong), h("small", { class: "faint cut" }, small));
  const time = (moment) => h("time", { class: "cut", datetime: moment, title: when(moment) }, ago(moment));
  const isOwn = (session) => session.id === me().key_id;
  const sessions = new Table({
    label: "Sessions", signal, rowHeight: 60, slimHeight: 92, fit: true, empty: "No sessions. People who sign in are listed here, with the device that they used.",
    columns: [
      { label: "User", width: "minmax(0, 2fr)", cell: (session) => two(isOwn(session) ? `${session.username} (this session)` : session.username, [session.provider, session.email, session.client].filter(Boolean).join(" · ")) },
      { label: "Signed in", width: "minmax(0, 1fr)", side: true, cell: (session) => time(session.created_at) },
      { label: "Last used", width: "minmax(0, 1fr)", side: true, cell: (session) => session.last_used_at ? time(session.last_used_at) : h("span", { class: "dim" }, "never") },
      { label: "Expires", width: "minmax(0, 1fr)", side: true, cell: (session) => time(session.expires_at) },
      { label: "Actions", width: "110px", slim: "98px", end: true, cell: (session) => can("admin") || (session.user_id === me().user_id && (me().kind === "session" || can("write"))) ? h("button", { type: "button", class: "small", "aria-label": `End the session of ${session.username}`, onclick: () => end(session).catch(showError) }, "End…") : null },
    ],
  });
  const nothing = emptyState({ icon: icon("key", 28), title: "No sign-ins yet", text: "People sign in at an identity provider, which you set in [external_auth] of config.toml, or with a password.", actions: [h("a", { class: "button", href: "#/settings/people" }, "Open users and keys")] });
  fill(root, h("div", { class: "stack" }, nothing, sessions.root));

  async function read() {
    const items = [];
    let cursor = null;
    do {
      const found = await page("/api/auth/sessions", "sessions", { limit: 200, cursor }, { signal });
      items.push(...found.items);
      cursor = found.next;
    } while (cursor !== null);
    sessions.set(items);
    nothing.hidden = items.length > 0;
    sessions.root.hidden = items.length === 0;
  }

  async function end(session) {
    const text = isOwn(session) ? "You are signed out of this page." : "They are signed out at once, and must sign in again.";
    if (!(await confirm({ title: `End the session of ${session.username}?`, text, action: "End", run: () => call("DELETE", `/api/auth/sessions/${session.id}`) }))) return;
    if (isOwn(session)) return location.reload();
    toast("Ended");
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal });
}
