//! What runs the adapters of channels, and keeps their configuration and their secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_systems::channel::error_codes::CHANNEL_NOT_FOUND;
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::error_codes as codes;
use super::shape::{
    ChannelField, ChannelRow, ChannelSchema, Configured, LogLine, PairingPolicy, QrState, RegistryEntry, Reloaded,
    RouteRule,
};
use crate::http::error::Error;

/// Runs one process for each channel of the configuration. The daemon provides it.
///
/// A channel is one entry of `[[sidecar_channels]]`, known by its name. Its name is none of [`RESERVED_NAMES`].
pub trait Channels: Send + Sync + 'static {
    /// Every channel of the configuration in force, by name. Reads what is in memory.
    fn list(&self) -> Vec<ChannelRow>;

    /// The channel of this name. Reads what is in memory.
    fn get(&self, name: &str) -> Option<ChannelRow>;

    /// The values that a channel takes, as far as they are known without asking its adapter.
    fn known_fields(&self, name: &str) -> Option<Vec<ChannelField>>;

    /// The values that a channel takes, with those that are set. Asks its adapter with `--describe` unless the answer is
    /// known; at most 5 seconds.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`], [`ChannelError::Schema`].
    fn describe(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>>;

    /// The values that a new channel of this adapter would take, as [`describe`](Self::describe). `adapter` is an
    /// `adapter` of [`registry`](Self::registry).
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    fn describe_adapter(self: Arc<Self>, adapter: String) -> BoxFuture<'static, Result<ChannelSchema, ChannelError>>;

    /// What can be set up: the files of `{home}/channels` and the adapters of the SDK, by id. Blocks on the disk.
    ///
    /// # Errors
    /// Why the directory cannot be read.
    fn registry(&self) -> Result<Vec<RegistryEntry>, String>;

    /// Stores values of a channel: secrets in `secrets.env`, the rest in its `env`. Creates the channel if there is none of
    /// this name and the change names an adapter. Restarts its adapter if it has to.
    ///
    /// # Errors
    /// [`ChannelError::BadField`] names a value that is wrong or required and missing; [`ChannelError::NotFound`] when
    /// there is no such channel and no adapter to create it from; [`ChannelError::Included`], [`ChannelError::Schema`],
    /// [`ChannelError::Full`]. Nothing changes then.
    fn configure(self: Arc<Self>, change: ChannelChange) -> BoxFuture<'static, Result<Configured, ChannelError>>;

    /// Stops the adapter of a channel, and removes its entry and its own secrets.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`], [`ChannelError::Included`], [`ChannelError::Failed`].
    fn remove(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<(), ChannelError>>;

    /// Reads the configuration again; starts, restarts and stops what changed.
    ///
    /// # Errors
    /// [`ChannelError::Configuration`] when the file is not valid; the channels run on as they are.
    fn reload(self: Arc<Self>) -> BoxFuture<'static, Result<Reloaded, ChannelError>>;

    /// Sends a test message, and waits some seconds for its outcome.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`], [`ChannelError::NotRunning`], and [`ChannelError::BadField`] with `recipient` when none
    /// is given and the channel has no `default_conversation`.
    fn test(self: Arc<Self>, test: ChannelTest) -> BoxFuture<'static, Result<TestEnd, ChannelError>>;

    /// The QR code of a channel; `None` while there is none.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`], [`ChannelError::NotRunning`].
    fn qr(&self, name: &str) -> Result<Option<QrState>, ChannelError>;

    /// Gives the QR code that waits to be scanned; restarts the adapter for one where none waits, and waits for it.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`], [`ChannelError::NotRunning`], [`ChannelError::WithoutQr`], [`ChannelError::Timeout`].
    fn start_qr(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<QrState, ChannelError>>;

    /// The last lines of the error output of a channel's adapter, oldest first, without secrets.
    ///
    /// # Errors
    /// [`ChannelError::NotFound`].
    fn logs(&self, name: &str) -> Result<Vec<LogLine>, ChannelError>;

    /// The rules of the configuration in force that choose an agent, strongest first: `[[bindings]]`, agents of channels,
    /// broadcasts.
    fn rules(&self) -> Vec<RouteRule>;

    /// Who may speak in each channel, by name.
    fn policies(&self) -> Vec<PairingPolicy>;
}

/// Words that stand in the paths of routes where a channel's name can stand.
pub const RESERVED_NAMES: &[&str] = &["registry", "sidecar", "reload", "pairings", "bindings"];

/// Whether channels may have this name: 1 to 64 letters, digits, `-`, `_` or `.`, a letter or digit first, and none of
/// [`RESERVED_NAMES`].
#[must_use]
pub fn is_channel_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len())
        && name.chars().all(fits)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !RESERVED_NAMES.contains(&name)
}

