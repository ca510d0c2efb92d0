//! What a protocol must say of itself to be in the table.

use agentsvc::model::provider::DriverKind;
use serde_json::Value;

use super::script::Script;
use super::server::{Answer, Received};

/// The key that every speaker expects; a protocol whose key has parts says so with [`Speaks::key`].
pub(crate) const KEY: &str = "hunter2-hunter2-hunter2";
/// The model that is asked.
pub(crate) const MODEL: &str = "m-1";

/// The server's side of one wire protocol.
pub(crate) trait Speaks: Sync {
    /// The driver that is under test.
    fn kind(&self) -> DriverKind;

    /// What stands behind `http://host:port` in the base URL.
    fn base_path(&self) -> &'static str {
        "/v1"
    }

    /// The key of the target.
    fn key(&self) -> &'static str {
        KEY
    }

    /// The model that is asked.
    fn model(&self) -> &'static str {
        MODEL
    }

    /// The content type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// The frames of a streamed answer, the last one too.
    fn stream(&self, script: &Script) -> Vec<Vec<u8>>;

    /// How many frames of [`Self::stream`] must have come before the reason to stop is known. A stream that ends before
    /// is broken.
    fn frames_to_stop(&self, script: &Script) -> usize;

    /// A whole answer.
    fn whole(&self, script: &Script) -> Vec<u8>;

    /// How the provider answers with an error of this status and in these words.
    fn error(&self, status: u16, words: &str) -> Answer;

    /// A frame that ends a stream with an error that may pass; `None` where the protocol has none.
    fn error_frame(&self, words: &str) -> Option<Vec<u8>>;

    /// A frame whose content is no JSON.
    fn garbage_frame(&self) -> Vec<u8> {
        b"data: {oops\n\n".to_vec()
    }

    /// The request in neutral form. Panics where the protocol forbids what it holds, or the key is not where it
    /// belongs.
    fn heard(&self, received: &Received) -> Heard;

    /// What the model thinks comes over this wire and goes back.
    fn carries_thoughts(&self) -> bool {
        true
    }

    /// Tool calls come with ids that go back.
    fn carries_call_ids(&self) -> bool {
        true
    }

    /// The client may choose which tool is called.
    fn takes_choice(&self) -> bool {
        true
    }

    /// The client may name texts at which the answer ends.
    fn takes_stops(&self) -> bool {
        true
    }

    /// An answer may end because it is withheld.
    fn can_filter(&self) -> bool {
        true
    }

    /// It tells the tokens that the cache gave (first) or took (second).
    fn counts_cache(&self) -> (bool, bool) {
        (true, true)
    }
}

/// A request in neutral form.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) model: String,
    pub(crate) streaming: bool,
    pub(crate) system: String,
    /// The conversation as lines: `user: text`, `assistant: text`, `call id name {json}`, `result id: text`,
    /// `image type base64`, `thought mark`.
    pub(crate) said: Vec<String>,
    /// The names of the tools that are offered.
    pub(crate) tools: Vec<String>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) stops: Vec<String>,
    /// `auto`, `none`, `any` or the name of a tool.
    pub(crate) choice: Option<String>,
    /// The schema that the answer must fit.
    pub(crate) schema: Option<Value>,
}

/// A text in JSON, or nothing.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The items of a list; none where there is no list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Texts of a list, or the one text.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    if value.is_string() { vec![string(value)] } else { items(value).iter().map(string).collect() }
}
