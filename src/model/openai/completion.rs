//! Chat completions as they come over the wire.
//!
//! Lenient where providers differ: content as text or as a list of parts, thoughts among the parts, arguments as text or
//! as an object, counts under several names.

use std::borrow::Cow;
use std::fmt;

use agentsvc_components::session::message::Usage;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;

/// A whole answer, or one event of a streamed one.
#[derive(Deserialize)]
pub(super) struct Completion<'a> {
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    usage: Option<WireUsage>,
    /// Where some of Groq's streams have the usage.
    x_groq: Option<Beside>,
    /// In place of an answer.
    pub(super) error: Option<Value>,
}

impl Completion<'_> {
    /// The counts, unless the provider leaves them open (some send zeros until the last event).
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.or(self.x_groq.and_then(|beside| beside.usage)).and_then(WireUsage::counted)
    }
}

/// One answer of several that may be asked for.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u32>,
    /// In stream events.
    #[serde(borrow)]
    pub(super) delta: Option<Message<'a>>,
    /// In whole answers.
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
}

/// What is said, or more of it.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    /// What the model thought, as most say it.
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    /// The same, as others say it.
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    /// Its blocks, for those who want them back.
    pub(super) reasoning_details: Option<Vec<Value>>,
    pub(super) refusal: Option<String>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<WireCall<'a>>>,
}

/// A tool call, or more of it.
#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) function: Option<WireFunction<'a>>,
}

/// What is called.
#[derive(Default, Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Arguments<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Beside {
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
#[derive(Default)]
pub(super) struct Text<'a> {
    /// What is said.
    pub(super) said: Cow<'a, str>,
    /// What was thought before it.
    pub(super) thought: String,
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text { said: Cow::Borrowed(text), ..Text::default() })
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text { said: Cow::Owned(text.to_owned()), ..Text::default() })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let (mut said, mut thought) = (String::new(), String::new());
                while let Some(part) = parts.next_element::<Part>()? {
                    said.push_str(part.text.as_deref().unwrap_or_default());
                    for part in part.thinking.into_iter().flatten() {
                        thought.push_str(part.text.as_deref().unwrap_or_default());
                    }
                }
                Ok(Text { said: Cow::Owned(said), thought })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    /// Parts of a thought.
    thinking: Option<Vec<Part>>,
}

/// Arguments: JSON as a text (or a piece of it), or, from some servers, the object itself.
pub(super) struct Arguments<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgumentsVisitor;

        impl<'de> Visitor<'de> for ArgumentsVisitor {
            type Value = Arguments<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments as text or object")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Owned(text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let value = Value::deserialize(MapAccessDeserializer::new(map)).map_err(A::Error::custom)?;
                Ok(Arguments(Cow::Owned(value.to_string())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                // No tool takes a list; the tool will say so.
                Ok(Arguments(Cow::Borrowed("[]")))
            }
        }

        deserializer.deserialize_any(ArgumentsVisitor)
    }
}
