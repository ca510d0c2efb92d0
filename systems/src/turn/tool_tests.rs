//! Tool calls, the loop guard, interrupts and agents that ask agents, in virtual time.

use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, Role, ToolCall};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_components::turn::trace::{StepStatus, TraceRecord};
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};

use super::*;
use crate::agent::SpawnChild;
use crate::kernel::record;
use crate::session::{GetSession, ResetSession, SessionView};
use crate::testing::{Asked, TestWorld, answer, spawn_command};
use crate::turn::metrics::TurnTotals;

pub(super) fn send(world: &mut TestWorld, agent: AgentId) -> Asked<TurnReply> {
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
    world.step();
    asked
}

fn current(world: &mut TestWorld, agent: AgentId) -> SessionView {
    world.ask(GetSession::Current(agent)).unwrap()
}

/// The model of the next call that went out asks for `tools`, each with its arguments.
pub(super) fn model_asks(world: &mut TestWorld, tools: &[(&str, &str)]) {
    let attempt = world.next_call().attempt;
    let call = |(at, (name, input)): (usize, &(&str, &str))| {
        Block::ToolCall(ToolCall { id: format!("c{at}"), name: (*name).into(), input: (*input).into() })
    };
    let said = Block::Text { text: "let me see".into() };
    let blocks = std::iter::once(said).chain(tools.iter().enumerate().map(call)).collect();
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(blocks))));
}

/// Takes the tool runs that went out.
pub(super) fn runs(world: &mut TestWorld) -> Vec<ToolRun> {
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().filter_map(|e| e.take::<ToolRun>().ok().map(|run| *run)).collect()
}

pub(super) fn end_of(run: &ToolRun, content: &str, status: ToolStatus) -> ToolOutcome {
    let (index, call, content) = (run.index, run.call.clone(), content.to_owned());
    ToolOutcome(run.attempt, ToolEnd { index, call, content, whole: None, notice: None, brought: None, status })
}

fn tool_answers(world: &mut TestWorld, run: &ToolRun, content: &str) {
    world.outcome(end_of(run, content, ToolStatus::Ok));
}

pub(super) fn results(world: &mut TestWorld, agent: AgentId) -> Vec<String> {
    let log = current(world, agent).log;
    let rows = world.rows(log).into_iter().filter(|row| row.role == Role::Tool).flat_map(|row| row.blocks);
    rows.filter_map(|block| if let Block::ToolResult { content, .. } = block { Some(content) } else { None }).collect()
}

pub(super) fn traces(world: &TestWorld, agent: AgentId) -> Vec<TraceRecord> {
    let prefix = record::trace_prefix(agent);
    let mut found: Vec<_> = world.store.iter().filter(|((_, key), _)| key.starts_with(&prefix)).collect();
    found.sort_by(|a, b| a.0.1.cmp(&b.0.1));
    found.iter().map(|((_, key), value)| record::decode(key, value).unwrap()).collect()
}

#[test]
fn the_loop_guard_warns_then_refuses_and_the_model_goes_on() {
    let mut world = TestWorld::new();
    let agent = world.spawn("looper");
    let asked = send(&mut world, agent);
    for round in 0..4 {
        model_asks(&mut world, &[("look", "{\"at\": 1}")]);
        let out = runs(&mut world);
        assert_eq!(out.len(), usize::from(round < 3), "the fourth call after three equal results is refused");
        if let Some(run) = out.first() {
            tool_answers(&mut world, run, "nothing");
        }
    }
    let attempt = world.next_call().attempt;
    world.answer(attempt, "there is nothing");
    assert_eq!(asked.take().unwrap().unwrap().response, "there is nothing");
    let results = results(&mut world, agent);
    assert_eq!((&*results[0], &*results[1]), ("nothing", "nothing"));
    assert!(results[2].starts_with("nothing\n\n[Loop guard: ") && results[3].starts_with("Refused by the loop guard"));
    let trace = &traces(&world, agent)[0];
    assert_eq!((trace.end, trace.iterations, trace.tool_calls), (TurnEnd::Done, 5, 4));
    assert_eq!(trace.steps.iter().filter(|step| step.status == StepStatus::Refused).count(), 1);
}

