//! What adapters say: events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::content::Content;

/// An event of an adapter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// It takes commands. It need not be signed in to its platform.
    Ready(Ready),
    /// A person wrote something.
    Message(Box<Message>),
    /// A person types.
    Typing(TypingEvent),
    /// It has to say something about itself.
    Error(String),
    /// A code to sign in with is there.
    QrReady(QrReady),
    /// What became of that code.
    QrStatus(QrUpdate),
    /// The outcome of one send; only of adapters that declare the capability `ack`.
    Ack(Ack),
    /// A method of a later protocol.
    Unknown(String),
}

/// What an adapter can do and what it wants.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Ready {
    #[serde(deserialize_with = "or_default")]
    pub(crate) capabilities: Vec<String>,
    pub(crate) account_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) suppress_error_responses: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) notification_recipients: Vec<Recipient>,
    /// Headers that go with requests to one host.
    #[serde(deserialize_with = "or_default")]
    pub(crate) header_rules: Vec<(String, Vec<(String, String)>)>,
    pub(crate) protocol_version: Option<u32>,
}

/// Who gets what the daemon has to say, such as approvals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Recipient {
    pub(crate) platform_id: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) display_name: String,
    pub(crate) librefang_user: Option<String>,
}

/// A message. What is optional may also be null.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Message {
    pub(crate) user_id: String,
    pub(crate) user_name: String,
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Wins over `text`. `None` also where it is of a later protocol.
    #[serde(default, deserialize_with = "known_content")]
    pub(crate) content: Option<Content>,
    #[serde(default)]
    pub(crate) message_id: Option<String>,
    #[serde(default)]
    pub(crate) channel_id: Option<String>,
    #[serde(default)]
    pub(crate) platform: Option<String>,
    #[serde(default)]
    pub(crate) username: Option<String>,
    /// A token that the reply must bring back byte for byte.
    #[serde(default)]
    pub(crate) librefang_user: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) is_group: bool,
    #[serde(default)]
    pub(crate) thread_id: Option<String>,
    #[serde(default, deserialize_with = "flat")]
    pub(crate) metadata: Map<String, Value>,
}

/// Bytes of JSON of the metadata of a message. Longer: as if there were none.
const METADATA_BYTES_MAX: usize = 64 << 10;
/// Keys of metadata that are kept.
const METADATA_KEYS_MAX: usize = 64;
/// Bytes of JSON of a list in metadata. Longer ones are left out.
const LIST_BYTES_MAX: usize = 8 << 10;

/// Metadata without what means nothing here: texts, flags, numbers and lists of texts stay. Trees of values would take a hundred
/// times as much memory as their text.
fn flat<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(from)?.filter(|raw| raw.get().len() <= METADATA_BYTES_MAX);
    let keys: Option<BTreeMap<String, &RawValue>> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let kept = |(key, raw): (String, &RawValue)| Some((key, plain(raw.get())?));
    Ok(keys.unwrap_or_default().into_iter().filter_map(kept).take(METADATA_KEYS_MAX).collect())
}

fn plain(text: &str) -> Option<Value> {
    match text.as_bytes().first()? {
        b'{' | b'n' => None,
        b'[' if text.len() > LIST_BYTES_MAX => None,
        b'[' => serde_json::from_str::<Vec<String>>(text).ok().map(Value::from),
        _ => serde_json::from_str(text).ok(),
    }
}

/// A person types, or has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct TypingEvent {
    pub(crate) user_id: String,
    pub(crate) user_name: String,
    pub(crate) is_typing: bool,
}

/// A code to sign in with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct QrReady {
    pub(crate) qr_code: String,
    #[serde(default)]
    pub(crate) qr_url: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

/// What became of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct QrUpdate {
    pub(crate) status: QrState,
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// Where signing in with a code is. A word that is not known is a failure, so that nothing waits for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum QrState {
    #[default]
    Pending,
    Scanning,
    Confirmed,
    Expired,
    Failed,
}