/// What is to change of a channel.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ChannelChange {
    /// Its name.
    pub name: String,
    /// The adapter of a new channel; for a channel that exists it must be the same or absent.
    pub adapter: Option<String>,
    /// Values by key; `None` removes one. What is not named stays.
    pub values: BTreeMap<String, Option<String>>,
    /// The value of the one field that is a token, whatever its key is: the one required secret, or the one whose key
    /// ends with `TOKEN`.
    pub token: Option<String>,
    /// The agent that answers; `Some(None)` removes it. Absent stays.
    pub agent: Option<Option<String>>,
}

/// A test message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelTest {
    /// The channel.
    pub name: String,
    /// The conversation; the channel's `default_conversation` by default.
    pub recipient: Option<String>,
    /// The text; a sentence of ours by default.
    pub text: Option<String>,
}

/// What became of a test message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestEnd {
    /// The send that carried it.
    pub send: Uuid,
    /// The conversation.
    pub recipient: String,
    /// `queued`, `sent`, `acknowledged`, `refused` or `unknown`.
    pub status: &'static str,
    /// Why it was refused, or is unknown.
    pub reason: Option<String>,
}

/// Why a channel cannot do something. Texts are for people and hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// There is no channel or adapter of this name.
    NotFound(String),
    /// A value is wrong: the field and a sentence.
    BadField(String, String),
    /// Its adapter is not running: why.
    NotRunning(String),
    /// Its entry is in a file that the daemon does not write: a sentence that names the file.
    Included(String),
    /// Its adapter shows no QR codes.
    WithoutQr(String),
    /// So many channels exist, and no more may.
    Full(usize),
    /// The adapter does not describe its values: why.
    Schema(String),
    /// The adapter gave no answer in time: a sentence.
    Timeout(String),
    /// The configuration file is not valid: where and why.
    Configuration(String),
    /// The disk failed: a sentence.
    Failed(String),
}

impl From<ChannelError> for Error {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::NotFound(name) => Self::of(CHANNEL_NOT_FOUND, format!("channel not found: {name}")),
            ChannelError::BadField(field, text) => Self::bad_field(&field, text),
            ChannelError::NotRunning(why) => Self::of(codes::CHANNEL_NOT_RUNNING, why),
            ChannelError::Included(why) => Self::of(codes::CHANNEL_INCLUDED, why),
            ChannelError::WithoutQr(why) => Self::of(codes::CHANNEL_WITHOUT_QR, why),
            ChannelError::Full(most) => {
                Self::of(codes::CHANNELS_FULL, format!("{most} channels exist; remove some")).retry_after(1)
            }
            ChannelError::Schema(why) => Self::of(codes::CHANNEL_SCHEMA, why).retry_after(60),
            ChannelError::Timeout(why) => Self::of(codes::CHANNEL_TIMEOUT, why),
            ChannelError::Configuration(why) => Self::bad_request(why),
            ChannelError::Failed(why) => Self::internal(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_paths_and_into_variables() {
        for name in ["telegram", "bot-1", "a.b_c", "7"] {
            assert!(is_channel_name(name), "{name}");
        }
        let long = "a".repeat(65);
        for name in ["", "-a", ".a", "a/b", "a b", "ü", "registry", "sidecar", "reload", "pairings", "bindings", &long]
        {
            assert!(!is_channel_name(name), "{name}");
        }
    }
}
