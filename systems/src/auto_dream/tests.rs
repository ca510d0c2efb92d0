//! Consolidation runs in virtual time: when they begin, what they may do, and how they end.

use agentsvc_components::auto_dream::{Dream, DreamId, DreamOutcome};
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::manifest::AutoDream;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{AgentId, Refusal, RefusalKind, Timestamp, TurnId};
use uuid::Uuid;

use super::*;
use crate::agent::{RemoveAgents, SpawnAgent, StopAgents};
use crate::config::auto_dream::AutoDreamSettings;
use crate::kernel::entities::{Get, List};
use crate::kernel::record;
use crate::proactive_memory::{Cause, EntryPut, GetEntryUse, WriteEntries};
use crate::session::CreateSession;
use crate::testing::{TestWorld, answer, spawn_command, tool_call};
use crate::turn::{NewMessage, SendMessage};
use crate::{Settings, manifest};

const HOUR: i64 = 3_600_000;

pub(super) fn settings() -> Settings {
    let auto_dream = AutoDreamSettings { enabled: true, ..AutoDreamSettings::default() };
    Settings { auto_dream, ..Settings::default() }
}

fn command(name: &str, auto_dream: AutoDream) -> SpawnAgent {
    let mut command = spawn_command(name);
    command.manifest.auto_dream = auto_dream;
    command.hash = manifest::hash(&command.manifest);
    command
}

/// An agent that dreams by itself, with a memory entry.
pub(super) fn dreamer(world: &mut TestWorld, name: &str) -> AgentId {
    let on = AutoDream { enabled: Some(true), ..AutoDream::default() };
    let agent = world.ask(command(name, on)).unwrap().agent;
    remember(world, agent);
    agent
}

fn remember(world: &mut TestWorld, agent: AgentId) {
    let revision = world.ask(GetEntryUse(agent)).unwrap().revision;
    let record = MemoryEntryRecord { content: "likes tea".into(), confidence: 1.0, ..MemoryEntryRecord::default() };
    let puts = vec![EntryPut { id: None, record, old: None, is_now: true }];
    let (removes, cause) = (Vec::new(), Cause::Asked);
    world.ask(WriteEntries { agent, revision, puts, removes, cause, due: None, by: None }).unwrap();
}

fn sessions(world: &mut TestWorld, agent: AgentId, count: usize) {
    for _ in 0..count {
        world.ask(CreateSession { agent, label: None }).unwrap();
    }
}

/// Lets time pass: a beat, and steps until nothing is left over.
fn pass(world: &mut TestWorld, ms: i64) {
    world.now = Timestamp(world.now.0 + ms);
    world.engine.set_now(world.now);
    beat(world);
}

fn beat(world: &mut TestWorld) {
    world.engine.beat();
    world.step();
    while world.engine.has_work() {
        world.step();
    }
}

fn view(world: &mut TestWorld, agent: AgentId) -> DreamView {
    world.ask(Get::<DreamView>(DreamId::from(agent))).unwrap()
}

fn outcome(world: &mut TestWorld, agent: AgentId) -> Option<DreamOutcome> {
    view(world, agent).dream.last.map(|last| last.outcome)
}

fn refused(refusal: &Refusal) -> (RefusalKind, &str) {
    (refusal.kind, refusal.code.unwrap().as_str())
}

/// An agent whose run has begun, and the call of the run.
fn dreaming() -> (TestWorld, AgentId, ModelCall) {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    world.ask(TriggerDream(agent)).unwrap();
    let call = world.next_call();
    (world, agent, call)
}

#[test]
fn an_agent_dreams_when_hours_have_passed_and_sessions_have_started() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    assert_eq!(view(&mut world, agent).dream.sessions, 1, "its first session");
    pass(&mut world, 25 * HOUR);
    assert!(world.calls.is_empty(), "too few sessions");
    sessions(&mut world, agent, 4);
    pass(&mut world, 1);
    let call = world.next_call();
    assert_eq!((call.agent, world.texts(call.log)), (agent, vec![prompt::MESSAGE.to_owned()]));
    assert_eq!(&*call.manifest.manifest.system_prompt, prompt::INSTRUCTIONS);
    let tools: Vec<&str> = call.manifest.manifest.capabilities.tools.iter().map(|tool| &**tool).collect();
    assert_eq!(tools, prompt::TOOLS);
    sessions(&mut world, agent, 1);
    let before = view(&mut world, agent);
    assert_eq!((before.dream.last_consolidated_at, before.calls), (None, Some((1, 0))));
    world.answer(call.attempt, "merged two");
    let ended_at = world.now;
    let after = view(&mut world, agent);
    assert_eq!(
        (after.dream.last_consolidated_at, after.dream.sessions),
        (Some(ended_at), 1),
        "that of meanwhile counts"
    );
    let last = after.dream.last.unwrap();
    assert_eq!((last.outcome, &*last.text), (DreamOutcome::Completed, "merged two"));
    assert_eq!(after.next_eligible_at, ended_at.plus_ms(24 * HOUR));
    sessions(&mut world, agent, 10);
    pass(&mut world, 23 * HOUR);
    assert!(world.calls.is_empty(), "too early");
    pass(&mut world, HOUR + 60_000);
    assert_eq!(world.next_call().agent, agent);
    assert!(world.calls.is_empty());
}

