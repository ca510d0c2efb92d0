//! A user and a family of agents leave room for goals to others.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, GoalId, Refusal};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::testing::{TestWorld, key_of, share_is_full, spawn_command, turn_of, two_users};

const SHARE: usize = limit::GOALS_MAX / limit::POOL_SHARES;
const BYTES: usize = limit::GOALS_BYTES_MAX / limit::POOL_SHARES;

fn goal(agent: AgentId, title: &str) -> CreateGoal {
    CreateGoal { title: title.into(), agent: Some(agent), ..CreateGoal::default() }
}

/// Goes on as if a holder had so much more.
fn pretend(world: &mut TestWorld, holder: Holder, count: usize, bytes: usize) {
    world.engine.world_mut().resource_mut::<Goals>().shares.add(Some(holder), count, bytes);
}

fn is_full<T: std::fmt::Debug>(result: Result<T, Refusal>, whose: &str) {
    share_is_full(result, "goals_full", whose);
}

#[test]
fn a_user_and_a_family_leave_goals_to_others() {
    let (mut world, [anns, bobs, shared]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    for (holder, actors, agent, whose) in [
        (ann, vec![key_of(1), turn_of(anns)], anns, "a user"),
        (Holder::Family(shared), vec![turn_of(shared)], shared, "those spawned below it"),
    ] {
        pretend(&mut world, holder, SHARE - 1, 0);
        world.actor = actors[0];
        let last = world.ask(goal(agent, "last")).unwrap().id;
        for actor in actors {
            world.actor = actor;
            is_full(world.ask(goal(agent, "one more")), whose);
        }
        world.actor = key_of(2);
        world.ask(goal(bobs, "of bob")).unwrap();
        world.actor = Actor::Api;
        world.ask(goal(agent, "of an owner")).unwrap();
        world.ask(Remove::<agentsvc_components::goal::Goal>(last)).unwrap();
        world.actor = if holder == ann { key_of(1) } else { turn_of(shared) };
        world.ask(goal(agent, "room again")).unwrap();
        is_full(world.ask(goal(agent, "and full again")), whose);
    }
}

#[test]
fn texts_that_become_longer_take_the_share_of_whoever_makes_them_longer() {
    let (mut world, [anns, ..]) = two_users();
    let ann = Holder::User(UserId(Uuid::from_u128(1)));
    let given = world.ask(goal(anns, "given")).unwrap().id;
    let patch = |world: &mut TestWorld, goal: GoalId, note: &str| {
        let patch = GoalPatch { note: Some(note.into()), ..GoalPatch::default() };
        world.ask(UpdateGoal { goal, patch, only_of: None }).map(|view| view.goal.holder)
    };
    assert_eq!(patch(&mut world, given, "by an owner").unwrap(), None);
    world.actor = key_of(1);
    let own = world.ask(goal(anns, "own")).unwrap().id;
    pretend(&mut world, ann, 0, BYTES - "own".len() - 2);
    is_full(patch(&mut world, own, "abc"), "bytes");
    is_full(patch(&mut world, given, "longer than before"), "bytes");
    assert_eq!(patch(&mut world, given, "shorter").unwrap(), None, "what becomes shorter is taken");
    assert_eq!(patch(&mut world, own, "ab").unwrap(), Some(ann));
    world.actor = Actor::Api;
    assert_eq!(patch(&mut world, own, "an owner may").unwrap(), Some(ann));
    world.engine.world_mut().resource_mut::<Goals>().shares.remove(Some(ann), 0, BYTES - "own".len() - 2);
    world.actor = key_of(1);
    assert_eq!(patch(&mut world, given, "longer than before").unwrap(), Some(ann));
}

#[test]
fn goals_of_agents_that_went_still_count_and_a_restart_counts_the_same() {
    let (mut world, [anns, _, shared]) = two_users();
    world.actor = key_of(1);
    world.ask(goal(anns, "one")).unwrap();
    world.ask(RemoveAgents(vec![anns])).unwrap();
    let again = world.ask(spawn_command("again")).unwrap().agent;
    world.actor = turn_of(shared);
    world.ask(goal(shared, "two")).unwrap();
    let before = world.engine.world().resource::<Goals>().shares.clone();
    world.restart();
    assert_eq!(world.engine.world().resource::<Goals>().shares, before);
    pretend(&mut world, Holder::User(UserId(Uuid::from_u128(1))), SHARE - 1, 0);
    world.actor = key_of(1);
    is_full(world.ask(goal(again, "one more")), "a user");
}
