//! A world under load that nobody could think of, its log, and its replay.

mod costs;
mod fuzz;
mod harness;
mod planted;
mod seams;

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::step::StepMark;
use agentsvc_systems::Settings;
use agentsvc_systems::replay::Epoch;

use super::report::Seam;
use super::time_travel::Past;
use crate::kernel::store::Store;
use crate::kernel::store::step_log::{StepLog as _, WrittenStep};
use crate::replay::inputs::InputSettings;
use crate::replay::inputs::folder::epochs;
use crate::replay::inputs::log::InputLog;
use crate::replay::{Range, replay};
use harness::Harness;

/// The load's seed and steps: `AGENTSVC_REPLAY_STEPS=200000` makes it a long run, `AGENTSVC_REPLAY_SEED` another one.
fn number_of(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_fuzzed_load_replays_to_the_same_hash_over_restarts_and_new_epochs() {
    let steps = number_of("AGENTSVC_REPLAY_STEPS", 3_000);
    let mut harness = Harness::new(number_of("AGENTSVC_REPLAY_SEED", 1));
    // A world that nobody calms for long has more to do with each step.
    let rounds = (steps / 1_000).max(6);
    for round in 0..rounds {
        harness.load(steps / rounds);
        // Every other time the world dies with turns open; else it comes to rest and goes on in another epoch.
        if round % 2 == 0 { harness.restart() } else { harness.renew() }
    }
    harness.load(50);
    let hash = harness.hash();
    let (report, player) = replay(&harness.inputs(), Range { from: Some(1), ..Range::default() }, None).unwrap();
    assert!(report.equal, "{:#?} {:?}", report.first_difference, report.stopped);
    assert_eq!(player.hash(), hash, "the store holds the same world");
    assert_eq!(report.to, harness.newest());
    assert!(report.epochs.len() >= 7, "{:?}", report.epochs);
    assert!(report.steps > steps / 2 && report.commands > 500 && report.outcomes > 100, "{report:?}");
    println!(
        "{} steps, {} numbered, {} commands, {} outcomes, {} beats, {} epochs, {:.1} hours lived through, {} records, \
         world hash {}",
        report.steps,
        report.numbered,
        report.commands,
        report.outcomes,
        report.beats,
        report.epochs.len(),
        harness.lived_ms as f64 / 3_600_000.0,
        report.records,
        report.world_hash,
    );
    println!("commands by kind: {:?}", harness.kinds());
}

#[test]
fn a_changed_input_is_reported_at_its_step_alone() {
    assert!((5..25).any(a_changed_label_is_reported), "no load leaves the session alone");
}

/// False where the load changes the session again, so that the store does not have the value of then.
fn a_changed_label_is_reported(seed: u64) -> bool {
    let mut harness = Harness::new(seed);
    harness.load(150);
    let step = harness.set_label("ORIGINAL");
    harness.load(20);
    let segment = harness.segment();
    harness::rewrite(&segment, |entry| harness::replaced(entry, b"ORIGINAL", b"ORIGINAM"));
    harness.close();
    let kept = crate::kernel::store::Store::open(harness.world_dir()).unwrap();
    let (report, _) = replay(&harness.inputs(), Range::default(), Some(&kept)).unwrap();
    assert!(!report.equal);
    let first = report.first_difference.unwrap();
    assert_eq!(first.step, step);
    let records: Vec<_> = first.records.iter().map(|record| (record.space, record.kind, record.difference)).collect();
    assert_eq!(records, [("world", 's', "changed")]);
    let field = &first.records[0].fields;
    if !first.records[0].against_log {
        return false;
    }
    assert_eq!(field.len(), 1, "{field:?}");
    assert_eq!((field[0].field.as_str(), field[0].before.as_str()), ("label", Some("ORIGINAL")));
    assert_eq!(field[0].after, "ORIGINAM");
    true
}

#[test]
fn a_changed_setting_is_reported_where_it_first_does_something_else() {
    let mut harness = Harness::new(12);
    harness.load(300);
    harness.flush();
    // Another release whose claims of tasks expire sooner, say: the settings of the epoch are changed under the log.
    let folder = epochs(&harness.inputs()).unwrap().remove(0);
    let (mut epoch, release) = folder.epoch().unwrap();
    epoch.settings.require_approval = vec!["*".into()];
    fs::remove_file(folder.path.join("epoch")).unwrap();
    folder.write_epoch(&epoch, &release).unwrap();
    let (report, _) = replay(&harness.inputs(), Range::default(), None).unwrap();
    let first = report.first_difference.expect("a tool was called");
    assert!(first.records.iter().any(|record| record.kind == 'i' && record.difference == "surplus"), "{first:#?}");
}

#[test]
fn a_torn_tail_is_cut_off_and_the_rest_is_equal() {
    let mut harness = Harness::new(4);
    harness.load(200);
    let segment = harness.segment();
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() - 7]).unwrap();
    let (report, _) = replay(&harness.inputs(), Range::default(), None).unwrap();
    assert!(report.equal && report.to < harness.newest(), "{report:?}");
    assert_eq!(report.epochs[0].end.as_deref(), Some("torn"));
    let missing = replay(&harness.inputs(), Range { to: Some(harness.newest()), ..Range::default() }, None);
    assert!(missing.err().unwrap().to_string().contains("no inputs are recorded for step"));
}

