//! What is sent, and what is known of it.

use agentsvc_components::RefusalKind;
use agentsvc_components::channel::send::SendContent;
use agentsvc_components::kernel::id::UserId;

use uuid::Uuid;

use super::*;
use crate::agent::SetOwner;

fn to(chat: &str, by: SendBy, text: &str) -> SendToChat {
    let to = SendTo::Chat { instance: "bot".into(), chat: Some(chat.into()), thread: None };
    SendToChat { to, what: SendContent { text: text.to_owned(), content: None }, by }
}

#[test]
fn a_send_ends_as_its_adapter_says() {
    let (mut world, _) = world();
    let ends = [
        (TryEnd::Done("{\"state\":\"sent\"}".to_owned()), SendState::Sent),
        (TryEnd::Done("{\"state\":\"acknowledged\",\"message_id\":\"7\"}".to_owned()), SendState::Acknowledged),
        (TryEnd::Done("{\"state\":\"refused\",\"reason\":\"403\"}".to_owned()), SendState::Refused),
        (TryEnd::Done("{\"state\":\"queued\"}".to_owned()), SendState::Unknown),
        (TryEnd::Done("nonsense".to_owned()), SendState::Unknown),
        (TryEnd::Failed("no such chat".to_owned()), SendState::Refused),
        (TryEnd::Lost("it took too long".to_owned()), SendState::Unknown),
    ];
    for (n, (end, state)) in ends.into_iter().enumerate() {
        let sent = world.ask(to(&format!("c{n}"), SendBy::Operator, "hi")).unwrap();
        let (job, _) = orders(&mut world).remove(0);
        world.outcome(JobOutcome(job.attempt, end));
        let kept = sends(&mut world).into_iter().find(|view| view.id == sent.id).unwrap();
        assert_eq!((kept.send.state, kept.send.ended_at.is_some()), (state, true), "{n}");
    }
    whole(&mut world);
}

#[test]
fn what_was_not_written_waits_and_goes_out_in_order() {
    let (mut world, _) = world();
    world.ask(to("c1", SendBy::Operator, "one")).unwrap();
    world.ask(to("c1", SendBy::Operator, "two")).unwrap();
    let out = orders(&mut world);
    assert_eq!(out.iter().map(|(_, order)| &*order.what.text).collect::<Vec<_>>(), ["one"]);
    world.outcome(JobOutcome(out[0].0.attempt, TryEnd::Retry { after_ms: None, reason: "it is down".to_owned() }));
    assert!(orders(&mut world).is_empty(), "the second does not overtake the first");
    assert_eq!(sends(&mut world)[0].send.reason.as_deref(), Some("it is down"));
    wait(&mut world, 1_000);
    let out = orders(&mut world);
    assert_eq!(&*out[0].1.what.text, "one");
    report(&mut world, &out[0].0, SendState::Sent);
    assert_eq!(&*orders(&mut world)[0].1.what.text, "two");
    whole(&mut world);
}

#[test]
fn a_tool_sends_to_its_own_chat_and_to_those_that_are_allowed() {
    let (mut world, agent) = with(InstanceRules { allow_send_to: vec!["team-*".into()], ..open("bot") });
    let received = receive(&mut world, said("c1", "hello", "m1"));
    let by = SendBy::Tool { by: agent, turn: turn(&received).2 };
    for (chat, is_allowed) in [("c1", true), ("team-7", true), ("c2", false)] {
        let sent = world.ask(to(chat, by, "hi"));
        assert_eq!(sent.is_ok(), is_allowed, "{chat}");
        if let Err(refusal) = sent {
            assert_eq!((refusal.kind, refusal.code), (RefusalKind::Forbidden, Some(error_codes::CHANNEL_SEND_DENIED)));
        }
    }
    // The agent of a user does no more than the user may, who cannot write to chats of the installation.
    world.ask(SetOwner { agent, user: Some(UserId(Uuid::from_u128(1))) }).unwrap();
    world.ask(to("c1", by, "hi")).unwrap();
    let refusal = world.ask(to("team-7", by, "hi")).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::CHANNEL_SEND_DENIED));
    let gone = SendBy::Tool { by: agent, turn: TurnId(uuid::Uuid::nil()) };
    assert!(world.ask(to("c1", gone, "hi")).is_err(), "a turn that does not exist answers no chat");
    world.ask(to("c2", SendBy::Operator, "hi")).unwrap();
}

