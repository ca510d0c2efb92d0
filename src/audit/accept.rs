//! An operator accepts a trail that does not match what was signed: an older database was put back on purpose, or the vault's
//! checkpoint was lost. The daemon is stopped. What is accepted, by whom and why goes on the trail, and is signed with it.
//! Rows that were changed are not accepted: the chain up to the end must be whole.

use std::sync::Arc;

use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_systems::audit::{Walk, accept as entry_of};
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::{hex, put_audit_checkpoint};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;

use super::AuditTrail;
use super::outside::SignedHead;
use crate::kernel::store::writer::{Outlets, Writer};

/// What was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// The newest entry that was accepted.
    pub accepted: u64,
    /// Its hash, in hex.
    pub hash: String,
    /// The entry that the vault's checkpoint had signed; null without one that can be read.
    pub signed: Option<u64>,
    /// The entry that says so, up to which the trail is signed now.
    pub entry: u64,
    /// Has everything that `[audit]` sends signed heads to got this one? `audit.heads_file` must have it before a comparison
    /// with it can succeed.
    pub sent: bool,
}

/// Accepts the trail as it is, for `reason`, as `user`.
///
/// # Errors
/// A sentence: there is nothing to accept, the chain is broken, or the store or the vault cannot be written.
pub fn accept(trail: &AuditTrail, user: &str, reason: &str, at: Timestamp) -> Result<Accepted, String> {
    let said = |error: crate::kernel::store::Error| error.to_string();
    let before = trail.store.audit_head().map_err(said)?.ok_or("the audit log is empty; there is nothing to accept")?;
    if trail.walk(&|| Ok(before)).map_err(|refusal| refusal.to_string())?.walked.is_ok() {
        // A file that cannot be read may hold the head that the log does not match.
        if let Some(fault) = trail.outside.fault() {
            return Err(format!("the audit log matches the vault, but {fault}"));
        }
        return Err("the audit log is valid; there is nothing to accept".to_owned());
    }
    let newest = trail.newest_checkpoint().map_err(said)?;
    let walk = Walk::new(before, None, newest, |message, signature| trail.vault.is_signed(message, signature));
    trail.walk_rows(walk).map_err(said)?.map_err(|broken| {
        format!("{broken}; rows that were changed or deleted cannot be accepted: restore data/ and vault/ from a copy")
    })?;
    let signed = trail.vault.checkpoint().ok().flatten().map(|kept| kept.sequence);
    let (accepted, hash) = (before.last, hex(&before.hash));
    let mut head = before;
    let details = json!({ "reason": reason, "user": user, "entry": accepted, "hash": hash, "signed": signed });
    let mut ops = entry_of(&mut head, at, &details);
    let previous = newest.map_or(0, |newest| newest.sequence);
    let (sequence, first, anchor) = (head.last, head.first, head.anchor);
    let checkpoint = AuditCheckpoint { sequence, hash: head.hash, previous, first, anchor, at };
    let row = trail.vault.sign(&checkpoint);
    ops.push(put_audit_checkpoint(sequence, row.clone()));
    write(trail, Commit { ops, ..Commit::default() })?;
    trail.vault.keep(&row).map_err(|error| error.to_string())?;
    let acceptance = Some(trail.vault.sign_acceptance(&row));
    let sent = trail.outside.send(&SignedHead { checkpoint, row, acceptance });
    Ok(Accepted { accepted, hash, signed, entry: sequence, sent })
}

/// Commits once, where no daemon does.
fn write(trail: &AuditTrail, commit: Commit) -> Result<(), String> {
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let cause = Arc::clone(&failure);
    let outlets = Outlets {
        effects: Arc::new(drop),
        told: Arc::new(drop),
        reopen: Arc::new(drop),
        fenced: Arc::new(|_| ()),
        fatal: Arc::new(move |text| *cause.lock() = Some(text)),
    };
    let writer = Writer::start(trail.store.clone(), outlets).map_err(|error| error.to_string())?;
    writer.queue().send(commit);
    let flushed = writer.queue().flush().map_err(|error| error.to_string());
    writer.stop();
    match failure.lock().take() {
        Some(text) => Err(text),
        None => flushed,
    }
}
