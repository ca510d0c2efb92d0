//! Limits of answers (`[auto_reply]`), agents that fit a message, extended thinking, and what is told of sessions.

use agentsvc_components::channel::message::ChatMessageState;
use agentsvc_components::channel::rules::AutoReply;
use agentsvc_components::channel::send::SendCause;
use agentsvc_components::manifest::channel::AutoRoute;
use agentsvc_components::turn::Turn;

use super::*;
use crate::agent::SpawnAgent;
use crate::manifest;
use crate::session::{ResetSession, SessionEvent};

fn limited(max_concurrent: u32, timeout_secs: u32, patterns: &[&str]) -> InstanceRules {
    let suppress_patterns = patterns.iter().map(|text| (*text).into()).collect();
    InstanceRules { auto_reply: Some(AutoReply { max_concurrent, timeout_secs, suppress_patterns }), ..open("bot") }
}

#[test]
fn so_many_answers_are_written_at_once_and_each_chat_keeps_its_order() {
    let (mut world, _) = with(limited(2, 600, &[]));
    turn(&receive(&mut world, said("c1", "a", "m1")));
    turn(&receive(&mut world, said("c2", "b", "m1")));
    let Received::Waiting(_) = receive(&mut world, said("c3", "first", "m1")) else { panic!() };
    let Received::Waiting(_) = receive(&mut world, said("c3", "second", "m2")) else { panic!() };
    assert_eq!(world.calls.len(), 2);
    world.restart();
    let call = world.next_call();
    world.answer(call.attempt, "ok");
    let late = receive(&mut world, said("c3", "third", "m3"));
    assert!(matches!(late, Received::Waiting(_)), "it does not overtake: {late:?}");
    wait(&mut world, 5_000);
    // Of the chat that waits, the first message has begun.
    let answering: Vec<_> = world.ask(List::<ChatMessageView> { limit: 100, ..List::default() }).unwrap().items;
    let ids: Vec<_> = answering
        .iter()
        .filter(|it| &*it.chat == "c3" && matches!(it.message.state, ChatMessageState::Answering { .. }))
        .map(|it| it.message.message_id.clone().unwrap())
        .collect();
    assert_eq!(ids, ["m1".into()]);
    for _ in 0..20 {
        while !world.calls.is_empty() {
            let call = world.next_call();
            world.answer(call.attempt, "ok");
        }
        wait(&mut world, 5_000);
    }
    assert_eq!(open_messages(&mut world), 0);
    assert_eq!(sends(&mut world).len(), 5);
    whole(&mut world);
}

#[test]
fn a_full_buffer_waits_for_its_place_and_takes_what_comes_meanwhile() {
    let mut rules = limited(1, 600, &[]);
    rules.overrides.message_debounce_ms = Some(60_000);
    rules.overrides.message_debounce_max_buffer = Some(2);
    let (mut world, _) = with(rules);
    for n in 1..=3 {
        receive(&mut world, said("c1", "a", &format!("m{n}")));
        let late = receive(&mut world, said("c2", "b", &format!("m{n}")));
        assert!(matches!(late, Received::Waiting(_)), "{late:?}");
    }
    let call = world.next_call();
    assert!(world.calls.is_empty(), "the place is taken");
    world.answer(call.attempt, "ok");
    wait(&mut world, 5_000);
    // All of the second chat is answered, the rest of the first waits for more.
    assert_eq!((world.calls.len(), open_messages(&mut world)), (1, 2));
    whole(&mut world);
}

#[test]
fn an_answer_that_takes_too_long_is_stopped_and_told_also_after_a_restart() {
    for (is_public, count) in [(false, 1), (true, 0)] {
        let (mut world, _) = with(InstanceRules { suppress_errors: is_public, ..limited(3, 60, &[]) });
        turn(&receive(&mut world, said("c1", "hello", "m1")));
        wait(&mut world, 59_000);
        assert_eq!(sends(&mut world).len(), 0);
        world.restart();
        wait(&mut world, 1_000);
        for _ in 0..3 {
            wait(&mut world, 1_000);
        }
        let told = sends(&mut world);
        assert_eq!(told.len(), count, "{told:?}");
        assert!(told.iter().all(|it| it.send.cause == SendCause::Notice && it.send.preview.contains("in time")));
        whole(&mut world);
    }
}

#[test]
fn a_message_with_a_suppressed_text_gets_no_answer_but_a_command_does() {
    let (mut world, _) = with(limited(3, 60, &["Out Of Office"]));
    assert_eq!(
        receive(&mut world, said("c1", "I am out of office until Monday", "m1")),
        Received::Ignored(Why::Policy)
    );
    let event = ChatEvent { command: command("status", "out of office"), ..said("c1", "/status out of office", "m2") };
    assert!(matches!(receive(&mut world, event), Received::Command(_)));
    turn(&receive(&mut world, said("c1", "hello", "m3")));
    assert_eq!(world.calls.len(), 1);
}

