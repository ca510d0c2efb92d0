//! A message is answered once, where it came from.

use agentsvc_components::Timestamp;
use agentsvc_components::channel::send::SendCause;
use agentsvc_components::channel::signal::{ChatSignal, Shown};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};

use super::*;
use crate::agent::RemoveAgents;
use crate::session::GetSession;

#[test]
fn a_message_becomes_a_turn_and_its_answer_goes_back_with_its_token() {
    let (mut world, agent) = world();
    let received = receive(&mut world, said("c1", "hello", "m1"));
    let (by, session, turn) = turn(&received);
    assert_eq!(by, agent);
    assert!(session != world.ask(GetSession::Current(agent)).unwrap().id);
    assert_eq!(Slot::of_id(session.0, Timestamp(0)), Slot::of_name("scout"));
    let entity = crate::kernel::index::turn(world.engine.world(), turn).unwrap();
    assert!(world.engine.world().get::<Turn>(entity).unwrap().taint.holds(Taint::CHAT));
    let call = world.next_call();
    world.answer(call.attempt, "hi there");
    let sent = orders(&mut world);
    let [(job, order)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((&*order.what.text, order.reply_token.as_deref()), ("hi there", Some("token-m1")));
    assert_eq!((&*order.chat, order.answers.as_deref(), order.turn), ("c1", Some("m1"), Some((session, turn))));
    assert_eq!(open_messages(&mut world), 0);
    report(&mut world, job, SendState::Sent);
    let kept = sends(&mut world);
    assert_eq!((kept.len(), kept[0].send.state, kept[0].send.cause), (1, SendState::Sent, SendCause::Answer));
    assert_eq!((kept[0].send.agent, kept[0].next_try_at), (Some(agent), None));
    whole(&mut world);
}

#[test]
fn a_message_that_comes_again_is_known_also_after_a_restart() {
    let (mut world, _) = world();
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    assert_eq!(receive(&mut world, said("c1", "hello", "m1")), Received::Duplicate);
    world.restart();
    assert_eq!(receive(&mut world, said("c1", "hello", "m1")), Received::Duplicate);
    turn(&receive(&mut world, said("c2", "hello", "m1")));
    turn(&receive(&mut world, said("c1", "what has no id is always new", "")));
    turn(&receive(&mut world, said("c1", "what has no id is always new", "")));
    whole(&mut world);
}

#[test]
fn a_kill_between_message_and_answer_neither_loses_nor_repeats_it() {
    let (mut world, _) = world();
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    world.restart();
    assert_eq!(open_messages(&mut world), 1);
    let call = world.next_call();
    world.answer(call.attempt, "hi");
    // The send was stored with the answer, and is out: whether it was written before the kill is not known.
    world.restart();
    let kept = sends(&mut world);
    assert_eq!((kept.len(), kept[0].send.state), (1, SendState::Unknown));
    assert!(orders(&mut world).is_empty() && world.calls.is_empty());
    whole(&mut world);
}

#[test]
fn silence_sends_nothing_and_ends_what_is_shown() {
    for text in ["NO_REPLY", "I see.\n[no reply needed]"] {
        let (mut world, _) = world();
        turn(&receive(&mut world, said("c1", "hello", "m1")));
        let call = world.next_call();
        world.answer(call.attempt, text);
        let signals: Vec<Shown> =
            world.effects.iter().filter_map(|effect| effect.get::<ChatSignal>()).map(|it| it.shown).collect();
        assert!(matches!(signals[..], [Shown::Began { .. }, Shown::Ended { has_failed: false }]), "{signals:?}");
        assert_eq!((sends(&mut world).len(), open_messages(&mut world)), (0, 0));
    }
}

#[test]
fn an_error_is_told_where_chats_are_not_public() {
    for (is_public, count) in [(false, 1), (true, 0)] {
        let (mut world, _) = with(InstanceRules { suppress_errors: is_public, ..open("bot") });
        turn(&receive(&mut world, said("c1", "hello", "m1")));
        let call = world.next_call();
        let message = "secret reason".to_owned();
        let failure = ModelFailure { code: FailureCode::ProviderError, message, spent: Vec::new() };
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
        let kept = sends(&mut world);
        assert_eq!((kept.len(), open_messages(&mut world)), (count, 0));
        assert!(kept.iter().all(|it| !it.send.preview.contains("secret")), "{kept:?}");
        whole(&mut world);
    }
}

#[test]
fn a_removed_agent_leaves_no_open_message() {
    let (mut world, agent) = world();
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(open_messages(&mut world), 0);
    let received = receive(&mut world, said("c1", "hello?", "m2"));
    assert!(matches!(&received, Received::Answered { text, .. } if text.contains("No agent")), "{received:?}");
    assert_eq!(receive(&mut world, said("c1", "hello?", "m3")), Received::Ignored(Why::NoAgent), "told once");
    whole(&mut world);
}

#[test]
fn a_command_is_completed_once_also_after_a_restart() {
    let (mut world, agent) = world();
    let event = ChatEvent { command: command("status", "now"), ..said("c1", "/status now", "m1") };
    let Received::Command(pending) = receive(&mut world, event) else { panic!() };
    assert_eq!((&*pending.name, &*pending.args, pending.agent), ("status", "now", Some(agent)));
    world.restart();
    assert_eq!(world.ask(PendingCommands::default()).unwrap(), std::slice::from_ref(&pending));
    let reply = Some(agentsvc_components::channel::send::SendContent { text: "fine".to_owned(), content: None });
    let done = CompleteCommand { message: pending.message, reply };
    world.ask(done.clone()).unwrap().unwrap();
    let sent = orders(&mut world);
    assert_eq!((sent.len(), sent[0].1.reply_token.as_deref()), (1, Some("token-m1")));
    assert!(world.ask(done).is_err());
    assert!(world.ask(PendingCommands::default()).unwrap().is_empty());
    whole(&mut world);
}

#[test]
fn messages_of_a_sender_are_joined_and_answered_once() {
    let mut rules = open("bot");
    rules.overrides.message_debounce_ms = Some(1_000);
    let (mut world, _) = with(rules);
    let Received::Waiting(id) = receive(&mut world, said("c1", "one", "m1")) else { panic!() };
    assert_eq!(receive(&mut world, said("c1", "two", "m2")), Received::Waiting(id));
    assert!(world.calls.is_empty());
    world.restart();
    wait(&mut world, 1_000);
    let call = world.next_call();
    assert!(world.calls.is_empty());
    world.answer(call.attempt, "both");
    let sent = orders(&mut world);
    assert_eq!((sent.len(), sent[0].1.reply_token.as_deref()), (1, Some("token-m2")));
    whole(&mut world);
}

#[test]
fn a_message_waits_no_longer_than_the_buffer_allows() {
    let mut rules = open("bot");
    rules.overrides.message_debounce_ms = Some(60_000);
    rules.overrides.message_debounce_max_buffer = Some(2);
    let (mut world, _) = with(rules);
    receive(&mut world, said("c1", "one", "m1"));
    wait(&mut world, 1_000);
    assert!(world.calls.is_empty());
    // Not even for a beat.
    turn(&receive(&mut world, said("c1", "two", "m2")));
    assert_eq!(world.calls.len(), 1);
    let Received::Waiting(_) = receive(&mut world, said("c1", "of the next turn", "m3")) else { panic!() };
    whole(&mut world);
}
