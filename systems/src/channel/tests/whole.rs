//! Room that there is not, and what is told of it.

use super::*;
use crate::agent::{StartAgents, StopAgents};
use crate::turn::InterruptSession;

#[test]
fn a_message_to_an_agent_that_does_not_run_is_answered_with_a_code() {
    let (mut world, agent) = world();
    world.ask(StopAgents(vec![agent])).unwrap();
    let received = receive(&mut world, said("c1", "hello", "m1"));
    assert!(matches!(&received, Received::Answered { text, .. } if text.contains("agent_not_running")), "{received:?}");
    assert_eq!(open_messages(&mut world), 0);
    world.ask(StartAgents(vec![agent])).unwrap();
    turn(&receive(&mut world, said("c1", "hello", "m2")));
    whole(&mut world);
}

#[test]
fn open_messages_of_a_conversation_are_bounded_and_all_are_answered() {
    let (mut world, _) = world();
    for n in 0..limits::CONVERSATION_MESSAGES_MAX {
        wait(&mut world, 2_000);
        turn(&receive(&mut world, said("c1", "hello", &format!("m{n}"))));
    }
    let full = world.ask(ReceiveMessage { instance: "bot".into(), event: said("c1", "hello", "x") }).unwrap_err();
    assert_eq!((full.code, full.retry_after_secs), (Some(error_codes::CHANNEL_BUSY), Some(5)));
    for n in 0..limits::CONVERSATION_MESSAGES_MAX {
        let call = world.next_call();
        world.answer(call.attempt, &format!("answer {n}"));
    }
    assert_eq!((open_messages(&mut world), sends(&mut world).len()), (0, limits::CONVERSATION_MESSAGES_MAX));
    turn(&receive(&mut world, said("c1", "hello", "x")));
    whole(&mut world);
}

#[test]
fn a_message_after_an_interrupt_is_answered() {
    let (mut world, _) = world();
    let (agent, session, _) = turn(&receive(&mut world, said("c1", "hello", "m1")));
    world.ask(InterruptSession { agent, session }).unwrap();
    let call = world.next_call();
    world.answer(call.attempt, "interrupted or not");
    world.effects.clear();
    turn(&receive(&mut world, said("c1", "again", "m2")));
    let call = world.next_call();
    world.answer(call.attempt, "yes");
    let sent = orders(&mut world);
    let answer = sent.iter().find(|(_, order)| order.answers.as_deref() == Some("m2"));
    assert!(answer.is_some() || sends(&mut world).iter().any(|view| &*view.send.preview == "yes"), "{sent:?}");
    assert_eq!(open_messages(&mut world), 0);
    whole(&mut world);
}
