//! A user and a family of agents leave prompt versions, experiments and the turns of experiments to others.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit;
use agentsvc_components::prompt::{
    PromptExperimentId, PromptImpression, PromptImpressionId, PromptVariantId, PromptVersionId,
};
use agentsvc_components::{Actor, AgentId, Refusal, SessionId, Timestamp};
use uuid::Uuid;

use super::index::{Experiments, ImpressionPlaces, Versions};
use super::version_tests::{enabled, experiment, version};
use super::{DeletePromptVersion, limits};
use crate::kernel::entities::Places;
use crate::testing::{TestWorld, key_of, share_is_full, spawn_command, turn_of};

const ANN: Holder = Holder::User(UserId(Uuid::from_u128(1)));
const BOB: Holder = Holder::User(UserId(Uuid::from_u128(2)));

/// An agent of each user, and one of the installation.
fn world() -> (TestWorld, [AgentId; 3]) {
    let mut world = enabled();
    let agents = [(key_of(1), "anns"), (key_of(2), "bobs"), (Actor::Api, "shared")].map(|(actor, name)| {
        world.actor = actor;
        world.ask(spawn_command(name)).unwrap().agent
    });
    (world, agents)
}

fn save(world: &mut TestWorld, actor: Actor, agent: AgentId) -> Result<PromptVersionId, Refusal> {
    world.actor = actor;
    world.ask(version(agent, "Be kind.")).map(|view| view.id)
}

fn compare(
    world: &mut TestWorld,
    actor: Actor,
    agent: AgentId,
    of: PromptVersionId,
) -> Result<PromptExperimentId, Refusal> {
    world.actor = actor;
    world.ask(experiment(agent, &[of, of])).map(|view| view.id)
}

#[test]
fn a_user_and_a_family_leave_versions_to_others_also_over_a_restart() {
    let (mut world, [anns, bobs, shared]) = world();
    for (actor, agent, holder) in [(key_of(1), anns, ANN), (turn_of(shared), shared, Holder::Family(shared))] {
        let share = limits::PROMPT_VERSIONS_MAX / limit::POOL_SHARES;
        world.engine.world_mut().resource_mut::<Versions>().shares.add(Some(holder), share - 1, 0);
        let last = save(&mut world, actor, agent).unwrap();
        share_is_full(save(&mut world, actor, agent), "prompt_versions_full", "together");
        save(&mut world, key_of(2), bobs).unwrap();
        save(&mut world, Actor::Api, agent).unwrap();
        world.actor = actor;
        world.ask(DeletePromptVersion(last)).unwrap();
        save(&mut world, actor, agent).unwrap();
        let share = limits::PROMPT_VERSIONS_BYTES_MAX / limit::POOL_SHARES;
        let mut versions = world.engine.world_mut().resource_mut::<Versions>();
        versions.shares.remove(Some(holder), 10, 0);
        versions.shares.add(Some(holder), 0, share - 10);
        share_is_full(save(&mut world, actor, agent), "prompt_versions_full", "bytes");
        world.restart();
        save(&mut world, actor, agent).unwrap();
    }
}

#[test]
fn a_user_and_a_family_leave_experiments_to_others_also_over_a_restart() {
    let (mut world, [anns, bobs, shared]) = world();
    let share = limits::PROMPT_EXPERIMENTS_MAX / limit::POOL_SHARES;
    let of_bob = save(&mut world, key_of(2), bobs).unwrap();
    for (actor, agent, holder) in [(key_of(1), anns, ANN), (turn_of(shared), shared, Holder::Family(shared))] {
        let of = save(&mut world, actor, agent).unwrap();
        compare(&mut world, actor, agent, of).unwrap();
        let shares = |world: &TestWorld| world.engine.world().resource::<Experiments>().shares.clone();
        let before = shares(&world);
        world.restart();
        assert_eq!(shares(&world), before);
        world.engine.world_mut().resource_mut::<Experiments>().shares.add(Some(holder), share - 1, 0);
        share_is_full(compare(&mut world, actor, agent, of), "prompt_experiments_full", "together");
        compare(&mut world, key_of(2), bobs, of_bob).unwrap();
        compare(&mut world, Actor::Api, agent, of).unwrap();
        // Only what is stored counts over the next restart.
        world.engine.world_mut().resource_mut::<Experiments>().shares.remove(Some(holder), share - 1, 0);
    }
}

#[test]
fn the_user_with_most_turns_in_experiments_loses_the_oldest() {
    let mut places = ImpressionPlaces::default();
    let (experiment, variant) = (PromptExperimentId(Uuid::nil()), PromptVariantId(Uuid::nil()));
    let mut add = |n: u128, holder| {
        let impression = PromptImpression {
            experiment,
            variant,
            session: SessionId(Uuid::nil()),
            at: Timestamp(n as i64),
            met: true,
            won: true,
            feedback: None,
            holder: Some(holder),
        };
        places.insert(PromptImpressionId(Uuid::from_u128(n)), &impression);
    };
    add(1, BOB);
    add(2, ANN);
    add(3, ANN);
    assert_eq!(places.first_of_most(), Some(PromptImpressionId(Uuid::from_u128(2))));
}
