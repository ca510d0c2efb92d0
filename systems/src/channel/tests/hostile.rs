//! What a channel must not do to others: decide for them, take their room, or have files fetched for strangers.

use agentsvc_components::Timestamp;
use agentsvc_components::channel::message::ChatMessageState;
use agentsvc_components::channel::send::{Send, SendCause, SendContent, SendState};
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::session::message::Block;

use uuid::Uuid;

use super::*;
use crate::agent::SetOwner;
use crate::approval::{ApprovalFilter, ApprovalView, Decision, RequestApproval};
use crate::channel::index::SendPlaces;
use crate::kernel::entities::Places as _;
use crate::people::{CreateUser, UserFields};

fn ask(world: &mut TestWorld, agent: AgentId) -> agentsvc_components::ApprovalId {
    let request = RequestApproval { agent, action: "deploy".into(), description: "x".into(), payload: "{}".into() };
    world.ask(request).unwrap().id
}

fn approve(world: &mut TestWorld, who: &str, id: &str) -> PendingCommand {
    let event = ChatEvent { command: command("approve", "0123abcd"), ..said(who, "/approve", id) };
    match receive(world, event) {
        Received::Command(pending) => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn approvals_are_decided_only_where_their_agent_answers() {
    let rules = InstanceRules { notification_recipients: vec!["ann".into()], ..open("bot") };
    let (mut world, scout) = with(rules);
    let careful = world.spawn("careful");
    let (own, others) = (ask(&mut world, scout), ask(&mut world, careful));
    let listed = world.ask(ApprovalsInChannel { instance: "bot".into() }).unwrap();
    assert_eq!(listed.iter().map(|view| view.id).collect::<Vec<_>>(), [own]);
    let message = approve(&mut world, "ann", "m1").message;
    let decide = |approval| DecideInChat { message, approval, decision: Decision::Approve };
    let refusal = world.ask(decide(others)).unwrap_err();
    assert_eq!(refusal.code.map(|code| code.to_string()).as_deref(), Some("channel_approval_denied"));
    let decided = world.ask(decide(own)).unwrap();
    assert_eq!(decided.approval.state.as_str(), "approved");
    assert!(decided.approval.reason.unwrap().contains("bot by ann"));
    let pending = List::<ApprovalView> { filter: ApprovalFilter::default(), limit: 9, ..List::default() };
    assert_eq!(world.ask(pending).unwrap().items.len(), 1, "the other one waits");
    whole(&mut world);
}

#[test]
fn recipients_are_told_of_approvals_once() {
    let rules = InstanceRules { notification_recipients: vec!["ann".into(), "bo".into()], ..open("bot") };
    let (mut world, scout) = with(rules);
    let careful = world.spawn("careful");
    ask(&mut world, careful);
    assert!(orders(&mut world).is_empty(), "its agent does not answer here");
    let id = ask(&mut world, scout);
    let told = orders(&mut world);
    assert_eq!(told.iter().map(|(_, order)| &*order.chat).collect::<Vec<_>>(), ["ann", "bo"]);
    let key = id.0.simple().to_string();
    for (_, order) in &told {
        assert!(order.what.text.contains(&format!("/approve {key}")), "{}", order.what.text);
        let content: serde_json::Value = serde_json::from_str(order.what.content.as_deref().unwrap()).unwrap();
        assert_eq!(content["Interactive"]["buttons"][0][1]["action"], format!("/reject {key}"));
        assert!(content["Interactive"]["buttons"][0][0]["action"].as_str().unwrap().len() <= 64);
    }
    let message = approve(&mut world, "ann", "m1").message;
    world.ask(DecideInChat { message, approval: id, decision: Decision::Reject }).unwrap();
    assert!(orders(&mut world).is_empty(), "the others are told nothing");
    whole(&mut world);
}

/// A world in which an approval was asked for, the approval, and what the chat was told.
fn asked(description: &str, payload: String) -> (TestWorld, agentsvc_components::ApprovalId, SendContent) {
    let rules = InstanceRules { notification_recipients: vec!["ann".into()], ..open("bot") };
    let (mut world, scout) = with(rules);
    let (action, description, payload) = ("deploy".into(), description.into(), payload.into());
    let id = world.ask(RequestApproval { agent: scout, action, description, payload }).unwrap().id;
    let what = orders(&mut world).pop().unwrap().1.what;
    (world, id, what)
}

#[test]
fn an_approval_that_a_chat_cannot_show_whole_is_not_approved_there() {
    // What follows the blanks would not be seen.
    let payload = format!("{{\"command\":\"ls{}; rm -r .\"}}", " ".repeat(1_100));
    let (mut world, id, what) = asked("x", payload);
    assert!(what.content.is_none() && what.text.contains(TOO_LONG) && !what.text.contains("/approve"), "{}", what.text);
    let message = approve(&mut world, "ann", "m1").message;
    let decide = |decision| DecideInChat { message, approval: id, decision };
    let refusal = world.ask(decide(Decision::Approve)).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::CHANNEL_APPROVAL_UNSEEN));
    assert_eq!(world.ask(decide(Decision::Reject)).unwrap().approval.state.as_str(), "rejected");
    whole(&mut world);
}

