//! What a prompt costs in tokens, and how a text is cut to a cost.

use agentsvc_components::session::message::{Block, ChatMessage, ToolCall};

/// Tokens that a message costs beside its text.
pub const MESSAGE_TOKENS: u64 = 4;
/// Tokens that a tool call or a tool result costs beside its text.
pub const TOOL_BLOCK_TOKENS: u64 = 8;
/// Bytes of a call's id that are in [`TOOL_BLOCK_TOKENS`]; each further one counts as a token.
const ID_BYTES: usize = 64;
/// Tokens that an image counts as, whatever its size.
pub const IMAGE_TOKENS: u64 = 1_000;

/// Counts the tokens of texts, as a model's tokenizer does or nearly so.
///
/// A text of `n` bytes has at most `n` tokens: tokenizers of bytes keep that, and the projection relies on it.
pub trait Tokens {
    /// The tokens of `text`, or `None` when they are more than `tokens_max`. Does not look further than it must.
    fn count(&self, text: &str, tokens_max: u64) -> Option<u64>;
}

/// The estimate for models whose tokenizer is not known: one token for each four bytes.
#[derive(Clone, Copy, Debug)]
pub struct Estimate;

impl Tokens for Estimate {
    fn count(&self, text: &str, tokens_max: u64) -> Option<u64> {
        Some(text_tokens(text.len())).filter(|tokens| *tokens <= tokens_max)
    }
}

/// The estimate for such models where money is reserved for a full context: digits, rare scripts and symbols count as many
/// tokens as they can have, so that a prompt of them is no dearer than that.
#[derive(Clone, Copy, Debug)]
pub struct Dense;

impl Tokens for Dense {
    fn count(&self, text: &str, tokens_max: u64) -> Option<u64> {
        let quarters: u64 = text.bytes().map(|byte| u64::from(QUARTERS[usize::from(byte)])).sum();
        Some(quarters.div_ceil(4)).filter(|tokens| *tokens <= tokens_max)
    }
}

/// Quarters of a token that a byte counts; a character of several bytes is counted by its first.
const QUARTERS: [u8; 256] = {
    let mut quarters = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        quarters[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b' ' | b'\n' | b'\t' => 1,
            b'0'..=b'9' => 4,
            0..0x80 => 2,
            0x80..0xc0 => 0,
            // Greek, Cyrillic, Arabic and others of two bytes: a token for each character.
            0xc0..0xe0 => 4,
            // Kana, Chinese and Hangul.
            0xe3..0xee => 6,
            0xe0..0xf0 => 12,
            0xf0.. => 16,
        };
        byte += 1;
    }
    quarters
};

/// The token estimate of a text of `bytes` UTF-8 bytes: one token per four bytes, rounded up.
///
/// English and code come out a little high, dense scripts (three bytes a character) a little low.
#[must_use]
pub const fn text_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// The token estimate of one message: its texts together, plus [`MESSAGE_TOKENS`], plus [`TOOL_BLOCK_TOKENS`] for
/// every tool call and result and [`IMAGE_TOKENS`] for every image.
#[must_use]
pub fn message_tokens(message: &ChatMessage) -> u64 {
    MESSAGE_TOKENS + answer_tokens(&message.blocks)
}

/// The token estimate of an answer: the same rule as [`message_tokens`] without the message's own overhead.
#[must_use]
pub fn answer_tokens(blocks: &[Block]) -> u64 {
    blocks.iter().map(block_overhead).sum::<u64>() + text_tokens(text_bytes(blocks))
}

/// Tokens of a block beside its texts.
const fn block_overhead(block: &Block) -> u64 {
    match block {
        Block::Text { .. } | Block::Reasoning(_) => 0,
        Block::ToolCall(ToolCall { id, .. }) | Block::ToolResult { call_id: id, .. } => {
            TOOL_BLOCK_TOKENS + id.len().saturating_sub(ID_BYTES) as u64
        }
        Block::Image { .. } => IMAGE_TOKENS,
    }
}

/// The texts of a block that a model reads.
fn texts(block: &Block) -> impl Iterator<Item = &str> {
    let (first, second) = match block {
        Block::Text { text } => (text.as_str(), ""),
        Block::ToolCall(call) => (call.name.as_str(), call.input.as_str()),
        Block::ToolResult { content, .. } => (content.as_str(), ""),
        Block::Image { .. } => ("", ""),
        // What goes back is the raw block, where there is one.
        Block::Reasoning(thought) if thought.raw.is_empty() => (thought.text.as_str(), ""),
        Block::Reasoning(thought) => (thought.raw.as_str(), ""),
    };
    [first, second].into_iter().filter(|text| !text.is_empty())
}

fn text_bytes(blocks: &[Block]) -> usize {
    blocks.iter().flat_map(texts).map(str::len).sum()
}

/// True when the message says nothing at all.
pub(super) fn is_empty(message: &ChatMessage) -> bool {
    message.blocks.iter().all(|block| match block {
        Block::Text { text } => text.is_empty(),
        Block::Reasoning(_) => true,
        _ => false,
    })
}

/// More tokens than the message can have, whatever the tokenizer.
pub(super) fn message_ceiling(message: &ChatMessage) -> u64 {
    MESSAGE_TOKENS + message.blocks.iter().map(block_overhead).sum::<u64>() + text_bytes(&message.blocks) as u64
}

/// The tokens of a message, or `None` when they are more than `tokens_max`.
pub fn cost(tokens: &dyn Tokens, message: &ChatMessage, tokens_max: u64) -> Option<u64> {
    let fixed = MESSAGE_TOKENS + message.blocks.iter().map(block_overhead).sum::<u64>();
    let mut left = tokens_max.checked_sub(fixed)?;
    for text in message.blocks.iter().flat_map(texts) {
        left -= tokens.count(text, left)?;
    }
    Some(tokens_max - left)
}

/// Cuts the middle out of `text` so that it costs at most `tokens_max`.
pub fn shorten_to(tokens: &dyn Tokens, text: &mut String, tokens_max: u64) {
    if tokens.count(text, tokens_max).is_some() {
        return;
    }
    let bytes_of = |tenths: u64| usize::try_from(tokens_max.saturating_mul(tenths) / 10).unwrap_or(usize::MAX);
    // Most texts have about four bytes for a token; none has less than one.
    for tenths in [40, 30, 22, 15] {
        let mut cut = shortened(text, bytes_of(tenths));
        if tokens.count(&cut, tokens_max).is_some() {
            std::mem::swap(text, &mut cut);
            return;
        }
    }
    *text = shortened(text, bytes_of(10));
}

/// Cuts the middle out of `text` so that at most `bytes_max` bytes remain, and says so where there is room to.
///
/// Both ends stay: instructions stand at either end of a long text.
pub fn shorten(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        *text = shortened(text, bytes_max);
    }
}

fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let note = format!("\n[... {} bytes omitted ...]\n", text.len() - bytes_max);
    let Some(kept) = bytes_max.checked_sub(note.len()) else {
        return text[..text.floor_char_boundary(bytes_max)].to_owned();
    };
    let head = text.floor_char_boundary(kept / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - (kept - kept / 3 * 2));
    [&text[..head], &note, &text[tail..]].concat()
}
