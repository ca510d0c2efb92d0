//! What strangers ask for stays out of the conversations of the user.

use agentsvc_components::SessionId;

use super::*;

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
    }
}