#[test]
fn nothing_dreams_unless_configuration_and_agent_say_so() {
    let mut world = TestWorld::new();
    let on = dreamer(&mut world, "on");
    sessions(&mut world, on, 9);
    pass(&mut world, 100 * HOUR);
    assert_eq!(refused(&world.ask(TriggerDream(on)).unwrap_err()), (RefusalKind::Conflict, "auto_dream_disabled"));
    assert!(world.calls.is_empty() && world.engine.next_due().is_none_or(|at| at > world.now));

    let mut world = TestWorld::with(settings());
    let agent = world.spawn("off");
    remember(&mut world, agent);
    sessions(&mut world, agent, 9);
    pass(&mut world, 100 * HOUR);
    assert!(world.calls.is_empty());
    assert_eq!(refused(&world.ask(TriggerDream(agent)).unwrap_err()), (RefusalKind::Conflict, "auto_dream_disabled"));
    assert_eq!(world.ask(List::<DreamView>::default()).unwrap().total, Some(0), "nothing is kept of it");

    let view = world.ask(SetAutoDream { agent, enabled: true }).unwrap();
    assert_eq!((view.dream.enabled, view.dream.sessions), (true, 10));
    pass(&mut world, 23 * HOUR);
    assert!(world.calls.is_empty(), "its clock started when it was switched on");
    world.ask(SetAutoDream { agent, enabled: false }).unwrap();
    pass(&mut world, 100 * HOUR);
    assert!(world.calls.is_empty());
    world.ask(SetAutoDream { agent, enabled: true }).unwrap();
    pass(&mut world, 23 * HOUR);
    assert!(world.calls.is_empty(), "it starts again each time");
    world.ask(SetAutoDream { agent, enabled: false }).unwrap();
    let nobody = AgentId(Uuid::from_u128(7));
    for refusal in [
        world.ask(SetAutoDream { agent: nobody, enabled: true }).map(drop),
        world.ask(TriggerDream(nobody)).map(drop),
        world.ask(AbortDream(nobody)).map(drop),
    ] {
        assert_eq!(refusal.unwrap_err().kind, RefusalKind::NotFound);
    }
}

#[test]
fn the_manifest_has_its_own_numbers() {
    let mut world = TestWorld::with(settings());
    let own = AutoDream { enabled: Some(true), min_hours: Some(1), min_sessions: Some(2) };
    let agent = world.ask(command("a", own)).unwrap().agent;
    remember(&mut world, agent);
    sessions(&mut world, agent, 1);
    let shown = view(&mut world, agent);
    assert_eq!((shown.min_hours, shown.min_sessions), (1, 2));
    pass(&mut world, HOUR + 1);
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn an_agent_that_is_busy_or_has_no_entries_or_is_stopped_waits() {
    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    let on = AutoDream { enabled: Some(true), min_hours: None, min_sessions: Some(0) };
    let empty = world.ask(command("empty", on)).unwrap().agent;
    sessions(&mut world, agent, 5);
    let _asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("hi") });
    world.step();
    let call = world.next_call();
    pass(&mut world, 25 * HOUR);
    assert!(world.calls.is_empty(), "a turn is open");
    world.answer(call.attempt, "hello");
    pass(&mut world, limits::DREAM_BUSY_MS);
    assert_eq!(world.next_call().agent, agent);
    assert!(world.calls.is_empty() && view(&mut world, empty).dream.run.is_none());

    let mut world = TestWorld::with(settings());
    let agent = dreamer(&mut world, "a");
    sessions(&mut world, agent, 5);
    world.ask(StopAgents(vec![agent])).unwrap();
    pass(&mut world, 100 * HOUR);
    assert!(world.calls.is_empty());
    assert_eq!(world.ask(TriggerDream(agent)).unwrap_err().kind, RefusalKind::Conflict);
}

