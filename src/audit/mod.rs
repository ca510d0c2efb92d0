//! The audit trail outside the world: it is read and walked here, signed, and trimmed.
//!
//! | part | what it does |
//! |------|--------------|
//! | [`vault`] | `{home}/vault`: the key that signs, and the newest checkpoint, outside the database |
//! | [`checkpoint_signer`] | the thread that signs checkpoints and lets the oldest entries go |
//! | [`outside`] | signed heads sent elsewhere: to syslog, and to a file (`heads_file`) |
//! | [`accept`] | an operator accepts a trail that does not match what was signed |
//! | this | answers the routes |
//!
//! What an entry and a checkpoint look like is in `systems/src/audit/`, and so is the walk that checks them.

pub mod accept;
pub mod checkpoint_signer;
pub mod config;
mod heads_file;
pub mod outside;
mod rows;
pub mod vault;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use agentsvc_api::audit::trail::{AuditLog, Found, Verdict, Wanted};
use agentsvc_api::http::error::ContentError;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_components::audit::record::{AuditCheckpoint, AuditHead, SealAudit};
use agentsvc_components::{Refusal, RefusalKind};
use agentsvc_systems::audit::{Broken, Walk, Walked, parse_checkpoint};
use outside::Outside;
use parking_lot::Mutex;
use vault::Vault;

use self::checkpoint_signer::Seal;
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::store;
use crate::kernel::store::Store;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "audit", uses: &[], performers, ..Domain::EMPTY };

/// Signs checkpoints.
fn performers(performers: &mut Performers) {
    let seal = performers.part::<Seal>();
    performers.on(move |of: Box<SealAudit>| seal(of.0));
}

/// Rows that a walk reads in one go; between two of them the store may let old versions go.
const CHUNK_ROWS: usize = 4_096;

/// The trail of this home.
pub struct AuditTrail {
    store: Store,
    vault: Arc<Vault>,
    outside: Outside,
    /// Held while rows are walked over, so that none is erased meanwhile.
    walking: Mutex<()>,
    stats: Stats,
}

/// Counts since the start, for the metrics page.
#[derive(Default)]
struct Stats {
    /// The entry up to which the trail is signed.
    signed: AtomicU64,
    /// Checkpoints signed.
    checkpoints: AtomicU64,
    /// Checkpoints that were not signed.
    refused: AtomicU64,
    /// Verifications that found the trail whole.
    valid: AtomicU64,
    /// Verifications that found it broken.
    broken: AtomicU64,
    /// Was the last checkpoint that was due not signed?
    is_unsigned: AtomicBool,
    /// Did the last checkpoint that was due contradict the trail?
    is_contradicted: AtomicBool,
    /// Did the last walk find the trail broken?
    is_broken: AtomicBool,
}

impl AuditTrail {
    /// The trail in `store`, whose keys are in `vault` and whose signed heads go to `outside`.
    pub fn new(store: Store, vault: Arc<Vault>, outside: Outside) -> Self {
        Self { store, vault, outside, walking: Mutex::new(()), stats: Stats::default() }
    }

    /// Verifications over every row up to `head`.
    pub fn walk(&self, head: &dyn Fn() -> Result<AuditHead, Refusal>) -> Result<Verdict, Refusal> {
        let _no_erasure = self.walking.lock();
        let unreadable = |error: store::Error| {
            tracing::error!(%error, "the audit log cannot be read");
            Refusal::new(RefusalKind::Failed, "the audit log could not be read")
        };
        let public_key = self.vault.public_key();
        // What is trusted is read before the world says where the trail ends, so that it never reaches beyond.
        // Without the file the walk goes by the vault alone, and `fault` says so.
        let outside = self.outside.reference(&self.vault).ok().flatten();
        let newest = self.newest_checkpoint().map_err(unreadable)?;
        let kept = self.kept_checkpoint(newest.or(outside).as_ref());
        let head = head()?;
        let walked = match kept {
            Ok(kept) => {
                let walk = Walk::new(head, kept, newest, |message, signature| self.vault.is_signed(message, signature));
                self.walk_rows(walk.with_outside(outside)).map_err(unreadable)?
            }
            Err(reason) => Err(Broken { at: head.last, reason }),
        };
        self.stats.is_broken.store(walked.is_err(), Ordering::Relaxed);
        match &walked {
            Ok(_) => self.stats.valid.fetch_add(1, Ordering::Relaxed),
            Err(broken) => {
                tracing::error!(%broken, "the audit log is broken");
                self.stats.broken.fetch_add(1, Ordering::Relaxed)
            }
        };
        let compared_with = outside.map(|checkpoint| checkpoint.sequence);
        Ok(Verdict { head, walked, public_key, compared_with })
    }

