//! Epochs that do not continue each other: another world took the place of the one before.

use super::house::House;
use crate::replay::report::Seam;
use crate::replay::{Range, replay};

const ALL: Range = Range { from: Some(1), to: None, at: None };

#[test]
fn each_side_of_a_restore_is_lived_through_and_the_seam_is_told() {
    let mut house = House::new(31);
    house.load(200);
    let rows = house.rows();
    house.load(200);
    let (before, hash) = (house.newest(), house.hash());
    house.become_world(rows, true);
    house.load(200);
    house.flush();
    let (report, player) = replay(&house.inputs(), ALL, None).unwrap();
    assert!(report.equal, "{:#?} {:?}", report.first_difference, report.stopped);
    assert_eq!((report.to, report.lost_steps, report.epochs.len()), (house.newest(), 0, 2));
    let other = &report.epochs[1];
    assert_eq!((other.seam, other.continues, other.after), (Some(Seam::OtherWorld), Some(false), before));
    assert!(other.begun_by.as_deref().unwrap().starts_with("note_action from system"), "{other:?}");
    assert_eq!(player.hash(), house.hash());
    // Numbers go on over it, so that each step is one step: the last one of the old world, and the first of the other.
    let (report, player) = replay(&house.inputs(), Range { to: Some(before), ..ALL }, None).unwrap();
    assert_eq!((report.equal, report.epochs.len(), player.hash()), (true, 1, hash));
    let at = Range { from: Some(before), to: Some(before + 1), at: Some(before + 1) };
    let (report, _) = replay(&house.inputs(), at, None).unwrap();
    assert_eq!((report.equal, report.numbered, report.shown.unwrap().step), (true, 2, before + 1));
}

#[test]
fn a_restart_is_no_seam() {
    let mut house = House::new(32);
    house.load(100);
    house.restart();
    house.load(50);
    house.flush();
    let (report, _) = replay(&house.inputs(), ALL, None).unwrap();
    assert!(report.equal, "{report:?}");
    let other = &report.epochs[1];
    assert_eq!((other.seam, other.continues, other.begun_by.as_deref()), (None, Some(true), None));
}

#[test]
fn numbers_that_begin_again_are_told() {
    let mut house = House::new(33);
    house.load(200);
    let (rows, before) = (house.rows(), house.newest());
    house.become_world(rows, false);
    house.load(20);
    house.flush();
    let (report, player) = replay(&house.inputs(), Range { from: Some(before), ..ALL }, None).unwrap();
    assert_eq!(report.epochs[1].seam, Some(Seam::Renumbered { after: 0 }), "{report:?}");
    assert_eq!((report.equal, player.hash()), (true, house.hash()), "{report:?}");
    // A number that both have is that of the newer one.
    let (report, _) = replay(&house.inputs(), ALL, None).unwrap();
    assert_eq!((report.epochs.len(), report.to), (1, house.newest()));
}
