//! What clients of A2A may spend, in virtual time: tasks, and all that they begin.

use agentsvc_components::a2a::A2aState;
use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::{AgentId, Micros, RefusalKind, ScheduleId};

use super::tests::{command, get, task};
use super::*;
use crate::Settings;
use crate::budget::ReserveSampling;
use crate::config::{A2aSettings, Reconfigure};
use crate::event::parse_pattern;
use crate::kernel::entities::Get;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::schedule::tests::plain;
use crate::schedule::{CreateSchedule, GetSchedule, RunSchedule, definition};
use crate::testing::{TestWorld, answer};
use crate::trigger::{CreateTrigger, GetTriggerFires, NewTrigger};
use crate::turn::{NewMessage, SendMessage, SendToAgent};
use crate::usage::{Calls, NoteModelCall, priced_for_tests};

/// What an answer of these tests costs, from its ten tokens in and five out.
const COST: u64 = 20;
/// What a call reserves: a context of 1,000 tokens at a micro-dollar, 100 of an answer at two.
const WORST: u64 = 1_000 + 2 * 100;

fn settings(daily_limit: u64) -> Settings {
    let mut settings = priced_for_tests();
    settings.context_tokens.insert("builtin".into(), 1_000);
    settings.budget.answer_tokens_max = 100;
    settings.a2a = A2aSettings { is_off: false, daily_limit: Micros(daily_limit) };
    settings
}

fn spent(world: &TestWorld) -> u64 {
    spending::spent(world.engine.world(), None).0
}

fn reserved(world: &TestWorld) -> u64 {
    world.engine.world().resource::<Calls>().reserved_of_guests().0
}

/// An answer that costs [`COST`].
fn answered(world: &mut TestWorld) {
    let attempt = world.next_call().attempt;
    world.answer(attempt, "done");
}

/// The model of the next call asks for a tool; gives the run of it.
fn asks(world: &mut TestWorld, tool: &str) -> ToolRun {
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c".into(), name: tool.into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    *effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).expect("the tool runs")
}

/// A schedule of a release in which strangers could make one.
fn left_behind(world: &mut TestWorld, agent: AgentId) -> ScheduleId {
    let new = plain(agent, "every 1s");
    let id = world.ask(CreateSchedule { new, by_tool: false }).unwrap().id;
    let world_mut = world.engine.world_mut();
    let mut all = world_mut.query::<(bevy_ecs::prelude::Entity, &mut Schedule)>();
    let (entity, mut schedule) = all.iter_mut(world_mut).next().expect("the schedule");
    schedule.taint = Taint::GUEST;
    let record = definition(world_mut, entity).expect("its record");
    world_mut.op(record::put(&record));
    world.step();
    id
}

fn a_second_later(world: &mut TestWorld) {
    world.now = world.now.plus_ms(1_000);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    while world.engine.has_work() {
        world.step();
    }
}

