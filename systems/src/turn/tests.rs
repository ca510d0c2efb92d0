//! The turn's transitions, one by one, in virtual time.

use agentsvc_components::agent::AgentState;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::sweep::{LogSwept, SweepLog};
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{
    FailureCode, ModelEnd, ModelFailure, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus,
};
use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_components::{AgentId, LogId, RefusalKind, SessionId};
use uuid::Uuid;

use super::*;
use crate::agent::{GetAgent, RemoveAgents, StartAgents, StopAgents};
use crate::config::Settings;
use crate::kernel::counters::StaleOutcomes;
use crate::model::admission::Admission;
use crate::session::{ClearHistory, CreateSession, GetSession, RemoveSession, SessionView};
use crate::testing::{TestWorld, answer, tool_call};
use crate::turn::metrics::TurnTotals;

fn send(agent: AgentId, text: &str) -> SendMessage {
    SendMessage { agent, session: None, message: NewMessage::text(text) }
}

fn send_to(agent: AgentId, session: SessionId, text: &str) -> SendMessage {
    SendMessage { agent, session: Some(session), message: NewMessage::text(text) }
}

fn current(world: &mut TestWorld, agent: AgentId) -> SessionView {
    world.ask(GetSession::Current(agent)).unwrap()
}

fn log_of(world: &mut TestWorld, agent: AgentId) -> LogId {
    current(world, agent).log
}

#[test]
fn a_message_is_stored_before_the_model_is_asked_and_answered_with_its_answer_stored() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let asked = world.begin(send(agent, "hello"));
    world.step();
    assert!(asked.take().is_none());
    let log = log_of(&mut world, agent);
    assert_eq!(world.texts(log), ["hello"]);
    let call = world.next_call();
    assert_eq!((call.attempt.number, call.ordinal, call.log), (1, 0, log));
    world.answer(call.attempt, "hi there");
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((&*reply.response, reply.iterations, reply.end), ("hi there", 1, TurnEnd::Done));
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (10, 5));
    assert_eq!(world.texts(log), ["hello", "hi there"]);
    assert_eq!(current(&mut world, agent).message_count, 2);
    assert!(matches!(world.published.last().unwrap().event, StreamEvent::Done { stopped: false, .. }));
    assert_eq!(world.engine.stats().turns_open, 0);
    let view = world.ask(GetAgent(agent)).unwrap();
    assert_eq!((view.input_tokens, view.output_tokens), (10, 5));
    let kinds: Vec<_> = world.events.iter().map(|event| event.kind().as_str()).collect();
    assert_eq!(kinds, ["agent_spawned", "message_received", "turn_started", "turn_completed"]);
}

#[test]
fn a_second_message_waits_its_turn_and_rows_stand_in_order() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.begin(send(agent, "one"));
    let second = world.begin(send(agent, "two"));
    world.step();
    let call = world.next_call();
    assert!(world.calls.is_empty(), "one running turn per session");
    world.answer(call.attempt, "1");
    assert_eq!(first.take().unwrap().unwrap().response, "1");
    let call = world.next_call();
    assert_eq!(call.ordinal, 1);
    world.answer(call.attempt, "2");
    assert_eq!(second.take().unwrap().unwrap().response, "2");
    let log = log_of(&mut world, agent);
    assert_eq!(world.texts(log), ["one", "1", "two", "2"]);
}

#[test]
fn sessions_of_one_agent_run_side_by_side_and_an_unknown_id_makes_one() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let own = SessionId(Uuid::from_u128(42));
    let _a = world.begin(send(agent, "here"));
    let b = world.begin(send_to(agent, own, "there"));
    world.step();
    assert_eq!(world.calls.len(), 2);
    let call = world.calls.iter().find(|call| call.session == own).unwrap().attempt;
    world.answer(call, "ok");
    assert_eq!(b.take().unwrap().unwrap().session, own);
    assert_ne!(current(&mut world, agent).id, own, "no switch happens");
}

#[test]
fn a_foreign_session_is_refused_and_nothing_changes() {
    let mut world = TestWorld::new();
    let (mine, other) = (world.spawn("mine"), world.spawn("other"));
    let foreign = current(&mut world, other).id;
    let before = world.store.clone();
    let refusal = world.ask(send_to(mine, foreign, "let me in")).unwrap_err();
    assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::Forbidden, Some("session_id")));
    assert_eq!(world.store, before);
}

