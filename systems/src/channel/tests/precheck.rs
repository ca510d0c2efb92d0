//! A model says first whether a message of a group deserves an answer.

use agentsvc_components::channel::signal::{ChatSignal, Shown};
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::usage::Scope;

use super::*;
use crate::agent::StopAgents;
use crate::budget::GetBudget;
use crate::session::ListSessions;
use crate::turn::StopTurns;

fn checking() -> (TestWorld, AgentId) {
    let mut rules = open("bot");
    rules.overrides.reply_precheck = Some(true);
    rules.overrides.reply_precheck_model = Some("other/small".into());
    with(rules)
}

/// Is a signal out that an answer is being written?
fn shows(world: &TestWorld) -> bool {
    let mut signals = world.effects.iter().filter_map(|effect| effect.get::<ChatSignal>());
    signals.any(|signal| matches!(signal.shown, Shown::Began { .. }))
}

#[test]
fn a_message_that_needs_no_answer_is_gone_and_nothing_is_shown() {
    let (mut world, agent) = checking();
    let before =
        world.ask(ListSessions { agent: Some(agent), limit: 100, ..ListSessions::default() }).unwrap().items.len();
    let received = receive(&mut world, in_group("room", "ann", "lunch?", "m1"));
    assert!(matches!(received, Received::Waiting(_)), "{received:?}");
    let call = world.next_call();
    assert_eq!((&*call.model.provider, &*call.model.model), ("other", "small"));
    let manifest = &call.manifest.manifest;
    assert!(manifest.capabilities.tools.is_empty() && manifest.system_prompt.contains("\"scout\""), "{manifest:?}");
    assert_eq!(world.texts(call.log), ["ann: lunch?"]);
    let most = call.request.as_ref().and_then(|request| request.max_tokens);
    assert_eq!(most, Some(limits::PRECHECK_TOKENS_MAX));
    world.answer(call.attempt, "NO_REPLY");
    assert!(world.calls.is_empty() && !shows(&world));
    assert_eq!((sends(&mut world).len(), open_messages(&mut world)), (0, 0));
    let view = &world.ask(List::<InstanceView> { limit: 9, ..List::default() }).unwrap().items[0];
    assert_eq!((view.counts.turns, view.counts.ignored), (0, 1));
    let after =
        world.ask(ListSessions { agent: Some(agent), limit: 100, ..ListSessions::default() }).unwrap().items.len();
    assert_eq!(before, after, "its session is hidden and gone");
    assert_eq!(receive(&mut world, in_group("room", "ann", "lunch?", "m1")), Received::Duplicate);
    whole(&mut world);
}

#[test]
fn what_deserves_an_answer_is_answered_once() {
    let (mut world, _) = checking();
    receive(&mut world, in_group("room", "ann", "who can help?", "m1"));
    let call = world.next_call();
    world.answer(call.attempt, "YES");
    let call = world.next_call();
    assert_ne!((&*call.model.provider, &*call.model.model), ("other", "small"));
    let system = call.request.as_ref().and_then(|request| request.system.clone()).unwrap_or_default();
    assert!(!system.contains("NO_REPLY"), "it is decided: {system}");
    assert!(shows(&world));
    world.answer(call.attempt, "I can");
    let sent = orders(&mut world);
    let [(_, order)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((&*order.what.text, order.reply_token.as_deref()), ("I can", Some("token-m1")));
    let spent = world.ask(GetBudget(Scope::Global)).unwrap();
    assert!(spent.reserved.is_zero());
    whole(&mut world);
}

#[test]
fn only_messages_of_groups_that_name_nobody_are_asked_about() {
    let (mut world, _) = checking();
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    turn(&receive(&mut world, ChatEvent { was_mentioned: true, ..in_group("room", "ann", "hello bot", "m2") }));
    let mut rules = open("bot");
    rules.overrides.reply_precheck_model = Some("other/small".into());
    let (mut world, _) = with(rules);
    turn(&receive(&mut world, in_group("room", "ann", "hello", "m1")));
}

#[test]
fn a_model_that_fails_says_nothing_or_takes_too_long_keeps_no_answer_back() {
    let fails = |world: &mut TestWorld| {
        let call = world.next_call();
        let failure = ModelFailure { code: FailureCode::ProviderError, message: "down".into(), spent: Vec::new() };
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    };
    let is_empty = |world: &mut TestWorld| {
        let call = world.next_call();
        world.answer(call.attempt, " ");
    };
    let is_late = |world: &mut TestWorld| {
        let call = world.next_call();
        wait(world, limits::PRECHECK_MS + 1_000);
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(ModelAnswer::default())));
    };
    let is_killed = |world: &mut TestWorld| {
        world.restart();
        let call = world.next_call();
        assert_eq!(&*call.model.model, "small", "it is asked again");
        world.answer(call.attempt, "YES");
    };
    type Way<'w> = (&'w str, &'w dyn Fn(&mut TestWorld));
    let ways: [Way<'_>; 4] = [("fails", &fails), ("empty", &is_empty), ("late", &is_late), ("killed", &is_killed)];
    for (name, way) in ways {
        let (mut world, _) = checking();
        receive(&mut world, in_group("room", "ann", "who can help?", "m1"));
        way(&mut world);
        for _ in 0..5 {
            wait(&mut world, 1_000);
        }
        let call = world.next_call();
        assert_ne!(&*call.model.model, "small", "{name}");
        world.answer(call.attempt, "I can");
        assert_eq!((sends(&mut world).len(), open_messages(&mut world)), (1, 0), "{name}");
        whole(&mut world);
    }
}

#[test]
fn a_person_who_stops_it_ends_the_message() {
    let (mut world, agent) = checking();
    receive(&mut world, in_group("room", "ann", "who can help?", "m1"));
    let call = world.next_call();
    world.ask(StopTurns { agent, session: None }).unwrap();
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Aborted(ModelAnswer::default())));
    assert!(world.calls.is_empty());
    assert_eq!((sends(&mut world).len(), open_messages(&mut world)), (0, 0));
    world.ask(StopAgents(vec![agent])).unwrap();
    receive(&mut world, in_group("room", "ann", "and now?", "m2"));
    assert!(world.calls.is_empty(), "an agent that does not run asks no model");
    whole(&mut world);
}
