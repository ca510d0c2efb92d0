//! The trail on a real disk: what the checkpoint signer signs and refuses to sign, what a walk finds, what trimming leaves.

use agentsvc_api::upload::audit_kinds;
use std::path::Path;
use std::sync::atomic::AtomicI64;

use agentsvc_api::http::bridge::{Arrival, bridge};
use agentsvc_components::Actor;
use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::SealAudit;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::{audit_checkpoint_key, audit_entry_key};
use agentsvc_systems::{Engine, ReplySlot, Settings};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::checkpoint_signer::{CheckpointSigner, Parts, SignerQueue};
use super::*;
use crate::kernel::retention::RetentionClock;
use crate::kernel::store::load::{Progress, load};
use crate::kernel::store::writer::{Outlets, Writer};
use crate::kernel::world_loop::Clock;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// A daemon's trail and what keeps it, driven by the test.
pub(super) struct Harness {
    home: TempDir,
    pub(super) trail: Arc<AuditTrail>,
    engine: Arc<Mutex<Engine>>,
    writer: Writer,
    checkpoint_signer: CheckpointSigner,
    now: Arc<AtomicI64>,
    runtime: Runtime,
}

impl Harness {
    pub(super) fn open(home: TempDir, now_ms: i64, retention_days: u32) -> Self {
        let store = Store::open(home.path().join("world")).unwrap();
        let mut engine = Engine::new(Settings::default(), [1; 32]);
        let now = Arc::new(AtomicI64::new(now_ms));
        engine.restore(load(&store, 1, &Progress::default()).unwrap(), Timestamp(now_ms)).unwrap();
        let vault = Arc::new(Vault::open(home.path()).unwrap());
        let trail = Arc::new(AuditTrail::new(store.clone(), vault, outside(home.path())));
        let queue: Arc<std::sync::OnceLock<SignerQueue>> = Arc::default();
        let to_signer = Arc::clone(&queue);
        let outlets = Outlets {
            effects: Arc::new(move |effect| {
                let Some(SealAudit(head)) = effect.get() else { return };
                to_signer.get().unwrap().seal(*head);
            }),
            told: Arc::new(|_| ()),
            reopen: Arc::new(drop),
            fenced: Arc::new(|_| ()),
            fatal: Arc::new(|cause| panic!("{cause}")),
        };
        let writer = Writer::start(store, outlets).unwrap();
        let (bridge, intake) = bridge();
        let engine = Arc::new(Mutex::new(engine));
        let (started, begin) = crossbeam_channel::bounded(1);
        let (world, commits) = (Arc::clone(&engine), writer.queue());
        std::thread::spawn(move || {
            let is_started = begin.recv();
            intake.open();
            while let (Ok(()), Ok(Arrival::Command(envelope))) = (is_started, intake.arrivals.recv()) {
                intake.took_command();
                let mut engine = world.lock();
                envelope.run(&mut engine);
                commits.send(engine.step());
            }
        });
        let (runtime, clock_now) = (Runtime::new().unwrap(), Arc::clone(&now));
        let clock = Clock { wall: Arc::new(move || Timestamp(clock_now.load(Ordering::Relaxed))), ..Clock::system() };
        let parts = Parts {
            trail: Arc::clone(&trail),
            commits: writer.queue(),
            bridge,
            handle: runtime.handle().clone(),
            retention: RetentionClock::trusting(clock.clone()),
            clock,
            retention_days: std::sync::Arc::new(retention_days.into()),
        };
        // Entries that a test appends wait for nobody; the checkpoint signer's first trim sees what is stored already.
        let checkpoint_signer = CheckpointSigner::start(parts).unwrap();
        assert!(queue.set(checkpoint_signer.queue()).is_ok());
        // The bridge opens last, as in the daemon.
        started.send(()).unwrap();
        Self { home, trail, engine, writer, checkpoint_signer, now, runtime }
    }

