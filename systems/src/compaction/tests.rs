//! Compactions in virtual time: when they begin, how they end, and what a kill leaves.

use agentsvc_components::compaction::call::{Summary, SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::{AgentId, LogId, RefusalKind};

use super::*;
use crate::agent::{GetAgent, RemoveAgents, StopAgents};
use crate::compaction::metrics::CompactionTotals;
use crate::config::Settings;
use crate::kernel::counters::StaleOutcomes;
use crate::session::{ClearHistory, GetSession, ResetSession, SessionView};
use crate::testing::{Asked, TestWorld, answer};
use crate::turn::{NewMessage, SendMessage};

fn say(world: &mut TestWorld, agent: AgentId, text: &str) {
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text(text) });
    world.step();
    let call = world.next_call();
    world.answer(call.attempt, "noted");
    assert!(asked.take().unwrap().is_ok());
}

/// An agent with so many turns behind it.
fn after_turns(turns: u32) -> (TestWorld, AgentId) {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    for turn in 0..turns {
        say(&mut world, agent, &format!("message {turn}"));
    }
    (world, agent)
}

fn view(world: &mut TestWorld, agent: AgentId) -> SessionView {
    world.ask(GetSession::Current(agent)).unwrap()
}

fn next_summary(world: &mut TestWorld) -> Option<SummaryCall> {
    let at = world.effects.iter().position(|effect| effect.is::<SummaryCall>())?;
    world.effects.remove(at).take::<SummaryCall>().ok().map(|call| *call)
}

fn written(upto: u32, messages: u32) -> SummaryEnd {
    let (provider, model) = ("builtin".to_owned(), "builtin".to_owned());
    let summary = Summary { text: "they spoke".to_owned(), upto, messages, provider, model, taint: Taint::NONE };
    SummaryEnd { usage: Usage::of(7, 3), written: Ok(summary), calls: Vec::new() }
}

fn failed() -> SummaryEnd {
    SummaryEnd { usage: Usage::default(), written: Err("the model was away".to_owned()), calls: Vec::new() }
}

fn summary_of(world: &TestWorld, log: LogId, upto: u32) -> Option<SummaryRecord> {
    let key = record::summary_key(log, upto);
    world.store.get(&(Space::Content, key.clone())).map(|value| record::decode(&key, value).unwrap())
}

fn compact(world: &mut TestWorld, agent: AgentId) -> Asked<CompactionReply> {
    let asked = world.begin(CompactSession { agent, session: None });
    world.step();
    asked
}

#[test]
fn above_eighty_messages_the_older_turns_are_summarised_and_the_newest_ten_stay() {
    let (mut world, agent) = after_turns(40);
    assert!(next_summary(&mut world).is_none(), "80 messages are not above 80");
    say(&mut world, agent, "one more");
    let call = next_summary(&mut world).unwrap();
    assert_eq!((call.from, call.upto, call.agent), (0, 31, agent));
    say(&mut world, agent, "meanwhile");
    assert!(next_summary(&mut world).is_none(), "one at a time");
    world.outcome(SummaryOutcome(call.attempt, written(31, 62)));
    let view = view(&mut world, agent);
    assert_eq!((view.message_count, view.compacted), (1 + 22, 31));
    let row = summary_of(&world, view.log, 31).unwrap();
    assert_eq!((row.from, row.messages, &*row.text, &*row.model), (0, 62, "they spoke", "builtin/builtin"));
    assert_eq!(world.rows(view.log).len(), 84, "the originals stay");
    let stats = world.engine.stats();
    assert_eq!((stats.compactions_open, stats.calls_out, stats.compaction_totals.completed), (0, 0, 1));
    let agent = world.ask(GetAgent(agent)).unwrap();
    assert_eq!((agent.input_tokens, agent.output_tokens), (42 * 10 + 7, 42 * 5 + 3));
    assert!(world.events.iter().any(|event| event.kind().as_str() == "session_compacted"));
}

#[test]
fn the_next_compaction_takes_the_summary_in_and_the_next_prompt_begins_behind_it() {
    let (mut world, agent) = after_turns(41);
    let call = next_summary(&mut world).unwrap();
    world.outcome(SummaryOutcome(call.attempt, written(31, 62)));
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("go on") });
    world.step();
    let turn = world.next_call();
    assert_eq!((turn.compacted, turn.ordinal), (31, 41));
    world.answer(turn.attempt, "ok");
    drop(asked);
    let asked = compact(&mut world, agent);
    let call = next_summary(&mut world).unwrap();
    assert_eq!((call.from, call.upto), (31, 39), "eleven turns: a third stays");
    world.outcome(SummaryOutcome(call.attempt, written(39, 16)));
    let reply = asked.take().unwrap().unwrap();
    assert_eq!((reply.messages_before, reply.messages_after, reply.messages_summarised), (23, 7, 17));
    assert!(reply.sentence().contains("23 messages to 7"), "{}", reply.sentence());
    let view = view(&mut world, agent);
    assert!(summary_of(&world, view.log, 31).is_some(), "the older summary stays for the trajectory");
    assert_eq!(summary_of(&world, view.log, 39).unwrap().from, 31);
}