#[test]
fn a_31st_call_in_one_answer_is_refused_while_the_30_before_it_run() {
    let mut world = TestWorld::new();
    let agent = world.spawn("breaker");
    let asked = send(&mut world, agent);
    let inputs: Vec<String> = (0..31).map(|at| format!("{{\"at\":{at}}}")).collect();
    model_asks(&mut world, &inputs.iter().map(|input| ("look", &**input)).collect::<Vec<_>>());
    let out = runs(&mut world);
    assert_eq!(out.len(), 30);
    for run in &out {
        assert!(asked.take().is_none(), "those that run come to their end first");
        tool_answers(&mut world, run, "ok");
    }
    assert_eq!(asked.take().unwrap().unwrap_err().code.as_deref(), Some("tool_circuit_breaker"));
    assert_eq!(results(&mut world, agent).len(), 31);
    assert!(world.calls.is_empty());
}

#[test]
fn after_a_crash_settled_calls_stay_and_unsettled_ones_are_known() {
    let mut world = TestWorld::new();
    let agent = world.spawn("worker");
    let _lost = send(&mut world, agent);
    model_asks(&mut world, &[("a", "{}"), ("b", "{}"), ("c", "{}")]);
    let out = runs(&mut world);
    assert!(out.iter().all(|run| run.runs_before == 0));
    tool_answers(&mut world, &out[1], "settled");
    world.effects.clear();
    world.engine = crate::Engine::new(crate::Settings::default(), [9; 32]);
    let mut records = crate::Records::default();
    for ((space, key), value) in &world.store {
        if *space == agentsvc_components::kernel::record::Space::World {
            records.read(key, value).unwrap();
        }
    }
    world.engine.restore(records, world.now).unwrap();
    world.step();
    let again = runs(&mut world);
    let named: Vec<_> = again.iter().map(|run| (&*run.call.name, run.runs_before > 0)).collect();
    assert_eq!(named, [("a", true), ("c", true)]);
    world.outcome(end_of(&again[0], "Unknown", ToolStatus::Unknown));
    assert_eq!(world.engine.world().resource::<TurnTotals>().tools_unknown, 1);
    tool_answers(&mut world, &again[1], "done");
    let attempt = world.next_call().attempt;
    world.answer(attempt, "fine");
    assert_eq!(results(&mut world, agent), ["Unknown", "settled", "done"]);
    let statuses: Vec<_> = traces(&world, agent)[0]
        .steps
        .iter()
        .map(|step| (&*step.name, step.status))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|(name, status)| (name.to_owned(), status))
        .collect();
    assert!(statuses.contains(&("a".to_owned(), StepStatus::Unknown)), "{statuses:?}");
}

fn interrupt(world: &mut TestWorld, agent: AgentId) {
    let session = current(world, agent).id;
    world.ask(InterruptSession { agent, session }).unwrap();
}

fn interrupted(asked: &Asked<TurnReply>) -> Option<String> {
    let reply = asked.take()?.unwrap();
    assert_eq!(reply.end, TurnEnd::Interrupted);
    Some(reply.response)
}

#[test]
fn an_interrupted_model_call_completes_and_then_no_tool_runs() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let asked = send(&mut world, agent);
    world.effects.clear();
    interrupt(&mut world, agent);
    assert!(world.effects.is_empty(), "no request in flight is cancelled");
    model_asks(&mut world, &[("look", "{}")]);
    assert_eq!(interrupted(&asked).as_deref(), Some("let me see"));
    assert!(runs(&mut world).is_empty());
    let log = current(&mut world, agent).log;
    assert_eq!(world.texts(log), ["go", "let me see"], "the partial response is recorded");
    assert_eq!(traces(&world, agent)[0].end, TurnEnd::Interrupted);
}

#[test]
fn an_interrupted_tool_runs_to_its_end_and_then_the_turn_ends() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let asked = send(&mut world, agent);
    model_asks(&mut world, &[("look", "{}")]);
    let out = runs(&mut world);
    interrupt(&mut world, agent);
    assert!(asked.take().is_none() && world.effects.is_empty());
    tool_answers(&mut world, &out[0], "seen");
    assert_eq!(interrupted(&asked).as_deref(), Some("let me see"));
    assert_eq!(results(&mut world, agent), ["seen"]);
    assert!(world.calls.is_empty());
}

