//! What turns are given of their agent's entries, in virtual time.

use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::recall::{
    MemoryRecalled, Recall, RecallScope, RecallStatus, Recalled, RecalledEntry,
};
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::turn::{Turn, TurnRequest};
use agentsvc_components::{AgentId, SessionId, TurnId};
use uuid::Uuid;

use super::limits::RECALLED_EXCERPT_BYTES;
use super::*;
use crate::agent::SpawnAgent;
use crate::config::memory::MemorySettings;
use crate::config::taint::TaintPolicy;
use crate::config::{SecuritySettings, Settings};
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::index;
use crate::testing::{TestWorld, answer, spawn_command};
use crate::turn::{NewMessage, PostMessage, StopTurns};
use crate::{manifest, taint};

fn entry(world: &mut TestWorld, agent: AgentId) {
    let record = MemoryEntryRecord { content: "likes tea".into(), confidence: 1.0, ..MemoryEntryRecord::default() };
    let revision = world.ask(GetEntryUse(agent)).unwrap().revision;
    let puts = vec![EntryPut { id: None, record, old: None, is_now: true }];
    let write = WriteEntries { agent, revision, puts, removes: Vec::new(), cause: Cause::Asked, due: None, by: None };
    world.ask(write).unwrap();
}

/// A world with an agent that has an entry.
fn world(settings: Settings) -> (TestWorld, AgentId) {
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    entry(&mut world, agent);
    (world, agent)
}

fn send(world: &mut TestWorld, agent: AgentId, message: NewMessage) -> TurnId {
    world.ask(PostMessage { agent, session: None, message }).unwrap().turn
}

fn go(world: &mut TestWorld, agent: AgentId) -> ModelCall {
    send(world, agent, NewMessage::text("go"));
    world.next_call()
}

fn recalled(taint: Taint) -> Recalled {
    let content = "x".repeat(RECALLED_EXCERPT_BYTES + 1).into();
    let id = MemoryEntryId(Uuid::from_u128(9));
    let memories =
        vec![RecalledEntry { id, content, category: "preference".into(), score: 0.5, taint, plugin: Box::default() }];
    Recalled { status: RecallStatus::Done, mode: "lexical".into(), duration_ms: 2, memories }
}

fn asks_for(world: &mut TestWorld, attempt: Attempt, tool: &str) -> Vec<ToolRun> {
    let call = ToolCall { id: "c".into(), name: tool.into(), input: r#"{"argv":["ls"]}"#.into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().filter_map(|effect| effect.take::<ToolRun>().ok().map(|run| *run)).collect()
}

fn noon(run: &ToolRun) -> ToolOutcome {
    let (index, call, content, status) = (run.index, run.call.clone(), "noon".to_owned(), ToolStatus::Ok);
    ToolOutcome(run.attempt, ToolEnd { index, call, content, whole: None, notice: None, brought: None, status })
}

fn trace(world: &TestWorld, agent: AgentId) -> TraceRecord {
    let prefix = record::trace_prefix(agent);
    let found = world.store.iter().find(|((_, key), _)| key.starts_with(&prefix));
    found.map(|((_, key), value)| record::decode(key, value).unwrap()).expect("a trace")
}

#[test]
fn what_was_found_stays_with_its_turn_over_a_restart_and_comes_into_its_trace() {
    let (mut world, agent) = world(Settings::default());
    let first = go(&mut world, agent);
    let scope = RecallScope { user: None, session: first.session };
    assert_eq!(first.recall, Some(Recall::Search(scope)));
    // A kill before the search has ended: it is done again, by the call that takes the place of the first.
    world.restart();
    let again = world.next_call();
    assert!(matches!(again.recall, Some(Recall::Search(_))) && again.attempt.number > first.attempt.number);
    world.outcome(MemoryRecalled(first.attempt, recalled(Taint::NONE)));
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 1, "of the attempt before the kill");
    let found = recalled(Taint::NONE);
    world.outcome(MemoryRecalled(again.attempt, found.clone()));
    // And after it: what is stored is used.
    world.restart();
    let call = world.next_call();
    let stored = Some(Recall::Stored(Arc::new(found)));
    assert_eq!(call.recall, stored);
    let runs = asks_for(&mut world, call.attempt, "system_time");
    assert_eq!(runs.len(), 1);
    world.restart();
    let run = world.effects.iter().find_map(|effect| effect.get::<ToolRun>().cloned()).expect("it runs again");
    world.outcome(noon(&run));
    let second = world.next_call();
    assert_eq!(second.recall, stored, "the second call shows the same");
    world.answer(second.attempt, "done");
    let kept = trace(&world, agent).recalled.unwrap();
    assert_eq!((kept.status, &*kept.mode, kept.memories.len()), (RecallStatus::Done, "lexical", 1));
    assert_eq!(kept.memories[0].content.len(), RECALLED_EXCERPT_BYTES);
}

