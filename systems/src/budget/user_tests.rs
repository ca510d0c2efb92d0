//! The limits of a user bound what all agents of the user spend together, in virtual time.

use agentsvc_components::agent::AgentState;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::people::User;
use agentsvc_components::{Actor, RefusalKind};
use uuid::Uuid;

use super::tests::{WORST, costs, send, settings, view};
use super::*;
use crate::agent::{GetAgent, SetOwner, StartAgents};
use crate::kernel::entities::Remove;
use crate::people::{CreateUser, UserFields};
use crate::testing::{TestWorld, spawn_command};

/// Ann, two agents of hers, and one of the installation.
fn home(daily: u64) -> (TestWorld, UserId, [AgentId; 3]) {
    let mut world = TestWorld::with(settings(1_000 * WORST));
    let fields = UserFields { name: Some("ann".into()), role: Some(Role::User), channel_bindings: None };
    let ann = world.ask(CreateUser(fields)).unwrap().id;
    let other = world.spawn("other");
    world.actor = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(ann) };
    let [one, two] = ["one", "two"].map(|name| world.ask(spawn_command(name)).unwrap().agent);
    world.actor = Actor::Api;
    let limits = Limits { daily: Some(Micros(daily)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::User(ann), limits }).unwrap();
    (world, ann, [one, two, other])
}

/// A turn that costs so much, if it may.
fn spends(world: &mut TestWorld, agent: AgentId, cost: u64) -> Result<(), Refusal> {
    let asked = send(world, agent, agent.0.as_u128());
    if let Some(place) = world.calls.iter().position(|call| call.agent == agent) {
        let call = world.calls.remove(place);
        costs(world, &call, cost);
    }
    asked.take().unwrap().map(drop)
}

#[test]
fn all_agents_of_a_user_share_the_limit_of_the_user_over_a_restart() {
    let (mut world, ann, [one, two, other]) = home(2 * WORST);
    spends(&mut world, one, WORST).unwrap();
    spends(&mut world, two, WORST).unwrap();
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    for agent in [one, two] {
        let refusal = spends(&mut world, agent, 1).unwrap_err();
        assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(EXCEEDED)));
        assert!(refusal.message.contains(&format!("of user {ann}")), "{}", refusal.message);
        assert_eq!(view(&mut world, Scope::Agent(agent)).today, Micros(WORST));
    }
    let of_ann = view(&mut world, Scope::User(ann));
    assert_eq!((of_ann.today, of_ann.month, of_ann.status), (Micros(2 * WORST), Micros(2 * WORST), "exceeded"));
    assert_eq!((of_ann.reserved, of_ann.total.requests), (Micros::ZERO, 2));
    spends(&mut world, other, WORST).unwrap();
    // What another user's agent spends from then on is not hers, and what it has spent stays hers.
    world.ask(SetOwner { agent: two, user: None }).unwrap();
    spends(&mut world, two, WORST).unwrap();
    assert_eq!(view(&mut world, Scope::User(ann)).today, Micros(2 * WORST));
    assert!(spends(&mut world, one, 1).is_err());
    let limits = Limits { daily: Some(Micros::ZERO), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::User(ann), limits }).unwrap();
    spends(&mut world, one, WORST).unwrap();
    world.now = world.now.plus_ms(24 * 3_600_000);
    assert_eq!(view(&mut world, Scope::User(ann)).today, Micros::ZERO, "a day begins anew");
}

#[test]
fn a_call_waits_for_what_another_agent_of_the_user_has_reserved() {
    let (mut world, ann, [one, two, other]) = home(WORST);
    let first = send(&mut world, one, 1);
    assert_eq!(view(&mut world, Scope::User(ann)).reserved, Micros(WORST));
    let second = send(&mut world, two, 2);
    assert_eq!((world.calls.len(), world.engine.stats().budget_waiting), (1, 1));
    let third = send(&mut world, other, 3);
    assert_eq!(world.calls.len(), 2, "others do not wait");
    assert_eq!(world.engine.check(), Vec::<String>::new());
    let calls = std::mem::take(&mut world.calls);
    for call in &calls {
        costs(&mut world, call, 0);
    }
    assert!(first.take().unwrap().is_ok() && third.take().unwrap().is_ok());
    let call = world.next_call();
    assert_eq!(call.agent, two);
    costs(&mut world, &call, 1);
    assert!(second.take().unwrap().is_ok());
    assert_eq!(view(&mut world, Scope::User(ann)).reserved, Micros::ZERO);
}

#[test]
fn a_limit_of_the_configuration_holds_for_each_user_without_one() {
    let (mut world, ann, [one, two, _]) = home(0);
    let mut changed = settings(1_000 * WORST);
    changed.budget.user.daily = Some(Micros(WORST));
    world.ask(crate::config::Reconfigure(Box::new(changed))).unwrap();
    spends(&mut world, one, WORST).unwrap();
    spends(&mut world, two, WORST).unwrap();
    assert_eq!(view(&mut world, Scope::User(ann)).status, "ok", "0 of the API takes the limit away");
    let fields = UserFields { name: Some("bob".into()), role: Some(Role::User), channel_bindings: None };
    let bob = world.ask(CreateUser(fields)).unwrap().id;
    world.ask(SetOwner { agent: two, user: Some(bob) }).unwrap();
    spends(&mut world, two, WORST).unwrap();
    assert!(spends(&mut world, two, 1).is_err());
    spends(&mut world, one, WORST).unwrap();
}

#[test]
fn a_user_who_goes_takes_the_budget_along_and_the_agents_stop() {
    let (mut world, ann, [one, two, _]) = home(WORST);
    let _first = send(&mut world, one, 1);
    let _second = send(&mut world, two, 2);
    assert_eq!(world.engine.stats().budget_waiting, 1);
    world.calls.clear();
    world.ask(Remove::<User>(ann)).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    assert!(world.calls.is_empty(), "what waited for the budget does not go out without it");
    world.restart();
    let start = |agent| StartAgents(vec![agent]);
    for agent in [one, two] {
        assert_eq!(world.ask(GetAgent(agent)).unwrap().state, AgentState::Stopped);
        let refusal = world.ask(start(agent)).unwrap().remove(0).1.unwrap_err();
        assert_eq!(refusal.code, Some(crate::agent::error_codes::AGENT_USER_GONE));
    }
    world.ask(SetOwner { agent: one, user: None }).unwrap();
    assert_eq!(world.ask(start(one)).unwrap()[0].1, Ok(AgentState::Running));
    assert_eq!(world.engine.check(), Vec::<String>::new());
    assert_eq!(world.ask(GetBudget(Scope::User(ann))).unwrap_err().kind, RefusalKind::NotFound);
    let limits = Limits::default();
    assert_eq!(world.ask(SetBudget { scope: Scope::User(ann), limits }).unwrap_err().kind, RefusalKind::NotFound);
    spends(&mut world, one, WORST).unwrap();
}
