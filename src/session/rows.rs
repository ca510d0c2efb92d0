//! Reads messages and what belongs to them while the world runs. Every call has a snapshot of its own that ends with it,
//! so that a slow reader never keeps old rows on the disk.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::session::content::{Content, MessageRange, MessageRow};
use agentsvc_components::LogId;
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::record::{
    MessageKey, log_prefix, message_key, parse_message_key, result_key, summary_key, summary_prefix,
};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl Content for Store {
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        let key = |(ordinal, index)| message_key(MessageKey { log, ordinal, index });
        let first = Bound::Included(log_prefix(log).to_vec());
        let last = |ordinal| Bound::Included(key((ordinal, u32::MAX)));
        match range {
            MessageRange::After { after, limit } => {
                let from = after.map_or(first, |place| Bound::Excluded(key(place)));
                let rows = self.content.range((from, last(u32::MAX)));
                rows.take(limit).map(|row| self.message(row)).collect()
            }
            MessageRange::Chunk { after, limit, bytes } => {
                let from = after.map_or(first, |place| Bound::Excluded(key(place)));
                self.up_to(self.content.range((from, last(u32::MAX))).take(limit), bytes)
            }
            MessageRange::Newest { before, limit, bytes } => {
                let to = before.map_or(last(u32::MAX), |place| Bound::Excluded(key(place)));
                self.up_to(self.content.range((first, to)).rev().take(limit), bytes).map(reversed)
            }
            MessageRange::NewestSince { from, ordinal, .. } if from > ordinal => Ok(Vec::new()),
            MessageRange::NewestSince { from, ordinal, limit } => {
                self.newest((Bound::Included(key((from, 0))), last(ordinal)), limit)
            }
        }
    }

    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError> {
        self.text(&result_key(MessageKey { log, ordinal, index }))
    }

    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError> {
        let key = summary_key(log, upto);
        let value = self.content.get(&key).map_err(|error| self.unread(error))?;
        value.map(|value| self.decoded(&key, &value)).transpose()
    }

    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        let rows = self.content.prefix(summary_prefix(log)).rev().take(limit::SUMMARIES_MAX);
        let newest_first: Result<Vec<_>, _> = rows
            .map(|row| {
                let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
                self.decoded(&key, &value)
            })
            .collect();
        newest_first.map(reversed)
    }
}

fn reversed<T>(mut rows: Vec<T>) -> Vec<T> {
    rows.reverse();
    rows
}

impl Store {
    /// The newest rows within a range of keys, oldest first.
    fn newest(&self, keys: (Bound<Vec<u8>>, Bound<Vec<u8>>), limit: usize) -> Result<Vec<MessageRow>, ContentError> {
        let rows = self.content.range(keys).rev().take(limit);
        let newest_first: Result<Vec<_>, _> = rows.map(|row| self.message(row)).collect();
        newest_first.map(reversed)
    }

    /// The rows up to the one with which they have `bytes`.
    fn up_to(&self, rows: impl Iterator<Item = fjall::Guard>, bytes: usize) -> Result<Vec<MessageRow>, ContentError> {
        let (mut read, mut length) = (Vec::new(), 0);
        for row in rows {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            read.push(self.message_of(&key, &value)?);
            length += value.len();
            if length >= bytes {
                break;
            }
        }
        Ok(read)
    }

    /// One row of a log.
    fn message(&self, row: fjall::Guard) -> Result<MessageRow, ContentError> {
        let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
        self.message_of(&key, &value)
    }

    fn message_of(&self, key: &[u8], value: &[u8]) -> Result<MessageRow, ContentError> {
        let place = parse_message_key(key).ok_or_else(|| self.damaged(key, "wrong key"))?;
        let record = self.decoded(key, value)?;
        Ok(MessageRow { ordinal: place.ordinal, index: place.index, record })
    }
}

impl Content for DeferredStore {
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        self.store()?.messages(log, range)
    }

    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError> {
        self.store()?.result(log, ordinal, index)
    }

    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError> {
        self.store()?.summary(log, upto)
    }

    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        self.store()?.summaries(log)
    }
}
