//! What an ended turn leaves to be memorised, and what becomes of it.

use agentsvc_components::kernel::job::{Job, JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::session::message::{ChatMessage, Role};
use agentsvc_components::turn::Origin;
use agentsvc_components::{AgentId, RefusalKind, SessionId};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::job::Jobs;
use crate::manifest;
use crate::proactive_memory::metrics::FactTotals;
use crate::testing::{TestWorld, spawn_command};
use crate::turn::{Conversation, ConversationTarget, NewMessage, PostConversation, PostMessage};

const FACT: &str = "Hello, my name is Ana.";

/// The tries that went out since this was asked last.
fn tries(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

fn jobs(world: &TestWorld) -> usize {
    let all = world.engine.world().resource::<Jobs>().counts();
    let own = all.filter(|(kind, _)| [MEMORIZE, MEMORIZE_BY_MODEL].contains(kind));
    own.map(|(_, counts)| counts.waiting + counts.out).sum()
}

/// A turn of a message is answered; gives the tries that went out with its end.
fn turn(world: &mut TestWorld, agent: AgentId, message: NewMessage) -> Vec<RunJob> {
    world.ask(PostMessage { agent, session: None, message }).unwrap();
    let call = world.next_call().attempt;
    assert_eq!(jobs(world), 0, "nothing is left before the answer");
    world.answer(call, "Nice to meet you.");
    tries(world)
}

fn with(world: &mut TestWorld, name: &str, memory: &str) -> AgentId {
    let text = format!("name = {name:?}\n[proactive_memory]\n{memory}\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    world.ask(crate::agent::SpawnAgent { manifest: parsed.manifest, hash, text, ..spawn_command(name) }).unwrap().agent
}

fn found(world: &mut TestWorld, agent: AgentId, run: &RunJob) -> Memorize {
    let record = MemoryEntryRecord { content: "User's name is Ana".into(), confidence: 1.0, ..Default::default() };
    let put = EntryPut { id: None, record, old: None, is_now: true };
    let revision = world.ask(GetEntryUse(agent)).unwrap().revision;
    let (puts, removes) = (vec![put], Vec::new());
    let write = WriteEntries { agent, revision, puts, removes, cause: Cause::Asked, due: None, by: None };
    Memorize { attempt: run.attempt, write, memorized: Memorized { added: 1, ..Memorized::default() } }
}

fn entries(world: &mut TestWorld, agent: AgentId) -> u32 {
    world.ask(GetEntryUse(agent)).unwrap().counts.entries()
}

#[test]
fn a_turn_that_states_a_fact_leaves_a_job_in_the_step_of_its_answer_and_others_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let kept = world.store.keys().filter(|(_, key)| key[0] == b'q').count();
    assert!(turn(&mut world, agent, NewMessage::text("What is the capital of France?")).is_empty());
    assert_eq!(world.store.keys().filter(|(_, key)| key[0] == b'q').count(), kept, "nothing is written for it");
    let left = turn(&mut world, agent, NewMessage::text(FACT));
    assert_eq!((left.len(), left[0].kind, left[0].owner), (1, MEMORIZE, Some(agent)));
    let input: TurnToMemorize = serde_json::from_str(&left[0].input).unwrap();
    assert_eq!((input.ordinal, input.taint, input.written), (1, Taint::NONE, None));
    assert_eq!(world.texts(input.log)[2], FACT);
    assert!(world.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'q'));
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn with_a_model_each_turn_of_a_user_leaves_a_job_and_with_memory_off_none_does() {
    let mut world = TestWorld::new();
    let model = with(&mut world, "m", "extraction_model = 'p/m'");
    assert_eq!(turn(&mut world, model, NewMessage::text("What is the capital of France?")).len(), 1);
    for (name, memory) in [("x", "enabled = false"), ("y", "auto_memorize = false\nextraction_model = 'p/m'")] {
        let agent = with(&mut world, name, memory);
        world.ask(PostMessage { agent, session: None, message: NewMessage::text(FACT) }).unwrap();
        let call = world.next_call().attempt;
        world.answer(call, "yes");
        assert!(tries(&mut world).is_empty(), "{memory}");
    }
}

#[test]
fn rules_do_not_wait_for_slow_models() {
    let mut world = TestWorld::new();
    for number in 0..=limits::MEMORIZE_OUT_MAX {
        let slow = with(&mut world, &format!("m{number}"), "extraction_model = 'p/m'");
        world.ask(PostMessage { agent: slow, session: None, message: NewMessage::text(FACT) }).unwrap();
        let call = world.next_call().attempt;
        world.answer(call, "yes");
    }
    let out = tries(&mut world);
    assert_eq!(out.len(), limits::MEMORIZE_OUT_MAX);
    assert!(out.iter().all(|run| run.kind == MEMORIZE_BY_MODEL));
    let ruled = world.spawn("r");
    world.ask(PostMessage { agent: ruled, session: None, message: NewMessage::text(FACT) }).unwrap();
    let call = world.next_call().attempt;
    world.answer(call, "yes");
    let run = tries(&mut world).remove(0);
    assert_eq!((run.kind, run.owner), (MEMORIZE, Some(ruled)));
    let write = found(&mut world, ruled, &run);
    world.ask(write).unwrap();
    let by_model = found(&mut world, out[0].owner.unwrap(), &out[0]);
    world.ask(by_model).unwrap();
}

#[test]
fn what_no_user_said_or_a_stranger_did_is_not_memorised() {
    let mut world = TestWorld::new();
    let agent = with(&mut world, "a", "extraction_model = 'p/m'");
    let text = || NewMessage::text(FACT);
    for (what, message) in [
        ("a guest", NewMessage { taint: Taint::GUEST, ..text() }),
        ("another node", NewMessage { taint: Taint::PEER, ..text() }),
        ("a node", NewMessage { origin: Origin::Peer, ..text() }),
    ] {
        // A session of its own: the taint stays with it.
        let session = Some(SessionId(Uuid::from_u128(what.len() as u128)));
        world.ask(PostMessage { agent, session, message }).unwrap();
        let call = world.next_call().attempt;
        world.answer(call, "yes");
        assert!(tries(&mut world).is_empty(), "{what}");
    }
    let venue = ConversationTarget::Hidden(SessionId(Uuid::from_u128(99)));
    let messages = vec![ChatMessage::text(Role::User, FACT)];
    let hidden = Conversation { agent, venue, messages, origin: Origin::OpenAi, request: None };
    world.ask(PostConversation(hidden)).unwrap();
    let call = world.next_call().attempt;
    world.answer(call, "yes");
    assert!(tries(&mut world).is_empty(), "a hidden session");
    let read = NewMessage { taint: Taint::WEB, ..text() };
    let left = turn(&mut world, agent, read);
    let input: TurnToMemorize = serde_json::from_str(&left[0].input).unwrap();
    assert!(input.taint.holds(Taint::WEB), "a turn of the user is memorised with its taint");
}

#[test]
fn a_try_writes_once_whatever_is_killed() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let run = turn(&mut world, agent, NewMessage::text(FACT)).remove(0);
    let lost = found(&mut world, agent, &run);
    world.restart();
    world.step();
    let again = tries(&mut world).remove(0);
    assert_eq!(again.attempt.number, 2);
    let stale = world.ask(Memorize { attempt: run.attempt, ..lost }).unwrap_err();
    assert_eq!((stale.kind, entries(&mut world, agent)), (RefusalKind::Conflict, 0));
    let write = found(&mut world, agent, &again);
    world.ask(write.clone()).unwrap();
    assert_eq!(entries(&mut world, agent), 1);
    // The daemon ends before the outcome comes back: the next try knows.
    world.restart();
    world.step();
    let last = tries(&mut world).remove(0);
    let input: TurnToMemorize = serde_json::from_str(&last.input).unwrap();
    assert_eq!(input.written, Some(write.memorized));
    world
        .outcome(JobOutcome(last.attempt, TryEnd::Done(r#"{"added":1,"updated":0,"deleted":0,"unchanged":0}"#.into())));
    assert_eq!((jobs(&world), entries(&mut world, agent)), (0, 1));
    assert_eq!(world.engine.world().resource::<FactTotals>().added, 1);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_job_is_of_its_agent_and_goes_with_it() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    let run = turn(&mut world, agent, NewMessage::text(FACT)).remove(0);
    let mut foreign = found(&mut world, other, &run);
    assert_eq!(world.ask(foreign.clone()).unwrap_err().kind, RefusalKind::Conflict, "it is another agent's job");
    foreign.write.agent = agent;
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(jobs(&world), 0);
    assert!(world.ask(foreign).is_err());
    world.outcome(JobOutcome(run.attempt, TryEnd::Done(String::new())));
    assert_eq!(entries(&mut world, other), 0);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_turn_that_cannot_be_memorised_goes_on_record_after_the_last_try() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let mut run = turn(&mut world, agent, NewMessage::text(FACT)).remove(0);
    for number in 1..=limits::MEMORIZE_TRIES_MAX {
        assert_eq!(run.attempt.number, number);
        let reason = "the model is ill".to_owned();
        world.outcome(JobOutcome(run.attempt, TryEnd::Retry { after_ms: None, reason }));
        world.now = world.now.plus_ms(limits::MEMORIZE_BACKOFF_MS_MAX);
        world.engine.set_now(world.now);
        world.engine.beat();
        world.step();
        match tries(&mut world).pop() {
            Some(next) => run = next,
            None => assert_eq!(number, limits::MEMORIZE_TRIES_MAX),
        }
    }
    assert_eq!(jobs(&world), 0);
    let rows = world.store.iter().filter(|((_, key), _)| key.starts_with(&record::AUDIT_PREFIX));
    let told = rows
        .filter_map(|(_, value)| crate::audit::decode(value))
        .find(|entry| *entry.event_type == *audit_kinds::MEMORY_TURN_NOT_MEMORIZED.as_str());
    let details = told.unwrap().details.to_string();
    assert!(
        details.contains("the model is ill") && details.contains(&format!("\"tries\":{}", limits::MEMORIZE_TRIES_MAX)),
        "{details}"
    );
}

#[test]
fn an_agent_with_too_many_open_jobs_leaves_no_more() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    for _ in 0..limits::AGENT_MEMORIZE_OPEN_MAX + 3 {
        world.ask(PostMessage { agent, session: None, message: NewMessage::text(FACT) }).unwrap();
        let call = world.next_call().attempt;
        world.answer(call, "yes");
    }
    assert_eq!(jobs(&world), limits::AGENT_MEMORIZE_OPEN_MAX);
    let counts = world.engine.world().resource::<Jobs>().counts().find(|(kind, _)| *kind == MEMORIZE).unwrap().1;
    assert_eq!((counts.refused, counts.out), (3, 1), "one after the other");
    let open = world.engine.world().iter_entities().filter(|entity| entity.contains::<Job>()).count();
    assert_eq!(open, limits::AGENT_MEMORIZE_OPEN_MAX);
}
