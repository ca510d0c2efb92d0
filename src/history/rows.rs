//! Reads hours from the disk. Each call has a snapshot of its own.

use agentsvc_api::history::store::HistoryStore;
use agentsvc_api::http::error::ContentError;
use agentsvc_systems::history::{Hour, hour_range, parse_hour_key};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl HistoryStore for Store {
    fn hours(&self, from: i64, to: i64, take: &mut dyn FnMut(Hour)) -> Result<(), ContentError> {
        for row in self.content.range(hour_range(from, to.max(from))) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            let record = self.decoded(&key, &value)?;
            let (hour, number) = parse_hour_key(&key).ok_or_else(|| self.damaged(&key, "no key of an hour"))?;
            take(Hour { number, hour, record });
        }
        Ok(())
    }
}

impl HistoryStore for DeferredStore {
    fn hours(&self, from: i64, to: i64, take: &mut dyn FnMut(Hour)) -> Result<(), ContentError> {
        self.store()?.hours(from, to, take)
    }
}