#[test]
fn a_plain_answer_is_not_held_up_and_the_flag_goes_with_the_next_message() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let asked = send(&mut world, agent);
    interrupt(&mut world, agent);
    let attempt = world.next_call().attempt;
    world.answer(attempt, "all done");
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((reply.end, &*reply.response), (TurnEnd::Done, "all done"));
    // The flag is still set; a new message clears it and runs as usual, tools included.
    let next = send(&mut world, agent);
    model_asks(&mut world, &[("look", "{}")]);
    assert_eq!(runs(&mut world).len(), 1);
    assert!(next.take().is_none());
}

#[test]
fn an_idle_interrupt_ends_a_turn_that_starts_without_a_message_and_a_reset_clears_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    interrupt(&mut world, agent);
    world.restart();
    let automatic = |agent| {
        let origin = Origin::Agent { parent: TurnId(uuid::Uuid::nil()) };
        let message = NewMessage { origin, ..NewMessage::text("tick") };
        SendMessage { agent, session: None, message }
    };
    for _ in 0..2 {
        let asked = world.begin(automatic(agent));
        world.step();
        assert_eq!(interrupted(&asked).as_deref(), Some(""), "until a message comes");
        assert!(world.calls.is_empty());
    }
    world.ask(ResetSession { agent }).unwrap();
    let asked = world.begin(automatic(agent));
    world.step();
    assert!(asked.take().is_none());
    assert_eq!(world.calls.len(), 1);
}

pub(super) fn delegate(world: &mut TestWorld, run: &ToolRun, to: &str, wait: bool) -> Result<SentToAgent, Refusal> {
    let (from, index) = (run.attempt, run.index);
    world.ask(SendToAgent { from, index, to: to.to_owned(), session: None, text: "help".into(), wait, found: None })
}

/// Agent `from` has a turn whose model asks for `agent_send`; gives the run.
pub(super) fn asks_other(world: &mut TestWorld, from: AgentId) -> (Asked<TurnReply>, ToolRun) {
    let asked = send(world, from);
    model_asks(world, &[("agent_send", "{}")]);
    let run = runs(world).remove(0);
    (asked, run)
}

#[test]
fn another_agent_answers_a_tool_call_and_a_crash_in_between_loses_nothing() {
    let mut world = TestWorld::new();
    let (parent, child) = (world.spawn("parent"), world.spawn("child"));
    let (_lost, run) = asks_other(&mut world, parent);
    delegate(&mut world, &run, "child", true).unwrap();
    assert!(delegate(&mut world, &run, "child", true).is_err(), "one call sends once");
    assert_eq!(world.calls[0].agent, child);
    world.restart();
    assert!(runs(&mut world).is_empty(), "the call is the child's to answer");
    let attempt = world.next_call().attempt;
    world.answer(attempt, "here you are");
    assert_eq!(results(&mut world, parent), ["here you are"]);
    let attempt = world.next_call().attempt;
    world.answer(attempt, "thanks");
    assert_eq!(traces(&world, parent)[0].end, TurnEnd::Done);
    let trace = &traces(&world, child)[0];
    assert!(matches!(trace.origin, Origin::Agent { .. }));
    assert!(world.published.iter().any(|item| matches!(item.event, StreamEvent::ToolResult { .. })));
}

#[test]
fn without_waiting_the_call_is_settled_at_once() {
    let mut world = TestWorld::new();
    let (parent, _child) = (world.spawn("parent"), world.spawn("child"));
    let (_asked, run) = asks_other(&mut world, parent);
    let sent = delegate(&mut world, &run, "child", false).unwrap();
    assert!(results(&mut world, parent)[0].contains(&format!("task_id: {}", sent.turn)));
    assert_eq!(world.calls.len(), 2, "both go on");
}

