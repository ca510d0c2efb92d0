//! A user and a family of agents leave room in the queue to others.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, Refusal, TaskId};

use uuid::Uuid;

use super::*;
use crate::kernel::entities::Get;
use crate::kernel::outbox::Emit;
use crate::kernel::share::Shares;
use crate::testing::{TestWorld, key_of, share_is_full, turn_of};

const SHARE: usize = limit::TASKS_OPEN_MAX / limit::POOL_SHARES;
const BYTES: usize = limit::TASKS_BYTES_MAX / limit::POOL_SHARES;

fn task() -> PostTask {
    PostTask { title: "t".into(), ..PostTask::default() }
}

fn end(world: &mut TestWorld, task: TaskId, agent: AgentId, failed: bool) {
    world.ask(ClaimTask { task, agent, by: None }).unwrap();
    world.ask(EndTask { task, failed, result: Some("x".into()), only_of: None, by: None }).unwrap();
}

/// What the tasks of all holders take.
fn sums(world: &TestWorld) -> [Shares; 2] {
    let tasks = world.engine.world().resource::<Tasks>();
    [tasks.shares.clone(), tasks.kept.clone()]
}

fn is_full<T: std::fmt::Debug>(result: Result<T, Refusal>, whose: &str) {
    share_is_full(result, "tasks_full", whose);
}

#[test]
fn a_user_and_a_family_leave_the_queue_to_others_also_over_a_restart() {
    let mut world = TestWorld::new();
    let agent = world.spawn("shared");
    for (actor, whose) in [(key_of(1), "a user"), (turn_of(agent), "those spawned below it")] {
        world.actor = actor;
        let posted: Vec<_> = (0..SHARE).map(|_| world.begin(task())).collect();
        world.step();
        let first = posted[0].take().unwrap().unwrap().id;
        is_full(world.ask(task()), whose);
        let before = sums(&world);
        world.restart();
        assert_eq!(sums(&world), before);
        world.actor = actor;
        is_full(world.ask(task()), whose);
        for other in [key_of(2), Actor::Api] {
            world.actor = other;
            world.ask(task()).unwrap();
        }
        world.actor = actor;
        world.ask(Remove::<Task>(first)).unwrap();
        world.ask(task()).unwrap();
        is_full(world.ask(task()), whose);
    }
}

#[test]
fn an_end_makes_room_for_another_task_and_a_retry_needs_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("shared");
    let holder = Some(Holder::Family(agent));
    world.actor = turn_of(agent);
    world.engine.world_mut().resource_mut::<Tasks>().shares.add(holder, SHARE - 1, 0);
    let failed = world.ask(task()).unwrap().id;
    is_full(world.ask(task()), "those spawned below it");
    end(&mut world, failed, agent, true);
    let open = world.ask(task()).unwrap().id;
    is_full(world.ask(RetryTask(failed)), "those spawned below it");
    // A retry needs room for its bytes, too.
    world.ask(Remove::<Task>(open)).unwrap();
    let taken = BYTES - "tx".len() + 1;
    world.engine.world_mut().resource_mut::<Tasks>().shares.add(holder, 0, taken);
    is_full(world.ask(RetryTask(failed)), "bytes of open tasks");
    world.engine.world_mut().resource_mut::<Tasks>().shares.remove(holder, 0, 1);
    world.ask(RetryTask(failed)).unwrap();
}

#[test]
fn ended_tasks_keep_nobody_from_posting_but_make_room() {
    let mut world = TestWorld::new();
    let agent = world.spawn("shared");
    let holder = Holder::Family(agent);
    world.actor = turn_of(agent);
    let long = "x".repeat(limit::TASK_TEXT_BYTES_MAX);
    let large = || PostTask { description: long.clone(), ..task() };
    // Together they take more than the share as soon as they have results.
    let count = BYTES / (2 * long.len()) + 1;
    let posted: Vec<_> = (0..count).map(|_| world.begin(large())).collect();
    world.step();
    let ids: Vec<TaskId> = posted.iter().map(|posted| posted.take().unwrap().unwrap().id).collect();
    ids.iter().for_each(|task| drop(world.begin(ClaimTask { task: *task, agent, by: None })));
    world.step();
    for task in &ids {
        world.begin(EndTask { task: *task, failed: false, result: Some(long.clone()), only_of: None, by: None });
    }
    world.step();
    let kept = |world: &TestWorld| {
        ids.iter().filter(|id| world.engine.world().resource::<Tasks>().get(**id).is_some()).count()
    };
    let before = kept(&world);
    assert!(before < count && before > count - 5, "{before} of {count}");
    let new: Vec<TaskId> = (0..4).map(|_| world.ask(large()).unwrap().id).collect();
    assert!(kept(&world) < before, "what ended makes room");
    assert!(world.engine.world().resource::<Tasks>().ended_over_of(holder).is_none(), "enough of it");
    let sums_before = sums(&world);
    world.restart();
    assert_eq!(sums(&world), sums_before);
    world.actor = turn_of(agent);
    for open in new {
        world.ask(Get::<TaskView>(open)).unwrap();
    }
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn results_beyond_the_share_let_go_of_what_ended_of_the_same_family_alone() {
    let mut world = TestWorld::new();
    let agent = world.spawn("shared");
    let of_owner = world.ask(task()).unwrap().id;
    end(&mut world, of_owner, agent, false);
    world.actor = turn_of(agent);
    let [old, new, open] = [(); 3].map(|()| world.ask(task()).unwrap().id);
    end(&mut world, old, agent, false);
    // As much as there may be, before the second result.
    let used = "tttx".len();
    world.engine.world_mut().resource_mut::<Tasks>().kept.add(Some(Holder::Family(agent)), 0, BYTES - used);
    end(&mut world, new, agent, false);
    assert!(world.ask(Get::<TaskView>(old)).is_err(), "the oldest of the family made room");
    for kept in [new, open, of_owner] {
        world.ask(Get::<TaskView>(kept)).unwrap();
    }
}

#[test]
fn results_of_one_family_do_not_push_out_those_of_others() {
    let mut world = TestWorld::new();
    let agent = world.spawn("shared");
    let of_owner = world.ask(task()).unwrap().id;
    end(&mut world, of_owner, agent, false);
    world.actor = turn_of(agent);
    let [old, new] = [(); 2].map(|()| world.ask(task()).unwrap().id);
    end(&mut world, old, agent, false);
    let like = world.ask(Get::<TaskView>(old)).unwrap().task;
    for n in 0..limit::TASKS_ENDED_MAX - 2 {
        let inner = world.engine.world_mut();
        let entity = inner.spawn((TaskId(Uuid::from_u128(n as u128)), like.clone())).id();
        inner.mark(entity);
    }
    world.step();
    end(&mut world, new, agent, false);
    assert_eq!(world.engine.check(), [] as [String; 0]);
    for kept in [new, of_owner] {
        world.ask(Get::<TaskView>(kept)).unwrap();
    }
}
