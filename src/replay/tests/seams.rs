//! Epochs that do not continue each other: another world took the place of the one before.

use super::harness::Harness;
use crate::replay::report::Seam;
use crate::replay::{Range, replay};

const ALL: Range = Range { from: Some(1), to: None, at: None };

#[test]
fn each_side_of_a_restore_is_lived_through_and_the_seam_is_told() {
    let mut harness = Harness::new(31);
    harness.load(200);
    let rows = harness.rows();
    harness.load(200);
    let (before, hash) = (harness.newest(), harness.hash());
    harness.become_world(rows, true);
    harness.load(200);
    harness.flush();
    let (report, player) = replay(&harness.inputs(), ALL, None).unwrap();
    assert!(report.equal, "{:#?} {:?}", report.first_difference, report.stopped);
    assert_eq!((report.to, report.lost_steps, report.epochs.len()), (harness.newest(), 0, 2));
    let other = &report.epochs[1];
    assert_eq!((other.seam, other.continues, other.after), (Some(Seam::OtherWorld), Some(false), before));
    assert!(other.begun_by.as_deref().unwrap().starts_with("note_action from system"), "{other:?}");
    assert_eq!(player.hash(), harness.hash());
    // Numbers go on over it, so that each step is one step: the last one of the old world, and the first of the other.
    let (report, player) = replay(&harness.inputs(), Range { to: Some(before), ..ALL }, None).unwrap();
    assert_eq!((report.equal, report.epochs.len(), player.hash()), (true, 1, hash));
    let at = Range { from: Some(before), to: Some(before + 1), at: Some(before + 1) };
    let (report, _) = replay(&harness.inputs(), at, None).unwrap();
    assert_eq!((report.equal, report.numbered, report.shown.unwrap().step), (true, 2, before + 1));
}

#[test]
fn a_restart_is_no_seam() {
    let mut harness = Harness::new(32);
    harness.load(100);
    harness.restart();
    harness.load(50);
    harness.flush();
    let (report, _) = replay(&harness.inputs(), ALL, None).unwrap();
    assert!(report.equal, "{report:?}");
    let other = &report.epochs[1];
    assert_eq!((other.seam, other.continues, other.begun_by.as_deref()), (None, Some(true), None));
}

#[test]
fn numbers_that_begin_again_are_told() {
    let mut harness = Harness::new(33);
    harness.load(200);
    let (rows, before) = (harness.rows(), harness.newest());
    harness.become_world(rows, false);
    harness.load(20);
    harness.flush();
    let (report, player) = replay(&harness.inputs(), Range { from: Some(before), ..ALL }, None).unwrap();
    assert_eq!(report.epochs[1].seam, Some(Seam::Renumbered { after: 0 }), "{report:?}");
    assert_eq!((report.equal, player.hash()), (true, harness.hash()), "{report:?}");
    // A number that both have is that of the newer one.
    let (report, _) = replay(&harness.inputs(), ALL, None).unwrap();
    assert_eq!((report.epochs.len(), report.to), (1, harness.newest()));
}
