//! What clients say of channels, and the replies of single routes.

use std::collections::BTreeMap;

use agentsvc_systems::channel::limits::CHAT_ID_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::service::{ChannelChange, ChannelTest};
use super::shape::{
    ChannelField, ChannelRow, ChannelSchema, LogLine, PairingPolicy, QrState, QrStatus, RegistryEntry, RouteRule,
};
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// Values that one request may change.
const VALUES_MAX: usize = 200;
/// Bytes of a key.
const KEY_BYTES_MAX: usize = 128;
/// Bytes of a value.
const VALUE_BYTES_MAX: usize = 64 << 10;
/// Bytes of the name of an agent or an adapter.
const NAME_BYTES_MAX: usize = 256;
/// Bytes of a test message.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// Variables of the daemon itself, and those that decide what a program loads.
const OWN_PREFIXES: &[&str] = &["AGENTSVC_", "LIBREFANG_HOME", "LD_", "DYLD_", "PYTHON"];

/// Values of a channel. What is left out stays as it is.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ConfigureBody {
    /// Values by the `key` of the channel's fields. Null removes one. Secrets are never returned.
    values: BTreeMap<String, Option<String>>,
    /// The token, for channels with one required secret or one secret whose key ends with `TOKEN`.
    token: Option<String>,
    /// The agent that answers. Null: rules and people choose it.
    #[serde(deserialize_with = "given")]
    agent: Option<Option<String>>,
    /// The same as `agent`.
    #[serde(deserialize_with = "given")]
    agent_name: Option<Option<String>>,
    /// Adapter of a new channel, an `adapter` of the registry. Default: the one with the channel's name.
    adapter: Option<String>,
}

impl ConfigureBody {
    /// The checked change of the channel `name`.
    ///
    /// # Errors
    /// 400 naming the field.
    pub(crate) fn change(self, name: String) -> Result<ChannelChange, Error> {
        let Self { values, token, agent, agent_name, adapter } = self;
        if values.len() > VALUES_MAX {
            return Err(Error::bad_field("values", format!("values: at most {VALUES_MAX} values at once")));
        }
        values.iter().try_for_each(|(key, value)| check_value(key, value.as_deref()))?;
        if let Some(token) = &token {
            check_text("token", token)?;
        }
        let agent = match (agent, agent_name) {
            (Some(_), Some(_)) => {
                return Err(Error::bad_field("agent_name", "agent and agent_name are the same; send one"));
            }
            (agent, agent_name) => agent.or(agent_name),
        };
        if let Some(Some(agent)) = &agent {
            check_name("agent", agent, NAME_BYTES_MAX)?;
        }
        if let Some(adapter) = &adapter {
            check_name("adapter", adapter, NAME_BYTES_MAX)?;
        }
        Ok(ChannelChange { name, adapter, values, token, agent })
    }
}

/// The rules of `secrets.env` hold for every value, because which ones are secret is the adapter's to say.
fn check_value(key: &str, value: Option<&str>) -> Result<(), Error> {
    let bad = |text: String| Err(Error::bad_field("values", format!("values: {text}")));
    let is_valid = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !key.contains("__");
    if key.is_empty() || key.starts_with(|first: char| first.is_ascii_digit()) || !is_valid || key.len() > KEY_BYTES_MAX
    {
        let rule = "a key must have at most 128 letters, digits or single `_`, and no digit first";
        return bad(rule.to_owned());
    }
    if OWN_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
        return bad(format!("{key} is not a value of channels"));
    }
    match value {
        Some(value) => check_text_of("values", key, value),
        None => Ok(()),
    }
}

fn check_text(field: &str, text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::bad_field(field, format!("{field} must not be empty")));
    }
    check_text_of(field, field, text)
}

