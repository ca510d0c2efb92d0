//! More than there may be: open turns, agents that wait for each other, notes to the owner.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::outcome::{ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::{RefusalKind, TurnId};
use serde_json::json;
use uuid::Uuid;

use super::tool_tests::{asks_other, delegate, end_of, model_asks, results, runs, send, take_all_places, traces};
use super::*;
use crate::agent::SetOwner;
use crate::event::parse_pattern;
use crate::schedule::tests::plain;
use crate::schedule::{CreateSchedule, RunSchedule};
use crate::testing::{TestWorld, two_users};
use crate::trigger::{CreateTrigger, GetTriggerFires, NewTrigger, TellEvents};

#[test]
fn no_turn_begins_in_a_full_house_and_one_does_as_soon_as_there_is_room() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let kind = ScheduleKind::Schedule;
    let new = plain(agent, "@daily");
    let schedule = world.ask(CreateSchedule { new, by_tool: false }).unwrap().id;
    let trigger = NewTrigger {
        pattern: parse_pattern(&json!({ "custom": { "event_type": "ping" } })).unwrap(),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    };
    let trigger = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    // Nothing of these turns is there but that they are counted.
    let most = limit::TURNS_OPEN_MAX as u128;
    let others: Vec<Entity> =
        world.engine.world_mut().spawn_batch((1..=most).map(|n| TurnId(Uuid::from_u128(n)))).collect();
    let before = world.store.len();
    let post = || PostMessage { agent, session: None, message: NewMessage::text("go") };
    for refused in
        [world.ask(post()).map(drop).unwrap_err(), world.ask(RunSchedule { kind, id: schedule }).map(drop).unwrap_err()]
    {
        assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::Busy, Some(5)), "{refused:?}");
    }
    assert_eq!(world.store.len(), before);
    let ping =
        || TellEvents(vec![Event::Custom { event_type: "ping".into(), agent: None, payload: "1".into(), by: None }]);
    let fires = |world: &mut TestWorld| world.ask(GetTriggerFires(trigger)).unwrap().log;
    world.ask(ping()).unwrap();
    assert_eq!(fires(&mut world).last_outcome, Some(FireOutcome::Refused));
    assert!(world.calls.is_empty());
    world.engine.world_mut().despawn(others[0]);
    world.engine.world_mut().despawn(others[1]);
    world.ask(post()).unwrap();
    world.ask(ping()).unwrap();
    assert_eq!(fires(&mut world).last_outcome, Some(FireOutcome::Fired));
    assert_eq!(world.ask(post()).unwrap_err().kind, RefusalKind::Busy);
    assert_eq!(world.engine.stats().turns_open, limit::TURNS_OPEN_MAX);
}

#[test]
fn so_many_agents_wait_for_each_other_in_a_row() {
    let mut world = TestWorld::new();
    let names: Vec<String> = (0..=limit::AGENT_CHAIN_MAX + 1).map(|n| format!("a{n}")).collect();
    let agents: Vec<_> = names.iter().map(|name| world.spawn(name)).collect();
    let (_asked, mut run) = asks_other(&mut world, agents[0]);
    for name in &names[1..=limit::AGENT_CHAIN_MAX] {
        delegate(&mut world, &run, name, true).unwrap();
        model_asks(&mut world, &[("agent_send", "{}")]);
        run = runs(&mut world).remove(0);
    }
    for wait in [true, false] {
        let refused = delegate(&mut world, &run, &names[limit::AGENT_CHAIN_MAX + 1], wait).unwrap_err();
        assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::Conflict, Some("agent_chain_too_long")));
    }
    assert_eq!(world.engine.stats().turns_open, limit::AGENT_CHAIN_MAX + 1);
}

#[test]
fn a_turn_leaves_so_many_notes() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let _asked = send(&mut world, agent);
    let inputs: Vec<String> = (0..=limit::NOTICES_MAX).map(|n| format!("{{\"message\":\"{n}\"}}")).collect();
    model_asks(&mut world, &inputs.iter().map(|input| ("notify_owner", &**input)).collect::<Vec<_>>());
    let out = runs(&mut world);
    assert_eq!(out.len(), limit::NOTICES_MAX + 1);
    for (n, run) in out.iter().enumerate() {
        let ToolOutcome(attempt, end) = end_of(run, &format!("Noted {n}."), ToolStatus::Ok);
        world.outcome(ToolOutcome(attempt, ToolEnd { notice: Some(format!("note {n}")), ..end }));
    }
    // Its model hears that the last one was one too many.
    let told = results(&mut world, agent);
    assert!(told[0] == "Noted 0." && told[limit::NOTICES_MAX].contains("limit of 16 notes"), "{told:?}");
    let attempt = world.next_call().attempt;
    world.answer(attempt, "ok");
    let notices: Vec<String> = traces(&world, agent)[0].notices.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = (0..limit::NOTICES_MAX).map(|n| format!("note {n}")).collect();
    assert_eq!(notices, expected);
}

