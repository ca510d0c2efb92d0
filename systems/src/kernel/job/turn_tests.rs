//! Whose turn it is in a lane, in a whole world.

use std::collections::BTreeMap;

use agentsvc_components::kernel::job::TryEnd;

use super::tests::{added, family, of, tries, user, wait};
use super::*;
use crate::testing::TestWorld;

#[test]
fn a_user_has_a_quarter_of_a_lane_and_a_family_three() {
    let mut world = TestWorld::new();
    // Each has many subjects, such as agents: they cost nothing.
    for n in 0..32 {
        added(&mut world, "test_places", of(user(1), n));
    }
    assert_eq!(tries(&mut world).len(), 2, "a quarter of 8");
    for n in 100..120 {
        added(&mut world, "test_places", of(family(9), n));
    }
    let of_family = tries(&mut world);
    assert_eq!(of_family.len(), 6, "three quarters of 8");
    let other = added(&mut world, "test_places", of(user(2), 200));
    assert!(tries(&mut world).is_empty(), "the lane is full");
    let next = (DOMAIN.next_due)(world.engine.world());
    assert_eq!(next, None, "nothing can begin until one of them ends");
    world.outcome(JobOutcome(of_family[0].attempt, TryEnd::Done(String::new())));
    assert!(tries(&mut world).remove(0).subject < Uuid::from_u128(200), "the family has waited for longer");
    world.outcome(JobOutcome(of_family[1].attempt, TryEnd::Done(String::new())));
    assert_eq!(tries(&mut world).remove(0).attempt.job, other, "the family has had its turn");
    assert_eq!(world.engine.check(), [] as [String; 0]);
    world.restart();
    let out = tries(&mut world);
    let of_user = out.iter().filter(|run| run.subject < Uuid::from_u128(32)).count();
    assert_eq!((out.len(), of_user), (8, 2), "as before");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn even_a_small_lane_has_a_place_for_each() {
    let mut world = TestWorld::new();
    for n in 0..3 {
        added(&mut world, "test_any", of(user(1), n));
    }
    assert_eq!(tries(&mut world).len(), 1, "a quarter of 2 is less than one");
    added(&mut world, "test_any", of(family(9), 10));
    let of_family = tries(&mut world).remove(0).attempt;
    world.outcome(JobOutcome(of_family, TryEnd::Done(String::new())));
    assert!(tries(&mut world).is_empty());
    for n in 0..3 {
        added(&mut world, "test_once", of(family(9), n));
    }
    assert_eq!(tries(&mut world).len(), 3, "a lane of 3 is too small to be shared");
}

#[test]
fn a_subject_of_many_has_a_place_for_each() {
    let mut world = TestWorld::new();
    for _ in 0..5 {
        added(&mut world, "test_shared", of(user(1), 7));
    }
    let full = add(world.engine.world_mut(), "test_shared", of(user(1), 7)).unwrap_err();
    assert!(full.message.contains("of one user or family"), "a quarter of the 20 that it may have: {full:?}");
    assert_eq!(tries(&mut world).len(), 1, "a quarter of the subject's 4");
    added(&mut world, "test_shared", of(user(1), 8));
    assert_eq!(tries(&mut world).len(), 1, "another subject");
    for _ in 0..4 {
        added(&mut world, "test_shared", of(family(9), 7));
    }
    assert_eq!(tries(&mut world).len(), 3);
    added(&mut world, "test_shared", of(user(2), 7));
    assert!(tries(&mut world).is_empty(), "the subject has all its places taken");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn places_go_to_holders_and_their_subjects_in_turn() {
    let mut world = TestWorld::new();
    let mut names = BTreeMap::new();
    for (holder, subject, name) in [
        (user(1), 1, "a1"),
        (user(1), 1, "a1"),
        (user(1), 1, "a1"),
        (user(1), 2, "a2"),
        (user(2), 3, "b"),
        (user(2), 3, "b"),
        (family(9), 4, "f"),
    ] {
        names.insert(added(&mut world, "test_turns", of(holder, subject)), name);
    }
    let mut order = Vec::new();
    while let Some(run) = tries(&mut world).pop() {
        order.push(names[&run.attempt.job]);
        world.outcome(JobOutcome(run.attempt, TryEnd::Done(String::new())));
    }
    assert_eq!(order, ["a1", "a1", "b", "f", "a2", "b", "a1"]);
    assert!(jobs(world.engine.world()).by_id.is_empty());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn who_was_served_waits_no_longer_when_the_clock_is_set_back() {
    let mut world = TestWorld::new();
    let first = added(&mut world, "test_turns", of(user(1), 1));
    let second = added(&mut world, "test_turns", of(user(1), 1));
    let run = tries(&mut world).remove(0);
    assert_eq!(run.attempt.job, first);
    wait(&mut world, -50_000);
    world.outcome(JobOutcome(run.attempt, TryEnd::Done(String::new())));
    assert_eq!(world.engine.check(), [] as [String; 0]);
    wait(&mut world, 3_000);
    assert_eq!(tries(&mut world).remove(0).attempt.job, second);
}