fn check_text_of(field: &str, key: &str, text: &str) -> Result<(), Error> {
    let bad = |why: &str| Err(Error::bad_field(field, format!("{field}: the value of {key} {why}")));
    if text.len() > VALUE_BYTES_MAX {
        return bad("is longer than 64 KiB");
    }
    if text.contains(['\n', '\r', '\0']) {
        return bad("must be one line");
    }
    if text.trim() != text || text.starts_with(['"', '\'']) {
        return bad("must not begin with a quotation mark, nor begin or end with a space");
    }
    Ok(())
}

fn check_name(field: &str, name: &str, most: usize) -> Result<(), Error> {
    let is_valid = !name.is_empty() && name.len() <= most && !name.chars().any(char::is_control);
    let text = || Error::bad_field(field, format!("{field} must be one line of 1 to {most} bytes"));
    is_valid.then_some(()).ok_or_else(text)
}

/// A test message.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TestBody {
    /// Conversation that gets it. Default: `default_conversation` of the channel.
    recipient: Option<String>,
    /// The same as `recipient`.
    channel_id: Option<String>,
    /// Text, at most 4 KiB. Default: a sentence that says that it is a test.
    message: Option<String>,
}

impl TestBody {
    /// The checked test of the channel `name`.
    ///
    /// # Errors
    /// 400 naming the field.
    pub(crate) fn test(self, name: String) -> Result<ChannelTest, Error> {
        let recipient = self.recipient.or(self.channel_id);
        if let Some(recipient) = &recipient {
            check_name("recipient", recipient, CHAT_ID_BYTES_MAX)?;
        }
        if let Some(text) = &self.message
            && (text.trim().is_empty() || text.len() > TEXT_BYTES_MAX || text.contains('\0'))
        {
            let rule = format!("message must have 1 to {TEXT_BYTES_MAX} bytes that are not blank, without NUL");
            return Err(Error::bad_field("message", rule));
        }
        Ok(ChannelTest { name, recipient, text: self.message })
    }
}

/// Channels.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChannelList {
    pub(crate) channels: Vec<ListedChannel>,
    pub(crate) total: usize,
}

/// A channel of the list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListedChannel {
    #[serde(flatten)]
    pub(crate) channel: ChannelRow,
    /// Its values; null as long as its adapter was not asked for them, which `GET /api/channels/{name}` does.
    pub(crate) fields: Option<Vec<ChannelField>>,
}

/// A channel with its values.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChannelDetail {
    #[serde(flatten)]
    pub(crate) channel: ChannelRow,
    /// Who may speak; null while the channel is not in force.
    pub(crate) policy: Option<PairingPolicy>,
    /// Its values, as its adapter describes them; null if it does not.
    pub(crate) fields: Option<Vec<ChannelField>>,
    /// Why there are no fields.
    pub(crate) fields_error: Option<String>,
}

/// The platforms for which channels can be set up.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RegistryList {
    pub(crate) channels: Vec<RegistryEntry>,
    pub(crate) total: usize,
}

/// A platform, with the values that a new channel takes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RegistryDetail {
    #[serde(flatten)]
    pub(crate) entry: RegistryEntry,
    /// The values of a new channel; null if its adapter does not describe them.
    pub(crate) schema: Option<ChannelSchema>,
    /// Why they are not known.
    pub(crate) schema_error: Option<String>,
}

/// A channel was removed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Removed {
    /// `removed`
    pub(crate) status: &'static str,
    /// The channel.
    pub(crate) name: String,
}

/// What became of a test message.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tested {
    /// `sent` (the adapter has handled it), `acknowledged` (the platform has it) or `queued`.
    pub(crate) status: &'static str,
    /// Its `id` in the sends of the channel.
    pub(crate) send_id: Uuid,
    /// The conversation.
    pub(crate) recipient: String,
}

impl QrStatus {
    /// The word of spec 3.
    const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Scanned => "scanned",
            Self::Authenticated => "authenticated",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }

    /// The word of the adapters.
    const fn adapter_word(self) -> &'static str {
        match self {
            Self::Scanned => "scanning",
            Self::Authenticated => "confirmed",
            other => other.word(),
        }
    }
}

