//! Reads the rows of the audit trail.

use agentsvc_api::audit::trail::{Found, Wanted};
use agentsvc_components::audit::record::{AuditCheckpoint, AuditHead};
use agentsvc_components::kernel::limit;
use agentsvc_systems::audit::decode;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::{AUDIT_HEAD_KEY, AUDIT_PREFIX, AuditKey, audit_entry_key, parse_audit_key};

use crate::kernel::store::{Error, Store};

impl Store {
    /// Both ends of the trail as they are stored; `None` when there is none.
    pub fn audit_head(&self) -> Result<Option<AuditHead>, Error> {
        let value = self.world.get(AUDIT_HEAD_KEY).map_err(|error| self.failed(error))?;
        let decoded = value.map(|value| record::decode(&AUDIT_HEAD_KEY, &value)).transpose();
        decoded.map_err(|error| Error::record(&self.path, &AUDIT_HEAD_KEY, &error))
    }

    /// The stored form of one entry.
    pub fn audit_entry(&self, id: u64) -> Result<Option<Vec<u8>>, Error> {
        let row = self.content.get(audit_entry_key(id)).map_err(|error| self.failed(error))?;
        Ok(row.map(|row| row.to_vec()))
    }

    /// Shows at most `limit` rows of the trail from the key `from` on, until `look` has seen enough. Gives the last key
    /// that was shown; `None` when there was none.
    pub fn audit_rows(
        &self,
        from: &[u8],
        limit: usize,
        mut look: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut last = None;
        for row in self.content.range(from..).take(limit) {
            let (key, value) = row.into_inner().map_err(|error| self.failed(error))?;
            if !key.starts_with(&AUDIT_PREFIX) {
                break;
            }
            let goes_on = look(&key, &value);
            last = Some(key);
            if !goes_on {
                break;
            }
        }
        Ok(last.map(|key| key.to_vec()))
    }

    /// Gives `read` the stored entries from `first` on, without checkpoints, as far as it takes them.
    pub fn audit_entries<T>(
        &self,
        first: u64,
        read: impl FnOnce(&mut dyn Iterator<Item = Vec<u8>>) -> T,
    ) -> Result<T, Error> {
        let mut failure = None;
        let mut rows = self.content.range(audit_entry_key(first)..).map_while(|row| match row.into_inner() {
            Ok((key, value)) => Some((parse_audit_key(&key)?, value)),
            Err(error) => {
                failure = Some(self.failed(error));
                None
            }
        });
        let mut entries =
            rows.by_ref().filter_map(|(key, value)| matches!(key, AuditKey::Entry(_)).then(|| value.to_vec()));
        let result = read(&mut entries);
        drop(rows);
        failure.map_or(Ok(result), Err)
    }

    /// The newest checkpoint that `parse` takes.
    pub fn newest_checkpoint(
        &self,
        parse: impl Fn(&[u8]) -> Option<AuditCheckpoint>,
    ) -> Result<Option<AuditCheckpoint>, Error> {
        for row in self.content.prefix(AUDIT_PREFIX).rev() {
            let (key, value) = row.into_inner().map_err(|error| self.failed(error))?;
            if let Some(AuditKey::Checkpoint(_)) = parse_audit_key(&key)
                && let Some(checkpoint) = parse(&value)
            {
                return Ok(Some(checkpoint));
            }
        }
        Ok(None)
    }

    /// The newest entries up to the head's last, newest first. One that cannot be read is left out; a walk names it.
    pub fn newest_entries(&self, head: AuditHead, wanted: &Wanted) -> Result<Found, Error> {
        let end = wanted.before.unwrap_or(u64::MAX).min(head.last.saturating_add(1));
        let (mut found, mut searched) = (Found::default(), 0);
        for row in self.content.range(audit_entry_key(head.first)..audit_entry_key(end.max(head.first))).rev() {
            let (key, value) = row.into_inner().map_err(|error| self.failed(error))?;
            let Some(AuditKey::Entry(id)) = parse_audit_key(&key) else { continue };
            if found.entries.len() == wanted.limit || searched == limit::AUDIT_SEARCHED_MAX {
                found.next = Some(id.saturating_add(1));
                break;
            }
            searched += 1;
            match decode(&value) {
                Some(entry) if wanted.takes(&entry) => found.entries.push(entry),
                Some(_) => {}
                None => tracing::error!(id, "an audit entry cannot be read"),
            }
        }
        Ok(found)
    }

    /// At most `limit` keys of rows before entry `first`, the oldest first.
    pub fn audit_keys_before(&self, first: u64, limit: usize) -> Result<Vec<Vec<u8>>, Error> {
        let rows = self.content.range(audit_entry_key(0)..audit_entry_key(first)).take(limit);
        rows.map(|row| Ok(row.key().map_err(|error| self.failed(error))?.to_vec())).collect()
    }
}