#[test]
fn a_segment_that_lost_everything_leaves_those_before_it() {
    let mut harness = Harness::new(3);
    harness.load(200);
    harness.flush();
    let (folder, to) = (epochs(&harness.inputs()).unwrap().remove(0), harness.newest());
    for left in ["", "agentsvc"] {
        fs::write(folder.segment(to + 1), left).unwrap();
        let (report, _) = replay(&harness.inputs(), Range { to: Some(to), ..Range::default() }, None).unwrap();
        assert!(report.equal && report.to == to, "{report:?}");
    }
}

#[test]
fn the_view_of_an_epoch_that_does_not_begin_is_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("world")).unwrap();
    let settings = InputSettings { keep: Duration::from_secs(3_600), max_bytes: 1 << 30 };
    let log = InputLog::start(dir.path().join("inputs"), settings).unwrap();
    let (after, now) = (StepMark::default(), Timestamp(1));
    let epoch = Epoch {
        after,
        now,
        seed: [1; 32],
        settings: Settings::default(),
        memory: Vec::new(),
        next_log: 0,
        born: Timestamp(0),
    };
    log.queue().prepare(epoch, store.view());
    log.queue().forget();
    log.queue().flush();
    let watch = store.watch();
    drop(store);
    assert!(watch.is_closed_within(Duration::from_secs(60)), "the log still has it open");
    log.stop();
}

#[test]
fn a_gap_ends_the_epoch_and_the_next_one_begins_behind_it() {
    let mut harness = Harness::new(5);
    harness.load(120);
    let before_gap = harness.newest();
    harness.lose();
    harness.load(30);
    assert!(!harness.queue().is_whole() && harness.queue().wants_epoch());
    harness.renew();
    let after_gap = harness.newest();
    harness.load(60);
    harness.flush();
    let (report, _) = replay(&harness.inputs(), Range::default(), None).unwrap();
    assert!(report.equal, "{report:?}");
    assert_eq!((report.from, report.to), (after_gap + 1, harness.newest()));
    let (report, player) = replay(&harness.inputs(), Range { from: Some(1), ..Range::default() }, None).unwrap();
    assert!(!report.equal && report.differing == 0 && report.stopped.is_none(), "{report:?}");
    assert_eq!((report.to, report.lost_steps), (harness.newest(), after_gap - before_gap));
    assert!(report.epochs[0].end.as_deref().unwrap().contains("no written form"), "{report:?}");
    assert_eq!(report.epochs[1].seam, Some(Seam::Lost { from: before_gap + 1, to: after_gap }));
    assert_eq!(player.hash(), harness.hash());
    let within = Range { from: Some(1), to: Some(before_gap + 1), at: None };
    let (report, _) = replay(&harness.inputs(), within, None).unwrap();
    assert_eq!((report.equal, report.to), (false, before_gap));
    assert!(report.stopped.unwrap().contains("are not in the log"));
}