    /// The newest checkpoint in the store that the vault's key signed.
    fn newest_checkpoint(&self) -> Result<Option<AuditCheckpoint>, store::Error> {
        self.store.newest_checkpoint(|row| self.vault.parse(row))
    }

    /// The vault's checkpoint, where `newest` is the newest known besides. There is none before the first is signed.
    fn kept_checkpoint(&self, newest: Option<&AuditCheckpoint>) -> Result<Option<AuditCheckpoint>, String> {
        let kept = self.vault.checkpoint()?;
        match newest {
            Some(newest) if kept.is_none() => {
                Err(format!("the vault's checkpoint is missing, but entry {} was signed", newest.sequence))
            }
            _ => Ok(kept),
        }
    }

    /// A node that takes the world over has kept none of the checkpoints that were signed elsewhere with the same key: it keeps the
    /// newest in the store, unless its own is newer.
    ///
    /// # Errors
    /// What is wrong with the store or the vault, for people.
    pub(crate) fn adopt_checkpoint(&self) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let head = self.store.audit_head().map_err(|error| said(&error))?;
        let newest = self.newest_checkpoint().map_err(|error| said(&error))?;
        let (Some(AuditHead { first, anchor, .. }), Some(newest)) = (head, newest) else { return Ok(()) };
        // One that cannot be read is of the key that this node had before.
        if self.vault.checkpoint().ok().flatten().is_some_and(|kept| kept.sequence >= newest.sequence) {
            return Ok(());
        }
        let adopted = AuditCheckpoint { first, anchor, ..newest };
        self.vault.keep(&self.vault.sign(&adopted)).map_err(|error| said(&error))
    }

    fn walk_rows<S: Fn(&[u8], &[u8]) -> bool>(
        &self,
        mut walk: Walk<S>,
    ) -> Result<Result<Walked, Broken>, store::Error> {
        let mut from = walk.from();
        loop {
            let mut found = Ok(true);
            let last = self.store.audit_rows(&from, CHUNK_ROWS, |key, value| {
                found = walk.row(key, value);
                found == Ok(true)
            })?;
            match (found, last) {
                (Err(broken), _) => return Ok(Err(broken)),
                (Ok(true), Some(last)) => from = last,
                (Ok(_), _) => return Ok(walk.end()),
            }
            // Behind the last key.
            from.push(0);
        }
    }
}

impl AuditLog for AuditTrail {
    fn recent(&self, head: AuditHead, wanted: &Wanted) -> Result<Found, ContentError> {
        self.store.newest_entries(head, wanted).map_err(|error| {
            tracing::error!(%error, "the audit log cannot be read");
            ContentError::Failed(error.to_string())
        })
    }

    fn verify(&self, head: &dyn Fn() -> Result<AuditHead, Refusal>) -> Result<Verdict, Refusal> {
        self.walk(head)
    }

    fn fault(&self) -> Option<&'static str> {
        if self.stats.is_broken.load(Ordering::Relaxed) {
            return Some("GET /api/audit/verify found the audit log broken");
        }
        if self.stats.is_unsigned.load(Ordering::Relaxed) {
            return Some("no checkpoint can be signed; see GET /api/audit/verify and the log for the reason");
        }
        self.outside.fault()
    }

    fn is_contradicted(&self) -> bool {
        self.stats.is_contradicted.load(Ordering::Relaxed) || self.stats.is_broken.load(Ordering::Relaxed)
    }
}

impl Probe for AuditTrail {
    fn gather(&self, out: &mut MetricsText) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stats = &self.stats;
        out.gauge("agentsvc_audit_signed", "Newest signed audit log entry.", load(&stats.signed));
        out.family("agentsvc_audit_checkpoints_total", "Audit checkpoints, by outcome.", "counter");
        out.sample("agentsvc_audit_checkpoints_total", "outcome=\"signed\"", load(&stats.checkpoints));
        out.sample("agentsvc_audit_checkpoints_total", "outcome=\"refused\"", load(&stats.refused));
        out.family("agentsvc_audit_walks_total", "Audit verifications, by result.", "counter");
        out.sample("agentsvc_audit_walks_total", "found=\"valid\"", load(&stats.valid));
        out.sample("agentsvc_audit_walks_total", "found=\"broken\"", load(&stats.broken));
        self.outside.gather(out);
    }
}

impl Vault {
    /// A stored checkpoint that this vault's key signed.
    fn parse(&self, row: &[u8]) -> Option<AuditCheckpoint> {
        parse_checkpoint(row, |message, signature| self.is_signed(message, signature))
    }
}

#[cfg(test)]
mod accept_tests;
#[cfg(test)]
mod tests;