#[test]
fn an_empty_message_an_unknown_agent_and_a_stopped_agent_are_refused() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    assert_eq!(world.ask(send(agent, "")).unwrap_err().field.as_deref(), Some("message"));
    let nobody = AgentId(Uuid::from_u128(9));
    assert_eq!(world.ask(send(nobody, "x")).unwrap_err().kind, RefusalKind::NotFound);
    world.ask(StopAgents(vec![agent])).unwrap();
    assert_eq!(world.ask(send(agent, "x")).unwrap_err().kind, RefusalKind::Conflict);
}

#[test]
fn a_failed_call_ends_the_turn_with_its_code_and_the_next_one_runs() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.begin(send(agent, "one"));
    let _second = world.begin(send(agent, "two"));
    world.step();
    let call = world.next_call();
    let failure =
        ModelFailure { code: FailureCode::ProviderTimeout, message: "no answer in 60 s".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    let refusal = first.take().unwrap().unwrap_err();
    assert_eq!((refusal.kind, refusal.code.as_deref()), (RefusalKind::Failed, Some("provider_timeout")));
    assert!(matches!(&world.published[0].event, StreamEvent::Error { code, .. } if **code == *"provider_timeout"));
    assert_eq!(world.next_call().ordinal, 1);
    let log = log_of(&mut world, agent);
    assert_eq!(world.texts(log), ["one", "two"], "the question stays");
}

#[test]
fn a_stale_outcome_changes_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let asked = world.begin(send(agent, "one"));
    world.step();
    let call = world.next_call();
    let before = world.store.clone();
    world.answer(Attempt { number: 7, ..call.attempt }, "from nowhere");
    assert!(asked.take().is_none());
    assert_eq!(world.store, before);
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 1);
    world.answer(call.attempt, "1");
    world.answer(call.attempt, "again");
    assert_eq!(asked.take().unwrap().unwrap().response, "1");
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 2);
}

fn tool_end(world: &TestWorld, at: usize, content: &str) -> (Attempt, ToolEnd) {
    let runs: Vec<_> = world.effects.iter().filter_map(|e| e.get::<ToolRun>()).collect();
    let run = runs[at];
    (
        run.attempt,
        ToolEnd {
            index: run.index,
            call: run.call.clone(),
            content: content.into(),
            whole: None,
            notice: None,
            brought: None,
            status: ToolStatus::Ok,
        },
    )
}

#[test]
fn tools_run_side_by_side_and_their_results_stand_in_the_order_of_the_calls() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let asked = world.begin(send(agent, "what time is it, twice?"));
    world.step();
    let call = world.next_call();
    let blocks = vec![Block::Text { text: "let me look".into() }, tool_call("a"), tool_call("b")];
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(blocks))));
    let (attempt, second) = tool_end(&world, 1, "noon");
    world.outcome(ToolOutcome(attempt, second.clone()));
    world.outcome(ToolOutcome(attempt, second));
    assert!(world.calls.is_empty(), "one result is missing, and the same one twice counts once");
    let (attempt, first) = tool_end(&world, 0, "twelve");
    world.outcome(ToolOutcome(attempt, first));
    let call = world.next_call();
    world.answer(call.attempt, "noon, both times");
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((&*reply.response, reply.iterations, reply.usage.input_tokens), ("noon, both times", 2, 20));
    let log = log_of(&mut world, agent);
    let rows = world.rows(log);
    let roles: Vec<_> = rows.iter().map(|row| row.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant]);
    assert!(
        matches!(&rows[2].blocks[0], Block::ToolResult { call_id, content, .. } if call_id == "a" && content == "twelve")
    );
    assert_eq!(current(&mut world, agent).message_count, 3);
}

#[test]
fn the_circuit_breaker_lets_thirty_calls_run_and_refuses_the_next() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let asked = world.begin(send(agent, "loop"));
    world.step();
    for round in 0..=30 {
        let call = world.next_call();
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(vec![tool_call("t")]))));
        if round < 30 {
            assert!(asked.take().is_none());
            let last = world.effects.iter().filter(|e| e.is::<ToolRun>()).count() - 1;
            let (attempt, end) = tool_end(&world, last, "x");
            world.outcome(ToolOutcome(attempt, end));
        }
    }
    let refusal = asked.take().unwrap().unwrap_err();
    assert_eq!(refusal.code.as_deref(), Some("tool_circuit_breaker"));
    assert_eq!(world.engine.world().resource::<TurnTotals>().tool_calls, 30);
}

