//! Fires without budget, in virtual time: every match keeps exactly one outcome, over kills too.

use agentsvc_components::manifest::SessionMode;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::trigger::{FireLog, FireOutcome};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::{Micros, TriggerId};
use serde_json::json;

use super::tests::new;
use super::*;
use crate::budget::{GetBudget, SetBudget};
use crate::event::PublishEvent;
use crate::testing::{TestWorld, answer};
use crate::usage::priced_for_tests;
use crate::world::GetStats;

fn ping(world: &mut TestWorld) {
    let (event_type, payload) = ("ping".to_owned(), "1".into());
    world.ask(PublishEvent { event_type, payload, agent: None, by: None }).unwrap();
}

fn log(world: &mut TestWorld, trigger: TriggerId) -> FireLog {
    world.ask(GetTriggerFires(trigger)).unwrap().log
}

/// How many matches ended as `fired`, `over_budget` and `exhausted`; no other end came about.
fn ends(log: &FireLog) -> [u64; 3] {
    let ends = [FireOutcome::Fired, FireOutcome::OverBudget, FireOutcome::Exhausted];
    let all: u64 = FireOutcome::ALL.into_iter().map(|outcome| log.outcomes.of(outcome)).sum();
    let counts = ends.map(|outcome| log.outcomes.of(outcome));
    assert_eq!(all, counts.iter().sum::<u64>());
    counts
}

fn allow(world: &mut TestWorld, daily: u64) {
    let limits = Limits { daily: Some(Micros(daily)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Global, limits }).unwrap();
}

#[test]
fn a_turn_that_no_budget_has_room_for_and_a_match_refused_at_the_door_are_over_budget() {
    let mut world = TestWorld::with(priced_for_tests());
    let agent = world.spawn("a");
    let trigger = NewTrigger { max_fires: 2, ..new(&json!({ "custom": { "event_type": "ping" } })) };
    let id = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    allow(&mut world, 1);
    ping(&mut world);
    let first = log(&mut world, id);
    assert_eq!((ends(&first), first.begun(), first.last_outcome), ([0, 1, 0], 1, Some(FireOutcome::OverBudget)));
    assert_eq!((first.fires.len(), first.fires[0].end), (1, Some(TurnEnd::Failed)));
    let totals = world.ask(GetStats).unwrap().trigger_totals;
    assert_eq!((totals.outcomes.of(FireOutcome::Fired), totals.turns_over_budget), (1, 1));
    ping(&mut world);
    let second = log(&mut world, id);
    assert_eq!((ends(&second), second.begun(), second.fires.len()), ([0, 2, 0], 1, 1), "nothing was begun");
    world.restart();
    assert_eq!(log(&mut world, id), second);
    allow(&mut world, 0);
    ping(&mut world);
    let call = world.next_call();
    world.answer(call.attempt, "seen");
    ping(&mut world);
    let last = log(&mut world, id);
    assert_eq!((ends(&last), last.begun()), ([1, 2, 1], 2), "max_fires bounds the turns that are begun");
    assert_eq!(world.ask(GetTrigger(id)).unwrap().fire_count, 2);
    world.restart();
    assert_eq!(log(&mut world, id), last);
}

#[test]
fn a_turn_that_waits_for_money_and_gets_none_is_over_budget_after_a_kill_too() {
    for kill in [false, true] {
        let mut world = TestWorld::with(priced_for_tests());
        let agent = world.spawn("a");
        let pattern = json!({ "custom": { "event_type": "ping" } });
        let trigger = NewTrigger { session_mode: Some(SessionMode::New), ..new(&pattern) };
        let id = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
        ping(&mut world);
        let mut call = world.next_call();
        let reserved = world.ask(GetBudget(Scope::Global)).unwrap().reserved;
        allow(&mut world, reserved.0 + 1);
        ping(&mut world);
        assert!(world.calls.is_empty(), "the second turn waits");
        assert_eq!(ends(&log(&mut world, id)), [2, 0, 0]);
        if kill {
            world.restart();
            world.step();
        } else {
            let input = u32::try_from(reserved.0).unwrap();
            let usage = Usage::of(input.into(), 0);
            let said = ModelAnswer { usage, ..answer(vec![Block::Text { text: "dear".into() }]) };
            world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
            assert!(world.calls.is_empty());
            let log = log(&mut world, id);
            assert_eq!((ends(&log), log.begun(), log.last_outcome), ([1, 1, 0], 2, Some(FireOutcome::OverBudget)));
            let ended: Vec<_> = log.fires.iter().map(|fire| fire.end).collect();
            assert_eq!(ended, [Some(TurnEnd::Done), Some(TurnEnd::Failed)]);
            continue;
        }
        // The call that was out has cost what was reserved for it: neither turn finds money any more.
        while !world.calls.is_empty() {
            call = world.next_call();
            world.answer(call.attempt, "seen");
        }
        let log = log(&mut world, id);
        assert_eq!((ends(&log), log.begun()), ([0, 2, 0], 2));
    }
}
