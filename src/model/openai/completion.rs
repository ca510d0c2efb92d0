//! Chat completions as they come over the wire.
//!
//! Lenient where providers differ: content as text or as a list of parts, thoughts among the parts, arguments as text or
//! as an object, counts under several names.

use agentsvc_components::session::message::Usage;
use serde::Deserialize;
use serde_json::Value;

/// A whole answer, or one event of a streamed one.
#[derive(Deserialize)]
pub(super) struct Completion {
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
    /// Where some of Groq's streams have the usage.
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    x_groq: Option<Beside>,
    /// In place of an answer.
    pub(super) error: Option<Value>,
}

impl Completion {
    /// The counts, unless the provider leaves them open (some send zeros until the last event).
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.or(self.x_groq.and_then(|beside| beside.usage)).and_then(WireUsage::counted)
    }
}

/// One answer of several that may be asked for.
#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u32>,
    /// In stream events.
    pub(super) delta: Option<Message>,
    /// In whole answers.
    pub(super) message: Option<Message>,
    pub(super) finish_reason: Option<String>,
}

/// What is said, or more of it.
#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) content: Option<Text>,
    /// What the model thought, as most say it.
    pub(super) reasoning_content: Option<Text>,
    /// The same, as others say it.
    pub(super) reasoning: Option<Text>,
    /// Its blocks, for those who want them back.
    pub(super) reasoning_details: Option<Vec<Value>>,
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Option<Vec<WireCall>>,
}

/// A tool call, or more of it.
#[derive(Deserialize)]
pub(super) struct WireCall {
    pub(super) index: Option<u32>,
    pub(super) id: Option<String>,
    pub(super) function: Option<WireFunction>,
}

/// What is called.
#[derive(Default, Deserialize)]
pub(super) struct WireFunction {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Arguments>,
}

#[derive(Clone, Copy, Deserialize)]
struct Beside {
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<WireDetails>,
    /// DeepSeek's name for the cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's.
    cached_tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

impl WireUsage {
    fn counted(self) -> Option<Usage> {
        let input_tokens = self.prompt_tokens.unwrap_or(0);
        // Some count what the model thought in the total only.
        let beyond = self.total_tokens.unwrap_or(0).saturating_sub(input_tokens);
        let output_tokens = self.completion_tokens.map_or(0, |tokens| tokens.max(beyond));
        let details = self.prompt_tokens_details;
        let cached = details.and_then(|details| details.cached_tokens).filter(|tokens| *tokens > 0);
        let cached = cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens).unwrap_or(0);
        let cached_input_tokens = cached.min(input_tokens);
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let cache_write_tokens = written.min(input_tokens - cached_input_tokens);
        let usage = Usage { cached_input_tokens, cache_write_tokens, ..Usage::of(input_tokens, output_tokens) };
        (input_tokens.saturating_add(output_tokens) > 0).then_some(usage)
    }
}

/// A text, or a list of parts of which the texts and the thoughts count. Anything else is no text.
#[derive(Default, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Text {
    /// What is said.
    pub(super) said: String,
    /// What was thought before it.
    pub(super) thought: String,
}

impl From<Value> for Text {
    fn from(value: Value) -> Self {
        let mut text = Self::default();
        match value {
            Value::String(said) => text.said = said,
            Value::Array(parts) => {
                for part in &parts {
                    text.said.push_str(part["text"].as_str().unwrap_or_default());
                    for part in part["thinking"].as_array().into_iter().flatten() {
                        text.thought.push_str(part["text"].as_str().unwrap_or_default());
                    }
                }
            }
            _ => {}
        }
        text
    }
}

/// Arguments: JSON as a text (or a piece of it), or, from some servers, the object itself.
#[derive(Deserialize)]
#[serde(from = "Value")]
pub(super) struct Arguments(pub(super) String);

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self(match value {
            Value::String(text) => text,
            // No tool takes a list; the tool will say so.
            Value::Array(_) => "[]".to_owned(),
            value => value.to_string(),
        })
    }
}
