//! The checkpoint signer: the thread that signs checkpoints of the audit trail and lets its oldest entries go.
//!
//! A checkpoint is signed only for entries that are on the disk, and is itself stored before the vault gets it. So the
//! vault never knows more than the disk after a kill, and knows less by one checkpoint at most. The checkpoint signer signs nothing
//! that contradicts the vault's checkpoint: the evidence that entries are missing stays until an operator accepts it
//! ([`accept`](super::accept)), and neither does it sign or send what contradicts the file of `audit.heads_file`. Before the first checkpoint the vault gets one of no entry, so that a vault without any has
//! lost it.
//!
//! Rows are erased only after a checkpoint is stored, here and in the vault, that names the first entry that stays and
//! the hash before it. The vault names that entry even before the world lets older ones go, so that no trail begins later than
//! the vault says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::Actor;
use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::{AuditCheckpoint, AuditHead};
use agentsvc_systems::audit::{TrimAudit, decode, first_since};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::put_audit_checkpoint;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::runtime::Handle;

use super::AuditTrail;
use super::outside::SignedHead;
use crate::kernel::retention::RetentionClock;
use crate::kernel::store;
use crate::kernel::store::writer::{CommitQueue, ERASED_ROWS_MAX};
use crate::kernel::world_loop::Clock;

/// How often the oldest entries are looked at.
const TRIM_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// How soon they are looked at again when the world could not let them go, because it was still loading.
const TRIM_AGAIN: Duration = Duration::from_secs(1);
/// How soon a head that could not be sent elsewhere is sent again.
const SEND_AGAIN: Duration = Duration::from_secs(60);
/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What the checkpoint signer works with.
pub struct Parts {
    /// The trail that it signs.
    pub trail: Arc<AuditTrail>,
    /// The way to the store writer.
    pub commits: CommitQueue,
    /// The way into the world, to trim.
    pub bridge: Bridge,
    /// The runtime that waits for the world.
    pub handle: Handle,
    /// The time of day.
    pub clock: Clock,
    /// The time by which entries are old.
    pub retention: RetentionClock,
    /// Days after which entries go; 0 keeps them (`[audit] retention_days`).
    pub retention_days: Arc<AtomicU32>,
}

/// Work for the checkpoint signer.
enum Work {
    /// Sign a checkpoint up to here.
    Seal(AuditHead),
    /// Sign one up to the end of what is stored, and end.
    Stop,
}

/// Signs a checkpoint of the audit trail, in its own time.
pub type Seal = Arc<dyn Fn(AuditHead) + Send + Sync>;

/// The running checkpoint signer.
pub struct CheckpointSigner {
    queue: SignerQueue,
    thread: JoinHandle<()>,
}

/// The way to the checkpoint signer. Cheap to clone.
#[derive(Clone)]
pub struct SignerQueue(Sender<Work>);

impl SignerQueue {
    /// Asks for a checkpoint up to `head`, whose entries are on the disk. Never blocks.
    pub fn seal(&self, head: AuditHead) {
        // After the stop nobody signs any more; the next start does.
        let _ = self.0.send(Work::Seal(head));
    }
}

impl CheckpointSigner {
    /// Starts the thread.
    pub fn start(parts: Parts) -> std::io::Result<Self> {
        let (sender, work) = crossbeam_channel::unbounded();
        let thread = std::thread::Builder::new().name("audit-signer".to_owned()).spawn(move || {
            let reference = Reference::Unread;
            Signing { parts, newest: 0, next_trim: Instant::now(), reference, unsent: None }.run(&work);
        })?;
        Ok(Self { queue: SignerQueue(sender), thread })
    }

    /// The way to this checkpoint signer, for the performer of `SealAudit`.
    pub fn queue(&self) -> SignerQueue {
        self.queue.clone()
    }

    /// Signs up to the end of what is stored and ends the thread. To be called after the world has stopped and before
    /// the writer does.
    pub fn stop(self) {
        let _ = self.queue.0.send(Work::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the audit checkpoint signer panicked");
        }
    }
}