#[test]
fn a_message_does_not_wait_behind_a_run() {
    let (mut world, agent, dream) = dreaming();
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("hi") });
    world.step();
    let call = world.next_call();
    assert_ne!((call.session, call.log), (dream.session, dream.log));
    assert!(call.manifest.manifest.system_prompt.is_empty(), "it is the whole agent");
    world.answer(call.attempt, "hello");
    assert_eq!(asked.take().unwrap().unwrap().response, "hello");
    assert!(view(&mut world, agent).dream.run.is_some());
}

#[test]
fn a_tool_call_of_a_run_carries_its_grants() {
    let (mut world, _, call) = dreaming();
    let shell = Block::ToolCall(ToolCall { id: "c".into(), name: "shell_exec".into(), input: "{}".into() });
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(vec![shell, tool_call("d")]))));
    let runs: Vec<&ToolRun> = world.effects.iter().filter_map(|effect| effect.get::<ToolRun>()).collect();
    assert!(!runs.is_empty());
    for run in runs {
        let granted = &run.manifest.manifest.capabilities;
        assert!(granted.tools.iter().all(|tool| prompt::TOOLS.contains(&&**tool)) && granted.shell.is_empty());
    }
}

#[test]
fn a_run_ends_at_its_limit_of_calls_and_is_repeated_after_the_check_interval() {
    let mut settings = settings();
    settings.auto_dream.max_calls_per_run = 2;
    let mut world = TestWorld::with(settings);
    let agent = dreamer(&mut world, "a");
    sessions(&mut world, agent, 5);
    pass(&mut world, 24 * HOUR + 60_000);
    for at in 0..2 {
        let call = world.next_call();
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(vec![tool_call(&at.to_string())]))));
        let run = world.effects.iter().rev().find_map(|effect| effect.get::<ToolRun>()).unwrap().clone();
        settle(&mut world, &run);
    }
    assert!(world.calls.is_empty(), "no third call");
    let shown = view(&mut world, agent).dream;
    assert_eq!((shown.last_consolidated_at, shown.sessions), (None, 6));
    let last = shown.last.unwrap();
    assert_eq!((last.outcome, &*last.text), (DreamOutcome::Failed, "the limit of 2 model calls is reached"));
    pass(&mut world, 23 * HOUR);
    assert!(world.calls.is_empty());
    pass(&mut world, HOUR + 60_000);
    assert_eq!(world.calls.len(), 1);
}

fn settle(world: &mut TestWorld, run: &ToolRun) {
    use agentsvc_components::turn::outcome::{ToolEnd, ToolOutcome, ToolStatus};
    let (index, call, content) = (run.index, run.call.clone(), "done".to_owned());
    let end = ToolEnd { index, call, content, whole: None, notice: None, brought: None, status: ToolStatus::Ok };
    world.outcome(ToolOutcome(run.attempt, end));
}

#[test]
fn a_run_is_aborted_and_one_that_takes_too_long_is_stopped() {
    for (is_late, expected) in [(false, DreamOutcome::Aborted), (true, DreamOutcome::TimedOut)] {
        let (mut world, agent, call) = dreaming();
        if is_late {
            pass(&mut world, 599_000);
            assert!(!world.effects.iter().any(|effect| effect.get::<Abort>().is_some()));
            pass(&mut world, 1_001);
        } else {
            let view = world.ask(AbortDream(agent)).unwrap();
            assert_eq!(view.dream.run.unwrap().ending, Some(DreamOutcome::Aborted));
        }
        assert!(world.effects.iter().any(|effect| effect.get::<Abort>().is_some()));
        assert_eq!(refused(&world.ask(AbortDream(agent)).unwrap_err()).1, "dream_not_running");
        assert_eq!(refused(&world.ask(TriggerDream(agent)).unwrap_err()).1, "dream_running");
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
        assert_eq!((outcome(&mut world, agent), view(&mut world, agent).dream.run), (Some(expected), None));
        assert_eq!(view(&mut world, agent).dream.last_consolidated_at, None);
    }
}

