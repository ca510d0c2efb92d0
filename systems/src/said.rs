//! What a user message becomes in a prompt: its texts as one run, its images beside them.

use agentsvc_components::message::Block;

use crate::prompt::{IMAGE_BYTES, shorten, text_tokens};

/// What stands between two texts of one message: its own, and those of its attachments.
pub const SEPARATOR: &str = "\n\n";

/// The blocks with neighbouring texts merged into one (spec 1, Attachment handling).
#[must_use]
pub fn merged(blocks: Vec<Block>) -> Vec<Block> {
    let mut merged: Vec<Block> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match (merged.last_mut(), block) {
            (_, Block::Text { text }) if text.is_empty() => {}
            (Some(Block::Text { text: before }), Block::Text { text }) => {
                before.push_str(SEPARATOR);
                before.push_str(&text);
            }
            (_, block) => merged.push(block),
        }
    }
    merged
}

/// The blocks cut so that they cost at most `tokens_max`: one text, shortened in its middle, and behind it the first
/// images, as many as half of the tokens have room for.
pub(crate) fn fitted(blocks: Vec<Block>, tokens_max: u64) -> Vec<Block> {
    let (images, texts): (Vec<Block>, Vec<Block>) =
        blocks.into_iter().partition(|block| matches!(block, Block::Image { .. }));
    let image_tokens = text_tokens(IMAGE_BYTES);
    let kept = images.len().min((tokens_max / 2 / image_tokens) as usize);
    let left = tokens_max - kept as u64 * image_tokens;
    let mut blocks = merged(texts);
    if let Some(Block::Text { text }) = blocks.first_mut() {
        shorten(text, left.saturating_mul(4) as usize);
    }
    blocks.extend(images.into_iter().take(kept));
    blocks
}

#[cfg(test)]
mod tests {
    use agentsvc_components::FileId;
    use uuid::Uuid;

    use super::*;

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    fn image(n: u128) -> Block {
        Block::Image { media_type: "image/png".to_owned(), file: FileId(Uuid::from_u128(n)), bytes: 9 }
    }

    #[test]
    fn neighbouring_texts_are_one() {
        assert_eq!(merged(vec![text("a"), text(""), text("b"), text("c")]), [text("a\n\nb\n\nc")]);
        let apart = vec![text("a"), image(1), text("b"), text("c"), image(2)];
        assert_eq!(merged(apart), [text("a"), image(1), text("b\n\nc"), image(2)]);
        assert_eq!(merged(vec![text("")]), []);
    }

    #[test]
    fn what_is_too_long_is_cut_and_images_stay_while_there_is_room() {
        let cost = |blocks: &[Block]| {
            let bytes = |block: &Block| if let Block::Text { text } = block { text.len() } else { IMAGE_BYTES };
            text_tokens(blocks.iter().map(bytes).sum())
        };
        let long = "x".repeat(100_000);
        for (tokens, images) in [(100, 0), (1_999, 0), (2_000, 1), (10_000, 3)] {
            let blocks = fitted(vec![text(&long), image(1), text(&long), image(2), image(3)], tokens);
            assert!(cost(&blocks) <= tokens, "{tokens}");
            assert!(matches!(&blocks[0], Block::Text { text } if text.starts_with("xx")));
            assert_eq!(blocks[1..], [image(1), image(2), image(3)][..images], "{tokens}");
        }
    }
}
