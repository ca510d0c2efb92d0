//! How long a walk over a long audit trail takes, and how much memory: `cargo bench --bench all -- audit_verify`.

use agentsvc_systems::audit::audit_kinds;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::measure::process::{forget_peak, peak_bytes};
use crate::measure::{Row, head, resident_bytes, size};
use agentsvc::audit::AuditTrail;
use agentsvc::audit::outside::Outside;
use agentsvc::audit::vault::Vault;
use agentsvc::kernel::store::Store;
use agentsvc::kernel::store::writer::{Outlets, Writer};
use agentsvc_components::Actor;
use agentsvc_components::Timestamp;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::kernel::engine::Commit;
use agentsvc_systems::kernel::record::put_audit_checkpoint;
use agentsvc_systems::{Engine, ReplySlot, Settings};
use serde_json::json;

/// Entries in one step of the world.
const STEP: u64 = 1_000;

pub(crate) fn main() {
    head("audit_verify");
    let entries = size("AGENTSVC_BENCH_ENTRIES", 1_000_000, 50_000) as u64;
    let home = tempfile::tempdir().expect("a temporary directory");
    let vault = Arc::new(Vault::open(home.path()).expect("a vault"));
    let path = home.path().join("world");
    let appended = fill(&Store::open(&path).expect("a store"), &vault, entries);
    let result = format!("{:.2} s", appended.as_secs_f64());
    Row::new(format!("{entries} audit entries appended and stored"), result).print();

    // Opened anew, so that the walk reads what a daemon reads after a start.
    let store = Store::open(&path).expect("a store");
    let trail = AuditTrail::new(store.clone(), vault, Outside::default());
    forget_peak(std::process::id());
    let before = resident_bytes(std::process::id());
    let begun = Instant::now();
    let end = store.audit_head().expect("the head").expect("a trail");
    let walked = trail.walk(&|| Ok(end)).expect("the store is read").walked.expect("the trail is whole");
    let took = begun.elapsed();
    let grown = peak_bytes(std::process::id()).saturating_sub(before) as f64 / f64::from(1 << 20);
    assert_eq!((walked.entries, walked.signed), (entries, entries), "all of it was walked");
    let what = format!("a walk over {entries} audit entries and {} checkpoints", walked.checkpoints);
    let result = format!("{:.2} s", took.as_secs_f64());
    Row::new(what, result).bound("< 10 s", took < Duration::from_secs(10)).print();
    let result = format!("{grown:.1} MiB more than before");
    Row::new("memory at its peak meanwhile", result).bound("<= 64 MiB", grown <= 64.0).print();
}

/// Appends entries as a daemon does, with a signed checkpoint behind every step.
fn fill(store: &Store, vault: &Arc<Vault>, entries: u64) -> Duration {
    let begun = Instant::now();
    let outlets = Outlets {
        effects: Arc::new(|_| ()),
        told: Arc::new(|_| ()),
        reopen: Arc::new(drop),
        fenced: Arc::new(|_| ()),
        fatal: Arc::new(|cause| panic!("{cause}")),
    };
    let writer = Writer::start(store.clone(), outlets).expect("a writer");
    let queue = writer.queue();
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    let (mut last, mut previous) = (0, 0);
    while last < entries {
        let count = STEP.min(entries - last);
        for n in 0..count {
            engine.set_now(Timestamp((last + n).cast_signed()));
            let details = json!({ "tool": "file_write", "input_sha256": "0".repeat(64), "n": last + n });
            let entry = NoteAction { kind: audit_kinds::TOOL_CALLED, agent: None, details };
            engine.command(Actor::Api, entry, ReplySlot::new(drop));
        }
        last += count;
        queue.send(engine.step());
        queue.flush().expect("the step is stored");
        let end = store.audit_head().expect("the head").expect("a trail");
        let (sequence, hash, at) = (end.last, end.hash, Timestamp(0));
        let checkpoint = AuditCheckpoint { sequence, hash, previous, first: 1, anchor: [0; 32], at };
        let signed = vault.sign(&checkpoint);
        vault.keep(&signed).expect("the vault keeps it");
        queue.send(Commit { ops: vec![put_audit_checkpoint(sequence, signed)], ..Commit::default() });
        previous = sequence;
    }
    writer.stop();
    begun.elapsed()
}
