//! How far runs read, over several runs, limits and restarts.

use agentsvc_components::auto_dream::{DreamId, DreamOutcome, DreamRun};
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::{AgentId, TurnId};
use uuid::Uuid;

use super::tests::{dreamer, settings};
use super::*;
use crate::kernel::entities::Get;
use crate::testing::{TestWorld, answer};

fn id(number: u128) -> MemoryEntryId {
    MemoryEntryId(Uuid::from_u128(number))
}

fn run(world: &mut TestWorld, agent: AgentId) -> (ModelCall, DreamRun) {
    world.ask(TriggerDream(agent)).unwrap();
    let call = world.next_call();
    let run = world.ask(Get::<DreamView>(DreamId::from(agent))).unwrap().dream.run.unwrap();
    (call, run)
}

fn from(world: &mut TestWorld, agent: AgentId, turn: TurnId) -> Option<MemoryEntryId> {
    world.ask(GetDreamPlace { agent, turn }).unwrap().unwrap().from
}

/// Reads pages of ten entries from `from` on, until it may not go on or has read up to `last`.
fn read(world: &mut TestWorld, agent: AgentId, turn: TurnId, last: u128) -> u128 {
    let mut at = from(world, agent, turn).map_or(0, |id| id.0.as_u128());
    loop {
        let after = Some(at).filter(|at| *at > 0).map(id);
        let next = Some(at + 10).filter(|next| *next < last).map(id);
        let goes_on = world.ask(NoteDreamPage { agent, turn, after, next }).unwrap();
        at = (at + 10).min(last);
        if !goes_on {
            return at;
        }
    }
}

#[test]
fn runs_go_on_where_the_last_one_stopped_until_all_is_read_and_then_begin_again() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    let mut ends = Vec::new();
    for _ in 0..5 {
        let (call, DreamRun { turn, .. }) = run(&mut world, agent);
        ends.push(read(&mut world, agent, turn, 120));
        world.answer(call.attempt, "done");
    }
    assert_eq!(
        ends,
        [30, 60, 90, 120, 30],
        "of the five pages that fit into 200,000 tokens, three are for this reading"
    );
    world.restart();
    let (_, DreamRun { turn, .. }) = run(&mut world, agent);
    assert_eq!(from(&mut world, agent, turn), Some(id(30)), "it is stored");
    assert_eq!(world.ask(GetDreamPlace { agent, turn: TurnId(Uuid::nil()) }).unwrap(), None, "another turn");
    assert!(world.ask(NoteDreamPage { agent, turn: TurnId(Uuid::nil()), after: None, next: None }).is_err());
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_second_reading_has_the_rest_of_the_pages_and_goes_on_where_the_last_one_stopped() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (call, DreamRun { turn, .. }) = run(&mut world, agent);
        ends.push((read(&mut world, agent, turn, 1_000), read(&mut world, agent, turn, 1_000)));
        world.answer(call.attempt, "done");
    }
    assert_eq!(ends, [(30, 20), (60, 40)]);
    world.restart();
    let (_, DreamRun { turn, from: first, .. }) = run(&mut world, agent);
    assert_eq!(first, Some(id(60)));
    read(&mut world, agent, turn, 1_000);
    assert_eq!(from(&mut world, agent, turn), Some(id(40)), "it is stored");
}

#[test]
fn where_few_entries_are_trusted_all_are_seen_over_several_runs() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    let mut ends = Vec::new();
    for _ in 0..4 {
        let (call, DreamRun { turn, .. }) = run(&mut world, agent);
        ends.push((read(&mut world, agent, turn, 10), read(&mut world, agent, turn, 100)));
        world.answer(call.attempt, "done");
    }
    assert_eq!(ends, [(10, 40), (10, 80), (10, 100), (10, 40)]);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn after_a_run_that_does_not_succeed_the_next_repeats_its_last_page_only_and_never_the_same_for_ever() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    let mut begins = Vec::new();
    for pages in [3, 1, 1] {
        let (call, DreamRun { turn, from, .. }) = run(&mut world, agent);
        begins.push(from);
        let first = from.map_or(0, |id| id.0.as_u128());
        for page in 0..pages {
            let at = first + page * 10;
            let after = Some(at).filter(|at| *at > 0).map(id);
            world.ask(NoteDreamPage { agent, turn, after, next: Some(id(at + 10)) }).unwrap();
        }
        world.ask(AbortDream(agent)).unwrap();
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
        let dream = world.ask(Get::<DreamView>(DreamId::from(agent))).unwrap().dream;
        assert_eq!(dream.last.unwrap().outcome, DreamOutcome::Aborted);
    }
    assert_eq!(begins, [None, Some(id(20)), Some(id(30))]);
    let (_, DreamRun { from, .. }) = run(&mut world, agent);
    assert_eq!(from, Some(id(40)));
}
