//! What strangers ask for stays out of the conversations of the user.

use agentsvc_components::SessionId;

use super::*;
use crate::world::GetStats;

#[test]
fn what_a_stranger_asks_for_never_reaches_the_conversation_of_the_user() {
    for (policy, to) in [(TaintPolicy::Off, "b"), (TaintPolicy::Deny, "b"), (TaintPolicy::Deny, "a")] {
        let (mut world, agent) = world(policy);
        let other = world.spawn("b");
        let receiver = if to == "a" { agent } else { other };
        let users = world.ask(GetSession::Current(receiver)).unwrap().id;
        let home = SessionId(uuid::Uuid::from_u128(7));
        let message = NewMessage { taint: Taint::GUEST, ..NewMessage::text("go") };
        let turn = world.ask(PostMessage { agent, session: Some(home), message }).unwrap().turn;
        assert_eq!(taint_of(&world, turn), Taint::GUEST, "also where nothing else is tracked");
        model_asks(&mut world, "agent_send", &format!(r#"{{"agent":"{to}","message":"m"}}"#));
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let send =
            |session| SendToAgent { from, index, to: to.into(), session, text: "m".into(), wait: true, found: None };
        assert_eq!(world.ask(send(Some(users))).unwrap_err().field.as_deref(), Some("session_id"));
        let sent = world.ask(send(None)).unwrap();
        assert!(sent.session != users && sent.session != home, "{policy:?} {to}");
        assert!(taint_of(&world, sent.turn).holds(Taint::GUEST));
        // Its session goes with it.
        let hidden = |world: &mut TestWorld| world.ask(GetStats).unwrap().sessions_hidden;
        assert_eq!(hidden(&mut world), 1);
        world.restart();
        assert_eq!(hidden(&mut world), 1, "the turn that waits for it goes on, too");
        let attempt = world.next_call().attempt;
        world.answer(attempt, "done");
        assert_eq!(hidden(&mut world), 0);
    }
}

#[test]
fn text_of_strangers_does_not_make_a_conversation_theirs() {
    for (policy, strangers) in [(TaintPolicy::Audit, Taint::PEER), (TaintPolicy::Audit, Taint::GUEST)] {
        let (mut world, agent) = world(policy);
        let other = world.spawn("b");
        let users = world.ask(GetSession::Current(other)).unwrap().id;
        let turn = begin(&mut world, agent);
        model_asks(&mut world, "agent_send", r#"{"agent":"x@node","message":"m"}"#);
        let run = runs(&mut world).remove(0);
        gives(&mut world, &run, strangers);
        let read = taint_of(&world, turn);
        assert!(read.of_strangers().is_none() && read.words() == strangers.words(), "{read:?}");
        model_asks(&mut world, "agent_send", r#"{"agent":"b","message":"m"}"#);
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let sent =
            SendToAgent { from, index, to: "b".into(), session: None, text: "m".into(), wait: true, found: None };
        let sent = world.ask(sent).unwrap();
        assert_eq!(sent.session, users, "the user began it");
        let handed = taint_of(&world, sent.turn);
        assert!(handed.of_strangers().is_none() && strangers.words().iter().all(|word| handed.words().contains(word)));
        world.restart();
        assert_eq!(taint_of(&world, turn), read);
    }
}
