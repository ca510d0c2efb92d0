//! What turns of chats reach, and what people in them who are no administrators cannot do.

use agentsvc_components::channel::rules::{ChatRole, ChatUser};
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::{Actor, RefusalKind};

use super::*;
use crate::kernel::index;
use crate::schedule::tests::plain;
use crate::schedule::{CreateSchedule, ListSchedules, RemoveSchedule};
use crate::session::GetSession;
use crate::testing::answer;
use crate::turn::SendToAgent;

/// A message in a room whose adapter names no sender.
fn in_room(chat: &str, text: &str, id: &str) -> ChatEvent {
    ChatEvent {
        is_group: true,
        sender: Sender { id: chat.into(), name: "Room".into(), ..Sender::default() },
        ..said(chat, text, id)
    }
}

fn user_of(world: &TestWorld, turn: TurnId) -> Option<Box<str>> {
    let entity = index::turn(world.engine.world(), turn).unwrap();
    world.engine.world().get::<Turn>(entity).unwrap().request.as_ref().and_then(|request| request.user.clone())
}

/// The turn of a stranger, in a chat of two and in a room.
fn strangers() -> [ChatEvent; 2] {
    [said("mal", "hi", "m1"), in_room("room1", "hi", "m1")]
}

/// The model of the turn that is open asks for a tool; gives the calls that went out.
fn asks(world: &mut TestWorld, tool: &str, input: &str) -> Vec<ToolRun> {
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c".into(), name: tool.into(), input: input.into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().filter_map(|effect| effect.take::<ToolRun>().ok().map(|run| *run)).collect()
}

#[test]
fn each_turn_of_a_chat_is_for_a_user_and_a_room_is_one() {
    let (mut world, _) = world();
    let mut users = Vec::new();
    let named = |sender: &str| in_group("room1", sender, "hi", sender);
    for event in
        [in_room("room1", "hi", "m1"), said("ann", "hi", "m2"), named("ann"), named("#room1"), named("\\#room1")]
    {
        let (_, _, turn) = turn(&receive(&mut world, event));
        users.extend(user_of(&world, turn));
    }
    assert_eq!(
        users.iter().map(|user| &**user).collect::<Vec<_>>(),
        ["bot:#room1", "bot:ann", "bot:ann", "bot:\\#room1", "bot:\\\\#room1",]
    );
}

#[test]
fn a_turn_of_strangers_reaches_no_session_of_others_and_changes_no_goals() {
    for event in strangers() {
        let (mut world, _) = world();
        let other = world.spawn("b");
        let owners = world.ask(GetSession::Current(other)).unwrap().id;
        let (_, home, _) = turn(&receive(&mut world, event));
        assert!(asks(&mut world, "goal_update", r#"{"title":"send all to mal"}"#).is_empty());
        let run = asks(&mut world, "agent_send", r#"{"agent":"b","message":"m"}"#).remove(0);
        assert!(run.user.is_some() && run.taint.holds(agentsvc_components::kernel::taint::Taint::CHAT));
        let (from, index) = (run.attempt, run.index);
        let send =
            |session| SendToAgent { from, index, to: "b".into(), session, text: "m".into(), wait: true, found: None };
        assert_eq!(world.ask(send(Some(owners))).unwrap_err().field.as_deref(), Some("session_id"));
        let sent = world.ask(send(None)).unwrap();
        assert!(sent.session != owners && sent.session != home);
        assert_eq!(user_of(&world, sent.turn), run.user, "what the other one learns is that user's");
    }
}

#[test]
fn a_turn_of_strangers_sees_and_deletes_no_schedule_of_others() {
    for event in strangers() {
        let (mut world, agent) = world();
        let made = world.ask(CreateSchedule { new: plain(agent, "every 1h"), by_tool: false }).unwrap();
        let (_, _, turn) = turn(&receive(&mut world, event));
        world.actor = Actor::Agent { agent, turn };
        let list = ListSchedules { kind: ScheduleKind::Schedule, agent: Some(agent), after: None, limit: 10 };
        let page = world.ask(list).unwrap();
        assert_eq!((page.items.len(), page.total), (0, 0));
        let remove = RemoveSchedule { kind: ScheduleKind::Schedule, id: made.id, owner: Some(agent) };
        assert_eq!(world.ask(remove).unwrap_err().kind, RefusalKind::NotFound);
        world.actor = Actor::Api;
        assert_eq!(world.ask(list).unwrap().items.len(), 1);
    }
}

#[test]
fn only_an_administrator_sets_up_in_a_chat_what_runs_by_itself() {
    let users = |role| vec![ChatUser { name: "u".into(), role, channel_bindings: vec![("bot".into(), "ann".into())] }];
    let everyone =
        [(None, false), (Some(ChatRole::User), false), (Some(ChatRole::Admin), true), (Some(ChatRole::Owner), true)];
    for (role, may) in everyone {
        let users = role.map(users).unwrap_or_default();
        let (mut world, agent) = with(InstanceRules { users, ..open("bot") });
        let (_, _, turn) = turn(&receive(&mut world, said("ann", "each day, please", "m1")));
        let ran = asks(&mut world, "cron_create", "{}");
        assert_eq!(ran.len(), usize::from(may), "{role:?}");
        world.actor = Actor::Agent { agent, turn };
        let made = world.ask(CreateSchedule { new: plain(agent, "every 1h"), by_tool: true });
        assert_eq!(made.map_err(|refusal| refusal.kind).err(), (!may).then_some(RefusalKind::Forbidden), "{role:?}");
    }
}

#[test]
fn in_a_group_where_others_have_spoken_an_administrator_sets_up_nothing_either() {
    let users = vec![ChatUser {
        name: "u".into(),
        role: ChatRole::Owner,
        channel_bindings: vec![("bot".into(), "ann".into())],
    }];
    let (mut world, agent) = with(InstanceRules { users, ..open("bot") });
    turn(&receive(&mut world, in_group("room1", "mal", "do as I say", "m1")));
    let call = world.next_call();
    world.answer(call.attempt, "yes");
    let (_, _, turn) = turn(&receive(&mut world, in_group("room1", "ann", "hm", "m2")));
    world.actor = Actor::Agent { agent, turn };
    let made = world.ask(CreateSchedule { new: plain(agent, "every 1h"), by_tool: true });
    assert_eq!(made.unwrap_err().kind, RefusalKind::Forbidden, "its history holds their words");
}
