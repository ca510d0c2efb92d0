//! Who is let in.

use agentsvc_components::Timestamp;
use agentsvc_components::channel::conversation::Conversation;
use agentsvc_components::channel::rules::{ChatRole, ChatUser};

use super::*;
use crate::kernel::entities::{Remove, state};

fn closed() -> InstanceRules {
    InstanceRules { overrides: ChannelOverrides::default(), ..open("bot") }
}

fn offer(world: &mut TestWorld) -> PairingOffer {
    world.ask(OfferPairing { instance: "bot".into(), valid_secs: None }).unwrap()
}

fn start(world: &mut TestWorld, chat: &str, code: &str, id: &str) -> Received {
    receive(world, said(chat, &format!("/start {code}"), id))
}

fn is_stranger(received: &Received) -> bool {
    matches!(received, Received::Answered { text, .. } if text.contains("not paired"))
        || *received == Received::Ignored(Why::Stranger)
}

#[test]
fn an_instance_without_rules_answers_only_paired_chats() {
    let (mut world, _) = with(closed());
    assert!(is_stranger(&receive(&mut world, said("c1", "hello", "m1"))));
    assert_eq!(receive(&mut world, said("c1", "hello", "m2")), Received::Ignored(Why::Stranger), "told once");
    let code = offer(&mut world).code;
    let paired = start(&mut world, "c1", &code, "m3");
    assert!(matches!(&paired, Received::Answered { text, .. } if text.contains("paired now")), "{paired:?}");
    turn(&receive(&mut world, said("c1", "hello", "m4")));
    assert!(is_stranger(&receive(&mut world, said("c2", "hello", "m1"))), "one code, one chat");
    let used = start(&mut world, "c2", &code, "m2");
    assert!(matches!(&used, Received::Answered { text, .. } if text.contains("not valid")), "{used:?}");
    world.restart();
    turn(&receive(&mut world, said("c1", "hello", "m5")));
    let listed = world.ask(List::<PairingView> { limit: 9, ..List::default() }).unwrap().items;
    assert_eq!((listed.len(), listed[0].chat.as_deref()), (1, Some("c1")));
    world.ask(Remove::<Pairing>(listed[0].id)).unwrap();
    assert!(is_stranger(&receive(&mut world, said("c1", "hello", "m6"))));
    whole(&mut world);
}

#[test]
fn a_code_expires_and_five_wrong_ones_are_enough() {
    let (mut world, _) = with(closed());
    let old = offer(&mut world);
    assert_eq!((old.code.len(), old.expires_at), (8, world.now.plus_ms(900_000)));
    wait(&mut world, 900_001);
    let late = start(&mut world, "c1", &old.code, "m0");
    assert!(matches!(&late, Received::Answered { text, .. } if text.contains("not valid")), "{late:?}");
    assert!(world.ask(List::<PairingView> { limit: 9, ..List::default() }).unwrap().items.is_empty());
    for n in 1..5 {
        start(&mut world, "c1", "WRONGONE", &format!("m{n}"));
    }
    let code = offer(&mut world).code;
    assert_eq!(start(&mut world, "c1", &code, "m9"), Received::Ignored(Why::WrongCode));
    wait(&mut world, 60 * 60 * 1_000 + 1);
    let code = offer(&mut world).code;
    assert!(matches!(start(&mut world, "c1", &code, "m10"), Received::Answered { .. }));
    turn(&receive(&mut world, said("c1", "hello", "m11")));
    whole(&mut world);
}

#[test]
fn offers_are_bounded_and_name_a_channel_that_there_is() {
    let (mut world, _) = with(closed());
    let unknown = OfferPairing { instance: "other".into(), valid_secs: None };
    assert_eq!(world.ask(unknown).unwrap_err().code, Some(error_codes::CHANNEL_NOT_FOUND));
    for secs in [0, limits::PAIRING_SECS_MAX + 1] {
        let wrong = OfferPairing { instance: "bot".into(), valid_secs: Some(secs) };
        assert_eq!(world.ask(wrong).unwrap_err().field.as_deref(), Some("valid_secs"));
    }
    for _ in 0..limits::PAIRING_OFFERS_MAX {
        offer(&mut world);
    }
    let full = world.ask(OfferPairing { instance: "bot".into(), valid_secs: None }).unwrap_err();
    assert_eq!(full.code, Some(error_codes::PAIRINGS_FULL));
    world.ask(PairChat { instance: "bot".into(), chat: "c7".into(), name: "Bo".into() }).unwrap();
    turn(&receive(&mut world, said("c7", "hello", "m1")));
}

