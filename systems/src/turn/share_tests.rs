//! A user and a family of agents leave room for turns to others.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::error_codes::TURNS_FULL;
use agentsvc_components::{AgentId, Refusal, RefusalKind};
use serde_json::json;
use uuid::Uuid;

use super::share::OpenTurns;
use super::{MessageTaken, NewMessage, PostMessage, StopTurns};
use crate::agent::SetOwner;
use crate::event::parse_pattern;
use crate::kernel::share::Shares;
use crate::schedule::tests::plain;
use crate::schedule::{CreateSchedule, RunSchedule};
use crate::session::CreateSession;
use crate::testing::{TestWorld, two_users};
use crate::trigger::{CreateTrigger, GetTriggerFires, NewTrigger, TellEvents};

const SHARE: usize = limit::TURNS_OPEN_MAX / limit::POOL_SHARES;

fn post(world: &mut TestWorld, agent: AgentId) -> Result<MessageTaken, Refusal> {
    world.ask(PostMessage { agent, session: None, message: NewMessage::text("go") })
}

fn shares(world: &mut TestWorld) -> &mut Shares {
    &mut world.engine.world_mut().get_resource_mut::<OpenTurns>().unwrap().into_inner().0
}

#[test]
fn neither_a_user_nor_a_family_takes_the_room_of_others() {
    let (mut world, [anns, bobs, shared]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    for (holder, agent, whose) in
        [(ann, anns, "a user and the agents of the user"), (Holder::Family(shared), shared, "those spawned below it")]
    {
        shares(&mut world).add(Some(holder), SHARE - 1, 0);
        post(&mut world, agent).unwrap();
        let stored = world.store.len();
        let refused = post(&mut world, agent).unwrap_err();
        assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(TURNS_FULL)));
        assert_eq!(refused.retry_after_secs, Some(5));
        assert!(refused.message.contains(whose) && refused.message.contains("250000 open turns"), "{refused:?}");
        assert_eq!(world.store.len(), stored, "a refusal stores nothing");
        post(&mut world, bobs).unwrap();
        // A turn that ends makes room for the next.
        let place = world.calls.iter().position(|call| call.agent == agent).unwrap();
        let call = world.calls.remove(place);
        world.answer(call.attempt, "done");
        post(&mut world, agent).unwrap();
        assert_eq!(post(&mut world, agent).unwrap_err().code, Some(TURNS_FULL));
    }
}

#[test]
fn what_fires_over_a_share_is_refused_and_says_so() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let kind = ScheduleKind::Schedule;
    let schedule = world.ask(CreateSchedule { new: plain(agent, "@daily"), by_tool: false }).unwrap().id;
    let trigger = NewTrigger {
        pattern: parse_pattern(&json!({ "custom": { "event_type": "ping" } })).unwrap(),
        prompt_template: "{{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    };
    let trigger = world.ask(CreateTrigger { agent, trigger }).unwrap().id;
    let outcome = |world: &mut TestWorld| {
        let event = Event::Custom { event_type: "ping".into(), agent: None, payload: "1".into(), by: None };
        world.ask(TellEvents(vec![event])).unwrap();
        world.ask(GetTriggerFires(trigger)).unwrap().log.last_outcome
    };
    shares(&mut world).add(Some(Holder::Family(agent)), SHARE, 0);
    assert_eq!(outcome(&mut world), Some(FireOutcome::Refused));
    assert_eq!(world.ask(RunSchedule { kind, id: schedule }).map(drop).unwrap_err().code, Some(TURNS_FULL));
    shares(&mut world).remove(Some(Holder::Family(agent)), SHARE, 0);
    assert_eq!(outcome(&mut world), Some(FireOutcome::Fired));
    world.ask(RunSchedule { kind, id: schedule }).map(drop).unwrap();
}

#[test]
fn a_turn_counts_for_whoever_had_its_agent_until_a_start_asks_again() {
    let (mut world, [anns, ..]) = two_users();
    post(&mut world, anns).unwrap();
    let before = shares(&mut world).clone();
    world.restart();
    assert_eq!(*shares(&mut world), before);
    world.ask(SetOwner { agent: anns, user: None }).unwrap();
    assert_eq!(*shares(&mut world), before);
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.restart();
    let mut family = Shares::default();
    family.add(Some(Holder::Family(anns)), 1, 0);
    assert_eq!(*shares(&mut world), family);
    let call = world.next_call();
    world.answer(call.attempt, "done");
    assert_eq!(*shares(&mut world), Shares::default());
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

/// Posts to so many sessions of an agent.
fn post_to_many(world: &mut TestWorld, agent: AgentId, sessions: usize) {
    for _ in 0..sessions {
        let session = Some(world.ask(CreateSession { agent, label: None }).unwrap());
        world.ask(PostMessage { agent, session, message: NewMessage::text("go") }).unwrap();
    }
}

#[test]
fn neither_a_user_nor_a_family_has_all_slots_of_a_provider() {
    let (mut world, [anns, bobs, shared]) = two_users();
    let slots = limit::PROVIDER_CALLS_DEFAULT as usize;
    let part = slots / limit::POOL_SHARES;
    let out = |world: &TestWorld, agent| world.calls.iter().filter(|call| call.agent == agent).count();
    post_to_many(&mut world, anns, part + 3);
    post_to_many(&mut world, shared, slots);
    assert_eq!((out(&world, anns), out(&world, shared)), (part, slots - part));
    assert_eq!(world.engine.check(), Vec::<String>::new());
    // Each call that comes back lets the next of its own out, and none of theirs keeps another from a free slot.
    let place = world.calls.iter().position(|call| call.agent == anns).unwrap();
    let call = world.calls.remove(place);
    world.answer(call.attempt, "done");
    assert_eq!((out(&world, anns), out(&world, shared)), (part, slots - part));
    post(&mut world, bobs).unwrap();
    for _ in 0..2 {
        let call = world.calls.remove(world.calls.iter().position(|call| call.agent == shared).unwrap());
        world.answer(call.attempt, "done");
    }
    assert_eq!((out(&world, bobs), out(&world, shared)), (1, slots - part - 1), "the holders take turns");
    assert_eq!(world.engine.check(), Vec::<String>::new());
    // A stop takes turns out of the middle of the line.
    world.ask(StopTurns { agent: shared, session: None }).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
}