#[test]
fn few_run_at_once_however_many_are_due() {
    let mut world = TestWorld::with(settings());
    let agents: Vec<AgentId> = (0..50).map(|n| dreamer(&mut world, &format!("a{n}"))).collect();
    for agent in &agents {
        sessions(&mut world, *agent, 5);
    }
    // The clock jumps by a year.
    pass(&mut world, 365 * 24 * HOUR);
    assert_eq!(world.calls.len(), 2);
    let idle = *agents.iter().find(|agent| world.calls.iter().all(|call| call.agent != **agent)).unwrap();
    let refusal = world.ask(TriggerDream(idle)).unwrap_err();
    assert_eq!((refused(&refusal), refusal.retry_after_secs), ((RefusalKind::TooMany, "dreams_full"), Some(60)));
    let mut seen = Vec::new();
    while !world.calls.is_empty() {
        let call = world.next_call();
        seen.push(call.agent);
        world.answer(call.attempt, "done");
        beat(&mut world);
        assert!(world.calls.len() <= 2);
    }
    seen.sort_unstable();
    assert_eq!(seen.len(), 50);
    seen.dedup();
    assert_eq!(seen.len(), 50, "each once");
}

#[test]
fn a_restart_resumes_the_run_and_counts_on() {
    let (mut world, agent, _) = dreaming();
    sessions(&mut world, agent, 2);
    let before = view(&mut world, agent).dream;
    world.restart();
    assert_eq!(view(&mut world, agent).dream, before);
    let call = world.next_call();
    assert_eq!(&*call.manifest.manifest.system_prompt, prompt::INSTRUCTIONS, "it stays narrow");
    world.answer(call.attempt, "done");
    assert_eq!(outcome(&mut world, agent), Some(DreamOutcome::Completed));
    assert_eq!(view(&mut world, agent).dream.sessions, 2);
}

#[test]
fn a_run_whose_turn_is_gone_has_failed() {
    let (mut world, agent, call) = dreaming();
    let turn = TurnId(call.attempt.job.0);
    let key = record::remove::<TurnRecord>(turn).key;
    assert!(world.store.remove(&(Space::World, key)).is_some());
    world.restart();
    assert_eq!(outcome(&mut world, agent), Some(DreamOutcome::Failed));
    assert_eq!(view(&mut world, agent).dream.last_consolidated_at, None);
}

#[test]
fn an_agent_that_is_deleted_takes_its_run_along() {
    let (mut world, agent, call) = dreaming();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(vec![]))));
    assert_eq!(world.ask(List::<DreamView>::default()).unwrap().items.len(), 0);
    let key = record::remove_component::<Dream>(DreamId::from(agent)).key;
    assert!(!world.store.contains_key(&(Space::World, key)));
    world.restart();
    assert!(world.calls.is_empty());
}

#[test]
fn a_clock_that_is_set_back_keeps_nothing_waiting_longer() {
    let (mut world, agent, _) = dreaming();
    let other = dreamer(&mut world, "other");
    world.now = Timestamp(world.now.0 - 1_000 * HOUR);
    world.engine.set_now(world.now);
    world.step();
    let (now, run) = (world.now, view(&mut world, agent).dream.run.unwrap());
    assert!(run.deadline <= now.plus_ms(600_000) && run.started_at <= now);
    let waits = view(&mut world, other).dream;
    assert!(waits.check_at <= now.plus_ms(24 * HOUR) && waits.since <= now);
    sessions(&mut world, other, 5);
    pass(&mut world, 25 * HOUR);
    assert!(world.calls.iter().any(|call| call.agent == other));
}

#[test]
fn entries_that_a_run_writes_keep_what_it_read() {
    use agentsvc_components::Actor;
    use agentsvc_components::kernel::taint::{Taint, UntrustedContent};
    use agentsvc_components::turn::outcome::{ToolEnd, ToolOutcome, ToolStatus};
    let (mut world, agent, call) = dreaming();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(answer(vec![tool_call("a")]))));
    let run = world.effects.iter().rev().find_map(|effect| effect.get::<ToolRun>()).unwrap().clone();
    assert!(run.taint.is_none());
    let brought = UntrustedContent { taint: Taint::WEB, source: "memory_search".into(), ..Default::default() };
    let (index, status) = (run.index, ToolStatus::Ok);
    let end = ToolEnd {
        index,
        call: run.call.clone(),
        content: "found".into(),
        whole: None,
        notice: None,
        brought: Some(Box::new(brought)),
        status,
    };
    world.outcome(ToolOutcome(run.attempt, end));
    let turn = TurnId(run.attempt.job.0);
    world.actor = Actor::Agent { agent, turn };
    remember(&mut world, agent);
    let stored = world.store.iter().filter(|((space, key), _)| *space == Space::Content && key[0] == b'e');
    let taints: Vec<Taint> =
        stored.map(|((_, key), value)| record::decode::<MemoryEntryRecord>(key, value).unwrap().taint).collect();
    assert_eq!(taints.len(), 2);
    assert!(taints.contains(&Taint::WEB) && taints.contains(&Taint::NONE), "{taints:?}");
}
