//! Texts that stand side by side become one: providers want turns of user and model to alternate, and one text run in
//! a message (spec 1, Attachment handling).

use agentsvc_components::session::message::{Block, ChatMessage};

/// What stands between two texts that become one.
pub const SEPARATOR: &str = "\n\n";

/// The blocks of a user's message, neighbouring texts as one.
#[must_use]
pub fn merged(blocks: Vec<Block>) -> Vec<Block> {
    let mut merged = Vec::with_capacity(blocks.len());
    append(&mut merged, blocks);
    merged
}

fn append(blocks: &mut Vec<Block>, more: Vec<Block>) {
    for block in more {
        match (blocks.last_mut(), block) {
            (_, Block::Text { text }) if text.is_empty() => {}
            (Some(Block::Text { text: before }), Block::Text { text }) => {
                before.push_str(SEPARATOR);
                before.push_str(&text);
            }
            (_, block) => blocks.push(block),
        }
    }
}

/// The conversation with its summary, if it begins with one, as the start of the first message: the roles alternate.
/// What different turns said stays apart.
pub(super) fn opened(mut messages: impl Iterator<Item = ChatMessage>, has_summary: bool) -> Vec<ChatMessage> {
    let mut out: Vec<ChatMessage> = Vec::with_capacity(messages.size_hint().0);
    out.extend(messages.next());
    if has_summary && let (Some(summary), Some(first)) = (out.first_mut(), messages.next()) {
        // Saves a message's overhead, which is more than the separator costs.
        append(&mut summary.blocks, first.blocks);
    }
    out.extend(messages);
    out
}