#[test]
fn stop_aborts_the_call_keeps_what_was_written_and_lets_the_next_message_run() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.begin(send(agent, "tell me everything"));
    let _second = world.begin(send(agent, "thanks"));
    world.step();
    let call = world.next_call();
    assert_eq!(world.ask(StopTurns { agent, session: None }).unwrap(), 1);
    assert!(world.effects.last().is_some_and(|effect| effect.get() == Some(&Abort(call.attempt))));
    assert_eq!(world.ask(StopTurns { agent, session: None }).unwrap(), 1, "still stopping; asking again is harmless");
    let partial = answer(vec![Block::Text { text: "In the beginn".into() }]);
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(partial)));
    let reply = first.take().unwrap().unwrap();
    assert_eq!((&*reply.response, reply.end), ("In the beginn", TurnEnd::Stopped));
    assert_eq!(world.next_call().ordinal, 1);
    let log = log_of(&mut world, agent);
    assert!(world.rows(log).iter().any(|row| row.stopped));
    let idle = world.spawn("idle");
    assert_eq!(world.ask(StopTurns { agent: idle, session: None }).unwrap(), 0, "stop when idle is fine");
}

#[test]
fn stop_in_one_session_leaves_the_others_running() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("scout"), world.spawn("other"));
    let session = world.ask(CreateSession { agent, label: None }).unwrap();
    let _first = world.begin(send(agent, "one"));
    let _second = world.begin(send_to(agent, session, "two"));
    world.step();
    let (_, call) = (world.next_call(), world.next_call());
    assert_eq!(world.ask(StopTurns { agent, session: Some(session) }).unwrap(), 1);
    let aborted = world.effects.iter().filter(|effect| effect.is::<Abort>()).count();
    assert!(aborted == 1 && world.effects.last().is_some_and(|effect| effect.get() == Some(&Abort(call.attempt))));
    let foreign = world.ask(StopTurns { agent: other, session: Some(session) }).unwrap_err();
    assert_eq!(foreign.kind, RefusalKind::Forbidden);
}

#[test]
fn a_restart_repeats_the_lost_call_with_a_new_attempt_and_keeps_the_inbox() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let _lost = world.begin(send(agent, "one"));
    let _lost = world.begin(send(agent, "two"));
    world.step();
    let before = world.next_call();
    world.restart();
    let call = world.next_call();
    assert_eq!((call.ordinal, call.turn()), (0, before.turn()));
    assert!(call.attempt.number > before.attempt.number);
    world.answer(before.attempt, "from the dead");
    world.answer(call.attempt, "1");
    let call = world.next_call();
    world.answer(call.attempt, "2");
    let log = log_of(&mut world, agent);
    assert_eq!(world.texts(log), ["one", "1", "two", "2"]);
    assert_eq!(world.engine.stats().turns_open, 0);
}

#[test]
fn a_restart_runs_only_the_tools_that_have_no_result() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let _lost = world.begin(send(agent, "time?"));
    world.step();
    let call = world.next_call();
    let blocks = vec![tool_call("a"), tool_call("b")];
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(blocks))));
    let (attempt, end) = tool_end(&world, 0, "noon");
    world.outcome(ToolOutcome(attempt, end));
    world.restart();
    let runs = world.effects.iter().filter(|e| e.get::<ToolRun>().is_some_and(|run| run.call.id == "b")).count();
    assert_eq!((runs, world.effects.len()), (1, 1));
    let (attempt, end) = tool_end(&world, 0, "one");
    world.outcome(ToolOutcome(attempt, end));
    let call = world.next_call();
    world.answer(call.attempt, "done");
    assert_eq!(current(&mut world, agent).message_count, 2);
}

#[test]
fn a_turn_that_was_stopping_at_a_crash_is_ended_and_the_next_runs() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let _lost = world.begin(send(agent, "one"));
    let _lost = world.begin(send(agent, "two"));
    world.step();
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.restart();
    assert_eq!(world.next_call().ordinal, 1);
    assert_eq!(world.engine.stats().turns_open, 1);
}

#[test]
fn stopping_an_agent_keeps_what_waits_and_starting_it_goes_on() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let first = world.begin(send(agent, "one"));
    let second = world.begin(send(agent, "two"));
    world.step();
    let call = world.next_call();
    assert_eq!(world.ask(StopAgents(vec![agent])).unwrap()[0].1, Ok(AgentState::Stopped));
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(Vec::new()))));
    assert_eq!(first.take().unwrap().unwrap().end, TurnEnd::Stopped);
    assert!(world.calls.is_empty(), "a stopped agent asks no model");
    world.restart();
    assert!(world.calls.is_empty(), "not after a restart either");
    world.ask(StartAgents(vec![agent])).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "2");
    assert!(second.take().is_none(), "its asker went with the old process");
    let log = log_of(&mut world, agent);
    assert_eq!(world.texts(log).last().map(String::as_str), Some("2"));
}