impl From<String> for QrState {
    fn from(word: String) -> Self {
        match word.as_str() {
            "pending" => Self::Pending,
            "scanning" => Self::Scanning,
            "confirmed" => Self::Confirmed,
            "expired" => Self::Expired,
            _ => Self::Failed,
        }
    }
}

/// The outcome of one send.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Ack {
    pub(crate) id: String,
    pub(crate) ok: bool,
    #[serde(default)]
    pub(crate) message_id: Option<String>,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorText {
    message: String,
}

/// A null counts as absent.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn known_content<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Content>, D::Error> {
    let raw: Option<&RawValue> = Option::deserialize(from)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

impl Event {
    /// The event in a line. `None` for a blank one.
    ///
    /// # Errors
    /// Why the line is none, without what it says: it may hold a message.
    pub(crate) fn parse(line: &[u8]) -> Result<Option<Self>, String> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let frame: Frame<'_> = serde_json::from_slice(line).map_err(|error| short(&error))?;
        let params = frame.params.map_or("{}", RawValue::get);
        fn read<T: DeserializeOwned>(params: &str) -> Result<T, String> {
            serde_json::from_str(params).map_err(|error| short(&error))
        }
        let event = match &*frame.method {
            "ready" => Self::Ready(read(params)?),
            "message" => Self::Message(serde_json::from_str(params).map_err(|error| short(&error))?),
            "typing" => Self::Typing(read(params)?),
            "error" => Self::Error(read::<ErrorText>(params)?.message),
            "qr_ready" => Self::QrReady(read(params)?),
            "qr_status" => Self::QrStatus(read(params)?),
            "ack" => Self::Ack(read(params)?),
            _ => Self::Unknown(frame.method.chars().take(64).collect()),
        };
        Ok(Some(event))
    }
}

/// Bytes of a line beside the bytes of the file that it brings, where it is large.
const BESIDE_FILE_BYTES_MAX: usize = 256 << 10;

/// A message with a file, of which only the bytes of the file are large.
#[derive(Deserialize)]
struct WithContent<'a> {
    #[serde(borrow)]
    content: WithFile<'a>,
}

#[derive(Deserialize)]
struct WithFile<'a> {
    #[serde(borrow, rename = "FileData")]
    file: WithData<'a>,
}

#[derive(Deserialize)]
struct WithData<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

impl Event {
    /// The event in a large line: only a message that brings a file may be one. Nothing is built of others.
    ///
    /// # Errors
    /// Why the line is none, without what it says.
    pub(crate) fn parse_large(line: &[u8]) -> Result<Option<Self>, String> {
        const LONG: &str = "it is too long and brings no file";
        let frame: Frame<'_> = serde_json::from_slice(line.trim_ascii()).map_err(|error| short(&error))?;
        let params = frame.params.filter(|_| frame.method == "message").map(RawValue::get).ok_or(LONG)?;
        let WithContent { content } = serde_json::from_str(params).map_err(|_| LONG)?;
        if params.len() - content.file.data.get().len() > BESIDE_FILE_BYTES_MAX {
            return Err(LONG.to_owned());
        }
        let message: Message = serde_json::from_str(params).map_err(|error| short(&error))?;
        Ok(Some(Self::Message(Box::new(message))))
    }
}

/// Where and of what kind an error is. Its text may quote the message.
fn short(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        serde_json::error::Category::Data => "it has not the shape of an event",
        _ => "it is not JSON",
    };
    format!("{what} (column {})", error.column())
}

impl Message {
    /// What it is, where `content` wins over `text`.
    pub(crate) fn content(&self) -> Content {
        self.content.clone().unwrap_or_else(|| Content::Text(self.text.clone().unwrap_or_default()))
    }

    /// The conversation that it belongs to: the channel where that is not the person, else the person.
    pub(crate) fn conversation(&self) -> &str {
        self.channel_id.as_deref().filter(|channel| !channel.is_empty()).unwrap_or(&self.user_id)
    }

    /// A text of its metadata.
    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// A flag of its metadata.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.metadata.get(key).and_then(Value::as_bool).unwrap_or_default()
    }
}