fn user(role: ChatRole, id: &str) -> ChatUser {
    ChatUser { name: "u".into(), role, channel_bindings: vec![("telegram".into(), id.into())] }
}

#[test]
fn users_are_known_by_their_own_id_and_not_by_that_of_a_room() {
    let users = vec![user(ChatRole::User, "ann"), user(ChatRole::Viewer, "vic")];
    let (mut world, _) = with(InstanceRules { users, ..closed() });
    turn(&receive(&mut world, said("ann", "hello", "m1")));
    assert!(matches!(receive(&mut world, said("eve", "hello", "m1")), Received::Answered { .. }));
    assert_eq!(receive(&mut world, said("eve", "hello", "m2")), Received::Ignored(Why::Stranger));
    let viewer = receive(&mut world, said("vic", "hello", "m1"));
    assert!(matches!(&viewer, Received::Answered { text, .. } if text.contains("read")), "{viewer:?}");
    let mut room = in_group("ann", "ann", "hello", "m9");
    room.sender.is_person = false;
    assert_eq!(receive(&mut world, room), Received::Ignored(Why::Stranger), "the room has the id of a user");
}

#[test]
fn only_an_administrator_or_a_recipient_decides_approvals() {
    let users = vec![user(ChatRole::User, "ann"), user(ChatRole::Admin, "bo")];
    let rules = InstanceRules { users, notification_recipients: vec!["ann2".into()], ..open("bot") };
    let (mut world, _) = with(rules);
    let approve =
        |who: &str, id: &str| ChatEvent { command: command("approve", "0123abcd"), ..said(who, "/approve", id) };
    let denied = receive(&mut world, approve("ann", "m1"));
    assert!(matches!(&denied, Received::Answered { text, .. } if text.contains("approvals")), "{denied:?}");
    for who in ["bo", "ann2"] {
        let Received::Command(pending) = receive(&mut world, approve(who, "m1")) else { panic!("{who}") };
        assert!(pending.may_approve);
    }
    let mut room = approve("ann2", "m2");
    room.sender.is_person = false;
    assert!(!matches!(receive(&mut world, room), Received::Command(_)));
}

#[test]
fn a_clock_that_is_set_back_lengthens_no_code() {
    let (mut world, _) = with(closed());
    offer(&mut world);
    world.now = Timestamp(world.now.0 - 10 * 24 * 60 * 60 * 1_000);
    world.restart();
    let listed = world.ask(List::<PairingView> { limit: 9, ..List::default() }).unwrap().items;
    let last = world.now.plus_ms(i64::from(limits::PAIRING_SECS_MAX) * 1_000);
    assert!(listed[0].expires_at.unwrap() <= last, "{listed:?}");
}

#[test]
fn a_flood_of_strangers_hides_no_paired_chat_from_reports() {
    let (mut world, agent) = world();
    let last = |world: &TestWorld| {
        let found = last_chat(world.engine.world(), agent)?;
        Some(state::<Conversation>(world.engine.world(), found).unwrap().chat.clone())
    };
    let says = |world: &mut TestWorld, chat: &str| {
        world.now = world.now.plus_ms(1);
        world.engine.set_now(world.now);
        turn(&receive(world, said(chat, "hello", "m1")));
        let attempt = world.next_call().attempt;
        world.answer(attempt, "hi");
    };
    let pair = |world: &mut TestWorld, chat: &str| {
        world.ask(PairChat { instance: "bot".into(), chat: chat.into(), name: "P".into() }).unwrap().id
    };
    let own = pair(&mut world, "own");
    says(&mut world, "own");
    for n in 0..300 {
        says(&mut world, &format!("s{n}"));
    }
    assert_eq!(last(&world).as_deref(), Some("own"));
    world.restart();
    assert_eq!(last(&world).as_deref(), Some("own"), "also after a restart");
    world.ask(Remove::<Pairing>(own)).unwrap();
    assert_eq!(last(&world), None, "the others are nobody's");
    pair(&mut world, "s7");
    assert_eq!(last(&world).as_deref(), Some("s7"), "also one that was paired after it wrote");
    whole(&mut world);
}
