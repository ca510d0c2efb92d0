//! The messages of sessions as the API and the effects read them. Implemented where the disk is known.

use std::collections::HashSet;

use agentsvc_components::LogId;
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::session::message::Role;
use agentsvc_components::session::message_record::MessageRecord;

use crate::http::error::ContentError;

/// One stored message and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// The turn's place in the session.
    pub ordinal: u32,
    /// The row's place in the turn.
    pub index: u32,
    /// The message.
    pub record: MessageRecord,
}

/// Which messages of a log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRange {
    /// Oldest first, from after `(ordinal, index)` on, at most `limit`.
    After {
        /// Where to go on; `None` from the start.
        after: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
    },
    /// The newest `limit` messages of turns from `from` up to and including `ordinal`, still given oldest first.
    NewestSince {
        /// The first turn to read.
        from: u32,
        /// The last turn to read.
        ordinal: u32,
        /// At most this many.
        limit: usize,
    },
    /// Oldest first, from after `(ordinal, index)` on, at most `limit`, and none behind the one with which they have `bytes` in
    /// the store. None only at the end of the log.
    Chunk {
        /// Where to go on; `None` from the start.
        after: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
        /// About so many bytes.
        bytes: usize,
    },
    /// The newest messages before `(ordinal, index)`, still given oldest first: at most `limit`, and none before the one with
    /// which they have `bytes` in the store.
    Newest {
        /// The place before which to read; `None` for the end of the log.
        before: Option<(u32, u32)>,
        /// At most this many.
        limit: usize,
        /// About so many bytes.
        bytes: usize,
    },
}

/// Reads the messages of sessions. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait Content: Send + Sync + 'static {
    /// Messages of `log`, oldest first. An unknown log is empty.
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError>;

    /// A tool result that was too long for its row, whole; `None` when there is none at this place of the log.
    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError>;

    /// What stands for the messages of `log` before turn `upto`; `None` when there is no such summary.
    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError>;

    /// The summaries of `log`, oldest first: the newest [`SUMMARIES_MAX`](agentsvc_components::kernel::limit::SUMMARIES_MAX).
    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError>;
}

/// The rows without those of turns that others repeat. Of turns that answer the same message the newest with a response of the model
/// counts; the turn `open`, if it is one of them, counts before it has one. `rows` are in order.
#[must_use]
pub fn in_force(mut rows: Vec<MessageRow>, open: Option<u32>) -> Vec<MessageRow> {
    let mut replaced = HashSet::new();
    let mut counting = None;
    for turn in rows.chunk_by(|one, next| one.ordinal == next.ordinal) {
        let ordinal = turn[0].ordinal;
        let is_answered = open == Some(ordinal) || turn.iter().any(|row| row.record.role == Role::Assistant);
        match counting.filter(|_| turn[0].record.repeats.is_some()) {
            Some(_) if !is_answered => {
                replaced.insert(ordinal);
            }
            Some(before) => {
                replaced.insert(before);
                counting = Some(ordinal);
            }
            None => counting = Some(ordinal),
        }
    }
    if !replaced.is_empty() {
        rows.retain(|row| !replaced.contains(&row.ordinal));
    }
    rows
}

#[cfg(test)]
mod tests {
    use agentsvc_components::{Timestamp, TurnId};
    use uuid::Uuid;

    use super::*;

    /// Rows of turns: what each repeats, and whether the model answered.
    fn rows(turns: &[(Option<u128>, bool)]) -> Vec<MessageRow> {
        let mut rows = Vec::new();
        for (ordinal, (repeats, is_answered)) in turns.iter().enumerate() {
            for (index, role) in
                [Role::User, Role::Assistant].into_iter().take(1 + usize::from(*is_answered)).enumerate()
            {
                let record = MessageRecord {
                    turn: TurnId(Uuid::from_u128(ordinal as u128)),
                    role,
                    blocks: Vec::new(),
                    created_at: Timestamp(0),
                    usage: None,
                    model: None,
                    stopped: false,
                    repeats: repeats.filter(|_| index == 0).map(|first| TurnId(Uuid::from_u128(first))),
                };
                rows.push(MessageRow { ordinal: ordinal as u32, index: index as u32, record });
            }
        }
        rows
    }

    fn counting(turns: &[(Option<u128>, bool)], open: Option<u32>) -> Vec<u32> {
        let mut ordinals: Vec<_> = in_force(rows(turns), open).iter().map(|row| row.ordinal).collect();
        ordinals.dedup();
        ordinals
    }

    #[test]
    fn the_newest_answer_counts() {
        let plain = (None, true);
        assert_eq!(counting(&[plain, plain], None), [0, 1]);
        assert_eq!(counting(&[plain, (None, true), (Some(1), true), (Some(1), true), plain], None), [0, 3, 4]);
        // What has no answer counts only while it is being answered.
        let failed = [plain, (Some(0), true), (Some(0), false), plain];
        assert_eq!(counting(&failed, None), [1, 3]);
        assert_eq!(counting(&failed[..3], Some(2)), [2]);
        assert_eq!(counting(&[(None, false), (Some(0), false), (Some(0), true)], None), [2]);
        assert_eq!(counting(&[(None, false), (Some(0), false)], None), [0]);
        // The first of them may not be among the rows.
        assert_eq!(counting(&[(Some(9), true), (Some(9), true)], None), [1]);
    }
}