/// Why a checkpoint was not signed.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The vault cannot be written.
    #[error(transparent)]
    Vault(#[from] super::vault::Error),
    /// The vault knows another trail.
    #[error("{0}; see GET /api/audit/verify and docs/audit.md")]
    Contradiction(String),
    /// The file of `audit.heads_file` cannot be read.
    #[error("audit.heads_file cannot be read: {0}")]
    Unread(#[from] std::io::Error),
}

/// The head of `audit.heads_file` that nothing may contradict.
enum Reference {
    /// The file could not be read yet.
    Unread,
    /// What it had, or got since.
    Read(Option<AuditCheckpoint>),
}

/// The newest head, while it could not be sent elsewhere.
struct Unsent {
    head: SignedHead,
    /// When it is tried again.
    next: Instant,
}

/// The state of the checkpoint signer's thread.
struct Signing {
    parts: Parts,
    /// The sequence of the newest stored checkpoint; 0 when it is not known.
    newest: u64,
    next_trim: Instant,
    reference: Reference,
    unsent: Option<Unsent>,
}

impl Signing {
    fn run(mut self, work: &Receiver<Work>) {
        let newest = self.parts.trail.newest_checkpoint().ok().flatten();
        self.newest = newest.map_or(0, |checkpoint| checkpoint.sequence);
        loop {
            let is_trimming = self.parts.retention_days.load(Ordering::Relaxed) > 0;
            let trim = if is_trimming { self.next_trim } else { Instant::now() + TRIM_EVERY };
            let next = self.unsent.as_ref().map_or(trim, |unsent| unsent.next.min(trim));
            match work.recv_deadline(next) {
                Ok(Work::Seal(head)) => self.seal(head),
                Ok(Work::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.seal_stored();
                    return self.send();
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if self.unsent.as_ref().is_some_and(|unsent| unsent.next <= now) {
                self.send();
            }
            if is_trimming && self.next_trim <= now {
                let pause = if self.trim() { TRIM_EVERY } else { TRIM_AGAIN };
                self.next_trim = Instant::now() + pause;
            }
        }
    }

    /// A checkpoint up to the end of what is stored.
    fn seal_stored(&mut self) {
        match self.parts.trail.store.audit_head() {
            Ok(Some(head)) => self.seal(head),
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "the end of the audit log cannot be read"),
        }
    }

    fn seal(&mut self, head: AuditHead) {
        let sealed = self.try_seal(head);
        let stats = &self.parts.trail.stats;
        stats.is_unsigned.store(sealed.is_err(), Ordering::Relaxed);
        stats.is_contradicted.store(matches!(sealed, Err(Error::Contradiction(_))), Ordering::Relaxed);
        match sealed {
            Ok(()) => {
                stats.checkpoints.fetch_add(1, Ordering::Relaxed);
                stats.signed.store(head.last, Ordering::Relaxed);
                self.newest = head.last;
                if let Err(error) = self.erase_before(head.first) {
                    tracing::warn!(%error, "old audit entries cannot be erased; the next checkpoint retries");
                }
            }
            Err(error) => {
                stats.refused.fetch_add(1, Ordering::Relaxed);
                tracing::error!(%error, entry = head.last, "no audit checkpoint was signed");
            }
        }
    }

    fn try_seal(&mut self, head: AuditHead) -> Result<(), Error> {
        let trail = Arc::clone(&self.parts.trail);
        let vault = &trail.vault;
        let at = (self.parts.clock.wall)();
        let reference = match self.check_reference(head) {
            Err(error @ Error::Contradiction(_)) => return Err(error),
            reference => reference.ok().flatten(),
        };
        let known = trail.newest_checkpoint()?.or(reference);
        let kept = trail.kept_checkpoint(known.as_ref()).map_err(Error::Contradiction)?;
        if let Some(kept) = kept {
            self.check_kept(head, &kept)?;
            if (kept.sequence, kept.first) == (head.last, head.first) {
                return Ok(());
            }
        } else {
            let AuditHead { first, anchor, .. } = head;
            let (sequence, hash, previous) = (0, [0; 32], 0);
            vault.keep(&vault.sign(&AuditCheckpoint { sequence, hash, previous, first, anchor, at }))?;
        }
        let AuditHead { first, anchor, last: sequence, hash } = head;
        // A checkpoint whose row was stored but that the vault never got may stand at this very entry.
        let previous = if self.newest < sequence { self.newest } else { kept.map_or(0, |kept| kept.sequence) };
        let signed = AuditCheckpoint { sequence, hash, previous, first, anchor, at };
        let row = vault.sign(&signed);
        let ops = vec![put_audit_checkpoint(sequence, row.clone())];
        self.parts.commits.send(Commit { ops, ..Commit::default() });
        self.parts.commits.flush()?;
        vault.keep(&row)?;
        let head = SignedHead { checkpoint: signed, row, acceptance: None };
        self.unsent = Some(Unsent { head, next: Instant::now() });
        self.send();
        Ok(())
    }

    /// Sends the newest head elsewhere when it was not. Nothing is sent that contradicts what is there: in a home that was
    /// set back whole the old heads are all that is left to say so.
    fn send(&mut self) {
        let Some(mut unsent) = self.unsent.take() else { return };
        let trail = Arc::clone(&self.parts.trail);
        let stored = match trail.store.audit_head() {
            Ok(head) => head.unwrap_or_default(),
            Err(error) => return tracing::error!(%error, "the end of the audit log cannot be read"),
        };
        match self.check_reference(stored) {
            Ok(_) if trail.outside.send(&unsent.head) => {
                self.reference = Reference::Read(Some(unsent.head.checkpoint));
                return;
            }
            Err(error @ Error::Contradiction(_)) => {
                trail.stats.is_unsigned.store(true, Ordering::Relaxed);
                return tracing::error!(%error, "a signed head of the audit log is not sent");
            }
            Ok(_) | Err(_) => {}
        }
        unsent.next = Instant::now() + SEND_AGAIN;
        self.unsent = Some(unsent);
    }

    /// Refuses a head that the file of `audit.heads_file` contradicts, and gives the head that is there. The file is read once.
    fn check_reference(&mut self, head: AuditHead) -> Result<Option<AuditCheckpoint>, Error> {
        if let Reference::Unread = self.reference {
            let trail = &self.parts.trail;
            self.reference = Reference::Read(trail.outside.reference(&trail.vault)?);
        }
        let Reference::Read(Some(reference)) = self.reference else { return Ok(None) };
        self.check(head, &reference).map(|()| Some(reference))
    }

    /// Refuses a head that the vault's checkpoint contradicts. What begins later than the vault says has lost what was signed.
    fn check_kept(&self, head: AuditHead, kept: &AuditCheckpoint) -> Result<(), Error> {
        if head.first > kept.first || (head.first == kept.first && head.anchor != kept.anchor) {
            let text = format!("the audit log begins at entry {}, but must begin at entry {}", head.first, kept.first);
            return Err(Error::Contradiction(text));
        }
        self.check(head, kept)
    }

    /// Refuses a head that a checkpoint from outside of the database contradicts.
    fn check(&self, head: AuditHead, kept: &AuditCheckpoint) -> Result<(), Error> {
        let signed = kept.sequence;
        if signed > head.last {
            let text = format!("the audit log ends at entry {}, but entry {signed} was signed", head.last);
            return Err(Error::Contradiction(text));
        }
        // The entry before the first kept one is known by the anchor; of older ones nothing is left to compare.
        let hash = match signed {
            _ if signed + 1 < head.first => return Ok(()),
            _ if signed + 1 == head.first => Some(head.anchor),
            _ => self.parts.trail.store.audit_entry(signed)?.and_then(|row| decode(&row)).map(|entry| entry.hash),
        };
        if hash == Some(kept.hash) {
            return Ok(());
        }
        Err(Error::Contradiction(format!("entry {signed} is not the one that was signed")))
    }

    /// Has the world let the entries go that are too old. The checkpoint that follows erases their rows. False when it
    /// is to be tried again soon.
    fn trim(&self) -> bool {
        let days = i64::from(self.parts.retention_days.load(Ordering::Relaxed));
        if days == 0 {
            // Another configuration, while it waited.
            return true;
        }
        let since = Timestamp(self.parts.retention.now().0.saturating_sub(days * DAY_MS));
        let store = &self.parts.trail.store;
        let Ok(Some(head)) = store.audit_head() else { return false };
        let trim = match store.audit_entries(head.first, |rows| first_since(head, rows, since)) {
            Ok(Some(trim)) => self.begin_at(head, trim),
            Ok(None) => return true,
            Err(error) => Err(error.into()),
        };
        let trim = match trim {
            Ok(Some(trim)) => trim,
            Ok(None) => return false,
            Err(error) => {
                tracing::error!(%error, "old audit entries are kept");
                return true;
            }
        };
        match self.parts.handle.block_on(self.parts.bridge.acting_as(Actor::System).ask(trim)) {
            Ok(removed) => {
                tracing::info!(removed, first = trim.first, "old audit entries are erased");
                true
            }
            Err(refusal) => {
                tracing::debug!(%refusal, "old audit entries are kept until the next attempt");
                false
            }
        }
    }

    /// Has the vault say where the trail will begin, and gives that: at the newest signed entry at the latest. `None` before
    /// anything is signed.
    fn begin_at(&self, head: AuditHead, trim: TrimAudit) -> Result<Option<TrimAudit>, Error> {
        let trail = &self.parts.trail;
        let kept = trail.kept_checkpoint(trail.newest_checkpoint()?.as_ref()).map_err(Error::Contradiction)?;
        let Some(kept) = kept.filter(|kept| kept.sequence > head.first) else { return Ok(None) };
        self.check_kept(head, &kept)?;
        let trim = if trim.first <= kept.sequence {
            trim
        } else {
            let row = trail.store.audit_entry(kept.sequence)?;
            let Some(entry) = row.and_then(|row| decode(&row)) else { return Ok(None) };
            TrimAudit { first: entry.id, anchor: entry.prev_hash }
        };
        let TrimAudit { first, anchor } = trim;
        if first > kept.first {
            let at = (self.parts.clock.wall)();
            trail.vault.keep(&trail.vault.sign(&AuditCheckpoint { first, anchor, at, ..kept }))?;
        }
        Ok(Some(trim))
    }

    /// Erases the rows before entry `first`.
    fn erase_before(&self, first: u64) -> Result<(), store::Error> {
        let trail = &self.parts.trail;
        loop {
            // Not while a walk is under way: it would miss them. The next checkpoint tries again.
            let Some(_nobody_walks) = trail.walking.try_lock() else { return Ok(()) };
            let keys = trail.store.audit_keys_before(first, ERASED_ROWS_MAX)?;
            if keys.is_empty() {
                return Ok(());
            }
            self.parts.commits.erase(keys)?;
        }
    }
}
