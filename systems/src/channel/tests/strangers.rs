//! Sessions that strangers began: they go with their conversations, and take no room of those whom the operator knows.

use agentsvc_components::session::Session;

use super::*;
use crate::channel::talk;
use crate::config::Settings;
use crate::kernel::index;
use crate::session::{GetSession, SetLabel, SwitchSession};
use crate::testing::Asked;
use crate::turn::{NewMessage, SendMessage, TurnReply};

const KIB: u64 = 1 << 10;
const DAY_MS: i64 = 86_400_000;

/// A world with an open instance `bot` in which a family may store so many bytes.
fn small(family_sessions_max_bytes: u64) -> (TestWorld, AgentId) {
    let mut world = TestWorld::with(Settings { family_sessions_max_bytes, ..Settings::default() });
    let agent = world.spawn("scout");
    world
        .ask(SetInstances(vec![InstanceRules { notification_recipients: vec!["owner".into()], ..open("bot") }]))
        .unwrap();
    (world, agent)
}

/// The call that is out is answered, and the answer is sent.
fn answer(world: &mut TestWorld) {
    let call = world.next_call();
    world.answer(call.attempt, "hello");
    for (job, _) in orders(world) {
        report(world, &job, SendState::Sent);
    }
}

/// A message of a chat that is answered; gives its session.
fn talked(world: &mut TestWorld, chat: &str, text: &str, id: &str) -> SessionId {
    let (_, session, _) = turn(&receive(world, said(chat, text, id)));
    answer(world);
    session
}

fn is_there(world: &TestWorld, session: SessionId) -> bool {
    index::session(world.engine.world(), session).is_some()
}

fn sessions(world: &TestWorld, agent: AgentId) -> usize {
    let inside = world.engine.world();
    inside.resource::<index::Index>().session_count_of(index::agent(inside, agent).unwrap())
}

fn conversations(world: &mut TestWorld) -> usize {
    world.ask(List::<ConversationView> { limit: 100, ..List::default() }).unwrap().items.len()
}

fn by_owner(world: &mut TestWorld, agent: AgentId, bytes: usize) -> Asked<TurnReply> {
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("m".repeat(bytes)) });
    world.step();
    asked
}

#[test]
fn an_old_conversation_of_strangers_goes_with_its_session_and_others_stay() {
    let (mut world, agent) = small(1 << 30);
    let (old, known) = (talked(&mut world, "eve", "hi", "m1"), talked(&mut world, "owner", "hi", "m1"));
    wait(&mut world, 29 * DAY_MS);
    let newer = talked(&mut world, "mal", "hi", "m1");
    world.restart();
    assert!(is_there(&world, old));
    wait(&mut world, DAY_MS);
    assert!(!is_there(&world, old), "nothing happened in it for thirty days");
    assert!(is_there(&world, newer) && is_there(&world, known));
    assert_eq!((conversations(&mut world), sessions(&world, agent)), (2, 3));
    whole(&mut world);
    // Who comes back is a new one.
    assert_ne!(talked(&mut world, "eve", "hi", "m2"), old);
    wait(&mut world, 1_000 * DAY_MS);
    assert!(is_there(&world, known) && !is_there(&world, newer));
    assert_eq!(conversations(&mut world), 1);
    whole(&mut world);
}

#[test]
fn where_no_age_is_set_strangers_are_kept_and_what_is_open_is_not_old() {
    let mut world = TestWorld::with(Settings { strangers_idle_days: 0, ..Settings::default() });
    world.spawn("scout");
    world.ask(SetInstances(vec![open("bot")])).unwrap();
    let kept = talked(&mut world, "eve", "hi", "m1");
    wait(&mut world, 4_000 * DAY_MS);
    assert!(is_there(&world, kept));
    let (mut world, _) = small(1 << 30);
    let (_, session, _) = turn(&receive(&mut world, said("eve", "hi", "m1")));
    wait(&mut world, 31 * DAY_MS);
    assert!(is_there(&world, session), "its turn is open");
    whole(&mut world);
}

#[test]
fn a_conversation_that_makes_room_for_others_takes_its_session_with_it() {
    let (mut world, agent) = small(1 << 30);
    let (first, known) = (talked(&mut world, "eve", "hi", "m1"), talked(&mut world, "owner", "hi", "m1"));
    wait(&mut world, 1_000);
    let (_, open, _) = turn(&receive(&mut world, said("mal", "hi", "m1")));
    talk::make_room(world.engine.world_mut(), "bot", true, 0);
    world.step();
    assert!(!is_there(&world, first), "nobody could get at it any more");
    assert!(is_there(&world, open), "its turn is open");
    assert!(is_there(&world, known), "it is in the list of the operator");
    assert_eq!((conversations(&mut world), sessions(&world, agent)), (1, 3));
    whole(&mut world);
}

#[test]
fn strangers_leave_half_of_the_store_to_the_owner_and_the_oldest_idle_one_goes_first() {
    let (mut world, agent) = small(64 * KIB);
    let (_, open, _) = turn(&receive(&mut world, said("first", &"x".repeat(4_000), "m1")));
    let call = world.next_call();
    let mut idle = Vec::new();
    for n in 0..30 {
        wait(&mut world, 1_000);
        idle.push(talked(&mut world, &format!("v{n}"), &"x".repeat(8_000), "m1"));
    }
    assert!(is_there(&world, open), "its turn is open");
    let gone = idle.iter().take_while(|session| !is_there(&world, **session)).count();
    assert!((26..29).contains(&gone) && idle[gone..].iter().all(|session| is_there(&world, *session)), "{gone}");
    // The owner, and who is known to the owner in a chat, have all the rest.
    let asked = by_owner(&mut world, agent, 10_000);
    answer(&mut world);
    assert!(asked.take().unwrap().is_ok());
    let known = talked(&mut world, "owner", &"x".repeat(10_000), "m1");
    world.answer(call.attempt, "late");
    world.restart();
    whole(&mut world);
    talked(&mut world, "last", &"x".repeat(8_000), "m1");
    assert!(is_there(&world, known));
    whole(&mut world);
}

