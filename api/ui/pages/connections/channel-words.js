// What is said of a channel: its state, and what became of a message.

import { h } from "../../lib/dom.js";

const STATES = {
  starting: ["accent", "starting"],
  started: ["", "started"],
  active: ["good", "active"],
  restarting: ["warn", "restarting"],
  failed: ["bad", "failed"],
  stopped: ["", "stopped"],
};

/** What each state means. An adapter that runs is not connected yet. */
export const MEANING = {
  starting: "The adapter is starting.",
  started: "The adapter runs. No message has passed yet, so nothing is known of the connection to the platform.",
  active: "Messages have passed since the adapter was started.",
  restarting: "The adapter ended. The daemon starts it again.",
  failed: "The adapter ended and is not started again. Correct the cause, then reload.",
  stopped: "The adapter does not run.",
};

/** The state of a channel as a badge. */
export function stateBadge(channel) {
  const [style, word] = STATES[channel.state] ?? ["", channel.state];
  return h("span", { class: `badge ${style}`, title: MEANING[channel.state] ?? null }, word);
}

const SENDS = { queued: "accent", sent: "good", acknowledged: "good", refused: "bad", unknown: "warn" };

/** What is known of a send as a badge. */
export const sendBadge = (send) => h("span", { class: `badge ${SENDS[send.status] ?? ""}` }, send.status);

/** The path of a channel. */
export const channelPath = (name, rest = "") => `/api/channels/${encodeURIComponent(name)}${rest}`;

/** What known platforms are called, and what they are; an adapter says so itself only once it is started. */
const PLATFORMS = {
  bluesky: ["Bluesky", "social network"], dingtalk: ["DingTalk", "team chat"], discord: ["Discord", "group chat"], email: ["Email", "mail"], feishu: ["Feishu", "team chat"],
  google_chat: ["Google Chat", "team chat"], gotify: ["Gotify", "push messages"], line: ["LINE", "messenger"], mastodon: ["Mastodon", "social network"], matrix: ["Matrix", "messenger"],
  mattermost: ["Mattermost", "team chat"], nextcloud: ["Nextcloud Talk", "team chat"], ntfy: ["ntfy", "push messages"], qq: ["QQ", "messenger"], reddit: ["Reddit", "social network"],
  rocketchat: ["Rocket.Chat", "team chat"], signal: ["Signal", "messenger"], slack: ["Slack", "team chat"], teams: ["Microsoft Teams", "team chat"], telegram: ["Telegram", "messenger"],
  twitch: ["Twitch", "live chat"], webex: ["Webex", "team chat"], webhook: ["Webhook", "HTTP"], wechat: ["WeChat", "messenger"], wecom: ["WeCom", "team chat"], whatsapp: ["WhatsApp", "messenger"],
  zulip: ["Zulip", "team chat"],
};

/** The name of a platform and what it is: what its adapter says, else what is known of it. */
export function platformText(entry) {
  const [name, kind] = PLATFORMS[entry.id] ?? [];
  const own = entry.name && entry.name !== entry.id ? entry.name : null;
  return [own ?? name ?? entry.id, entry.category || kind || ""];
}