#[test]
fn few_turns_are_left_as_they_are_and_a_running_turn_is_no_obstacle() {
    let (mut world, agent) = after_turns(2);
    let reply = compact(&mut world, agent).take().unwrap().unwrap();
    assert_eq!((reply.messages_before, reply.messages_after, reply.messages_summarised), (4, 4, 0));
    assert!(reply.sentence().starts_with("Nothing to compact"));
    say(&mut world, agent, "third");
    let running = world.begin(SendMessage { agent, session: None, message: NewMessage::text("fourth") });
    world.step();
    let turn = world.next_call();
    let (asked, joined) = (compact(&mut world, agent), compact(&mut world, agent));
    let call = next_summary(&mut world).unwrap();
    assert!(next_summary(&mut world).is_none(), "the second request joins the first");
    assert_eq!((call.from, call.upto), (0, 2), "the running turn and one ended turn stay");
    world.answer(turn.attempt, "done");
    assert!(running.take().unwrap().is_ok());
    world.outcome(SummaryOutcome(call.attempt, written(2, 4)));
    assert_eq!(asked.take().unwrap().unwrap().messages_after, 5);
    assert_eq!(joined.take().unwrap().unwrap().messages_after, 5);
}

#[test]
fn a_failure_changes_nothing_tells_who_waits_and_is_not_repeated_at_once() {
    let (mut world, agent) = after_turns(41);
    let asked = compact(&mut world, agent);
    let call = next_summary(&mut world).unwrap();
    world.outcome(SummaryOutcome(call.attempt, failed()));
    let refusal = asked.take().unwrap().unwrap_err();
    assert_eq!((refusal.kind, refusal.code.as_deref()), (RefusalKind::Failed, Some("compaction_failed")));
    let before = view(&mut world, agent);
    assert_eq!((before.message_count, before.compacted), (82, 0));
    for _ in 0..9 {
        say(&mut world, agent, "more");
        assert!(next_summary(&mut world).is_none(), "a pause of 20 messages");
    }
    say(&mut world, agent, "the twentieth message came");
    let call = next_summary(&mut world).unwrap();
    world.outcome(SummaryOutcome(call.attempt, failed()));
    assert_eq!(world.engine.world().resource::<CompactionTotals>().failed, 2);
    let asked = compact(&mut world, agent);
    assert!(next_summary(&mut world).is_some() && asked.take().is_none(), "a person may ask at any time");
}

#[test]
fn pressure_in_the_prompt_begins_one_below_eighty_messages() {
    let (mut world, agent) = after_turns(6);
    let _asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("long") });
    world.step();
    let attempt = world.next_call().attempt;
    let pressed = ModelAnswer { pressed: true, ..answer(vec![Block::Text { text: "ok".into() }]) };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(pressed)));
    let call = next_summary(&mut world).unwrap();
    assert_eq!((call.from, call.upto), (0, 3));
}

#[test]
fn a_kill_while_the_summary_is_out_resumes_it_and_it_ends_once() {
    let (mut world, agent) = after_turns(41);
    let lost = next_summary(&mut world).unwrap();
    world.restart();
    let call = next_summary(&mut world).unwrap();
    assert_eq!((call.from, call.upto, call.attempt.job), (lost.from, lost.upto, lost.attempt.job));
    assert!(call.attempt.number > lost.attempt.number);
    world.outcome(SummaryOutcome(lost.attempt, written(31, 62)));
    assert_eq!(view(&mut world, agent).compacted, 0, "the lost attempt is fenced");
    world.outcome(SummaryOutcome(call.attempt, written(31, 62)));
    world.outcome(SummaryOutcome(call.attempt, written(31, 62)));
    let after = view(&mut world, agent);
    assert_eq!((after.message_count, after.compacted), (21, 31));
    assert_eq!(world.engine.world().resource::<StaleOutcomes>().0, 2);
    world.restart();
    assert!(next_summary(&mut world).is_none());
    assert_eq!(view(&mut world, agent).compacted, 31);
}

