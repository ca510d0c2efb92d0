//! A vault without its checkpoint, heads that are kept elsewhere, and trails that an operator accepts.

use std::fs;
use std::path::Path;

use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_systems::kernel::record::{audit_checkpoint_key, audit_entry_key};

use super::accept::{Accepted, accept};
use super::tests::{Harness, copy_world, outside, until_first};
use super::*;

const LATER: i64 = 1_700_010_000_000;

fn accept_in(home: &Path) -> Result<Accepted, String> {
    let store = Store::open(home.join("world")).unwrap();
    let trail = AuditTrail::new(store, Arc::new(Vault::open(home).unwrap()), outside(home));
    accept(&trail, "root (uid 0)", "an older copy was put back", Timestamp(LATER))
}

/// Puts an older copy of the database in its place.
fn set_back(home: &Path, earlier: &Path) {
    fs::remove_dir_all(home.join("world")).unwrap();
    copy_world(&earlier.join("world"), &home.join("world"));
}

#[test]
fn a_vault_without_its_checkpoint_is_broken_until_that_is_accepted() {
    let harness = Harness::new();
    assert_eq!(harness.walk(), Ok(Walked::default()), "nothing was ever signed");
    harness.append(3);
    let home = harness.stop();
    let checkpoint = home.path().join("audit.checkpoint");
    fs::remove_file(&checkpoint).unwrap();
    let harness = Harness::open(home, LATER, 0);
    let broken = harness.walk().unwrap_err();
    assert_eq!(broken.reason, "the vault's checkpoint is missing, but entry 3 was signed");
    harness.append(2);
    let home = harness.stop();
    assert!(!checkpoint.exists(), "nothing is signed over what is missing");
    let accepted = accept_in(home.path()).unwrap();
    assert_eq!((accepted.accepted, accepted.signed, accepted.entry), (5, None, 6));
    assert!(accept_in(home.path()).unwrap_err().contains("nothing to accept"));
    let harness = Harness::open(home, LATER, 0);
    let walked = harness.walk().unwrap();
    assert_eq!((walked.entries, walked.signed), (6, 6));
    let head = harness.trail.store.audit_head().unwrap().unwrap();
    let entry = harness.trail.recent(head, &Wanted { limit: 1, ..Wanted::default() }).unwrap().entries.remove(0);
    assert_eq!((&*entry.event_type, &*entry.actor), ("audit_accepted", "system"));
    for part in ["an older copy was put back", "root (uid 0)", &accepted.hash, "\"entry\":5", "\"signed\":null"] {
        assert!(entry.details.contains(part), "{part} in {}", entry.details);
    }
    harness.append(2);
    let harness = Harness::open(harness.stop(), LATER, 0);
    assert_eq!(harness.walk().unwrap().signed, 8, "it goes on");
    harness.stop();
}

/// The first checkpoint is in the store, and the kill came before the vault had it.
#[test]
fn a_kill_at_the_first_checkpoint_is_no_missing_checkpoint() {
    let harness = Harness::new();
    harness.append(1);
    let home = harness.stop();
    let vault = Vault::open(home.path()).unwrap();
    let (hash, anchor) = ([0; 32], [0; 32]);
    let none = AuditCheckpoint { sequence: 0, hash, previous: 0, first: 1, anchor, at: Timestamp(1) };
    vault.keep(&vault.sign(&none)).unwrap();
    let harness = Harness::open(home, LATER, 0);
    assert_eq!(harness.walk().unwrap().signed, 1);
    harness.append(1);
    let harness = Harness::open(harness.stop(), LATER, 0);
    assert_eq!(harness.walk().unwrap().signed, 2);
    harness.stop();
}

#[test]
fn rows_that_were_changed_cannot_be_accepted() {
    let harness = Harness::new();
    harness.append(3);
    let mut changed = harness.trail.store.audit_entry(2).unwrap().unwrap();
    changed[60] ^= 1;
    harness.tamper(vec![(audit_entry_key(2), Some(changed))]);
    let home = harness.stop();
    let kept = fs::read(home.path().join("audit.checkpoint")).unwrap();
    let refused = accept_in(home.path()).unwrap_err();
    assert!(refused.contains("entry 2: its content") && refused.contains("cannot be accepted"), "{refused}");
    assert_eq!(fs::read(home.path().join("audit.checkpoint")).unwrap(), kept);
}