#[test]
fn an_id_that_is_made_of_names_is_taken_by_nobody_before() {
    use agentsvc_components::kernel::id::KeyId;
    use agentsvc_components::session::message::{ChatMessage, Role};
    use agentsvc_components::turn::{ChatSource, Origin, TurnRequest};
    use agentsvc_components::{Actor, SessionId};
    let mut world = TestWorld::new();
    let (victim, thief) = (world.spawn("victim"), world.spawn("thief"));
    let of_names = |at: u8| SessionId(uuid::Builder::from_custom_bytes([at; 16]).into_uuid());
    let message = || NewMessage::text("go");
    let conversation = |agent, id, label: Option<&str>| {
        PostConversation(Conversation {
            agent,
            venue: ConversationTarget::Kept { session: id, label: label.map(Into::into) },
            messages: vec![ChatMessage::text(Role::User, "go")],
            origin: Origin::OpenAi,
            request: None,
        })
    };
    let before = world.store.len();
    world.actor = Actor::Key { key: KeyId(Uuid::from_u128(1)), user: None };
    for id in [of_names(1), of_names(2)] {
        let posted = world.ask(PostMessage { agent: thief, session: Some(id), message: message() });
        let held = world.ask(conversation(thief, id, None));
        for refusal in [posted.unwrap_err(), held.unwrap_err()] {
            assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::NotFound, Some("session_id")));
        }
    }
    world.actor = Actor::Api;
    assert_eq!(world.store.len(), before);
    // Whoever makes the ids has them still free, and goes on with them as anyone may.
    world.ask(conversation(victim, of_names(1), Some("user:tom"))).unwrap();
    let source = ChatSource { channel_type: "w".into(), ..ChatSource::default() };
    let request = Some(Box::new(TurnRequest { chat: Some(Box::new(source)), ..TurnRequest::default() }));
    world
        .ask(PostMessage { agent: victim, session: Some(of_names(2)), message: NewMessage { request, ..message() } })
        .unwrap();
    for id in [of_names(1), of_names(2)] {
        world.ask(PostMessage { agent: victim, session: Some(id), message: message() }).unwrap();
        let refusal = world.ask(PostMessage { agent: thief, session: Some(id), message: message() }).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Forbidden);
    }
    let free = SessionId(Uuid::from_u128(77));
    world.ask(PostMessage { agent: thief, session: Some(free), message: message() }).unwrap();
}

#[test]
fn calls_that_wait_take_no_more_places_than_a_new_owner_has() {
    let (mut world, [anns, _, shared]) = two_users();
    let ann = UserId(Uuid::from_u128(1));
    let _sessions = [anns, shared].map(|agent| take_all_places(&mut world, agent));
    let (of_ann, of_family): (Vec<_>, Vec<_>) = runs(&mut world).into_iter().partition(|run| run.agent == anns);
    assert_eq!([of_ann.len(), of_family.len()], [limit::TOOLS_OUT_FAMILY_MAX; 2]);
    assert!(of_ann.iter().all(|run| run.holder == Holder::User(ann)));
    let in_line = |world: &TestWorld| world.engine.world().resource::<ToolLane>().in_line().count();
    let waiting = in_line(&world);
    world.ask(SetOwner { agent: shared, user: Some(ann) }).unwrap();
    // There is room in the family, but the calls that wait take places of the user, who has all there may be.
    for run in &of_family[..2] {
        world.outcome(end_of(run, "x", ToolStatus::Ok));
        assert_eq!((runs(&mut world).len(), in_line(&world)), (0, waiting));
    }
    assert!(!world.engine.world().resource::<ToolLane>().can_send(), "they wait with those of the user");
    // So they go out in turn with the user's own.
    let mut next = Vec::new();
    for run in &of_ann[..2] {
        world.outcome(end_of(run, "x", ToolStatus::Ok));
        next.extend(runs(&mut world).into_iter().map(|run| (run.agent, run.holder)));
    }
    assert_eq!(next.len(), 2);
    assert!(next.iter().all(|(_, holder)| *holder == Holder::User(ann)), "{next:?}");
    assert_eq!(in_line(&world), waiting - 2);
}