#[test]
fn a_stranger_waits_while_turns_of_strangers_take_all_of_their_share() {
    let (mut world, agent) = small(64 * KIB);
    for n in 0..3 {
        turn(&receive(&mut world, said(&format!("v{n}"), &"x".repeat(12_000), "m1")));
    }
    let late = receive(&mut world, said("late", "hi", "m1"));
    assert!(matches!(late, Received::Waiting(_)), "{late:?}");
    let calls: Vec<_> = (0..3).map(|_| world.next_call()).collect();
    let asked = by_owner(&mut world, agent, 100);
    answer(&mut world);
    assert!(asked.take().unwrap().is_ok(), "the owner waits for none of them");
    world.answer(calls[0].attempt, "ok");
    world.answer(calls[1].attempt, "ok");
    wait(&mut world, limits::CHAT_RETRY_MS);
    assert_eq!(world.calls.len(), 1, "it was the turn of the one that waited");
    whole(&mut world);
}

#[test]
fn what_the_owner_took_over_is_the_owners() {
    let (mut world, agent) = small(32 * KIB);
    let (current, labelled) = (talked(&mut world, "a", "hi", "m1"), talked(&mut world, "b", "hi", "m1"));
    world.ask(SwitchSession { agent, session: current }).unwrap();
    world.ask(SetLabel { session: labelled, label: "keep".into() }).unwrap();
    for n in 0..10 {
        wait(&mut world, 1_000);
        talked(&mut world, &format!("v{n}"), &"x".repeat(8_000), "m1");
    }
    wait(&mut world, 60 * DAY_MS);
    assert!(is_there(&world, current) && is_there(&world, labelled));
    assert_eq!(world.ask(GetSession::Current(agent)).unwrap().id, current);
    whole(&mut world);
}

#[test]
fn what_a_stranger_begins_anew_or_asks_aside_leaves_no_session_behind() {
    let (mut world, agent) = small(1 << 30);
    let before = sessions(&world, agent);
    let stranger = talked(&mut world, "eve", "hi", "m1");
    let of = |world: &mut TestWorld, chat: &str| {
        let all = world.ask(List::<ConversationView> { limit: 100, ..List::default() }).unwrap().items;
        all.into_iter().find(|view| &*view.conversation.chat == chat).unwrap().id
    };
    let eve = of(&mut world, "eve");
    world.ask(RenewConversation(eve)).unwrap();
    assert!(!is_there(&world, stranger));
    let aside = ChatEvent { command: command("btw", "what is it?"), ..said("eve", "/btw what is it?", "m2") };
    turn(&receive(&mut world, aside));
    answer(&mut world);
    assert_eq!(sessions(&world, agent), before);
    let known = talked(&mut world, "owner", "hi", "m1");
    let owner = of(&mut world, "owner");
    world.ask(RenewConversation(owner)).unwrap();
    assert!(is_there(&world, known), "those of others stay in the list");
    whole(&mut world);
}

#[test]
fn who_is_paired_is_no_stranger_any_more_and_a_group_is_of_those_who_are_known() {
    let users = vec![agentsvc_components::channel::rules::ChatUser {
        name: "u".into(),
        role: agentsvc_components::channel::rules::ChatRole::User,
        channel_bindings: vec![("bot".into(), "ann".into())],
    }];
    let listed = InstanceRules { has_allow_list: true, ..open("bot") };
    let (mut world, _) = with(listed);
    let by_list = talked(&mut world, "bo", "hi", "m1");
    wait(&mut world, 60 * DAY_MS);
    assert!(is_there(&world, by_list), "the adapter lets in those whom the operator lists");
    let (mut world, _) = with(InstanceRules { users, ..open("bot") });
    let paired = talked(&mut world, "bo", "hi", "m1");
    world.ask(PairChat { instance: "bot".into(), chat: "bo".into(), name: "Bo".into() }).unwrap();
    let (_, group, _) = turn(&receive(&mut world, in_group("room", "mal", "hi", "m1")));
    answer(&mut world);
    turn(&receive(&mut world, in_group("room", "ann", "hi", "m2")));
    answer(&mut world);
    turn(&receive(&mut world, in_group("room", "mal", "again", "m3")));
    answer(&mut world);
    let (_, others, _) = turn(&receive(&mut world, in_group("other", "mal", "hi", "m1")));
    answer(&mut world);
    let is_strangers = |world: &TestWorld, id| {
        let inside = world.engine.world();
        inside.get::<Session>(index::session(inside, id).unwrap()).unwrap().is_strangers
    };
    assert_eq!([paired, group, others].map(|id| is_strangers(&world, id)), [false, false, true]);
    whole(&mut world);
    wait(&mut world, 60 * DAY_MS);
    assert_eq!([paired, group, others].map(|id| is_there(&world, id)), [true, true, false]);
    whole(&mut world);
}
