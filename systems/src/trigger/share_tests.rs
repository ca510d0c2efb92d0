//! A user and a family of agents leave room for triggers to others.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::{Actor, AgentId, Refusal};
use serde_json::json;
use uuid::Uuid;

use super::tests::new;
use super::*;
use crate::agent::{RemoveAgents, SpawnAgent};
use crate::manifest;
use crate::testing::{TestWorld, key_of, share_is_full, turn_of, two_users};
use crate::world::GetStats;

const SHARE: usize = limit::SHARE_TRIGGERS_MAX;
const BYTES: usize = limit::TRIGGERS_BYTES_MAX / limit::POOL_SHARES;

fn ping(agent: AgentId) -> CreateTrigger {
    CreateTrigger { agent, trigger: new(&json!({ "custom": { "event_type": "ping" } })) }
}

fn with_one(name: &str) -> SpawnAgent {
    let text = format!("name = \"{name}\"\n[[triggers]]\npattern = \"system\"\nprompt_template = \"x\"\n");
    let parsed = manifest::parse(&text).unwrap();
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

/// Goes on as if a holder had so much more.
fn pretend(world: &mut TestWorld, holder: Holder, count: usize, bytes: usize) {
    world.engine.world_mut().resource_mut::<Triggers>().shares.add(Some(holder), count, bytes);
}

fn is_full<T: std::fmt::Debug>(result: Result<T, Refusal>, whose: &str) {
    share_is_full(result, "triggers_full", whose);
}

#[test]
fn a_user_and_a_family_leave_triggers_to_others() {
    let (mut world, [anns, bobs, shared]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    for (holder, actor, agent, whose) in
        [(ann, key_of(1), anns, "a user"), (Holder::Family(shared), turn_of(shared), shared, "those spawned below it")]
    {
        pretend(&mut world, holder, SHARE - 1, 0);
        world.actor = actor;
        let last = world.ask(ping(agent)).unwrap().id;
        is_full(world.ask(ping(agent)), whose);
        is_full(world.ask(with_one("more")), whose);
        world.actor = key_of(2);
        world.ask(ping(bobs)).unwrap();
        world.actor = Actor::Api;
        world.ask(ping(agent)).unwrap();
        world.actor = actor;
        world.ask(DeleteTrigger(last)).unwrap();
        world.ask(ping(agent)).unwrap();
        is_full(world.ask(ping(agent)), whose);
    }
}

#[test]
fn messages_that_become_longer_take_the_share_of_whoever_makes_them_longer() {
    let (mut world, [anns, ..]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    let patch = |world: &mut TestWorld, trigger, template: &str| {
        let patch = TriggerPatch { prompt_template: Some(template.into()), ..TriggerPatch::default() };
        world.ask(UpdateTrigger { trigger, patch })
    };
    world.actor = Actor::Api;
    let given = world.ask(ping(anns)).unwrap().id;
    world.actor = key_of(1);
    let own = world.ask(ping(anns)).unwrap().id;
    let taken = "Look: {{event}}ping".len();
    pretend(&mut world, ann, 0, BYTES - taken);
    is_full(patch(&mut world, own, "Look: {{event}}!"), "bytes");
    is_full(patch(&mut world, given, "Look: {{event}}!"), "bytes");
    patch(&mut world, own, "shorter").unwrap();
    patch(&mut world, own, "Look: {{event}}").unwrap();
    world.actor = Actor::Api;
    patch(&mut world, own, "Look: {{event}}!").unwrap();
}

#[test]
fn an_agent_gives_back_what_its_triggers_took_and_a_restart_counts_the_same() {
    let (mut world, [anns, _, shared]) = two_users();
    world.actor = turn_of(shared);
    world.ask(ping(shared)).unwrap();
    let shares = |world: &TestWorld| world.engine.world().resource::<Triggers>().shares.clone();
    let before = shares(&world);
    world.actor = key_of(1);
    world.ask(ping(anns)).unwrap();
    let made = world.ask(with_one("more")).unwrap().agent;
    let after = shares(&world);
    assert_ne!(after, before);
    world.restart();
    assert_eq!(shares(&world), after);
    world.ask(RemoveAgents(vec![anns, made])).unwrap();
    assert_eq!(shares(&world), before);
}

#[test]
fn matches_of_a_user_and_a_family_leave_room_to_others() {
    let (mut world, [anns, _, shared]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    let about = |agent| {
        TellEvents(vec![Event::Custom { event_type: "ping".into(), agent: Some(agent), payload: "1".into(), by: None }])
    };
    let fired = |world: &mut TestWorld, trigger| world.ask(GetTriggerFires(trigger)).unwrap().log.last_outcome;
    let most = limit::MATCHES_WAITING_MAX / limit::POOL_SHARES;
    for (holder, actor, agent) in [(ann, key_of(1), anns), (Holder::Family(shared), turn_of(shared), shared)] {
        let waiting = |world: &mut TestWorld, count| {
            world.engine.world_mut().resource_mut::<Waves>().pretend_of(Some(holder), count);
        };
        world.actor = actor;
        let own = world.ask(ping(agent)).unwrap().id;
        world.actor = Actor::Api;
        let given = world.ask(ping(agent)).unwrap().id;
        waiting(&mut world, most - 1);
        world.ask(about(agent)).unwrap();
        assert_eq!(fired(&mut world, own), Some(FireOutcome::Fired));
        let refused =
            |world: &mut TestWorld| world.ask(GetStats).unwrap().trigger_totals.outcomes.of(FireOutcome::Refused);
        let before = refused(&mut world);
        waiting(&mut world, 1);
        let count = |world: &mut TestWorld, trigger| world.ask(GetTrigger(trigger)).unwrap().fire_count;
        let counts = [own, given].map(|id| count(&mut world, id));
        world.ask(about(agent)).unwrap();
        let after = [own, given].map(|id| count(&mut world, id));
        assert_eq!(after[0], counts[0], "it has no room");
        assert_eq!(after[1], counts[1] + 1, "nobody's share bounds what others set up");
        assert_eq!(refused(&mut world), before + 1);
    }
}
