//! Checks stored rows one after the other, in the order of their keys, in memory that does not grow with them.

use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::{AuditCheckpoint, AuditHead, Sha256Hash};

use super::entry::Tie;
use super::parse_checkpoint;
use crate::kernel::record::{AuditKey, audit_entry_key, parse_audit_key};

/// The first row that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {at}: {reason}")]
pub struct Broken {
    /// The entry's id.
    pub at: u64,
    /// What is wrong, in one sentence.
    pub reason: String,
}

/// A trail that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// How many entries were checked.
    pub entries: u64,
    /// How many checkpoints were checked.
    pub checkpoints: u64,
    /// Newest signed entry; 0 if there is none.
    pub signed: u64,
    /// Time of the oldest entry.
    pub first_at: Option<Timestamp>,
    /// Time of the newest entry.
    pub last_at: Option<Timestamp>,
}

/// One walk over the trail. Rows are given to [`row`](Self::row) from [`from`](Self::from) on, and [`end`](Self::end)
/// ends it.
///
/// What is trusted: the signatures, the newest checkpoint of the vault, and the world's own record of the trail's end.
pub struct Walk<S> {
    head: AuditHead,
    vault: Option<AuditCheckpoint>,
    /// The newest checkpoint of the file of `audit.heads_file`.
    outside: Option<AuditCheckpoint>,
    is_signed: S,
    first: u64,
    next: u64,
    /// The hash of the entry before `next`.
    hash: Sha256Hash,
    /// The last checkpoint that was met.
    checkpoint: u64,
    /// Checkpoints up to here were there before the walk began; later ones may come while it runs.
    known: u64,
    so_far: Walked,
}

impl<S: Fn(&[u8], &[u8]) -> bool> Walk<S> {
    /// A walk over the trail that ends at `head`. `vault` is the newest checkpoint that is kept outside the database,
    /// and `newest` the newest in it; both read before `head`, their signatures checked.
    pub fn new(head: AuditHead, vault: Option<AuditCheckpoint>, newest: Option<AuditCheckpoint>, is_signed: S) -> Self {
        // Rows are erased only after the checkpoint that lets them go is stored, so the newest one names the first row.
        let trusted = || vault.into_iter().chain(newest);
        let anchored = trusted().max_by_key(|checkpoint| checkpoint.first);
        let known = trusted().map(|checkpoint| checkpoint.sequence).max().unwrap_or(0);
        let (first, hash) = anchored.map_or((1, [0; 32]), |checkpoint| (checkpoint.first, checkpoint.anchor));
        let (outside, so_far) = (None, Walked::default());
        Self { head, vault, outside, is_signed, first, next: first, hash, checkpoint: 0, known, so_far }
    }

    /// The same, where `outside` was sent elsewhere; it was read before the head, its signature checked.
    #[must_use]
    pub fn with_outside(mut self, outside: Option<AuditCheckpoint>) -> Self {
        self.outside = outside;
        self
    }

    /// The key of the first row to give.
    #[must_use]
    pub fn from(&self) -> Vec<u8> {
        audit_entry_key(self.first)
    }

    /// Looks at the next row. False when the rows from here on are newer than the walk.
    ///
    /// # Errors
    /// [`Broken`]: the walk ends here.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Broken> {
        match parse_audit_key(key) {
            Some(AuditKey::Entry(id) | AuditKey::Checkpoint(id)) if id > self.head.last => return Ok(false),
            Some(AuditKey::Entry(id)) => self.entry(id, value),
            Some(AuditKey::Checkpoint(id)) => self.checkpoint(id, value),
            None => Err(broken(self.next, "a row before it has a key that does not belong to the audit log")),
        }
        .map(|()| true)
    }

    fn entry(&mut self, id: u64, value: &[u8]) -> Result<(), Broken> {
        if id != self.next {
            return Err(broken(self.next, "it is missing"));
        }
        let tie = Tie::read(value).ok_or_else(|| broken(id, "it cannot be read"))?;
        if !tie.holds(value) {
            return Err(broken(id, "its content does not match its hash"));
        }
        if tie.id != id {
            return Err(broken(id, format!("entry {} is stored in its place", tie.id)));
        }
        if tie.prev_hash != self.hash {
            return Err(broken(id, "it does not follow the entry before it"));
        }
        if self.vault.is_some_and(|vault| vault.sequence == id && vault.hash != tie.hash) {
            return Err(broken(id, "it is not the entry that the vault's checkpoint signed"));
        }
        if self.outside.is_some_and(|outside| outside.sequence == id && outside.hash != tie.hash) {
            return Err(broken(id, "it is not the entry that the newest head of audit.heads_file signed"));
        }
        (self.next, self.hash) = (id + 1, tie.hash);
        self.so_far.entries += 1;
        self.so_far.first_at.get_or_insert(tie.at);
        self.so_far.last_at = Some(tie.at);
        Ok(())
    }

    fn checkpoint(&mut self, id: u64, value: &[u8]) -> Result<(), Broken> {
        if id >= self.next {
            return Err(broken(self.next, "it is missing"));
        }
        let wrong = |what: &str| broken(id, format!("its checkpoint {what}"));
        let checkpoint = parse_checkpoint(value, &self.is_signed)
            .ok_or_else(|| wrong("was changed, or is not signed by the key in the vault"))?;
        if checkpoint.sequence != id || id + 1 != self.next || checkpoint.hash != self.hash {
            return Err(wrong("signs another entry"));
        }
        // Checkpoints before the first kept entry went with their entries. One that was stored while the walk ran may
        // stand behind another that the walk came too early for.
        let is_known = id <= self.known && checkpoint.previous >= self.first;
        if is_known && checkpoint.previous != self.checkpoint {
            return Err(broken(checkpoint.previous, "its checkpoint is missing"));
        }
        self.checkpoint = id;
        self.so_far.checkpoints += 1;
        self.so_far.signed = id;
        Ok(())
    }

    /// After the last row: is the trail as long as it must be?
    ///
    /// # Errors
    /// [`Broken`]: something is missing at the end.
    pub fn end(self) -> Result<Walked, Broken> {
        if self.next <= self.head.last {
            let reason = format!("it and all entries after it are missing, up to {}", self.head.last);
            return Err(broken(self.next, reason));
        }
        if self.next != self.head.last + 1 || self.hash != self.head.hash {
            return Err(broken(self.head.last, "it is not the newest entry known to the world"));
        }
        let signed = self.vault.iter().chain(&self.outside).map(|checkpoint| checkpoint.sequence).max();
        if let Some(signed) = signed.filter(|signed| *signed > self.head.last) {
            let reason = format!("it and all after it are missing; entry {signed} was signed");
            return Err(broken(self.head.last + 1, reason));
        }
        match self.vault {
            Some(vault) if vault.sequence >= self.first && self.checkpoint < vault.sequence => {
                Err(broken(vault.sequence, "its checkpoint is missing"))
            }
            _ => Ok(self.so_far),
        }
    }
}

fn broken(at: u64, reason: impl Into<String>) -> Broken {
    Broken { at, reason: reason.into() }
}