#[test]
fn what_a_tool_sends_to_its_own_chat_goes_where_the_answer_goes() {
    let (mut world, agent) = with(InstanceRules { allow_send_to: vec!["c2".into()], ..open("bot") });
    let event = ChatEvent { thread: Some("t1".into()), ..said("c1", "hello", "m1") };
    let received = receive(&mut world, event);
    let Received::Turn { conversation, .. } = received else { panic!("{received:?}") };
    let by = SendBy::Tool { by: agent, turn: turn(&received).2 };
    let chat = |chat: &str, thread: Option<&str>| SendTo::Chat {
        instance: "bot".into(),
        chat: Some(chat.into()),
        thread: thread.map(Into::into),
    };
    for (to, thread, token) in [
        (SendTo::Conversation(conversation), Some("t1"), Some("token-m1")),
        (chat("c1", Some("t2")), Some("t2"), Some("token-m1")),
        (chat("c2", None), None, None),
    ] {
        world.ask(SendToChat { to, ..to_nowhere(by) }).unwrap();
        let (job, order) = orders(&mut world).remove(0);
        assert_eq!((order.thread.as_deref(), order.reply_token.as_deref()), (thread, token));
        report(&mut world, &job, SendState::Sent);
    }
    let operator = SendToChat { to: SendTo::Conversation(conversation), ..to_nowhere(SendBy::Operator) };
    world.ask(operator).unwrap();
    let (_, order) = orders(&mut world).remove(0);
    assert_eq!((order.thread, order.reply_token), (None, None), "it answers no message");
    whole(&mut world);
}

fn to_nowhere(by: SendBy) -> SendToChat {
    to("", by, "hi")
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let (mut world, _) = world();
    let other = |text: &str, content: Option<&str>| {
        let what = SendContent { text: text.to_owned(), content: content.map(Into::into) };
        SendToChat { what, ..to("c1", SendBy::Operator, "") }
    };
    for (send, field) in [
        (other(" ", None), "message"),
        (other("", Some("{")), "content"),
        (to(&"x".repeat(limits::CHAT_ID_BYTES_MAX + 1), SendBy::Operator, "hi"), "recipient"),
        (to("", SendBy::Operator, "hi"), "recipient"),
    ] {
        assert_eq!(world.ask(send).unwrap_err().field.as_deref(), Some(field));
    }
    let elsewhere = SendTo::Chat { instance: "no".into(), chat: Some("c".into()), thread: None };
    let elsewhere = SendToChat { to: elsewhere, ..to("c1", SendBy::Operator, "hi") };
    assert_eq!(world.ask(elsewhere).unwrap_err().code, Some(error_codes::CHANNEL_NOT_FOUND));
    assert!(sends(&mut world).is_empty());
    world.ask(other("", Some("{\"Poll\":{}}"))).unwrap();
}

#[test]
fn sends_of_a_conversation_are_bounded_and_an_answer_leaves_a_trace() {
    let (mut world, _) = world();
    turn(&receive(&mut world, said("c1", "hello", "m1")));
    for _ in 0..limits::CONVERSATION_SENDS_OPEN_MAX {
        world.ask(to("c1", SendBy::Operator, "hi")).unwrap();
    }
    assert_eq!(world.ask(to("c1", SendBy::Operator, "hi")).unwrap_err().code, Some(error_codes::CHANNEL_BUSY));
    let call = world.next_call();
    world.answer(call.attempt, "the answer");
    let filter = SendFilter::Instance("bot".into());
    let newest = world.ask(List::<SendView> { filter, after: None, limit: 1 }).unwrap().items;
    assert_eq!((newest[0].send.state, &*newest[0].send.preview), (SendState::Refused, "the answer"));
    assert_eq!(open_messages(&mut world), 0);
    whole(&mut world);
}

#[test]
fn ended_sends_are_kept_up_to_their_bound() {
    let (mut world, _) = world();
    for n in 0..limits::SENDS_KEPT_MAX + 3 {
        world.begin(to(&format!("c{}", n % 7), SendBy::Operator, "hi"));
    }
    world.step();
    loop {
        let out = orders(&mut world);
        if out.is_empty() {
            break;
        }
        for (job, _) in out {
            world.engine.outcome(JobOutcome(job.attempt, TryEnd::Done("{\"state\":\"sent\"}".to_owned())));
        }
        world.step();
    }
    let first = world.ask(List::<InstanceView> { limit: 1, ..List::default() }).unwrap().items.remove(0);
    assert_eq!(first.counts.sent, limits::SENDS_KEPT_MAX as u64 + 3);
    let all = world.ask(List::<SendView> { limit: 1, ..List::default() }).unwrap().total;
    assert_eq!(all, Some(limits::SENDS_KEPT_MAX));
    whole(&mut world);
}

#[test]
fn a_message_without_an_answer_is_passed_on() {
    let (mut world, _) = with(InstanceRules {
        default_conversation: Some("home".into()),
        allow_send_to: vec!["room".into()],
        ..open("bot")
    });
    for (to, chat, id) in [("room", "room", "m1"), ("", "home", "m2")] {
        let event = ChatEvent { deliver_to: Some(to.into()), ..said("c1", "news", id) };
        assert!(matches!(receive(&mut world, event.clone()), Received::Relayed(_)));
        assert_eq!(receive(&mut world, event), Received::Duplicate);
        assert_eq!(&*orders(&mut world)[0].1.chat, chat);
    }
    assert!(world.calls.is_empty());
}

