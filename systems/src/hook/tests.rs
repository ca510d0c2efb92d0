//! Hooks in virtual time.

use agentsvc_components::hook::{HookCall, HookCallId, HookKind, HookState, HookTarget};
use agentsvc_components::kernel::job::RunJob;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::{ModelName, Turn};
use agentsvc_components::{AgentId, RefusalKind, SessionId};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::entities::Get;
use crate::session::GetSession;
use crate::testing::TestWorld;

const HOUR_MS: i64 = 60 * 60 * 1_000;

fn id(n: u128) -> HookCallId {
    HookCallId(Uuid::from_u128(n << 12))
}

fn command(agent: AgentId, n: u128) -> SendHookCall {
    SendHookCall {
        id: id(n),
        agent,
        kind: HookKind::Agent,
        waits: false,
        session: Some(SessionId(Uuid::from_u128(7 << 12))),
        key: format!("agent:{n}"),
        digest: "d".to_owned(),
        message: format!("message {n}"),
        taint: Taint::EVENT,
        found: Vec::new(),
        timeout_ms: 120_000,
        model: None,
        target: None,
        held: false,
        trace: None,
    }
}

fn later(agent: AgentId, n: u128) -> SendHookCall {
    SendHookCall { kind: HookKind::Wake, waits: true, session: None, ..command(agent, n) }
}

fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

fn get(world: &mut TestWorld, n: u128) -> HookCall {
    world.ask(Get::<HookCallView>(id(n))).unwrap().call
}

fn is_sound(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_call_is_answered_in_the_step_in_which_its_turn_ends() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let current = world.ask(GetSession::Current(agent)).unwrap().id;
    let sent = world.ask(command(agent, 1)).unwrap();
    assert!(sent.call.state == HookState::Running && sent.call.session != Some(current));
    let turn = crate::kernel::index::turn(world.engine.world(), sent.call.turn.unwrap()).unwrap();
    assert!(world.engine.world().get::<Turn>(turn).unwrap().taint.holds(Taint::EVENT));
    let waits = world.begin(AwaitHookCall(id(1)));
    world.step();
    assert!(waits.take().is_none());
    let call = world.next_call();
    world.answer(call.attempt, "hi there");
    let ended = waits.take().unwrap().unwrap();
    assert_eq!((ended.call.state, ended.call.result.as_deref()), (HookState::Completed, Some("hi there")));
    assert!(ended.call.input_tokens > 0);
    is_sound(&mut world);
}

#[test]
fn a_repetition_gets_the_same_call_and_another_message_is_refused() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.ask(command(agent, 1)).unwrap();
    let again = SendHookCall { id: id(2), ..command(agent, 1) };
    let repeated = world.ask(again.clone()).unwrap();
    assert!(repeated.id == first.id && repeated.is_repeated);
    world.restart();
    assert_eq!(world.ask(again.clone()).unwrap().id, first.id, "also after a restart");
    let refused = world.ask(SendHookCall { digest: "other".to_owned(), ..again }).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::HOOK_KEY_REUSED));
    let bare = |n| SendHookCall { key: String::new(), ..command(agent, n) };
    let (one, two) = (world.ask(bare(3)).unwrap().id, world.ask(bare(4)).unwrap().id);
    assert!(one != two, "what has no key is never a repetition");
    is_sound(&mut world);
}

#[test]
fn a_call_that_takes_too_long_is_stopped() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    world.next_call();
    wait(&mut world, 119_999);
    assert_eq!(get(&mut world, 1).state, HookState::Running);
    wait(&mut world, 1);
    assert_eq!(get(&mut world, 1).state, HookState::TimedOut);
    is_sound(&mut world);
    wait(&mut world, limits::HOOK_CALL_KEPT_MS);
    assert!(world.ask(Get::<HookCallView>(id(1))).is_err(), "kept for a day");
    assert_eq!(world.ask(SendHookCall { id: id(2), ..command(agent, 1) }).unwrap().id, id(2), "its key is free again");
}

#[test]
fn a_failed_turn_fails_its_call_and_a_restart_loses_none() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    world.next_call();
    world.restart();
    assert_eq!(get(&mut world, 1).state, HookState::Running);
    let call = world.next_call();
    world.answer(call.attempt, "after all");
    assert_eq!(get(&mut world, 1).state, HookState::Completed);
    is_sound(&mut world);
}