    pub(super) fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), 1_700_000_000_000, 0)
    }

    /// Appends `count` entries, one second after the other, and waits until they are on the disk.
    pub(super) fn append(&self, count: i64) {
        for n in 0..count {
            let mut engine = self.engine.lock();
            engine.set_now(Timestamp(self.now.fetch_add(1_000, Ordering::Relaxed) + 1_000));
            let entry = NoteAction { kind: audit_kinds::FILE_WRITTEN, agent: None, details: json!({ "n": n }) };
            engine.command(Actor::Api, entry, ReplySlot::new(drop));
            self.writer.queue().send(engine.step());
        }
        self.writer.queue().flush().unwrap();
    }

    pub(super) fn walk(&self) -> Result<Walked, Broken> {
        self.writer.queue().flush().unwrap();
        let head = || Ok(self.trail.store.audit_head().unwrap().unwrap_or_default());
        self.trail.walk(&head).unwrap().walked
    }

    /// Stops in order; gives the home back.
    pub(super) fn stop(self) -> TempDir {
        let Self { home, checkpoint_signer, writer, .. } = self;
        writer.queue().flush().unwrap();
        checkpoint_signer.stop();
        writer.stop();
        home
    }

    /// Changes rows behind everyone's back.
    pub(super) fn tamper(&self, ops: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
        let space = agentsvc_components::kernel::record::Space::Content;
        let ops =
            ops.into_iter().map(|(key, value)| agentsvc_components::kernel::record::Op { space, key, value }).collect();
        self.writer.queue().send(Commit { ops, ..Commit::default() });
        self.writer.queue().flush().unwrap();
    }
}

/// Where signed heads go: to `heads` in the home, where that is.
pub(super) fn outside(home: &Path) -> Outside {
    let heads_file = Some(home.join("heads")).filter(|path| path.exists());
    Outside::new(&super::config::Audit { heads_file, ..Default::default() }, &home.join("world"))
}

/// Waits until the trail begins at entry `wanted`, and older rows are erased.
pub(super) fn until_first(harness: &Harness, wanted: u64) {
    let first = || harness.trail.store.audit_head().unwrap().unwrap().first;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(180);
    let is_erased = || harness.trail.store.audit_keys_before(first(), 1).unwrap().is_empty();
    while first() == 1 || !is_erased() {
        assert!(std::time::Instant::now() < deadline, "nothing was trimmed");
        std::thread::yield_now();
    }
    assert_eq!(first(), wanted);
}