#[test]
fn what_is_asked_for_again_under_its_key_is_sent_once() {
    let (mut world, agent) = world();
    let to = SendTo::Chat { instance: "bot".into(), chat: Some("ops".into()), thread: None };
    let (key, text) = (Uuid::from_u128(7), "hello".to_owned());
    let asked = DeliverToChat { key, to, text, agent: Some(agent), is_callers: false };
    let first = world.ask(asked.clone()).unwrap();
    assert_eq!(world.ask(asked.clone()).unwrap().id, first.id);
    assert_eq!(orders(&mut world).len(), 1);
    world.restart();
    assert_eq!(world.ask(asked.clone()).unwrap().id, first.id, "also after a restart");
    let nowhere = SendTo::Chat { instance: "bot".into(), chat: None, thread: None };
    let refusal = world.ask(DeliverToChat { key: Uuid::from_u128(8), to: nowhere, ..asked }).unwrap_err();
    assert!(refusal.message.contains("default_conversation"), "{refusal}");
}

#[test]
fn a_caller_from_outside_reaches_only_chats_that_the_configuration_names() {
    let rules =
        InstanceRules { default_conversation: Some("ops".into()), allow_send_to: vec!["team-*".into()], ..open("bot") };
    let (mut world, agent) = with(rules);
    receive(&mut world, said("ann", "hello", "m1"));
    world.effects.clear();
    let mut ask = |key: u128, chat: Option<&str>, is_callers: bool| {
        let to = SendTo::Chat { instance: "bot".into(), chat: chat.map(Into::into), thread: None };
        let key = Uuid::from_u128(key);
        world.ask(DeliverToChat { key, to, text: "hello".to_owned(), agent: Some(agent), is_callers })
    };
    let refusal = ask(1, Some("ann"), true).unwrap_err();
    assert_eq!((refusal.code, refusal.field.as_deref()), (Some(error_codes::CHANNEL_SEND_DENIED), Some("recipient")));
    for (key, chat) in [(2, None), (3, Some("ops")), (4, Some("team-7"))] {
        ask(key, chat, true).unwrap();
    }
    ask(5, Some("ann"), false).unwrap();
}

#[test]
fn what_is_passed_on_keeps_to_pairing_rates_and_the_chats_of_the_configuration() {
    let overrides = ChannelOverrides { rate_limit_per_minute: Some(2), ..ChannelOverrides::default() };
    let rules = InstanceRules { overrides, allow_send_to: vec!["ops-*".into()], ..open("bot") };
    let (mut world, _) = with(rules);
    let pass_on = |chat: &str, id: &str, to: &str| ChatEvent { deliver_to: Some(to.into()), ..said(chat, "news", id) };
    let told = receive(&mut world, pass_on("mallory", "m1", "ops-room"));
    assert!(matches!(&told, Received::Answered { text, .. } if text.contains("not paired")), "{told:?}");
    world.ask(PairChat { instance: "bot".into(), chat: "ann".into(), name: "A".into() }).unwrap();
    assert_eq!(receive(&mut world, pass_on("ann", "m1", "bob")), Received::Ignored(Why::Denied));
    assert!(matches!(receive(&mut world, pass_on("ann", "m2", "ops-room")), Received::Relayed(_)));
    let told = receive(&mut world, pass_on("ann", "m3", "ops-room"));
    assert!(matches!(&told, Received::Answered { text, .. } if text.contains("Too many")), "{told:?}");
    whole(&mut world);
}

#[test]
fn another_channel_is_named_by_the_operator_before_anything_is_passed_on_to_it() {
    let pass_on = |id: &str, to: &str| ChatEvent { deliver_to: Some(to.into()), ..said("c1", "news", id) };
    let ops = || Some("ops".into());
    let mut world = TestWorld::new();
    let all = vec![
        InstanceRules { default_conversation: ops(), allow_send_to: vec!["ops".into()], ..open("listed") },
        InstanceRules { default_conversation: ops(), ..open("unlisted") },
        InstanceRules { allow_send_to: vec!["*".into()], ..open("homeless") },
        open("bot"),
    ];
    world.ask(SetInstances(all)).unwrap();
    for to in ["unlisted", "homeless", "nobody"] {
        assert_eq!(receive(&mut world, pass_on(to, to)), Received::Ignored(Why::Denied), "{to}");
    }
    assert!(matches!(receive(&mut world, pass_on("m1", "listed")), Received::Relayed(_)));
    let (_, order) = orders(&mut world).remove(0);
    assert_eq!((&*order.instance, &*order.chat, &*order.what.text), ("listed", "ops", "news"));
    assert_eq!(order.reply_token, None, "the token is of another channel");
    whole(&mut world);
}
