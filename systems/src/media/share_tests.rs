//! A user and a family of agents leave media tasks, open and ended, to others.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::job::RunJob;
use agentsvc_components::kernel::limit;
use agentsvc_components::media::{MediaState, MediaTask, MediaTaskId};
use agentsvc_components::{Actor, AgentId, Refusal, RefusalKind};
use uuid::Uuid;

use super::index::MediaTasks;
use super::tests::{image, sound};
use super::*;
use crate::kernel::outbox::Emit;
use crate::testing::{TestWorld, key_of, spawn_command, turn_of, two_users};

const SHARE: usize = limits::MEDIA_OPEN_MAX / limit::POOL_SHARES;

fn ask(world: &mut TestWorld, actor: Actor, agent: Option<AgentId>) -> Result<MediaTaskView, Refusal> {
    world.actor = actor;
    world.ask(image(agent))
}

#[track_caller]
fn is_full(result: Result<MediaTaskView, Refusal>) {
    let refused = result.unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("media_tasks_full")));
    assert!(refused.message.contains("of this user or family") && refused.retry_after_secs.is_some(), "{refused:?}");
}

#[test]
fn the_agents_of_a_user_together_leave_media_tasks_to_others_also_over_a_restart() {
    let (mut world, [anns, bobs, shared]) = two_users();
    world.actor = key_of(1);
    let second = world.ask(spawn_command("second")).unwrap().agent;
    for n in 0..SHARE {
        let agent = [anns, second][n % 2];
        ask(&mut world, turn_of(agent), Some(agent)).unwrap();
    }
    for agent in [anns, second] {
        is_full(ask(&mut world, turn_of(agent), Some(agent)));
        is_full(ask(&mut world, Actor::System, Some(agent)));
    }
    is_full(ask(&mut world, key_of(1), None));
    let shares = |world: &TestWorld| world.engine.world().resource::<MediaTasks>().shares.clone();
    let before = shares(&world);
    world.restart();
    assert_eq!(shares(&world), before);
    is_full(ask(&mut world, turn_of(anns), Some(anns)));
    ask(&mut world, turn_of(bobs), Some(bobs)).unwrap();
    ask(&mut world, turn_of(shared), Some(shared)).unwrap();
    ask(&mut world, Actor::Api, None).unwrap();
    sound(&mut world);
}

#[test]
fn a_user_with_many_agents_leaves_places_at_the_provider_to_others() {
    let (mut world, [anns, bobs, _]) = two_users();
    world.actor = key_of(2);
    let more = (0..15).map(|n| world.ask(spawn_command(&format!("b{n}"))).unwrap().agent).collect::<Vec<_>>();
    let agents = [vec![bobs], more].concat();
    for n in 0..SHARE {
        let agent = agents[n % agents.len()];
        ask(&mut world, turn_of(agent), Some(agent)).unwrap();
    }
    let at_provider = |world: &mut TestWorld| {
        let runs = world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok());
        runs.filter(|run| run.kind == MAKE).map(|run| run.owner.unwrap()).collect::<Vec<_>>()
    };
    let of_bob = at_provider(&mut world);
    assert_eq!(of_bob, agents[..limits::MEDIA_MAKE_OUT_MAX / limit::POOL_SHARES]);
    ask(&mut world, turn_of(anns), Some(anns)).unwrap();
    assert_eq!(at_provider(&mut world), [anns], "at once");
    sound(&mut world);
}

#[test]
fn ended_tasks_of_one_user_do_not_push_out_those_of_another() {
    let (mut world, [anns, bobs, _]) = two_users();
    let add = |world: &mut TestWorld, n: u128, agent: AgentId, user: u128| {
        let holder = Some(Holder::User(UserId(Uuid::from_u128(user))));
        let (state, ended_at) = (MediaState::Failed, Some(world.now.plus_ms(n as i64 - 10_000)));
        let task = MediaTask { agent: Some(agent), holder, state, ended_at, ..MediaTask::default() };
        let world = world.engine.world_mut();
        let entity = world.spawn((MediaTaskId(Uuid::from_u128(n)), task)).id();
        world.mark(entity);
    };
    add(&mut world, 1, bobs, 2);
    for n in 2..2 + limits::MEDIA_TASKS_MAX as u128 {
        add(&mut world, n, anns, 1);
    }
    ask(&mut world, turn_of(bobs), Some(bobs)).unwrap();
    let tasks = world.engine.world().resource::<MediaTasks>();
    let is_kept = |n: u128| tasks.get(MediaTaskId(Uuid::from_u128(n))).is_some();
    assert_eq!(tasks.used.count, limits::MEDIA_TASKS_MAX);
    assert_eq!([1, 2, 3, 4].map(is_kept), [true, false, false, true]);
}