#[test]
fn what_a_task_left_behind_calls_no_model_once_the_limit_is_used_up() {
    let mut world = TestWorld::with(settings(3 * COST));
    let agent = world.spawn("scout");
    let id = left_behind(&mut world, agent);
    let mut calls = 0;
    for _ in 0..20 {
        a_second_later(&mut world);
        while !world.calls.is_empty() {
            answered(&mut world);
            calls += 1;
        }
    }
    assert_eq!((calls, spent(&world)), (3, 3 * COST));
    let refused = world.ask(RunSchedule { kind: ScheduleKind::Schedule, id }).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::A2A_BUDGET_EXCEEDED)));
    let tally = world.ask(GetSchedule { kind: ScheduleKind::Schedule, id }).unwrap().past.tally;
    assert!(tally.over_budget >= 16 && tally.refused == 0, "{tally:?}");
    world.restart();
    a_second_later(&mut world);
    assert!(world.calls.is_empty(), "a restart forgives nothing");
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("mine") });
    world.step();
    answered(&mut world);
    assert!(asked.take().unwrap().is_ok(), "the owner is not stopped by it");
    assert_eq!(spent(&world), 3 * COST);
    world.now = world.now.plus_ms(24 * 60 * 60 * 1_000);
    a_second_later(&mut world);
    assert_eq!(world.calls.len(), 1, "another day");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_chain_of_messages_that_are_not_awaited_stops_at_the_limit() {
    let mut world = TestWorld::with(settings(4 * COST));
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    let mut calls = 0;
    while !world.calls.is_empty() {
        calls += 1;
        assert!(calls < 50, "it goes on without an end");
        let run = asks(&mut world, "agent_send");
        let (from, index, text) = (run.attempt, run.index, "go on".to_owned());
        let send = SendToAgent { from, index, to: "scout".into(), session: None, text, wait: false, found: None };
        world.ask(send).unwrap();
    }
    assert_eq!((calls, spent(&world)), (4, 4 * COST));
    assert_eq!(get(&mut world, 1).task.state, A2aState::Failed);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_call_waits_where_those_that_are_out_may_use_up_the_limit() {
    let mut world = TestWorld::with(settings(WORST + 100));
    let agent = world.spawn("scout");
    for n in 1..=3 {
        world.ask(command(agent, n)).unwrap();
    }
    assert_eq!((world.calls.len(), reserved(&world)), (1, WORST));
    for left in (0..3).rev() {
        answered(&mut world);
        assert_eq!(world.calls.len(), usize::from(left > 0));
    }
    assert_eq!((spent(&world), reserved(&world)), (3 * COST, 0));
    assert!((1..=3).all(|n| get(&mut world, n).task.state == A2aState::Completed));
    // A single call goes out even where it alone could cost more than is left.
    world.ask(Reconfigure(Box::new(settings(WORST / 2)))).unwrap();
    world.ask(command(agent, 4)).unwrap();
    assert_eq!(world.calls.len(), 1);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_call_that_is_lost_costs_what_was_reserved() {
    let mut world = TestWorld::with(settings(WORST));
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    world.restart();
    assert_eq!((spent(&world), world.calls.len()), (WORST, 0), "its turn does not ask again");
    assert_eq!(get(&mut world, 1).task.state, A2aState::Failed);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_call_inside_a_tool_counts_and_is_bounded_too() {
    let mut world = TestWorld::with(settings(WORST + COST));
    let agent = world.spawn("scout");
    let sent = world.ask(command(agent, 1)).unwrap();
    asks(&mut world, "x");
    let reserve = ReserveSampling { agent, turn: sent.task.turn, answer_tokens_max: 100 };
    let grant = world.ask(reserve.clone()).unwrap().grant;
    assert_eq!(reserved(&world), WORST);
    assert_eq!(world.ask(reserve.clone()).unwrap_err().kind, RefusalKind::Busy);
    let builtin: Box<str> = "builtin".into();
    let used = agentsvc_components::usage::CallUse {
        provider: builtin.clone(),
        model: builtin,
        usage: agentsvc_components::session::message::Usage::of(WORST, 0),
        ..Default::default()
    };
    world.ask(NoteModelCall { channel: "x".into(), grant: Some(grant), used }).unwrap();
    assert_eq!((spent(&world), reserved(&world)), (WORST + COST, 0));
    assert_eq!(world.ask(reserve).unwrap_err().code, Some(error_codes::A2A_BUDGET_EXCEEDED));
}

#[test]
fn with_a2a_off_nothing_that_a_client_began_calls_a_model() {
    let mut world = TestWorld::with(settings(0));
    let agent = world.spawn("scout");
    let id = left_behind(&mut world, agent);
    a_second_later(&mut world);
    answered(&mut world);
    world.ask(command(agent, 1)).unwrap();
    let run = asks(&mut world, "agent_send");
    let off = A2aSettings { is_off: true, ..A2aSettings::default() };
    world.settings.a2a = off;
    world.ask(Reconfigure(Box::new(Settings { a2a: off, ..settings(0) }))).unwrap();
    let (from, index, text) = (run.attempt, run.index, "go on".to_owned());
    world.ask(SendToAgent { from, index, to: "scout".into(), session: None, text, wait: false, found: None }).unwrap();
    assert_eq!(get(&mut world, 1).task.state, A2aState::Failed);
    for restarts in [false, true] {
        if restarts {
            world.restart();
        }
        a_second_later(&mut world);
        assert!(world.calls.is_empty());
        let refused = world.ask(RunSchedule { kind: ScheduleKind::Schedule, id }).unwrap_err();
        assert_eq!(refused.code, Some(error_codes::A2A_OFF));
    }
    let owner = index::agent(world.engine.world(), agent).unwrap();
    assert!(world.engine.world().get::<Agent>(owner).is_some());
    let _asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("mine") });
    world.step();
    assert_eq!(world.calls.len(), 1, "the owner's own turns go on");
    assert!(world.ask(Get::<A2aTaskView>(task(1))).is_ok());
}

#[test]
fn what_the_owners_trigger_begins_counts_for_the_client_that_caused_it() {
    let mut world = TestWorld::with(settings(2 * COST));
    let (agent, watcher) = (world.spawn("scout"), world.spawn("watcher"));
    // All without a key have used up their day.
    for n in 1..=2 {
        world.ask(command(agent, n)).unwrap();
        answered(&mut world);
    }
    assert_eq!(spent(&world), 2 * COST);
    let trigger = NewTrigger {
        pattern: parse_pattern(&serde_json::json!({ "turn_completed": {} })).unwrap(),
        prompt_template: "Look".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    };
    let id = world.ask(CreateTrigger { agent: watcher, trigger }).unwrap().id;
    world.ask(SendA2aTask { client: "partner".into(), ..command(agent, 3) }).unwrap();
    answered(&mut world);
    assert_eq!((world.calls.len(), reserved(&world)), (1, WORST), "the trigger has fired");
    assert_eq!(world.engine.check(), [] as [String; 0]);
    answered(&mut world);
    let of_partner = |world: &TestWorld| spending::spent(world.engine.world(), Some("partner")).0;
    assert_eq!((spent(&world), of_partner(&world)), (2 * COST, 2 * COST));
    // What it would begin next is over the client's own limit.
    assert_eq!(world.calls.len(), 0);
    let log = world.ask(GetTriggerFires(id)).unwrap().log;
    assert_eq!(log.last_outcome, Some(FireOutcome::OverBudget), "{log:?}");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn what_is_reserved_is_known_for_each_client_without_a_look_at_all_calls() {
    let mut world = TestWorld::with(settings(WORST + COST));
    let agent = world.spawn("scout");
    let by = |n, client: &str| SendA2aTask { client: client.into(), ..command(agent, n) };
    for (n, client) in [(1, "partner"), (2, "other"), (3, "partner")] {
        world.ask(by(n, client)).unwrap();
    }
    world.ask(command(agent, 4)).unwrap();
    // One of each client is out; the second of the same one waits.
    assert_eq!((world.calls.len(), reserved(&world)), (3, 3 * WORST));
    assert_eq!(world.engine.check(), [] as [String; 0]);
    (0..4).for_each(|_| answered(&mut world));
    let of = |world: &TestWorld, client| spending::spent(world.engine.world(), client).0;
    assert_eq!((of(&world, Some("partner")), of(&world, Some("other")), of(&world, None)), (2 * COST, COST, COST));
    assert_eq!(reserved(&world), 0);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}
