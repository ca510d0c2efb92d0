//! Texts that stand side by side become one: providers want turns of user and model to alternate, and one text run in
//! a message (spec 1, Attachment handling).

use agentsvc_components::message::{Block, ChatMessage, Role};

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

/// The conversation with user messages that follow each other as one: a turn that failed leaves a question without an
/// answer, and a summary stands before what it summarises up to.
///
/// Each join saves a message's overhead, which is more than the separator costs.
pub(super) fn alternating(messages: impl Iterator<Item = ChatMessage>) -> Vec<ChatMessage> {
    let mut out: Vec<ChatMessage> = Vec::with_capacity(messages.size_hint().0);
    for message in messages {
        match out.last_mut() {
            Some(before) if before.role == Role::User && message.role == Role::User => {
                append(&mut before.blocks, message.blocks);
            }
            _ => out.push(message),
        }
    }
    out
}