#[test]
fn removing_a_session_or_an_agent_ends_every_turn_in_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let running = world.begin(send(agent, "one"));
    let waiting = world.begin(send(agent, "two"));
    world.step();
    let call = world.next_call();
    let session = current(&mut world, agent).id;
    let removed = world.ask(RemoveSession { session }).unwrap();
    assert!(removed.replaced_by.is_some());
    for asked in [running, waiting] {
        assert_eq!(asked.take().unwrap().unwrap_err().code.as_deref(), Some("session_removed"));
    }
    assert!(world.effects.iter().any(|e| e.get() == Some(&Abort(call.attempt))));
    assert!(world.effects.iter().any(|e| e.is::<SweepLog>()));
    let running = world.begin(send(agent, "three"));
    world.step();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(running.take().unwrap().unwrap_err().kind, RefusalKind::Conflict);
    let stats = world.engine.stats();
    assert_eq!((stats.agents, stats.sessions, stats.turns_open, stats.manifests), (0, 0, 0, 0));
    assert_eq!(stats.calls_out, 2, "slots come back with the outcomes");
    world.answer(call.attempt, "too late");
    assert_eq!(world.engine.stats().calls_out, 1);
    world.restart();
    assert_eq!(world.engine.stats().agents, 0);
    let logs: Vec<_> = world.effects.iter().filter_map(|e| e.get::<SweepLog>().map(|SweepLog(log)| *log)).collect();
    assert_eq!(logs.len(), 2, "both logs are still to be swept");
    for log in logs {
        world.outcome(LogSwept(log));
    }
    world.restart();
    assert!(!world.effects.iter().any(|effect| effect.is::<SweepLog>()));
}

#[test]
fn clearing_history_keeps_the_session_and_gives_it_a_fresh_log() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    let asked = world.begin(send(agent, "one"));
    world.step();
    let call = world.next_call();
    world.answer(call.attempt, "1");
    asked.take().unwrap().unwrap();
    let before = current(&mut world, agent);
    assert_eq!(world.ask(ClearHistory { agent }).unwrap(), 2);
    let after = current(&mut world, agent);
    assert_eq!((after.id, after.message_count), (before.id, 0));
    assert_ne!(after.log, before.log);
    assert!(world.effects.iter().any(|e| e.get() == Some(&SweepLog(before.log))));
}

#[test]
fn a_provider_gets_no_more_calls_than_it_may_and_agents_share_them_fairly() {
    let mut world = TestWorld::with(Settings { provider_calls: 2, ..Settings::default() });
    let hog = world.spawn("hog");
    let sessions: Vec<_> = (0..20).map(|_| world.ask(CreateSession { agent: hog, label: None }).unwrap()).collect();
    let mut asked: Vec<_> = sessions.iter().map(|s| world.begin(send_to(hog, *s, "me"))).collect();
    let meek = world.spawn("meek");
    let other = world.begin(send(meek, "please"));
    world.step();
    assert_eq!(world.calls.len(), 2);
    for _ in 0..4 {
        let call = world.next_call();
        world.answer(call.attempt, "ok");
    }
    assert_eq!(world.calls.len(), 2);
    assert!(other.take().is_some(), "served after a few calls of the hog, not after twenty");
    while !world.calls.is_empty() {
        let call = world.next_call();
        world.answer(call.attempt, "ok");
    }
    asked.retain(|asked| asked.take().is_none());
    assert!(asked.is_empty(), "everyone was answered");
    assert_eq!(world.engine.stats().calls_out, 0);
}

#[test]
fn a_provider_that_nobody_asks_or_waits_for_is_forgotten() {
    let mut world = TestWorld::with(Settings { provider_calls: 1, ..Settings::default() });
    let (first, second) = (world.spawn("first"), world.spawn("second"));
    let (_one, _other) = (world.begin(send(first, "x")), world.begin(send(second, "y")));
    world.step();
    let providers = |world: &TestWorld| world.engine.world().resource::<Admission>().providers().count();
    assert_eq!(providers(&world), 1);
    // Its turn is given up while it stands in line.
    world.ask(StopAgents(vec![second])).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "done");
    assert_eq!((providers(&world), world.calls.len()), (0, 0));
}

#[test]
fn a_full_inbox_refuses_with_a_time_to_come_back() {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    for _ in 0..agentsvc_components::kernel::limit::SESSION_INBOX_MAX {
        let _asked = world.begin(send(agent, "again"));
    }
    world.step();
    let refusal = world.ask(send(agent, "once more")).unwrap_err();
    assert_eq!((refusal.kind, refusal.retry_after_secs), (RefusalKind::TooMany, Some(5)));
}
