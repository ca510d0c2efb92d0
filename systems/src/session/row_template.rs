//! The row that very many turns begin with: written once, and copied with the turn's id put in.

use std::sync::Arc;

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{Timestamp, TurnId};
use uuid::Uuid;

use crate::kernel::record::{DeferredRecord, MessageKey, encode, message_key, op};

/// Bytes of a message's key.
pub(crate) const MESSAGE_KEY_BYTES: usize = 17;

/// The stored form of a user's message of one text, but for the turn that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowTemplate {
    row: Box<[u8]>,
    /// Where the 16 bytes of the turn's id stand.
    turn_at: usize,
}

impl RowTemplate {
    /// Of a message that is stored at this time.
    pub(crate) fn new(text: String, created_at: Timestamp) -> Self {
        // The turn is the first field, and no text has this byte in it.
        let turn = Uuid::max();
        let blocks = vec![Block::Text { text }];
        let row = MessageRecord {
            turn: TurnId(turn),
            role: Role::User,
            blocks,
            created_at,
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        let row = encode(&row);
        let turn_at = row.windows(turn.as_bytes().len()).position(|bytes| bytes == turn.as_bytes());
        Self { turn_at: turn_at.expect("a row has the id of its turn in it"), row: row.into() }
    }

    /// Bytes of a row.
    pub(crate) fn bytes(&self) -> usize {
        self.row.len()
    }

    /// The row of `turn`.
    pub(crate) fn put(&self, at: MessageKey, turn: TurnId) -> Op {
        let mut row = self.row.to_vec();
        let id = turn.0.as_bytes();
        row[self.turn_at..][..id.len()].copy_from_slice(id);
        op(Space::Content, message_key(at), Some(row))
    }
}

/// The first message of a fired turn, yet to be written.
#[derive(Debug)]
pub(crate) struct SaidRow {
    /// The row, but for the turn.
    pub(crate) row: Arc<RowTemplate>,
    /// Where it goes.
    pub(crate) at: MessageKey,
    /// The turn.
    pub(crate) turn: TurnId,
}

impl DeferredRecord for SaidRow {
    fn bytes(&self) -> usize {
        MESSAGE_KEY_BYTES + self.row.bytes()
    }

    fn write(self: Box<Self>) -> Op {
        self.row.put(self.at, self.turn)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::LogId;
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::record::put_content;

    proptest! {
        #[test]
        fn a_copy_is_what_the_record_would_be(text in "\\PC{0,300}", id in any::<u128>(), at in any::<i64>()) {
            let (turn, created_at) = (TurnId(Uuid::from_u128(id)), Timestamp(at));
            let key = MessageKey { log: LogId(7), ordinal: 3, index: 0 };
            let blocks = vec![Block::Text { text: text.clone() }];
            let record =
                MessageRecord { turn, role: Role::User, blocks, created_at, usage: None, model: None, stopped: false, repeats: None };
            prop_assert_eq!(RowTemplate::new(text, created_at).put(key, turn), put_content(message_key(key), &record));
        }
    }
}
