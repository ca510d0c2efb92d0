//! A2A tasks in virtual time.

use agentsvc_components::a2a::{A2aDay, A2aState, A2aTask, A2aTaskId, PushTarget};
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::record::StoredComponent;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::{AgentId, Micros, RefusalKind, SessionId};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::entities::Get;
use crate::session::GetSession;
use crate::testing::{TestWorld, answer};
use crate::turn::SendToAgent;

const HOUR_MS: i64 = 60 * 60 * 1_000;

pub(super) fn task(n: u128) -> A2aTaskId {
    A2aTaskId(Uuid::from_u128(n << 12))
}

pub(super) fn command(agent: AgentId, n: u128) -> SendA2aTask {
    SendA2aTask {
        id: task(n),
        agent,
        agent_name: "scout".to_owned(),
        client: format!("@{n}"),
        context: format!("context-{n}"),
        session: SessionId(Uuid::from_u128(1_000_000 + n)),
        client_id: None,
        key: format!("m:{n}"),
        digest: "d".to_owned(),
        message_id: "m".to_owned(),
        message: "hello".to_owned(),
        shielded: None,
        found: Vec::new(),
        push: None,
        daily_limit: Micros::ZERO,
        trace: None,
    }
}

fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

pub(super) fn get(world: &mut TestWorld, n: u128) -> A2aTaskView {
    world.ask(Get::<A2aTaskView>(task(n))).unwrap()
}

/// Sends a task and has it answered.
fn answered(world: &mut TestWorld, agent: AgentId, n: u128, text: &str) {
    world.ask(command(agent, n)).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, text);
}

#[test]
fn a_task_is_answered_in_the_step_in_which_its_turn_ends() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let sent = world.ask(command(agent, 1)).unwrap();
    assert_eq!(sent.task.state, A2aState::Working);
    let waits = world.begin(AwaitA2aTask(task(1)));
    world.step();
    assert!(waits.take().is_none());
    let call = world.next_call();
    world.answer(call.attempt, "hi there");
    let ended = waits.take().unwrap().unwrap();
    assert_eq!((ended.task.state, ended.task.result.as_deref()), (A2aState::Completed, Some("hi there")));
    assert_eq!(world.ask(AwaitA2aTask(task(1))).unwrap(), ended, "it has ended: nobody waits");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn its_message_is_untrusted_and_its_session_its_own() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let current = world.ask(GetSession::Current(agent)).unwrap().id;
    let sent = world.ask(command(agent, 1)).unwrap();
    assert!(sent.task.session != current);
    let turn = crate::kernel::index::turn(world.engine.world(), sent.task.turn).unwrap();
    assert!(world.engine.world().get::<Turn>(turn).unwrap().taint.holds(Taint::GUEST));
}

#[test]
fn what_is_sent_again_is_the_same_task_and_another_message_is_refused() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.ask(command(agent, 1)).unwrap();
    let again = SendA2aTask { id: task(2), ..command(agent, 1) };
    assert_eq!(world.ask(again.clone()).unwrap().id, first.id);
    let other = SendA2aTask { digest: "other".to_owned(), ..again };
    let refused = world.ask(other).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::A2A_TASK_EXISTS));
    assert_eq!(world.calls.len(), 1);
    let bare = |n| SendA2aTask { key: String::new(), ..command(agent, n) };
    let (one, two) = (world.ask(bare(3)).unwrap().id, world.ask(bare(4)).unwrap().id);
    assert!(one != two, "what has no key is never a repetition");
}

#[test]
fn a_task_is_found_by_the_id_that_its_client_knows() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    let own = SendA2aTask { client_id: Some("mine".to_owned()), key: "t:mine".to_owned(), ..command(agent, 2) };
    world.ask(own).unwrap();
    let mut find = |id: Option<A2aTaskId>, key: &str| world.ask(FindA2aTask { id, key: key.to_owned() });
    assert_eq!(find(Some(task(1)), "t:").unwrap().id, task(1));
    assert_eq!(find(None, "t:mine").unwrap().shown_id(), "mine");
    for (id, key) in [(Some(task(2)), "t:x"), (Some(task(9)), "t:x"), (None, "m:1x")] {
        assert_eq!(find(id, key).unwrap_err().kind, RefusalKind::NotFound);
    }
}

