//! Whom agents belong to.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::{Actor, AgentId, RefusalKind, TurnId};
use uuid::Uuid;

use super::{AgentFilter, GetAgent, ListAgents, OwnerChange, OwnsAgent, RemoveAgents, SetOwner, error_codes};
use crate::config::Settings;
use crate::testing::{TestWorld, spawn_command};
use crate::turn::PostMessage;

const ANN: UserId = UserId(Uuid::from_u128(1));
const BOB: UserId = UserId(Uuid::from_u128(2));

fn key_of(user: UserId) -> Actor {
    Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(user) }
}

fn spawn_by(world: &mut TestWorld, actor: Actor, name: &str) -> AgentId {
    world.actor = actor;
    let agent = world.ask(spawn_command(name)).unwrap().agent;
    world.actor = Actor::Api;
    agent
}

fn owner(world: &mut TestWorld, agent: AgentId) -> Option<UserId> {
    world.ask(GetAgent(agent)).unwrap().owner
}

#[test]
fn an_agent_belongs_to_the_user_whose_key_or_agent_makes_it_over_a_restart() {
    let mut world = TestWorld::new();
    let of_all = world.spawn("shared");
    let of_ann = spawn_by(&mut world, key_of(ANN), "anns");
    let child = spawn_by(&mut world, Actor::Agent { agent: of_ann, turn: TurnId(Uuid::nil()) }, "child");
    world.restart();
    assert_eq!([of_all, of_ann, child].map(|agent| owner(&mut world, agent)), [None, Some(ANN), Some(ANN)]);
    assert!(world.ask(OwnsAgent { agent: child, user: ANN }).unwrap());
    assert!(!world.ask(OwnsAgent { agent: of_all, user: ANN }).unwrap());
    let change = world.ask(SetOwner { agent: of_ann, user: Some(BOB) }).unwrap();
    assert_eq!(change, OwnerChange { before: Some(ANN), now: Some(BOB) });
    world.ask(SetOwner { agent: child, user: None }).unwrap();
    world.restart();
    assert_eq!([of_ann, child].map(|agent| owner(&mut world, agent)), [Some(BOB), None]);
}

#[test]
fn the_agent_of_a_user_knows_of_no_agents_of_others() {
    let mut world = TestWorld::new();
    let (of_all, of_bob) = (world.spawn("shared"), spawn_by(&mut world, key_of(BOB), "bobs"));
    let (first, second) = (spawn_by(&mut world, key_of(ANN), "a1"), spawn_by(&mut world, key_of(ANN), "a2"));
    let list = |filter| ListAgents { filter, after: None, limit: 10 };
    let of_ann = world.ask(list(AgentFilter { owner: Some(ANN), ..AgentFilter::default() })).unwrap();
    assert_eq!((of_ann.items.len(), of_ann.total), (2, 2));
    world.actor = Actor::Agent { agent: first, turn: TurnId(Uuid::nil()) };
    let seen = world.ask(list(AgentFilter::default())).unwrap();
    assert_eq!(seen.items.iter().map(|item| item.id).collect::<Vec<_>>(), [first, second]);
    for other in [of_all, of_bob] {
        let message = crate::turn::NewMessage::text("hi");
        let refusal = world.ask(PostMessage { agent: other, session: None, message }).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::NotFound);
    }
    let message = crate::turn::NewMessage::text("hi");
    world.ask(PostMessage { agent: second, session: None, message }).unwrap();
}

#[test]
fn a_user_has_no_more_agents_than_a_user_may_have() {
    let mut world = TestWorld::with(Settings { agents_per_user_max: 2, ..Settings::default() });
    let of_all = world.spawn("shared");
    let first = spawn_by(&mut world, key_of(ANN), "a1");
    let second = spawn_by(&mut world, Actor::Agent { agent: first, turn: TurnId(Uuid::nil()) }, "a2");
    for actor in [key_of(ANN), Actor::Agent { agent: second, turn: TurnId(Uuid::nil()) }] {
        world.actor = actor;
        let refusal = world.ask(spawn_command("a3")).unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(error_codes::USER_AGENTS_FULL)));
    }
    world.actor = Actor::Api;
    let refusal = world.ask(SetOwner { agent: of_all, user: Some(ANN) }).unwrap_err();
    assert_eq!(refusal.code, Some(error_codes::USER_AGENTS_FULL));
    // One that is theirs stays theirs, others have room, and what goes makes room, over a restart too.
    world.ask(SetOwner { agent: first, user: Some(ANN) }).unwrap();
    spawn_by(&mut world, key_of(BOB), "b1");
    world.restart();
    world.ask(RemoveAgents(vec![first])).unwrap();
    world.ask(SetOwner { agent: of_all, user: Some(ANN) }).unwrap();
    world.ask(SetOwner { agent: second, user: Some(BOB) }).unwrap();
    spawn_by(&mut world, key_of(ANN), "a3");
    world.actor = key_of(BOB);
    assert!(world.ask(spawn_command("b3")).is_err());
}
