//! What channels say of themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::http::timestamp::Moment;

/// A channel.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ChannelRow {
    /// Its name, which is `{name}` of routes.
    pub name: String,
    /// Name of its platform for people, as its adapter or the registry has it; else `channel_type`.
    pub display_name: String,
    /// Kind of the platform, such as `telegram`. Several channels can be of one kind.
    pub channel_type: String,
    /// The adapter of the SDK that it runs; null for other programs.
    pub adapter: Option<String>,
    /// Whether its entry is in force.
    pub enabled: bool,
    /// Whether all required values are set, as far as that is known.
    pub configured: bool,
    /// Whether a secret value is set.
    pub has_token: bool,
    /// The agent that answers; null if rules or people choose it.
    pub agent: Option<String>,
    /// Number of channels of this `channel_type`.
    pub instance_count: usize,
    /// Whether its adapter is started again when it ends.
    pub supervised: bool,
    /// `starting`, `started` (the adapter runs; nothing is known of the platform), `active` (messages have passed since the
    /// start), `restarting`, `failed` (it is not started again) or `stopped`.
    pub state: &'static str,
    /// Whether messages have passed since the adapter was started. An adapter is ready before it signs in at its platform, so
    /// that alone does not count.
    pub connected: bool,
    /// When its adapter was started; null while it is not running.
    pub started_at: Option<Moment>,
    /// When its adapter said that it is ready.
    pub ready_at: Option<Moment>,
    /// When it is started again.
    pub next_restart_at: Option<Moment>,
    /// How often it was started again since the daemon started.
    pub restarts: u64,
    /// When the last message came.
    pub last_message_at: Option<Moment>,
    /// Messages that came since the daemon started.
    pub messages_received: u64,
    /// Messages that the adapter has handled without an error since the daemon started.
    pub messages_sent: u64,
    /// Messages that the adapter or the platform refused.
    pub messages_refused: u64,
    /// Messages of which it is not known whether they were sent.
    pub messages_unknown: u64,
    /// Why the adapter ended, or what it reported last.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<Moment>,
    /// What its adapter can do, such as `typing`, `thread` or `streaming`.
    pub capabilities: Vec<String>,
    /// The account that it uses at the platform, as its adapter says.
    pub account_id: Option<String>,
    /// Version of the adapter's SDK.
    pub sdk_version: Option<String>,
    /// Version of the protocol, as its adapter says.
    pub protocol_version: Option<u32>,
    /// What you should know: an SDK that is too old, a channel that answers only paired chats.
    pub warnings: Vec<String>,
    /// Steps that are left to do: values that are missing, a QR code to scan, a chat to pair.
    pub setup_steps: Vec<String>,
}

/// The values that a channel takes, as its adapter describes them.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ChannelSchema {
    /// Its adapter.
    pub name: String,
    /// Name of the platform for people.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    /// Its values, as the adapter orders them.
    pub fields: Vec<ChannelField>,
    /// Version of the adapter's SDK.
    pub sdk_version: Option<String>,
}

/// A value that a channel takes.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ChannelField {
    /// The variable.
    pub key: String,
    /// What it is, for people.
    pub label: String,
    /// `text`, `secret`, `number`, `list`, `bool` or `select`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it must have a value.
    pub required: bool,
    /// An example.
    pub placeholder: Option<String>,
    /// Whether most people leave it as it is.
    pub advanced: bool,
    /// The values of a `select`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether it has a value.
    pub is_set: bool,
    /// Its value; null if it is secret or not set.
    pub value: Option<String>,
}

/// A platform for which a channel can be set up.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RegistryEntry {
    /// Its id, which is `{id}` of routes.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its category.
    pub category: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// An emoji or a word.
    pub icon: String,
    /// How the daemon talks to it, such as `sidecar`.
    pub protocol: String,
    /// Website of the platform.
    pub url: Option<String>,
    /// Where its documentation is.
    pub docs: Option<String>,
    /// Name and description in other languages, by language.
    pub i18n: BTreeMap<String, RegistryText>,
    /// The adapter that a new channel would run; null if none is known.
    pub adapter: Option<String>,
    /// Names of the channels that run this adapter.
    pub channels: Vec<String>,
    /// Why the file of the entry cannot be used; null if it can.
    pub error: Option<String>,
}

/// Texts of a platform in another language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RegistryText {
    /// Its name for people.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A channel's values were stored.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Configured {
    /// `saved`
    pub status: &'static str,
    /// The channel.
    pub name: String,
    /// Whether it was created.
    pub created: bool,
    /// What is in effect already, such as `adapter restarted`.
    pub hot_actions_applied: Vec<String>,
    /// Whether the daemon must be restarted.
    pub restart_required: bool,
    /// Secrets that were stored but are not used, because the environment of the daemon or the entry of the channel has
    /// another value.
    pub shadowed_secrets: Vec<String>,
}

/// The configuration was read again.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Reloaded {
    /// `reloaded`
    pub status: &'static str,
    /// Channels whose adapter was started or restarted.
    pub started: Vec<String>,
    /// Channels that were stopped.
    pub stopped: Vec<String>,
    /// Number of channels.
    pub total: usize,
}

/// A QR code that waits to be scanned, or what became of it.
#[derive(Clone, Debug)]
pub struct QrState {
    /// Whether it was scanned.
    pub status: QrStatus,
    /// The text of the code; absent when the adapter has reported a state only.
    pub qr_code: Option<String>,
    /// A URL or `data:` URL with the picture, as the adapter gives it.
    pub qr_url: Option<String>,
    /// A sentence of the adapter.
    pub message: Option<String>,
    /// When the code expires, as the adapter says.
    pub expires_at: Option<String>,
    /// When the adapter last reported.
    pub updated_at: Moment,
}

/// Whether a QR code was scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QrStatus {
    /// It waits to be scanned.
    Pending,
    /// It was scanned; the device has not confirmed yet.
    Scanned,
    /// The device has confirmed.
    Authenticated,
    /// It was not scanned in time.
    Expired,
    /// The sign-in failed.
    Failed,
}

/// A line of an adapter's error output.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LogLine {
    /// When it was read.
    pub at: Option<Moment>,
    /// `error`, `warn`, `info` or `debug`, if the adapter says so.
    pub level: Option<String>,
    /// The text, at most 4 KiB.
    pub message: String,
}

/// A rule of the configuration that chooses the agent of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouteRule {
    /// `binding`, `channel` or `broadcast`.
    pub kind: &'static str,
    /// Name of the agent.
    pub agent: String,
    /// Conditions, such as `channel`, `account_id`, `peer_id`, `guild_id` or `roles`.
    pub match_rule: BTreeMap<String, String>,
    /// The greater it is, the stronger is the rule: 8 for a peer, 4 for a guild, 2 for roles or an account, 1 for a channel,
    /// added.
    pub weight: u32,
}

/// Who may speak in a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairingPolicy {
    /// The channel.
    pub channel: String,
    /// `respond`, `allowed_only` or `ignore`.
    pub dm_policy: &'static str,
    /// `all`, `mention_only`, `commands_only` or `ignore`.
    pub group_policy: &'static str,
}