#[test]
fn an_epoch_that_is_in_force_is_wanted_no_more() {
    let mut harness = Harness::new(23);
    harness.load(60);
    harness.renew();
    // A world at rest may not take its first step for long, and each look for a quiet moment reads all of it.
    assert!(!harness.queue().wants_epoch());
    assert!(!harness.renews_within(Duration::from_millis(300)), "another one begins for nothing");
}

#[test]
fn a_disk_that_takes_no_epoch_is_left_alone_for_a_while() {
    let mut harness = Harness::new(19);
    harness.load(60);
    harness.lose();
    fs::remove_dir_all(harness.inputs()).unwrap();
    fs::write(harness.inputs(), "in the way").unwrap();
    harness.renew();
    harness.load(5);
    harness.rest();
    harness.flush();
    assert!(!harness.queue().is_whole() && harness.queue().wants_epoch());
    assert!(!harness.renews_within(Duration::from_secs(1)), "the world is read again and again for nothing");
}

#[test]
fn any_step_comes_back_as_the_world_it_was() {
    let mut harness = Harness::new(13);
    harness.load(400);
    harness.rest();
    let (then, step, rows) = (harness.hash(), harness.newest(), harness.rows());
    harness.load(300);
    harness.flush();
    let view = harness.store().view();
    let mut past = Past::at(&harness.inputs(), step, &view).unwrap();
    let found: Vec<_> = past.by_ref().map(Result::unwrap).collect();
    assert_eq!(past.step.number, step);
    assert_eq!(past.report.world_hash, agentsvc_systems::kernel::record::hex(&then));
    let missing: Vec<_> = rows.iter().filter(|row| !found.contains(row)).collect();
    let surplus: Vec<_> = found.iter().filter(|row| !rows.contains(row)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing {missing:?} surplus {surplus:?}");
    assert_eq!(past.lost(), Default::default());
    // Such rows are a whole store.
    let path = harness.root().join("past");
    let rows = found.into_iter().map(Ok::<_, crate::kernel::store::Error>);
    crate::kernel::store::Store::build(&path, rows).unwrap();
    assert_eq!(harness::hash_of(&crate::kernel::store::Store::open(path).unwrap()), then);
}

#[test]
fn a_step_shows_what_it_took_in_and_stored() {
    let mut harness = Harness::new(17);
    harness.load(100);
    let step = harness.set_label("SHOWN");
    harness.flush();
    let range = Range { to: Some(step), at: Some(step), from: None };
    let (report, _) = replay(&harness.inputs(), range, None).unwrap();
    let shown = report.shown.unwrap();
    assert_eq!(shown.step, step);
    assert!(shown.inputs.iter().any(|input| input.starts_with("set_label from api: SetLabel")), "{:?}", shown.inputs);
    let session = shown.records.iter().find(|record| record.kind == 's').unwrap();
    assert_eq!(session.after["label"], "SHOWN");
    assert!(session.fields.iter().any(|field| field.field == "label"));
}

#[test]
fn more_than_may_wait_to_be_written_is_a_gap() {
    let home = tempfile::tempdir().unwrap();
    let settings = InputSettings { keep: Duration::from_secs(60), max_bytes: 1 << 30 };
    let log = InputLog::start(home.path().join("inputs"), settings).unwrap();
    let queue = log.queue();
    queue.open();
    assert!(queue.is_whole());
    let step = |bytes| WrittenStep { entry: vec![0; bytes], number: 1, first: false, lost: None };
    queue.send(step(limit::INPUTS_WAITING_BYTES_MAX as usize + 1));
    assert!(!queue.is_whole());
    queue.send(step(1));
    let stats = queue.stats();
    let (lost, waiting) = (stats.lost.load(Ordering::Relaxed), stats.waiting.load(Ordering::Relaxed));
    assert_eq!((lost, waiting), (2, 0), "nothing of it waits");
    log.stop();
}