shape! {
    /// A QR code that signs a channel in.
    pub(crate) struct QrItem from qr: QrState {
        /// `pending`, `scanned`, `authenticated`, `expired` or `failed`. `GET /api/channels/{name}/qr` has the words of adapters,
        /// `scanning` and `confirmed`.
        status: &'static str = qr.status.word(),
        /// Text of the code.
        qr_code: Option<String> = qr.qr_code,
        /// Its picture, as the adapter gives it.
        qr_url: Option<String> = qr.qr_url,
        /// A sentence of the adapter.
        message: Option<String> = qr.message,
        /// When it expires, as the adapter says.
        expires_at: Option<String> = qr.expires_at,
        /// When the adapter last reported.
        updated_at: Moment = qr.updated_at,
    }
}

impl QrItem {
    /// The same with the words of the adapters.
    pub(crate) fn of_adapter(qr: QrState) -> Self {
        let status = qr.status.adapter_word();
        Self { status, ..Self::from(qr) }
    }
}

/// The end of an adapter's error output.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LogList {
    /// The channel.
    pub(crate) name: String,
    /// Its last lines, oldest first.
    pub(crate) lines: Vec<LogLine>,
    /// Number of these lines.
    pub(crate) total: usize,
}

/// The rules that choose agents.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RuleList {
    /// The rules, strongest first.
    pub(crate) bindings: Vec<RouteRule>,
    pub(crate) total: usize,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn change(body: Value) -> Result<ChannelChange, String> {
        let body: ConfigureBody = serde_json::from_value(body).unwrap();
        body.change("bot".to_owned()).map_err(|error| format!("{} {}", error.beside("field").unwrap(), error.message()))
    }

    #[test]
    fn both_forms_of_a_configuration_are_read() {
        let spec = change(json!({ "token": "t", "agent_name": "a" })).unwrap();
        assert_eq!((spec.token.as_deref(), spec.agent), (Some("t"), Some(Some("a".to_owned()))));
        let real = change(json!({ "values": { "A_B": "1", "C": null, "D": "" }, "agent": null })).unwrap();
        assert_eq!(real.values["A_B"].as_deref(), Some("1"));
        assert_eq!((real.values["C"].as_deref(), real.values["D"].as_deref()), (None, Some("")));
        assert_eq!((real.agent, real.adapter), (Some(None), None));
        assert_eq!(change(json!({})).unwrap().agent, None);
    }

    #[test]
    fn values_that_cannot_be_stored_are_refused_by_field() {
        for (body, field) in [
            (json!({ "values": { "1A": "x" } }), "values"),
            (json!({ "values": { "A B": "x" } }), "values"),
            (json!({ "values": { "": "x" } }), "values"),
            (json!({ "values": { "BOT__TOKEN": "x" } }), "values"),
            (json!({ "values": { "LD_PRELOAD": "x" } }), "values"),
            (json!({ "values": { "PYTHONPATH": "x" } }), "values"),
            (json!({ "values": { "AGENTSVC_VAULT_KEY": "x" } }), "values"),
            (json!({ "values": { "A": "x\ny" } }), "values"),
            (json!({ "values": { "A": "x\u{0}" } }), "values"),
            (json!({ "values": { "A": " x" } }), "values"),
            (json!({ "values": { "A": "\"x\"" } }), "values"),
            (json!({ "values": { "A": "x".repeat((64 << 10) + 1) } }), "values"),
            (json!({ "token": "" }), "token"),
            (json!({ "token": "a\nb" }), "token"),
            (json!({ "agent": "" }), "agent"),
            (json!({ "agent": "a", "agent_name": "b" }), "agent_name"),
            (json!({ "adapter": "a\nb" }), "adapter"),
        ] {
            let said = change(body.clone()).err().unwrap_or_default();
            assert!(said.starts_with(&format!("\"{field}\"")), "{body}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_wrong_value_is_not_repeated_in_the_error() {
        let said = change(json!({ "values": { "A": "s3cret\n" } })).err().unwrap();
        assert!(!said.contains("s3cret"), "{said}");
    }
}
