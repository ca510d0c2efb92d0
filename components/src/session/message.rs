//! The neutral form of a conversation: what drivers translate to and from the wire formats of providers.

use serde::{Deserialize, Serialize};

use crate::kernel::id::FileId;
use crate::kernel::money::Micros;
use crate::kernel::words::enum_words;

enum_words! {
    /// Who speaks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Role [as_str] {
        /// The person, trigger or agent that asks.
        User = "User",
        /// The model.
        Assistant = "Assistant",
        /// The results of tool calls.
        Tool = "Tool",
    }
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// UTF-8.
        text: String,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// Result of a tool call.
    ToolResult {
        /// The [`ToolCall::id`] it answers.
        call_id: String,
        /// The tool's name.
        name: String,
        /// Text or JSON text.
        content: String,
        /// The tool failed and `content` says why.
        is_error: bool,
    },
    /// A picture. Its bytes stay with the uploads and are read when a request to a model is built.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The upload that holds it.
        file: FileId,
        /// Its size.
        bytes: u64,
    },
    /// What the model thought before the block that follows it.
    Reasoning(Reasoning),
}

/// What a model thought, and what its provider wants to have back with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The wire protocol that it came over; it goes back over no other.
    pub wire: String,
    /// The model that thought it; it goes back to no other.
    pub model: String,
    /// What can be read of it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The provider's own block as JSON text, kept as it came; empty where the protocol has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw: String,
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call, unique within its message.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them (they may be malformed).
    pub input: String,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub blocks: Vec<Block>,
}

impl ChatMessage {
    /// A message of one text block.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, blocks: vec![Block::Text { text: text.into() }] }
    }

    /// All text blocks, joined without a separator.
    #[must_use]
    pub fn plain_text(&self) -> String {
        text_of(&self.blocks)
    }
}

/// All text blocks of `blocks`, joined without a separator.
#[must_use]
pub fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(|b| if let Block::Text { text } = b { Some(text.as_str()) } else { None }).collect()
}

/// All tool calls of `blocks`, in order.
#[must_use]
pub fn calls_of(blocks: &[Block]) -> Vec<ToolCall> {
    blocks.iter().filter_map(|b| if let Block::ToolCall(call) = b { Some(call.clone()) } else { None }).collect()
}

/// Tokens of one or more model calls, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, cached ones included.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens of the prompt that the provider had in its cache, where it says so.
    #[serde(default, skip_serializing_if = "is_none_cached")]
    pub cached_input_tokens: u64,
    /// Tokens of the prompt that the provider wrote into its cache, where it says so.
    #[serde(default, skip_serializing_if = "is_none_cached")]
    pub cache_write_tokens: u64,
    /// What it cost; filled in when the call is settled, nothing where the price is not known.
    #[serde(default, rename = "cost_micros", skip_serializing_if = "Micros::is_zero")]
    pub cost: Micros,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_none_cached(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// So many tokens of prompt and answer, none of them cached, at no cost.
    #[must_use]
    pub const fn of(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, cached_input_tokens: 0, cache_write_tokens: 0, cost: Micros::ZERO }
    }

    /// Tokens of prompt and answer, saturating.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            cost: self.cost.plus(other.cost),
        }
    }
}