/// A copy of the database as it is now, without the vault.
pub(super) fn copy_world(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_world(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_stop_signs_up_to_the_end_and_the_next_start_goes_on() {
    let harness = Harness::new();
    harness.append(1_500);
    assert_eq!(harness.walk().unwrap().entries, 1_500);
    let harness = Harness::open(harness.stop(), 1_700_010_000_000, 0);
    let walked = harness.walk().unwrap();
    assert_eq!(
        (walked.entries, walked.signed, walked.checkpoints),
        (1_500, 1_500, 26),
        "at 1, every minute and at the stop"
    );
    harness.append(5);
    assert_eq!(harness.walk().unwrap().entries, 1_505);
    let harness = Harness::open(harness.stop(), 1_700_020_000_000, 0);
    assert_eq!(harness.walk().unwrap().signed, 1_505);
    let newest = harness
        .trail
        .recent(harness.trail.store.audit_head().unwrap().unwrap(), &Wanted { limit: 3, ..Wanted::default() })
        .unwrap()
        .entries;
    assert_eq!(newest.iter().map(|entry| entry.id).collect::<Vec<_>>(), [1_505, 1_504, 1_503]);
    harness.stop();
}

#[test]
fn tampering_with_the_disk_is_found() {
    let harness = Harness::open(Harness::new().stop(), 1_700_000_000_000, 0);
    harness.append(1_100);
    let harness = Harness::open(harness.stop(), 1_700_010_000_000, 0);
    assert!(harness.walk().is_ok());
    let row = |id| harness.trail.store.audit_entry(id).unwrap().unwrap();
    for at in [0, 5, 20, 60, 100] {
        let mut changed = row(500);
        changed[at] ^= 4;
        harness.tamper(vec![(audit_entry_key(500), Some(changed.clone()))]);
        assert_eq!(harness.walk().unwrap_err().at, 500, "byte {at}");
        changed[at] ^= 4;
        harness.tamper(vec![(audit_entry_key(500), Some(changed))]);
    }
    let swapped = vec![(audit_entry_key(7), Some(row(8))), (audit_entry_key(8), Some(row(7)))];
    let back = vec![(audit_entry_key(7), Some(row(7))), (audit_entry_key(8), Some(row(8)))];
    harness.tamper(swapped);
    assert_eq!(harness.walk().unwrap_err().at, 7);
    harness.tamper(back);
    assert!(harness.walk().is_ok());
    harness.tamper(vec![(audit_checkpoint_key(977), None)]);
    let broken = harness.walk().unwrap_err();
    assert_eq!((broken.at, &*broken.reason), (977, "its checkpoint is missing"));
    harness.tamper(
        (1_050..=1_100).flat_map(|id| [(audit_entry_key(id), None), (audit_checkpoint_key(id), None)]).collect(),
    );
    assert!(harness.walk().is_err());
    harness.stop();
}

#[test]
fn a_database_that_was_set_back_is_found_and_never_signed_again() {
    let harness = Harness::new();
    harness.append(10);
    let home = harness.stop();
    let earlier = tempfile::tempdir().unwrap();
    copy_world(&home.path().join("world"), &earlier.path().join("world"));
    let harness = Harness::open(home, 1_700_010_000_000, 0);
    harness.append(10);
    let home = harness.stop();
    let signed = std::fs::read(home.path().join("audit.checkpoint")).unwrap();
    std::fs::remove_dir_all(home.path().join("world")).unwrap();
    copy_world(&earlier.path().join("world"), &home.path().join("world"));
    let harness = Harness::open(home, 1_700_020_000_000, 0);
    let broken = harness.walk().unwrap_err();
    assert_eq!(broken.at, 11);
    assert!(broken.reason.contains("entry 20 was signed"), "{broken}");
    // Another history grows beyond what was signed.
    harness.append(15);
    assert_eq!(harness.walk().unwrap_err().at, 20);
    let home = harness.stop();
    assert_eq!(std::fs::read(home.path().join("audit.checkpoint")).unwrap(), signed, "the evidence stays");
}

#[test]
fn a_database_without_its_key_is_not_valid() {
    let harness = Harness::new();
    harness.append(3);
    let home = harness.stop();
    std::fs::remove_file(home.path().join("audit.key")).unwrap();
    let harness = Harness::open(home, 1_700_010_000_000, 0);
    assert!(harness.walk().unwrap_err().reason.contains("not signed by the key in the vault"));
    let home = harness.stop();
    std::fs::remove_file(home.path().join("audit.checkpoint")).unwrap();
    let harness = Harness::open(home, 1_700_010_000_000, 0);
    assert_eq!(harness.walk().unwrap_err().at, 1, "its rows are signed by another key too");
    harness.stop();
}

#[test]
fn old_entries_go_and_the_rest_is_still_valid() {
    let harness = Harness::new();
    harness.append(1_200);
    let home = harness.stop();
    // 900 seconds and a day after the first entry: 1,200 s of entries, of which 300 s are young enough.
    let later = 1_700_000_000_000 + 900_000 + DAY_MS;
    let harness = Harness::open(home, later, 1);
    until_first(&harness, 900);
    assert!(harness.trail.store.audit_entry(899).unwrap().is_none());
    let walked = harness.walk().unwrap();
    assert_eq!((walked.entries, walked.signed), (302, 1_201), "900 to 1,200, and the entry about it");
    let home = harness.stop();
    let harness = Harness::open(home, later, 0);
    assert_eq!(harness.walk().unwrap().entries, 302);
    let moved = harness.trail.store.audit_entry(901).unwrap();
    harness.tamper(vec![(audit_entry_key(900), moved)]);
    assert_eq!(harness.walk().unwrap_err().at, 900);
    harness.runtime.handle();
    harness.stop();
}
