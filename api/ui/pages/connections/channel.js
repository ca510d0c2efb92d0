// One channel: its state with what to do, its QR code, its conversations, what was sent, its error output.

import { call, Failure, get, page } from "../../lib/api.js";
import { menuButton, showError } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { channelPath, MEANING, sendBadge, stateBadge } from "./channel-words.js";
import { qrPicture } from "./qr.js";

/** Conversations and sends that are read at first, and with each "Show more". */
const PAGE = 50;
/** Most rows of one answer. */
const PAGE_MAX = 1000;
const POLICY = { respond: "answers everyone", allowed_only: "answers only allowed chats", ignore: "answers no direct message", all: "answers every message", mention_only: "answers when it is mentioned", commands_only: "answers commands only" };

/** The view of the channel `id`: `node`, `buttons()` for the head of the page, and `read()`. */
export class ChannelView {
  constructor({ id, signal, actions }) {
    Object.assign(this, { id, signal, actions });
    this.channel = null;
    this.limits = { talks: PAGE, sends: PAGE };
    /** What each place shows, as text: what is the same is not built anew. */
    this.told = new Map();
    this.title = h("h2", { tabindex: "-1" }, id);
    this.state = h("span", { class: "bar-row tight", role: "status" });
    this.notice = h("div", { class: "fault-place" });
    this.code = h("div", { class: "fault-place" });
    this.facts = h("dl", { class: "pairs" });
    this.talks = h("ul", { class: "tool-list", "aria-label": "Conversations" });
    this.sends = h("ul", { class: "tool-list", "aria-label": "Sends" });
    this.log = h("pre", { class: "code-box", tabindex: "0", role: "region", "aria-label": "Error output" });
    this.place = h("div", {});
    this.node = h("div", { class: "stack" }, h("a", { class: "back-link", href: "#/connections/channels" }, icon("chevron", 16), "All channels"), this.place);
    const card = (label, hint, ...body) => h("section", { class: "card stack", "aria-label": label }, h("h3", {}, label), hint ? h("p", { class: "hint" }, hint) : null, body);
    this.body = h("div", { class: "stack" },
      h("div", { class: "bar-row server-head" }, h("div", { class: "bar-row tight grow" }, this.title, this.state), this.tasks()),
      this.notice, this.code, card("Status", null, this.facts),
      card("Conversations of the channel", "Each has a session of its own.", this.talks),
      card("What was sent", "Sent means that the adapter has handled it. Only acknowledged means that the platform has it.", this.sends),
      card("Last lines of stderr", "Known secrets are replaced with ***.", this.log));
  }

  tasks() {
    const { id, actions } = this;
    return can("admin") && h("div", { class: "buttons" },
      h("button", { type: "button", onclick: () => actions.test(id).catch(showError) }, icon("send", 18), "Test"),
      h("button", { type: "button", onclick: () => actions.edit(id).catch(showError) }, icon("edit", 18), "Edit"),
      menuButton({ label: `More for ${id}`, items: () => [
        { label: "Allow a chat", icon: "plus", run: () => actions.pair([id]) },
        { label: "Show a QR code", icon: "key", run: () => this.startCode() },
        { label: "Remove", icon: "trash", danger: true, run: () => actions.remove(id) },
      ] }));
  }