#[test]
fn a_history_that_goes_takes_its_compaction_with_it() {
    for how in 0..3 {
        let (mut world, agent) = after_turns(41);
        let asked = compact(&mut world, agent);
        let call = next_summary(&mut world).unwrap();
        let log = view(&mut world, agent).log;
        match how {
            0 => drop(world.ask(ClearHistory { agent }).unwrap()),
            1 => drop(world.ask(ResetSession { agent }).unwrap()),
            _ => drop(world.ask(RemoveAgents(vec![agent])).unwrap()),
        }
        let refusal = asked.take().unwrap().unwrap_err();
        assert_eq!((refusal.kind, refusal.code.as_deref()), (RefusalKind::Conflict, Some("session_removed")));
        assert!(world.effects.iter().any(|e| e.get() == Some(&Abort(call.attempt))));
        // Its usage is counted all the same: it was paid for.
        let unmetered = |world: &TestWorld| {
            let mut rows = world.store.clone();
            rows.retain(|(_, key), _| !matches!(key[0], b'a' | b'b' | b'6'));
            rows
        };
        let before = unmetered(&world);
        world.outcome(SummaryOutcome(call.attempt, written(31, 62)));
        assert!(unmetered(&world) == before, "a stale summary writes nothing else");
        assert!(summary_of(&world, log, 31).is_none());
        assert_eq!(world.engine.stats().calls_out, 0);
        if how < 2 {
            let view = view(&mut world, agent);
            assert_eq!((view.message_count, view.compacted), (0, 0));
        }
    }
}

#[test]
fn a_stop_of_the_agent_does_not_end_it_and_it_takes_a_slot_like_a_turn() {
    let mut world = TestWorld::with(Settings { provider_calls: 1, ..Settings::default() });
    let agent = world.spawn("scout");
    for _ in 0..3 {
        say(&mut world, agent, "x");
    }
    let _running = world.begin(SendMessage { agent, session: None, message: NewMessage::text("y") });
    world.step();
    let turn = world.next_call();
    let asked = compact(&mut world, agent);
    assert!(next_summary(&mut world).is_none(), "the only slot is taken");
    world.ask(StopAgents(vec![agent])).unwrap();
    world.outcome(ModelOutcome(turn.attempt, ModelEnd::Aborted(ModelAnswer::default())));
    let call = next_summary(&mut world).unwrap();
    world.outcome(SummaryOutcome(call.attempt, written(2, 4)));
    assert!(asked.take().unwrap().is_ok());
}

#[test]
fn a_summary_that_stops_short_is_followed_by_the_next_one() {
    let (mut world, agent) = after_turns(41);
    let call = next_summary(&mut world).unwrap();
    for _ in 0..20 {
        say(&mut world, agent, "meanwhile");
    }
    world.outcome(SummaryOutcome(call.attempt, written(5, 10)));
    let view = view(&mut world, agent);
    assert_eq!((view.message_count, view.compacted), (122 - 10 + 1, 5));
    let next = next_summary(&mut world).unwrap();
    assert_eq!((next.from, next.upto), (5, 51));
    world.outcome(SummaryOutcome(next.attempt, written(5, 0)));
    assert!(next_summary(&mut world).is_none(), "one that gets nowhere fails and pauses");
    assert_eq!(world.engine.world().resource::<CompactionTotals>().failed, 1);
}

#[test]
fn the_house_compacts_so_many_sessions_at_once() {
    let (mut world, agent) = after_turns(40);
    let whole = world.engine.world_mut();
    let others: Vec<Entity> = (0..limit::COMPACTIONS_MAX).map(|_| whole.spawn_empty().id()).collect();
    whole.resource_mut::<Compactions>().by_session.extend(others.iter().map(|other| (*other, *other)));
    say(&mut world, agent, "the eighty-first message");
    assert!(next_summary(&mut world).is_none(), "an automatic one waits");
    let refused = compact(&mut world, agent).take().unwrap().unwrap_err();
    assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::Busy, Some(5)));
    world.engine.world_mut().resource_mut::<Compactions>().by_session.remove(&others[0]);
    say(&mut world, agent, "there is room again");
    assert!(next_summary(&mut world).is_some(), "it comes with the next turn's end");
}

#[test]
fn so_many_pauses_are_remembered() {
    let mut world = World::new();
    let mut compactions = Compactions::default();
    let sessions: Vec<Entity> = (0..=limit::COMPACTION_PAUSES_MAX).map(|_| world.spawn_empty().id()).collect();
    for session in &sessions {
        compactions.pause(*session, 100);
    }
    let paused = sessions.iter().filter(|session| compactions.is_paused(**session, 99)).count();
    assert_eq!((paused, compactions.paused.len()), (limit::COMPACTION_PAUSES_MAX, limit::COMPACTION_PAUSES_MAX));
    assert!(compactions.is_paused(sessions[limit::COMPACTION_PAUSES_MAX], 99), "the last one is among them");
}