/// The database and the vault are set back together: only the heads elsewhere know better.
#[test]
fn heads_kept_elsewhere_find_a_home_that_was_set_back_whole() {
    let home = tempfile::tempdir().unwrap();
    let heads = home.path().join("heads");
    fs::write(&heads, "1970-01-01T00:00:00.000Z a line that was cut o").unwrap();
    let harness = Harness::open(home, 1_700_000_000_000, 0);
    harness.append(10);
    let home = harness.stop();
    let earlier = tempfile::tempdir().unwrap();
    copy_world(&home.path().join("world"), &earlier.path().join("world"));
    let checkpoint = home.path().join("audit.checkpoint");
    let old_checkpoint = fs::read(&checkpoint).unwrap();
    let harness = Harness::open(home, LATER, 0);
    harness.append(10);
    assert!(harness.walk().is_ok());
    let home = harness.stop();
    assert_eq!(fs::read_to_string(&heads).unwrap().lines().count(), 5, "at 1, 10, 11 and 20");
    set_back(home.path(), earlier.path());
    fs::write(&checkpoint, old_checkpoint).unwrap();
    let harness = Harness::open(home, LATER + 60_000, 0);
    assert!(harness.walk().unwrap_err().reason.contains("entry 20 was signed"));
    harness.append(15);
    let broken = harness.walk().unwrap_err();
    assert_eq!((broken.at, broken.reason.contains("audit.heads_file")), (20, true), "{broken}");
    let home = harness.stop();
    assert_eq!(fs::read_to_string(&heads).unwrap().lines().count(), 5, "no head of another log is sent");
    let accepted = accept_in(home.path()).unwrap();
    assert_eq!((accepted.accepted, accepted.sent), (25, true));
    let harness = Harness::open(home, LATER + 90_000, 0);
    let verdict = harness.trail.walk(&|| Ok(harness.trail.store.audit_head().unwrap().unwrap())).unwrap();
    assert_eq!((verdict.walked.unwrap().signed, verdict.compared_with), (26, Some(26)));
    assert_eq!(harness.trail.fault(), None);
    harness.append(1);
    let _home = harness.stop();
    assert_eq!(fs::read_to_string(&heads).unwrap().lines().count(), 7, "26 and 27");
}

/// Somebody without the vault's key puts another trail in place of this one, which begins behind all that was signed.
#[test]
fn a_trail_that_begins_later_than_the_vault_says_is_not_signed() {
    let other = Harness::new();
    other.append(300);
    let other = Harness::open(other.stop(), 1_700_000_200_000 + 86_400_000, 1);
    until_first(&other, 200);
    let checkpoints = (1..400).map(|entry| (audit_checkpoint_key(entry), None)).collect();
    other.tamper(checkpoints);
    let other = other.stop();
    for is_vault_whole in [true, false] {
        let home = tempfile::tempdir().unwrap();
        let heads = home.path().join("heads");
        fs::write(&heads, "").unwrap();
        let harness = Harness::open(home, 1_700_000_000_000, 0);
        harness.append(20);
        let home = harness.stop();
        let sent = fs::read_to_string(&heads).unwrap();
        set_back(home.path(), other.path());
        if !is_vault_whole {
            fs::remove_file(home.path().join("audit.checkpoint")).unwrap();
        }
        let harness = Harness::open(home, LATER + 86_400_000, 0);
        for _ in 0..2 {
            harness.walk().unwrap_err();
            harness.append(2);
        }
        let home = harness.stop();
        assert_eq!(fs::read_to_string(&heads).unwrap(), sent, "nothing of it is sent");
        let kept = Vault::open(home.path()).unwrap().checkpoint().unwrap().map(|kept| kept.sequence);
        assert_eq!(kept, is_vault_whole.then_some(20), "nor signed");
    }
}

/// A kill after the vault named the first entry that stays, and before the world let older ones go.
#[test]
fn a_kill_before_entries_are_let_go_is_no_damage() {
    let harness = Harness::new();
    harness.append(30);
    let entry = agentsvc_systems::audit::decode(&harness.trail.store.audit_entry(10).unwrap().unwrap()).unwrap();
    let home = harness.stop();
    let vault = Vault::open(home.path()).unwrap();
    let kept = vault.checkpoint().unwrap().unwrap();
    vault.keep(&vault.sign(&AuditCheckpoint { first: 10, anchor: entry.prev_hash, ..kept })).unwrap();
    let harness = Harness::open(home, LATER, 0);
    assert_eq!(harness.walk().unwrap().signed, 30);
    harness.append(1);
    let harness = Harness::open(harness.stop(), LATER, 0);
    assert_eq!(harness.walk().unwrap().signed, 31);
    harness.stop();
}

#[test]
fn heads_that_cannot_be_written_stop_nothing_and_are_a_fault() {
    let home = tempfile::tempdir().unwrap();
    let heads = home.path().join("heads");
    fs::create_dir(&heads).unwrap();
    let harness = Harness::open(home, 1_700_000_000_000, 0);
    harness.append(3);
    assert_eq!(harness.walk().unwrap().entries, 3);
    let fault = harness.trail.fault().unwrap();
    assert!(fault.contains("audit.heads_file"), "{fault}");
    let home = harness.stop();
    assert_eq!(
        Vault::open(home.path()).unwrap().checkpoint().unwrap().unwrap().sequence,
        3,
        "it is signed all the same"
    );
    let refused = accept_in(home.path()).unwrap_err();
    assert!(refused.contains("matches the vault, but audit.heads_file cannot be read"), "{refused}");
    fs::remove_file(home.path().join("audit.checkpoint")).unwrap();
    let accepted = accept_in(home.path()).unwrap();
    assert_eq!((accepted.accepted, accepted.sent), (3, false));
    fs::remove_dir(&heads).unwrap();
    fs::write(&heads, "").unwrap();
    let harness = Harness::open(home, LATER, 0);
    harness.append(1);
    let harness = Harness::open(harness.stop(), LATER, 0);
    let verdict = harness.trail.walk(&|| Ok(harness.trail.store.audit_head().unwrap().unwrap())).unwrap();
    assert_eq!(verdict.compared_with, Some(5), "the next head is sent");
    assert_eq!(harness.trail.fault(), None);
    harness.stop();
}
