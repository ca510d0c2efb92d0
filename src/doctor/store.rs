//! The store: every record reads, and the audit trail is whole.

use std::sync::Arc;
use std::time::Instant;

use agentsvc_api::audit::trail::AuditLog as _;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::audit::Walked;
use agentsvc_systems::kernel::record::AUDIT_PREFIX;

use super::{Finding, Patient, StoreOwner};
use crate::audit::AuditTrail;
use crate::audit::outside::Outside;
use crate::audit::vault::{self as audit_vault, Vault};
use crate::kernel::home::Home;
use crate::kernel::store::Store;
use crate::kernel::store::load::{Progress, load};

/// What cannot be read is on a backup, or nowhere.
const RESTORE: &str = "run `agentsvc doctor --repair`, which saves the readable data and keeps the old store, or restore the newest \
     backup";
/// A daemon that runs has read its records at its start.
const RUNNING: &str = "not checked: the daemon is using the store";

/// Every record of the world can be read.
pub(super) fn reads(patient: &Patient) -> Finding {
    let Some(opened) = open(patient) else { return unopened(patient) };
    let begun = Instant::now();
    let store = match opened {
        Ok(store) => store,
        Err(error) => return Finding::fail(error.to_string(), RESTORE),
    };
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let progress = Progress::default();
    match load(&store, threads, &progress) {
        Ok(records) => {
            let count = progress.records.load(std::sync::atomic::Ordering::Relaxed);
            let took = begun.elapsed().as_millis();
            Finding::pass(format!(
                "read {count} records of {} agents in {took} ms",
                records.iter::<AgentRecord>().count()
            ))
        }
        Err(error) => Finding::fail(error.to_string(), RESTORE),
    }
}

/// What to do about a key of the audit log that is none.
const RESTORE_KEY: &str = "put back audit.key of the vault from a backup; if there is none, move the file away and run \
     `agentsvc audit accept`, which signs the audit log with a new key";

/// What is wrong with the key that signs the audit log, with the way out; `None` when nothing is. The daemon does not start
/// with a damaged one.
pub(super) fn audit_key_fault(home: &Home) -> Option<(String, &'static str)> {
    match Vault::has_key(&home.vault_dir()).err()? {
        error @ audit_vault::Error::Open { .. } => Some((error.to_string(), "chmod 600 the file")),
        error => Some((error.to_string(), RESTORE_KEY)),
    }
}

/// The audit trail is whole and signed.
pub(super) fn audit(patient: &Patient) -> Finding {
    if let Some((fault, fix)) = audit_key_fault(&patient.home) {
        return Finding::fail(fault, fix);
    }
    let Some(opened) = open(patient) else { return unopened(patient) };
    let Ok(store) = opened else {
        return Finding::warn("not checked: the store cannot be opened", "see the check store");
    };
    let Ok(records) = load(&store, 1, &Progress::default()) else {
        return Finding::warn("not checked: the store cannot be read", "see the check store");
    };
    let Some(head) = records.iter::<AuditHead>().last().copied() else {
        let mut entries = store.view().prefix(Space::Content, &AUDIT_PREFIX);
        return match entries.next() {
            None => Finding::pass("the audit log is empty"),
            Some(_) => Finding::fail("the audit log has entries, but its end is lost", RESTORE),
        };
    };
    let vault = match Vault::open(patient.home.vault_dir()) {
        Ok(vault) => Arc::new(vault),
        Err(error) => return Finding::fail(error.to_string(), RESTORE_KEY),
    };
    let trail = AuditTrail::new(store, vault, Outside::new(&patient.config().audit, patient.home.root()));
    match trail.walk(&|| Ok(head)) {
        Err(refusal) => Finding::fail(refusal.to_string(), RESTORE),
        Ok(verdict) => match (verdict.walked, trail.fault()) {
            (Ok(_), Some(fault)) => Finding::warn(fault, "check the path and its permissions, then start the daemon"),
            (Ok(Walked { entries, .. }), None) => Finding::pass(format!("{entries} audit log entries verified")),
            (Err(broken), _) => Finding::fail(
                format!("the audit log is broken: {broken}"),
                "keep a copy and compare it with a backup; if you put back an older data directory on purpose, run \
                 `agentsvc audit accept`",
            ),
        },
    }
}

/// The store, opened as the daemon would; `None` when it must not be, or when there is none.
fn open(patient: &Patient) -> Option<Result<Store, crate::kernel::store::Error>> {
    let world = patient.home.world_dir(patient.config().data_dir.as_deref());
    let has_files = std::fs::read_dir(&world).is_ok_and(|mut entries| entries.next().is_some());
    matches!(patient.keeper, StoreOwner::Doctor(Some(_))).then_some(())?;
    has_files.then(|| Store::open(world))
}

fn unopened(patient: &Patient) -> Finding {
    match &patient.keeper {
        StoreOwner::Daemon(_) => Finding::pass(RUNNING),
        StoreOwner::Doctor(_) => Finding::pass("the store does not exist yet"),
        StoreOwner::Unknown(error) => Finding::warn(format!("not checked: {error}"), "see the check home"),
    }
}