#[test]
fn a_cancelled_task_stays_cancelled_and_an_ended_one_cannot_be() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    let call = world.next_call();
    assert_eq!(world.ask(CancelA2aTask(task(1))).unwrap().task.state, A2aState::Cancelled);
    assert_eq!(world.ask(CancelA2aTask(task(1))).unwrap().task.state, A2aState::Cancelled);
    world.answer(call.attempt, "too late");
    assert_eq!(get(&mut world, 1).task.state, A2aState::Cancelled);
    answered(&mut world, agent, 2, "done");
    let refused = world.ask(CancelA2aTask(task(2))).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::Conflict, Some(error_codes::A2A_TASK_ENDED)));
    assert!(world.ask(CancelA2aTask(task(3))).is_err());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_restart_goes_on_with_the_turn_and_ends_the_task_once() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    world.next_call();
    world.restart();
    assert_eq!(get(&mut world, 1).task.state, A2aState::Working);
    let call = world.next_call();
    world.answer(call.attempt, "after all");
    assert_eq!(get(&mut world, 1).task.result.as_deref(), Some("after all"));
    world.restart();
    assert_eq!(get(&mut world, 1).task.result.as_deref(), Some("after all"));
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_task_ends_when_its_turn_or_its_agent_goes() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    let gone = get(&mut world, 1);
    assert_eq!(gone.task.state, A2aState::Failed);
    assert!(gone.task.result.unwrap().starts_with("the agent could not answer"), "no detail of the failure");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_task_that_takes_too_long_fails_and_an_ended_one_goes_with_its_session() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    answered(&mut world, agent, 1, "done");
    let session = get(&mut world, 1).task.session;
    world.ask(command(agent, 2)).unwrap();
    wait(&mut world, HOUR_MS + 1);
    assert_eq!(get(&mut world, 2).task.state, A2aState::Failed);
    assert!(world.ask(GetSession::ById(session)).is_ok());
    wait(&mut world, 23 * HOUR_MS);
    assert!(world.ask(Get::<A2aTaskView>(task(1))).is_err() && world.ask(GetSession::ById(session)).is_err());
    wait(&mut world, 24 * HOUR_MS);
    assert!(!world.store.keys().any(|(_, key)| key[0] == A2aTask::KEY), "nothing is left of them");
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn so_many_are_open_and_so_many_are_kept() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    for n in 0..limits::A2A_TASKS_OPEN_MAX as u128 {
        world.ask(command(agent, n)).unwrap();
    }
    let refused = world.ask(command(agent, 999)).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::A2A_TASKS_FULL)));
    for n in 0..limits::A2A_TASKS_OPEN_MAX as u128 {
        world.ask(CancelA2aTask(task(n))).unwrap();
    }
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let long = "x".repeat(limits::A2A_MESSAGE_BYTES_MAX);
    for n in 0..600 {
        let big = SendA2aTask { message: long.clone(), ..command(agent, n) };
        world.ask(big).unwrap();
        world.ask(CancelA2aTask(task(n))).unwrap();
        world.calls.clear();
    }
    let used = world.engine.world().resource::<index::Tasks>().used;
    assert!(used.bytes <= limits::A2A_TASKS_BYTES_MAX && used.count < 600, "{used:?}");
    assert!(world.ask(Get::<A2aTaskView>(task(0))).is_err() && world.ask(Get::<A2aTaskView>(task(599))).is_ok());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn what_is_told_of_ends_counts_for_the_bytes_of_tasks() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let count = limits::A2A_TASKS_BYTES_MAX / limits::A2A_RESULT_BYTES_MAX + 4;
    for n in 0..count {
        answered(&mut world, agent, n as u128, &"x".repeat(limits::A2A_RESULT_BYTES_MAX));
    }
    let last = task(count as u128 - 1);
    for n in 0..64_usize {
        let url = "u".repeat(limits::A2A_PUSH_URL_BYTES_MAX);
        let target = PushTarget { id: format!("{}", n % 4).into(), url: url.into(), ..PushTarget::default() };
        let of = task((count - 1 - n / 4) as u128);
        world.ask(SetA2aPush { task: of, target }).unwrap();
    }
    let used = world.engine.world().resource::<index::Tasks>().used;
    assert!(used.bytes <= limits::A2A_TASKS_BYTES_MAX, "{used:?}");
    assert!(world.ask(Get::<A2aTaskView>(last)).is_ok() && world.ask(Get::<A2aTaskView>(task(4))).is_err());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_long_answer_is_cut_and_the_client_is_told() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    answered(&mut world, agent, 1, &"ä".repeat(limits::A2A_RESULT_BYTES_MAX));
    let result = get(&mut world, 1).task.result.unwrap();
    assert!(result.len() <= limits::A2A_RESULT_BYTES_MAX && result.ends_with("bytes ...]"), "{}", result.len());
}