fn spawn(world: &mut TestWorld, text: &str) -> AgentId {
    let parsed = manifest::parse(text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    let new = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
    world.ask(new).unwrap().agent
}

#[test]
fn the_agent_that_fits_a_message_answers_and_another_takes_over_once_messages_fit_it() {
    let mut world = TestWorld::new();
    let scout = world.spawn("scout");
    let cook = spawn(&mut world, "name = 'cook'\ntags = ['recipe', 'kitchen']\ndescription = 'Plans dinner'\n");
    let clerk =
        spawn(&mut world, "name = 'clerk'\ntags = ['invoice', 'tax return']\ndescription = 'Books of account'\n");
    let mut rules =
        InstanceRules { available_agents: ["scout", "cook", "clerk"].map(Into::into).to_vec(), ..open("bot") };
    rules.overrides.auto_route = Some(AutoRoute::StickyHeuristic);
    world.ask(SetInstances(vec![rules])).unwrap();
    let answered = |world: &mut TestWorld, text: &str, id: &str| {
        let agent = turn(&receive(world, said("c1", text, id))).0;
        while !world.calls.is_empty() {
            let call = world.next_call();
            world.answer(call.attempt, "ok");
        }
        agent
    };
    assert_eq!(answered(&mut world, "hello", "m1"), scout, "none fits");
    // The agent that answered keeps the conversation until messages fit another one better, twice in a row.
    assert_eq!(answered(&mut world, "a recipe for my kitchen", "m2"), scout);
    assert_eq!(answered(&mut world, "thanks", "m3"), scout);
    assert_eq!(answered(&mut world, "a recipe for my kitchen", "m4"), scout);
    world.restart();
    assert_eq!(answered(&mut world, "a recipe for my KITCHEN, please", "m5"), cook);
    assert_eq!(answered(&mut world, "and for dinner?", "m6"), cook);
    assert_eq!(answered(&mut world, "this invoice", "m7"), cook, "one tag is not enough");
    let in_another = turn(&receive(&mut world, said("c2", "the invoice for my tax return", "m1"))).0;
    assert_eq!(in_another, clerk, "where no agent holds the conversation the one that fits answers at once");
    whole(&mut world);
}

#[test]
fn messages_of_a_chat_ask_for_thinking_once_it_said_so() {
    let (mut world, _) = world();
    let asks = |world: &mut TestWorld, chat: &str, id: &str| {
        let turn = turn(&receive(world, said(chat, "hello", id))).2;
        let entity = crate::kernel::index::turn(world.engine.world(), turn).unwrap();
        world.engine.world().get::<Turn>(entity).unwrap().request.clone().unwrap().thinking
    };
    let Received::Turn { conversation, .. } = receive(&mut world, said("c1", "a", "m1")) else { panic!() };
    assert!(!asks(&mut world, "c1", "m2"));
    world.ask(SetThinking { conversation, thinking: true }).unwrap();
    world.restart();
    let event = ChatEvent { command: command("think", ""), ..said("c1", "/think", "m3") };
    let Received::Command(pending) = receive(&mut world, event) else { panic!() };
    assert!(pending.thinking && asks(&mut world, "c1", "m4") && !asks(&mut world, "c2", "m1"));
    world.ask(SetThinking { conversation, thinking: false }).unwrap();
    assert!(!asks(&mut world, "c1", "m5"));
    let unknown = SetThinking { conversation: ConversationId(uuid::Uuid::nil()), thinking: true };
    assert!(world.ask(unknown).is_err());
    whole(&mut world);
}

#[test]
fn sessions_tell_when_they_begin_end_and_are_reset() {
    // Those of strangers end where a chat begins anew.
    let (mut world, agent) = with(InstanceRules { has_allow_list: true, ..open("bot") });
    let told = |world: &mut TestWorld| std::mem::take(&mut world.sessions_told);
    let began = told(&mut world);
    assert!(matches!(began[..], [change] if change.agent == agent && change.event == SessionEvent::Started));
    let Received::Turn { conversation, session, .. } = receive(&mut world, said("c1", "a", "m1")) else { panic!() };
    assert!(told(&mut world).iter().any(|it| it.session == session && it.event == SessionEvent::Started));
    world.ask(RenewConversation(conversation)).unwrap();
    let reset = told(&mut world);
    assert!(matches!(reset[..], [change] if change.session == session
        && matches!(change.event, SessionEvent::Reset { why } if why.contains("chat"))));
    let old = began[0].session;
    let fresh = world.ask(ResetSession { agent }).unwrap();
    let events: Vec<_> = told(&mut world)
        .into_iter()
        .map(|it| match it.event {
            SessionEvent::Started => ("started", it.session),
            SessionEvent::Reset { .. } => ("reset", it.session),
            SessionEvent::Ended { .. } => ("ended", it.session),
        })
        .collect();
    assert_eq!(events, [("started", fresh), ("reset", old), ("ended", old)]);
}