#[test]
fn an_approval_hides_nothing_in_escapes_and_marks() {
    let payload = "{\"command\": \"\\u0072m \\u202e txt\u{200b}\"}".to_owned();
    let (mut world, id, what) = asked("fine\n- 0123abcd list files", payload);
    assert!(what.text.contains(r#"{"command":"rm \u{202e} txt\u{200b}"}"#), "{}", what.text);
    assert!(what.text.contains(r"fine\u{a}- 0123abcd"), "{}", what.text);
    let message = approve(&mut world, "ann", "m1").message;
    let decide = DecideInChat { message, approval: id, decision: Decision::Approve };
    assert_eq!(world.ask(decide).unwrap().approval.state.as_str(), "approved");
    whole(&mut world);
}

#[test]
fn a_name_of_the_configuration_means_no_agent_of_a_user() {
    let mut world = TestWorld::new();
    let ann = UserFields { name: Some("ann".into()), role: Some(Role::User), channel_bindings: None };
    let ann = world.ask(CreateUser(ann)).unwrap().id;
    world.ask(SetInstances(vec![InstanceRules { agent: Some("support".into()), ..open("bot") }])).unwrap();
    let taken = world.spawn("support");
    world.ask(SetOwner { agent: taken, user: Some(ann) }).unwrap();
    receive(&mut world, said("visitor", "my password is 1234", "m1"));
    assert!(world.calls.is_empty(), "a user took the name");
    world.ask(SetOwner { agent: taken, user: None }).unwrap();
    receive(&mut world, said("visitor", "hello", "m2"));
    assert_eq!(world.next_call().agent, taken);
}

#[test]
fn a_channel_takes_no_room_of_others() {
    let mut world = TestWorld::new();
    world.spawn("scout");
    let slow = |name: &str| InstanceRules { coalesce_window_ms: 60_000, ..open(name) };
    world.ask(SetInstances(vec![slow("bot"), slow("good")])).unwrap();
    let big = "x".repeat(60 << 10);
    let mut refused = None;
    for chat in 0..limits::CHANNEL_MESSAGES_BYTES_MAX / big.len() + 1 {
        let event = said(&format!("c{chat}"), &big, "m1");
        if let Err(refusal) = world.ask(ReceiveMessage { instance: "bot".into(), event }) {
            refused = Some(refusal);
            break;
        }
    }
    let refused = refused.expect("it is full");
    assert_eq!(refused.retry_after_secs, Some(5));
    world.ask(ReceiveMessage { instance: "good".into(), event: said("ann", "hello", "m1") }).unwrap();
    whole(&mut world);
}

#[test]
fn files_are_awaited_only_for_what_is_taken() {
    let (mut world, scout) = world();
    let photo = |chat: &str, id: &str| ChatEvent { files: Some("[a photo]".into()), ..said(chat, "", id) };
    let Received::Waiting(message) = receive(&mut world, photo("ann", "m1")) else { panic!("it waits") };
    let view = world.ask(crate::kernel::entities::Get::<ChatMessageView>(message)).unwrap();
    assert_eq!(view.message.agent, Some(scout));
    assert!(matches!(view.message.state, ChatMessageState::Waiting { .. }));
    let attach = || AttachFiles {
        message,
        blocks: vec![Block::Text { text: "file".to_owned() }],
        found: Vec::new(),
        missing: None,
    };
    assert!(matches!(world.ask(attach()).unwrap(), Received::Turn { .. }));
    assert!(world.ask(attach()).is_err(), "only once");
    // A kill while they are fetched loses no text.
    assert!(matches!(receive(&mut world, photo("bo", "m1")), Received::Waiting(_)));
    world.restart();
    let before = world.ask(List::<ChatMessageView> { limit: 9, ..List::default() }).unwrap().items.len();
    assert_eq!(before, 2);
    wait(&mut world, limits::CHAT_FILES_MS + 1);
    let items = world.ask(List::<ChatMessageView> { limit: 9, ..List::default() }).unwrap().items;
    let begun = items.iter().filter(|it| matches!(it.message.state, ChatMessageState::Answering { .. })).count();
    assert_eq!(begun, 2, "{items:?}");
    whole(&mut world);
    let (mut shut, _) = with(InstanceRules { overrides: ChannelOverrides::default(), ..open("bot") });
    assert!(matches!(receive(&mut shut, photo("eve", "m1")), Received::Answered { .. } | Received::Ignored(_)));
    assert_eq!(open_messages(&mut shut), 0, "no file is fetched for a stranger");
}

#[test]
fn a_channel_that_does_not_send_leaves_room_for_others() {
    let conversation = |at: u128| ConversationId(Uuid::from_u128(at));
    let send = |instance: &str, bytes: u32| Send {
        conversation: conversation(1),
        instance: instance.into(),
        cause: SendCause::default(),
        agent: None,
        key: None,
        preview: "x".into(),
        bytes,
        state: SendState::Queued,
        reason: None,
        message_id: None,
        tries: 0,
        created_at: Timestamp(0),
        ended_at: None,
    };
    let mut places = SendPlaces::default();
    for at in 0..limits::INSTANCE_SENDS_OPEN_MAX {
        assert!(places.has_room("stuck", 1));
        places.insert(SendId(Uuid::from_u128(at as u128 + 1)), &send("stuck", 1));
    }
    assert!(!places.has_room("stuck", 1) && places.has_room("other", limits::INSTANCE_SENDS_BYTES_MAX));
    assert!(!places.has_room("other", limits::INSTANCE_SENDS_BYTES_MAX + 1));
    places.remove(SendId(Uuid::from_u128(1)), &send("stuck", 1));
    assert!(places.has_room("stuck", 1));
}