#[test]
fn a_turn_without_entries_to_give_searches_once_and_keeps_why() {
    let (mut world, agent) = world(Settings::default());
    let call = go(&mut world, agent);
    world.outcome(MemoryRecalled(call.attempt, Recalled { status: RecallStatus::Late, ..Recalled::default() }));
    asks_for(&mut world, call.attempt, "system_time");
    world.restart();
    let run = world.effects.iter().find_map(|effect| effect.get::<ToolRun>().cloned()).expect("it runs again");
    world.outcome(noon(&run));
    let call = world.next_call();
    assert_eq!(call.recall, None);
    world.answer(call.attempt, "done");
    assert_eq!(trace(&world, agent).recalled.map(|kept| kept.status), Some(RecallStatus::Late));
}

#[test]
fn the_taint_of_entries_is_that_of_the_turn_before_any_of_its_tools_runs() {
    for (taint, ran) in [(Taint::WEB, 0), (Taint::NONE, 1)] {
        let security = SecuritySettings { taint: TaintPolicy::Deny, ..SecuritySettings::default() };
        let (mut world, agent) = world(Settings { security, ..Settings::default() });
        let call = go(&mut world, agent);
        world.outcome(MemoryRecalled(call.attempt, recalled(taint)));
        assert_eq!(asks_for(&mut world, call.attempt, "shell_exec").len(), ran, "{taint:?}");
        let turn = index::turn(world.engine.world(), call.turn()).unwrap();
        assert_eq!(taint::of(world.engine.world(), turn), taint);
        let journal = world.engine.world().get::<Turn>(turn).unwrap().journal.clone().unwrap();
        assert_eq!(journal.tainted_by.iter().any(|source| **source == *"its memory"), ran == 0);
    }
}

#[test]
fn nothing_is_searched_where_there_is_nothing_or_settings_or_strangers_forbid_it() {
    let (mut world, agent) = world(Settings::default());
    let empty = world.spawn("empty");
    assert_eq!(go(&mut world, empty).recall, None);
    let stranger = NewMessage { taint: Taint::GUEST, ..NewMessage::text("who are you for?") };
    send(&mut world, agent, stranger);
    assert_eq!(world.next_call().recall, None);

    let text = "name = \"off\"\n[proactive_memory]\nauto_retrieve = false\n";
    let parsed = manifest::parse(text).unwrap();
    let (name, hash) = (parsed.name, manifest::hash(&parsed.manifest));
    let off = world.ask(SpawnAgent { name, manifest: parsed.manifest, hash, text: text.into() }).unwrap().agent;
    entry(&mut world, off);
    assert_eq!(go(&mut world, off).recall, None);

    let memory = MemorySettings { enabled: false, ..MemorySettings::default() };
    world.settings = Settings { memory, ..Settings::default() };
    world.restart();
    let other = world.ask(spawn_command("other")).unwrap().agent;
    entry(&mut world, other);
    world.calls.clear();
    assert_eq!(go(&mut world, other).recall, None);
}

#[test]
fn a_turn_is_given_what_belongs_to_its_user_and_session() {
    let (mut world, agent) = world(Settings::default());
    let request = TurnRequest { user: Some("ana".into()), ..TurnRequest::default() };
    send(&mut world, agent, NewMessage { request: Some(Box::new(request)), ..NewMessage::text("go") });
    let Some(Recall::Search(of_ana)) = world.next_call().recall else { panic!("a search") };
    assert_eq!(of_ana.user.as_deref(), Some("ana"));
    let unknown = RecallScope { user: None, ..of_ana.clone() };
    let about = |user: Option<&str>| MemoryEntryRecord { user: user.map(Into::into), ..MemoryEntryRecord::default() };
    for (user, ana, no_user) in [(None, true, true), (Some("ana"), true, false), (Some("bo"), false, false)] {
        assert_eq!((is_for(&of_ana, &about(user)), is_for(&unknown, &about(user))), (ana, no_user), "{user:?}");
    }
    let in_session = |level: Level, session: SessionId| {
        let metadata = format!(r#"{{"session_id":"{session}"}}"#).into();
        MemoryEntryRecord { level, metadata, ..MemoryEntryRecord::default() }
    };
    let other = SessionId(Uuid::from_u128(7));
    assert!(is_for(&unknown, &in_session(Level::Session, unknown.session)));
    assert!(!is_for(&unknown, &in_session(Level::Session, other)));
    assert!(is_for(&unknown, &in_session(Level::User, other)), "it outlives its session");
    let nameless = MemoryEntryRecord { level: Level::Session, ..MemoryEntryRecord::default() };
    assert!(is_for(&unknown, &nameless));
}

#[test]
fn what_comes_when_its_turn_is_over_is_dropped() {
    let (mut world, agent) = world(Settings::default());
    let call = go(&mut world, agent);
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(answer(Vec::new()))));
    world.outcome(MemoryRecalled(call.attempt, recalled(Taint::WEB)));
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 1);
    assert_eq!(trace(&world, agent).recalled, None);
}