#[test]
fn wakes_wait_for_the_heartbeat_and_are_told_in_one_turn() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    for n in 1..=3 {
        assert_eq!(world.ask(later(agent, n)).unwrap().call.state, HookState::Waiting);
    }
    assert_eq!(world.calls.len(), 0);
    world.restart();
    is_sound(&mut world);
    // As a schedule of the agent fires.
    wake::heartbeat(world.engine.world_mut(), agent);
    wait(&mut world, 1);
    let call = world.next_call();
    assert!(world.calls.is_empty(), "one turn");
    let turns: Vec<_> = (1..=3).map(|n| get(&mut world, n).turn).collect();
    assert!(turns[0].is_some() && turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
    world.answer(call.attempt, "noted");
    assert!((1..=3).all(|n| get(&mut world, n).state == HookState::Completed));
    is_sound(&mut world);
}

#[test]
fn a_wake_waits_an_hour_at_most_and_ends_with_its_agent() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("scout"), world.spawn("other"));
    world.ask(later(agent, 1)).unwrap();
    world.ask(later(other, 2)).unwrap();
    world.ask(RemoveAgents(vec![other])).unwrap();
    assert_eq!(get(&mut world, 2).state, HookState::Failed);
    wait(&mut world, HOUR_MS - 1_000);
    assert_eq!(get(&mut world, 1).state, HookState::Waiting);
    wait(&mut world, 1_000);
    assert_eq!(get(&mut world, 1).state, HookState::Running);
    is_sound(&mut world);
}

#[test]
fn so_many_wakes_wait_and_so_many_calls_run() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    for n in 0..limits::HOOK_AGENT_WAITING_MAX as u128 {
        world.ask(later(agent, n + 1)).unwrap();
    }
    let refused = world.ask(later(agent, 5_000)).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::HOOK_CALLS_FULL)));
    is_sound(&mut world);
}

#[test]
fn a_model_of_its_own_answers_one_call() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let model = Some(ModelName { provider: "other".into(), model: "m-2".into() });
    world.ask(SendHookCall { model, ..command(agent, 1) }).unwrap();
    let call = world.next_call();
    assert_eq!((&*call.model.provider, &*call.model.model), ("other", "m-2"));
    world.answer(call.attempt, "done");
    world.ask(command(agent, 2)).unwrap();
    assert_eq!(&*world.next_call().model.provider, "builtin");
    is_sound(&mut world);
}

#[test]
fn an_answer_for_a_channel_is_a_job() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let target = Some(HookTarget { channel: "ops".into(), recipient: None });
    world.ask(SendHookCall { target, ..command(agent, 1) }).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "all well");
    let job = world.effects.drain(..).find_map(|effect| effect.take::<RunJob>().ok()).expect("a job");
    assert!(job.kind == DELIVER && job.input.contains("\"ops\"") && job.input.contains("all well"), "{job:?}");
    is_sound(&mut world);
}

#[test]
fn what_is_held_stays_until_it_is_released() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(SendHookCall { held: true, kind: HookKind::Inbox, ..command(agent, 1) }).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "read");
    wait(&mut world, 3 * limits::HOOK_CALL_KEPT_MS);
    assert!(world.ask(SendHookCall { id: id(2), ..command(agent, 1) }).unwrap().is_repeated);
    world.ask(ReleaseHookCall(id(1))).unwrap();
    wait(&mut world, 1);
    assert!(world.ask(Get::<HookCallView>(id(1))).is_err());
    assert!(!world.ask(SendHookCall { id: id(2), ..command(agent, 1) }).unwrap().is_repeated);
    is_sound(&mut world);
}

#[test]
fn files_of_the_inbox_leave_room_for_calls() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let file = |n: u128| SendHookCall { kind: HookKind::Inbox, session: None, ..command(agent, n) };
    for n in 0..limits::HOOK_INBOX_RUNNING_MAX as u128 {
        world.ask(file(n + 1)).unwrap();
    }
    let refused = world.ask(file(1_000)).unwrap_err();
    assert_eq!((refused.code, refused.retry_after_secs), (Some(error_codes::HOOK_CALLS_FULL), Some(5)));
    world.ask(command(agent, 1_001)).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "read");
    world.ask(file(1_000)).unwrap();
    world.restart();
    assert!(world.ask(file(1_002)).is_err(), "they are counted again after a restart");
    is_sound(&mut world);
}