#[test]
fn agents_that_would_wait_for_each_other_are_told() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let (_one, run_a) = asks_other(&mut world, a);
    delegate(&mut world, &run_a, "b", true).unwrap();
    model_asks(&mut world, &[("agent_send", "{}")]);
    let run_b = runs(&mut world).remove(0);
    assert_eq!(run_b.agent, b);
    for to in ["a", "b"] {
        let refusal = delegate(&mut world, &run_b, to, true).unwrap_err();
        assert_eq!(refusal.code.as_deref(), Some("agent_cycle"), "{to}");
    }
    let unknown = delegate(&mut world, &run_b, "nobody", true).unwrap_err();
    assert_eq!(unknown.kind, agentsvc_components::RefusalKind::NotFound);
}

/// A chain of three: a asks b, b asks c, c's model is asked.
fn chain(world: &mut TestWorld) -> (Asked<TurnReply>, [AgentId; 3]) {
    let agents = ["a", "b", "c"].map(|name| world.spawn(name));
    let (asked, run) = asks_other(world, agents[0]);
    delegate(world, &run, "b", true).unwrap();
    model_asks(world, &[("agent_send", "{}")]);
    let run = runs(world).remove(0);
    delegate(world, &run, "c", true).unwrap();
    (asked, agents)
}

#[test]
fn a_stop_reaches_every_agent_down_the_chain() {
    let mut world = TestWorld::new();
    let (asked, [a, b, c]) = chain(&mut world);
    let call = world.next_call();
    assert_eq!(call.agent, c);
    assert_eq!(world.ask(StopTurns { agent: a, session: None }).unwrap(), 1);
    assert_eq!(asked.take().unwrap().unwrap().end, TurnEnd::Stopped);
    assert!(world.effects.iter().any(|e| e.get() == Some(&Abort(call.attempt))));
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(Vec::new()))));
    assert!(world.calls.is_empty(), "no orphan asks its model again");
    assert_eq!(world.engine.stats().turns_open, 0);
    for agent in [a, b, c] {
        assert_eq!(traces(&world, agent)[0].end, TurnEnd::Stopped);
    }
}

#[test]
fn an_interrupt_reaches_every_agent_down_the_chain_at_its_next_boundary() {
    let mut world = TestWorld::new();
    let (asked, [a, b, c]) = chain(&mut world);
    interrupt(&mut world, a);
    assert!(asked.take().is_none(), "c's model call completes first");
    model_asks(&mut world, &[("look", "{}")]);
    assert!(runs(&mut world).is_empty());
    assert_eq!(interrupted(&asked).as_deref(), Some("let me see"));
    for agent in [a, b, c] {
        assert_eq!(traces(&world, agent)[0].end, TurnEnd::Interrupted);
    }
    assert!(world.calls.is_empty());
}

#[test]
fn a_stop_reaches_a_message_that_waits_in_the_other_agents_inbox() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let _busy = send(&mut world, b);
    let busy = world.next_call();
    let (_asked, run) = asks_other(&mut world, a);
    delegate(&mut world, &run, "b", true).unwrap();
    world.ask(StopTurns { agent: a, session: None }).unwrap();
    world.answer(busy.attempt, "done with the other");
    assert!(world.calls.is_empty(), "the waiting turn ended without a model call");
    assert_eq!(world.engine.stats().turns_open, 0);
    let ends: Vec<_> = traces(&world, b).iter().map(|trace| trace.end).collect();
    assert_eq!(ends, [TurnEnd::Done, TurnEnd::Interrupted]);
}

#[test]
fn notes_to_the_owner_come_with_the_reply_and_before_the_last_event() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let asked = send(&mut world, agent);
    model_asks(&mut world, &[("notify_owner", "{\"message\":\"x\"}")]);
    let run = runs(&mut world).remove(0);
    let ToolOutcome(attempt, end) = end_of(&run, "Noted.", ToolStatus::Ok);
    world.outcome(ToolOutcome(attempt, ToolEnd { notice: Some("look at this".into()), ..end }));
    world.restart();
    let attempt = world.next_call().attempt;
    world.answer(attempt, "ok");
    drop(asked);
    let last: Vec<_> = world.published.iter().rev().take(2).map(|item| item.event.clone()).collect();
    assert!(matches!(last[0], StreamEvent::Done { .. }));
    assert_eq!(last[1], StreamEvent::OwnerNotice { text: "look at this".into() });
    assert_eq!(traces(&world, agent)[0].notices, ["look at this".into()]);
}