  buttons() {
    return [];
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  async startCode() {
    await call("POST", channelPath(this.id, "/qr/start"));
    await this.read();
    this.code.querySelector("[tabindex]")?.focus({ preventScroll: true });
  }

  async read() {
    const { signal, id } = this;
    const { channels } = await get("/api/channels", { signal });
    const channel = channels.find((row) => row.name === id);
    if (!channel) return this.showMissing();
    // The values need the adapter's description, which does not change.
    this.policy ??= (await get(channelPath(id), { signal })).policy;
    const [logs, talks, sends, code] = await Promise.all([
      get(channelPath(id, "/logs"), { signal }),
      page(channelPath(id, "/conversations"), "conversations", { limit: this.limits.talks }, { signal }),
      page(channelPath(id, "/sends"), "sends", { limit: this.limits.sends }, { signal }),
      this.readCode(channel),
    ]);
    if (this.body.parentNode !== this.place) fill(this.place, this.body);
    this.channel = channel;
    this.changed("state", channel.state, () => refill(this.state, stateBadge(channel)));
    this.changed("notice", [channel.state, channel.last_error, channel.setup_steps, channel.warnings], () => this.showNotice(channel));
    this.changed("code", code, () => this.showCode(code));
    this.showFacts(this.pairs(channel));
    this.changed("talks", [talks.items, talks.next], () => this.showTalks(talks));
    this.changed("sends", [sends.items, sends.next], () => this.showSends(sends));
    this.changed("log", logs.lines, () => this.showLog(logs.lines));
  }

  /** The QR code; null while there is none. */
  async readCode(channel) {
    if (channel.state !== "started" && channel.state !== "active") return null;
    try {
      return await get(channelPath(this.id, "/qr"), { signal: this.signal });
    } catch (error) {
      // The adapter has ended meanwhile.
      if (error instanceof Failure && error.status === 404) return null;
      throw error;
    }
  }

  /** Calls `show` if `value` is another one than before. */
  changed(place, value, show) {
    const text = JSON.stringify(value);
    if (this.told.get(place) === text) return;
    this.told.set(place, text);
    show();
  }

  showMissing() {
    fill(this.place, emptyState({ icon: icon("alert", 28), title: `There is no channel “${this.id}”`, text: "It was removed, or the address is wrong." }));
  }

  // Errors, names and messages are what adapters and people wrote: they stay text.
  showNotice(channel) {
    const isBad = channel.state === "failed" || channel.state === "restarting";
    const texts = [...(channel.last_error ? [channel.last_error] : []), ...channel.setup_steps, ...channel.warnings];
    refill(this.notice, texts.length === 0 ? null : h("div", { class: `notice ${isBad ? "bad" : "warn"}`, role: "alert" }, icon("alert"),
      h("div", { class: "notice-text" }, h("strong", {}, MEANING[channel.state] ?? channel.state), texts.map((text) => h("p", {}, text)))));
  }

  showCode(code) {
    if (!code || code.status === "confirmed") return void refill(this.code);
    const picture = code.status === "pending" && code.qr_code ? qrPicture(code.qr_code, "QR code") : null;
    const text = { pending: "Scan this code with the app of the platform.", scanning: "The code was scanned. Confirm on the device.", expired: "The code has expired.", failed: "The sign-in failed." }[code.status] ?? code.status;
    refill(this.code, h("section", { class: "card stack", "aria-label": "QR code of the channel" }, h("h3", { tabindex: "-1" }, "Sign in with a QR code"),
      h("p", { role: "status" }, text), code.message ? h("p", { class: "server-text" }, code.message) : null, picture,
      code.expires_at ? h("p", { class: "hint" }, `Valid until ${when(code.expires_at) || code.expires_at}`) : null,
      can("admin") && (code.status === "expired" || code.status === "failed") ? h("div", { class: "buttons" }, h("button", { type: "button", onclick: () => this.startCode().catch(showError) }, icon("retry", 18), "Show another code")) : null));
  }

  pairs(channel) {
    const { policy } = this;
    const pairs = [["Platform", channel.display_name], ["Agent", channel.agent ?? "chosen by rules or people"]];
    if (channel.adapter) pairs.push(["Adapter", [channel.adapter, channel.sdk_version ? `SDK ${channel.sdk_version}` : ""].filter(Boolean).join(", ")]);
    if (channel.account_id) pairs.push(["Account", channel.account_id]);
    pairs.push(["Can do", channel.capabilities.length > 0 ? channel.capabilities.join(", ") : "text only"]);
    if (policy) pairs.push(["Direct messages", POLICY[policy.dm_policy] ?? policy.dm_policy], ["Groups", POLICY[policy.group_policy] ?? policy.group_policy]);
    pairs.push(["Started", channel.started_at ? when(channel.started_at) : "not running"], ["Last message", channel.last_message_at ? ago(channel.last_message_at) : "never"]);
    pairs.push(["Received", number(channel.messages_received)], ["Sent", `${number(channel.messages_sent)}, ${number(channel.messages_refused)} refused, ${number(channel.messages_unknown)} unknown`]);
    if (channel.restarts > 0) pairs.push(["Restarts", number(channel.restarts)]);
    return pairs;
  }

  /** Writes what has changed only: somebody may be copying the rest. */
  showFacts(pairs) {
    const names = pairs.map(([name]) => name).join("\n");
    if (this.facts.dataset.names !== names) {
      this.facts.dataset.names = names;
      fill(this.facts, pairs.flatMap(([name]) => [h("dt", {}, name), h("dd", {})]));
    }
    const places = this.facts.querySelectorAll("dd");
    pairs.forEach(([, value], at) => { if (places[at].textContent !== value) places[at].textContent = value; });
  }

  showTalks({ items, next }) {
    const line = (talk) => {
      const name = talk.title || talk.conversation;
      const last = talk.sessions.at(-1);
      const where = [talk.is_group ? "group" : "direct", talk.conversation, talk.thread ? `thread ${talk.thread}` : "", ago(talk.last_at)].filter(Boolean).join(", ");
      return h("li", {}, h("div", { class: "bar-row" },
        h("span", { class: "grow two" }, last ? h("a", { class: "cut", href: `#/chat/${last.agent_id}/${last.session_id}` }, name) : h("strong", { class: "cut" }, name), h("small", { class: "faint cut" }, where)),
        talk.is_known || talk.paired_at ? null : h("span", { class: "badge warn" }, "not allowed yet")));
    };
    refill(this.talks, items.map(line), items.length === 0 ? h("li", { class: "dim" }, "No conversations yet.") : null, this.more("talks", next, count(items.length, "conversation")));
  }

  showSends({ items, next }) {
    const line = (send) => h("li", {}, h("div", { class: "bar-row" },
      h("span", { class: "grow two" }, h("span", { class: "cut" }, send.preview || send.cause), h("small", { class: "faint cut" }, `${send.conversation}, ${when(send.created_at)}`)), sendBadge(send)),
    send.reason ? h("p", { class: "server-text" }, send.reason) : null);
    refill(this.sends, items.map(line), items.length === 0 ? h("li", { class: "dim" }, "Nothing was sent yet.") : null, this.more("sends", next, count(items.length, "message")));
  }

  /** What stands below a list that has more than it shows. */
  more(place, next, shown) {
    if (!next) return null;
    const isMost = this.limits[place] >= PAGE_MAX;
    const button = h("button", { type: "button", onclick: () => {
      this.limits[place] += PAGE;
      this.read().catch(showError);
    } }, "Show more");
    return h("li", { class: "bar-row" }, h("span", { class: "dim grow" }, `The first ${shown}.`), isMost ? null : button);
  }

  showLog(lines) {
    const isAtEnd = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 8;
    this.log.textContent = lines.map(({ level, message }) => (level ? `${level}: ${message}` : message)).join("\n") || "Nothing was written.";
    if (isAtEnd) this.log.scrollTop = this.log.scrollHeight;
  }
}
