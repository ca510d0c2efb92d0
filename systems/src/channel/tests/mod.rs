//! Chats in virtual time.

mod automatic;
mod end;
mod gateway;
mod hostile;
mod outsiders;
mod pairing;
mod people;
mod policy;
mod precheck;
mod routing;
mod sends;
mod strangers;
mod whole;

use agentsvc_components::channel::message::{ChatCommand, ChatEvent, Sender};
use agentsvc_components::channel::rules::InstanceRules;
use agentsvc_components::channel::send::{SendOrder, SendReport, SendState};
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::manifest::channel::{ChannelOverrides, DmPolicy};
use agentsvc_components::{AgentId, SessionId, TurnId};

use super::*;
use crate::kernel::entities::List;
use crate::testing::TestWorld;

/// The rules of an instance that answers everyone.
pub(super) fn open(name: &str) -> InstanceRules {
    InstanceRules {
        name: name.into(),
        channel_type: "telegram".into(),
        agent: Some("scout".into()),
        overrides: ChannelOverrides { dm_policy: Some(DmPolicy::Respond), ..ChannelOverrides::default() },
        ..InstanceRules::default()
    }
}

/// A world with an agent `scout` and one open instance `bot`.
pub(super) fn world() -> (TestWorld, AgentId) {
    with(open("bot"))
}

pub(super) fn with(rules: InstanceRules) -> (TestWorld, AgentId) {
    let mut world = TestWorld::new();
    let agent = world.spawn("scout");
    world.ask(SetInstances(vec![rules])).unwrap();
    (world, agent)
}

/// A message of two people.
pub(super) fn said(chat: &str, text: &str, id: &str) -> ChatEvent {
    ChatEvent {
        chat: chat.into(),
        sender: Sender { id: chat.into(), name: "Ann".into(), is_person: true, ..Sender::default() },
        text: text.into(),
        message_id: (!id.is_empty()).then(|| id.into()),
        reply_token: Some(format!("token-{id}").into()),
        ..ChatEvent::default()
    }
}

/// A message in a group.
pub(super) fn in_group(chat: &str, sender: &str, text: &str, id: &str) -> ChatEvent {
    let sender = Sender { id: sender.into(), name: sender.into(), is_person: true, ..Sender::default() };
    ChatEvent { is_group: true, sender, ..said(chat, text, id) }
}

pub(super) fn command(name: &str, args: &str) -> Option<ChatCommand> {
    Some(ChatCommand { name: name.into(), args: args.into(), edits: None })
}

pub(super) fn receive(world: &mut TestWorld, event: ChatEvent) -> Received {
    world.ask(ReceiveMessage { instance: "bot".into(), event }).unwrap()
}

/// The turn that a message began.
pub(super) fn turn(received: &Received) -> (AgentId, SessionId, TurnId) {
    let Received::Turn { agent, session, turn, .. } = received else { panic!("no turn: {received:?}") };
    (*agent, *session, *turn)
}

/// What went out since the last look, as performers get it.
pub(super) fn orders(world: &mut TestWorld) -> Vec<(RunJob, SendOrder)> {
    let jobs: Vec<RunJob> = world.effects.iter().filter_map(|effect| effect.get::<RunJob>().cloned()).collect();
    world.effects.clear();
    let jobs = jobs.into_iter().filter(|job| job.kind == SEND);
    jobs.map(|job| (job.clone(), serde_json::from_str(&job.input).unwrap())).collect()
}

pub(super) fn report(world: &mut TestWorld, job: &RunJob, state: SendState) {
    let report = SendReport { state, ..SendReport::default() };
    world.outcome(JobOutcome(job.attempt, TryEnd::Done(serde_json::to_string(&report).unwrap())));
}

pub(super) fn sends(world: &mut TestWorld) -> Vec<SendView> {
    world.ask(List::<SendView> { limit: 100, ..List::default() }).unwrap().items
}

pub(super) fn open_messages(world: &mut TestWorld) -> usize {
    world.ask(List::<ChatMessageView> { limit: 100, ..List::default() }).unwrap().items.len()
}

pub(super) fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

pub(super) fn whole(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), [] as [String; 0]);
}