/// Gives an agent so many turns with 30 calls each that the last one's all wait for a place of its family; gives its session.
pub(super) fn take_all_places(world: &mut TestWorld, hog: AgentId) -> SessionId {
    let inputs: Vec<String> = (0..30).map(|at| format!("{{\"at\":{at}}}")).collect();
    let tools: Vec<_> = inputs.iter().map(|input| ("look", &**input)).collect();
    let sessions = limit::TOOLS_OUT_FAMILY_MAX / 30 + 2;
    let id = |n: usize| SessionId(uuid::Uuid::from_u128(hog.0.as_u128().wrapping_add((n as u128) << 64)));
    for n in 1..=sessions {
        let _asked = world.begin(SendMessage { agent: hog, session: Some(id(n)), message: NewMessage::text("go") });
        world.step();
        model_asks(world, &tools);
    }
    id(sessions)
}

#[test]
fn no_more_tool_calls_are_out_than_the_lane_holds_and_agents_take_turns() {
    let mut world = TestWorld::new();
    let hogs: Vec<_> = (0..5).map(|n| world.spawn(&format!("hog-{n}"))).collect();
    for hog in &hogs {
        take_all_places(&mut world, *hog);
    }
    let out = runs(&mut world);
    assert_eq!(out.len(), limit::TOOLS_OUT_MAX);
    assert!(out.iter().all(|run| run.agent != hogs[4]), "four families have all places");
    let other = world.spawn("other");
    let _asked = send(&mut world, other);
    model_asks(&mut world, &[("look", "{}")]);
    assert!(runs(&mut world).is_empty());
    tool_answers(&mut world, &out[0], "1");
    tool_answers(&mut world, &out[1], "2");
    tool_answers(&mut world, &out[2], "3");
    let next: Vec<_> = runs(&mut world).iter().map(|run| run.agent).collect();
    assert!(next.contains(&other), "one agent with many calls delays the others by one, not by all");
}

#[test]
fn a_family_has_a_share_of_the_tool_calls_that_are_out_however_many_agents_it_has() {
    let mut world = TestWorld::new();
    let spawner = |name: &str| {
        let mut command = spawn_command(name);
        command.manifest.capabilities.agent_spawn = Some(true);
        command.hash = crate::manifest::hash(&command.manifest);
        command
    };
    let top = world.ask(spawner("top")).unwrap().agent;
    let mut child =
        |above, name: &str| world.ask(SpawnChild { parent: above, child: spawner(name), by: None }).unwrap().agent;
    let first = child(top, "first");
    let (second, third) = (child(top, "second"), child(first, "third"));
    let _sessions = [top, second, third].map(|agent| take_all_places(&mut world, agent));
    let out = runs(&mut world);
    assert_eq!(out.len(), limit::TOOLS_OUT_FAMILY_MAX);
    assert!(out.iter().all(|run| run.holder == Holder::Family(top)));
    let other = world.spawn("other");
    let _asked = send(&mut world, other);
    model_asks(&mut world, &[("look", "{}")]);
    let others: Vec<_> = runs(&mut world).iter().map(|run| (run.agent, run.holder)).collect();
    assert_eq!(others, [(other, Holder::Family(other))], "there is a place for another family at once");
    tool_answers(&mut world, &out[0], "1");
    tool_answers(&mut world, &out[1], "2");
    assert!(runs(&mut world).iter().all(|run| run.holder == Holder::Family(top)));
    world.ask(StopTurns { agent: top, session: None }).unwrap();
    assert!(!world.engine.world().resource::<ToolLane>().can_send(), "no room, nothing to send");
}

#[test]
fn tool_calls_of_a_turn_that_ends_leave_the_line() {
    let mut world = TestWorld::new();
    let hog = world.spawn("hog");
    let last = take_all_places(&mut world, hog);
    let in_line = |world: &TestWorld| world.engine.world().resource::<ToolLane>().in_line().count();
    let before = in_line(&world);
    assert!(before > 30);
    world.ask(InterruptSession { agent: hog, session: last }).unwrap();
    assert_eq!(in_line(&world), before - 30);
    world.ask(StopTurns { agent: hog, session: None }).unwrap();
    assert_eq!(in_line(&world), 0);
}