#[test]
fn what_a_task_begins_and_does_not_wait_for_costs_as_well() {
    let mut world = TestWorld::with(crate::usage::priced_for_tests());
    let agent = world.spawn("scout");
    world.spawn("other");
    world.ask(command(agent, 1)).unwrap();
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c".into(), name: "agent_send".into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    let run = effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).unwrap();
    let (from, index) = (run.attempt, run.index);
    let text = "go on".to_owned();
    world.ask(SendToAgent { from, index, to: "other".into(), session: None, text, wait: false, found: None }).unwrap();
    let spent = |world: &TestWorld| spending::spent(world.engine.world(), None);
    let attempts = [world.next_call().attempt, world.next_call().attempt];
    let of_task = attempts.iter().position(|attempt| attempt.job == from.job).unwrap();
    world.answer(attempts[of_task], "done");
    assert_eq!(get(&mut world, 1).task.state, A2aState::Completed);
    let before = spent(&world);
    world.answer(attempts[1 - of_task], "done");
    assert!(spent(&world) > before, "its task has ended");
}

#[test]
fn what_tasks_cost_in_a_day_is_bounded_and_another_day_begins_anew() {
    let mut world = TestWorld::with(crate::usage::priced_for_tests());
    let agent = world.spawn("scout");
    answered(&mut world, agent, 1, "done");
    let spent = spending::spent(world.engine.world(), None);
    assert!(spent > Micros::ZERO);
    let bounded = |n, limit| SendA2aTask { daily_limit: limit, ..command(agent, n) };
    let refused = world.ask(bounded(2, spent)).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::A2A_BUDGET_EXCEEDED)));
    assert!(refused.retry_after_secs.unwrap() <= 86_400);
    world.restart();
    assert!(world.ask(bounded(3, spent)).is_err(), "a restart forgives nothing");
    world.ask(bounded(4, spent.plus(Micros(1)))).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "done");
    wait(&mut world, 24 * HOUR_MS);
    world.ask(bounded(5, spent)).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "done");
    assert_eq!(world.store.keys().filter(|(_, key)| key[0] == A2aDay::KEY).count(), 1);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

fn target(id: &str) -> PushTarget {
    PushTarget { id: id.into(), url: "https://hooks.example/".into(), ..PushTarget::default() }
}

/// The notifications that went out since this was asked last.
fn pushes(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

#[test]
fn the_end_of_a_task_is_told_to_its_targets_and_told_again_after_a_restart() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(SendA2aTask { push: Some(target("a")), ..command(agent, 1) }).unwrap();
    world.ask(SetA2aPush { task: task(1), target: target("b") }).unwrap();
    world.ask(SetA2aPush { task: task(1), target: target("c") }).unwrap();
    world.ask(DeleteA2aPush { task: task(1), target: "c".to_owned() }).unwrap();
    assert!(world.ask(DeleteA2aPush { task: task(1), target: "c".to_owned() }).is_err());
    assert!(pushes(&mut world).is_empty());
    let call = world.next_call();
    world.answer(call.attempt, "done");
    let mut out = pushes(&mut world);
    assert_eq!(out.iter().map(|run| &*run.input).collect::<Vec<_>>(), ["a", "b"]);
    world.outcome(JobOutcome(out.remove(0).attempt, TryEnd::Done("200".to_owned())));
    world.restart();
    let again = pushes(&mut world);
    assert_eq!(again.iter().map(|run| &*run.input).collect::<Vec<_>>(), ["b"]);
    world.ask(SetA2aPush { task: task(1), target: target("late") }).unwrap();
    assert_eq!(pushes(&mut world).iter().map(|run| &*run.input).collect::<Vec<_>>(), ["late"], "it has ended");
    wait(&mut world, 25 * HOUR_MS);
    assert!(!world.store.keys().any(|(_, key)| key[0] == b'q'), "no job outlives its task");
}

#[test]
fn a_task_has_few_targets() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(command(agent, 1)).unwrap();
    for n in 0..limits::A2A_TASK_PUSH_MAX {
        world.ask(SetA2aPush { task: task(1), target: target(&n.to_string()) }).unwrap();
    }
    let refused = world.ask(SetA2aPush { task: task(1), target: target("more") }).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::A2A_PUSH_FULL));
    world.ask(SetA2aPush { task: task(1), target: target("0") }).unwrap();
    assert_eq!(get(&mut world, 1).task.push.len(), limits::A2A_TASK_PUSH_MAX);
}

#[test]
fn a_clock_that_was_ahead_keeps_no_task_longer() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    wait(&mut world, 1_000 * HOUR_MS);
    answered(&mut world, agent, 1, "done");
    wait(&mut world, -999 * HOUR_MS);
    wait(&mut world, 25 * HOUR_MS);
    assert!(world.ask(Get::<A2aTaskView>(task(1))).is_err());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}
