//! The task queue in virtual time: what its commands store, tell and refuse.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::limit;
use agentsvc_components::task::TaskState;
use agentsvc_components::{AgentId, Refusal, RefusalKind, TaskId};
use uuid::Uuid;

use super::*;
use crate::Settings;
use crate::agent::RemoveAgents;
use crate::kernel::entities::Get;
use crate::testing::TestWorld;

fn post(world: &mut TestWorld, title: &str, assignee: Option<&str>) -> TaskId {
    let assignee = assignee.map(ToOwned::to_owned);
    world.ask(PostTask { title: title.into(), assignee, ..PostTask::default() }).unwrap().id
}

fn claim(world: &mut TestWorld, task: TaskId, agent: AgentId) -> Result<TaskView, Refusal> {
    world.ask(ClaimTask { task, agent, by: None })
}

fn end(world: &mut TestWorld, task: TaskId, failed: bool, text: &str) -> Result<TaskView, Refusal> {
    world.ask(EndTask { task, failed, result: Some(text.into()), only_of: None, by: None })
}

fn state(world: &mut TestWorld, task: TaskId) -> TaskState {
    world.ask(Get::<TaskView>(task)).unwrap().task.state
}

/// The kinds of the events about tasks so far.
fn told(world: &TestWorld) -> Vec<EventKind> {
    use EventKind::{TaskClaimed, TaskCompleted, TaskFailed, TaskPosted};
    let about = [TaskPosted, TaskClaimed, TaskCompleted, TaskFailed];
    world.events.iter().map(Event::kind).filter(|kind| about.contains(kind)).collect()
}

fn code(refused: Result<TaskView, Refusal>) -> String {
    let refusal = refused.unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    refusal.code.unwrap().to_string()
}

/// Beats and steps `secs` later.
fn later(world: &mut TestWorld, secs: i64) {
    world.now = world.now.plus_ms(secs * 1_000);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

#[test]
fn a_task_goes_its_way_and_every_step_is_told_and_survives() {
    use EventKind::{TaskClaimed, TaskCompleted, TaskFailed, TaskPosted};
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let task = post(&mut world, " count the sheep ", Some("a"));
    world.restart();
    let posted = world.ask(Get::<TaskView>(task)).unwrap().task;
    assert_eq!((&*posted.title, posted.owner(), posted.state), ("count the sheep", Some("a"), TaskState::Pending));
    let claimed = claim(&mut world, task, agent).unwrap().task;
    assert_eq!((claimed.state, claimed.claimed_by, claimed.attempts), (TaskState::Running, Some(agent), 1));
    world.restart();
    let failed = end(&mut world, task, true, "they ran away").unwrap().task;
    assert_eq!((failed.state, failed.result.as_deref()), (TaskState::Failed, Some("they ran away")));
    assert!(failed.ended_at.is_some());
    world.restart();
    let retried = world.ask(RetryTask(task)).unwrap().task;
    assert_eq!((retried.state, &retried.result, retried.claimed_by), (TaskState::Pending, &None, None));
    claim(&mut world, task, agent).unwrap();
    let done = end(&mut world, task, false, "seven").unwrap().task;
    assert_eq!((done.state, done.attempts), (TaskState::Completed, 2));
    let kinds = [TaskPosted, TaskClaimed, TaskFailed, TaskPosted, TaskClaimed, TaskCompleted];
    assert_eq!(told(&world), kinds);
    let assigned = world.events.iter().find_map(|event| match event {
        Event::TaskPosted { assignee, assignee_id, .. } => Some((assignee.clone(), *assignee_id)),
        _ => None,
    });
    assert_eq!(assigned, Some((Some("a".to_owned()), Some(agent))), "the name is told with the agent that it names");
    world.restart();
    assert_eq!(world.ask(Get::<TaskView>(task)).unwrap().task, done);
}

#[test]
fn of_two_claims_the_first_has_the_task() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let task = post(&mut world, "t", None);
    // Both in one step.
    let first = world.begin(ClaimTask { task, agent: b, by: None });
    let second = world.begin(ClaimTask { task, agent: a, by: None });
    world.step();
    assert_eq!(first.take().unwrap().unwrap().task.claimed_by, Some(b));
    assert_eq!(code(second.take().unwrap()), "task_not_pending");
    let refused = world.ask(EndTask { task, failed: false, result: None, only_of: Some(a), by: None });
    assert_eq!(code(refused), "task_not_yours");
    world.ask(EndTask { task, failed: false, result: None, only_of: Some(b), by: None }).unwrap();
    assert_eq!(code(end(&mut world, task, false, "again")), "task_not_running");
    assert_eq!(told(&world).len(), 3, "what is refused is no event");
}

#[test]
fn what_a_task_does_not_allow_is_refused_and_changes_nothing() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let task = post(&mut world, "t", Some("a"));
    let by_id = post(&mut world, "u", Some(&a.to_string().to_uppercase()));
    let (before, events) = (world.store.clone(), world.events.len());
    let nobody = TaskId(Uuid::nil());
    assert_eq!(code(claim(&mut world, task, b)), "task_assigned");
    assert_eq!(code(claim(&mut world, by_id, b)), "task_assigned");
    assert_eq!(code(end(&mut world, task, false, "x")), "task_not_running");
    assert_eq!(code(world.ask(RetryTask(task))), "task_not_failed");
    assert_eq!(claim(&mut world, nobody, a).unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(claim(&mut world, task, AgentId(Uuid::nil())).unwrap_err().field.as_deref(), Some("agent_id"));
    for (title, description, assignee, field) in [
        (" ".to_owned(), String::new(), None, "title"),
        ("t".repeat(limit::TASK_TITLE_BYTES_MAX + 1), String::new(), None, "title"),
        ("a\nb".to_owned(), String::new(), None, "title"),
        ("t".to_owned(), "d".repeat(limit::TASK_TEXT_BYTES_MAX + 1), None, "description"),
        ("t".to_owned(), String::new(), Some("n".repeat(limit::NAME_BYTES_MAX + 1)), "assignee"),
    ] {
        let refused = world.ask(PostTask { title, description, assignee, ..PostTask::default() }).unwrap_err();
        assert_eq!((refused.kind, refused.field.as_deref()), (RefusalKind::BadRequest, Some(field)));
    }
    assert_eq!((&world.store, world.events.len()), (&before, events));
    claim(&mut world, by_id, a).unwrap();
    let long = "r".repeat(limit::TASK_TEXT_BYTES_MAX + 1);
    assert_eq!(end(&mut world, by_id, false, &long).unwrap_err().field.as_deref(), Some("result"));
    assert_eq!(end(&mut world, by_id, true, &long).unwrap_err().field.as_deref(), Some("error"));
}

#[test]
fn the_next_task_is_the_agents_own_oldest_and_then_anyones() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let free = post(&mut world, "free", Some(""));
    let of_b = post(&mut world, "of b", Some("b"));
    let by_id = post(&mut world, "by id", Some(&a.to_string()));
    let by_name = post(&mut world, "by name", Some("a"));
    let mut next = |agent| world.ask(ClaimNextTask { agent, by: None }).unwrap().map(|view| view.id);
    assert_eq!([next(a), next(a), next(a), next(a)], [Some(by_id), Some(by_name), Some(free), None]);
    assert_eq!([next(b), next(b)], [Some(of_b), None]);
}

#[test]
fn a_claim_that_nobody_ends_is_given_up_without_an_event() {
    let settings = Settings { claim_timeout_secs: 60, ..Settings::default() };
    let mut world = TestWorld::with(settings);
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let (old, young) = (post(&mut world, "old", None), post(&mut world, "young", None));
    claim(&mut world, old, a).unwrap();
    later(&mut world, 30);
    claim(&mut world, young, a).unwrap();
    let events = world.events.len();
    later(&mut world, 29);
    assert_eq!(state(&mut world, old), TaskState::Running);
    later(&mut world, 1);
    assert_eq!([state(&mut world, old), state(&mut world, young)], [TaskState::Pending, TaskState::Running]);
    assert_eq!(world.events.len(), events, "spec 1, Triggers, rule 5");
    assert_eq!(world.ask(GetQueueStatus).unwrap().claims_expired, 1);
    let refused = world.ask(EndTask { task: old, failed: false, result: None, only_of: Some(a), by: None });
    assert_eq!(code(refused), "task_not_running");
    assert_eq!(claim(&mut world, old, b).unwrap().task.attempts, 2);
    let refused = world.ask(EndTask { task: old, failed: false, result: None, only_of: Some(a), by: None });
    assert_eq!(code(refused), "task_not_yours");
}

#[test]
fn a_clock_that_is_set_back_makes_no_claim_hold_longer() {
    for is_restarted in [false, true] {
        let settings = Settings { claim_timeout_secs: 60, ..Settings::default() };
        let mut world = TestWorld::with(settings);
        let agent = world.spawn("a");
        let task = post(&mut world, "t", None);
        claim(&mut world, task, agent).unwrap();
        world.now = world.now.plus_ms(-86_400_000);
        if is_restarted {
            world.restart();
        }
        later(&mut world, 0);
        assert_eq!(state(&mut world, task), TaskState::Running);
        later(&mut world, 61);
        assert_eq!(state(&mut world, task), TaskState::Pending, "restarted: {is_restarted}");
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }
}

#[test]
fn a_claim_ages_through_a_restart_and_one_beat_gives_up_a_bounded_number() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let many = limit::TASKS_SWEPT_MAX + 5;
    for _ in 0..many {
        world.begin(PostTask { title: "t".into(), ..PostTask::default() });
        world.begin(ClaimNextTask { agent, by: None });
    }
    world.step();
    world.restart();
    assert_eq!(world.ask(GetQueueStatus).unwrap().running, many);
    let secs = i64::try_from(limit::CLAIM_TIMEOUT_SECS_DEFAULT).unwrap();
    later(&mut world, secs);
    assert_eq!(world.ask(GetQueueStatus).unwrap().pending, limit::TASKS_SWEPT_MAX);
    later(&mut world, 0);
    assert_eq!(world.ask(GetQueueStatus).unwrap().pending, many);
}

#[test]
fn a_removed_agent_leaves_its_claims_to_others_and_its_name_on_its_tasks() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let (own, free) = (post(&mut world, "own", Some("a")), post(&mut world, "free", None));
    claim(&mut world, own, a).unwrap();
    claim(&mut world, free, a).unwrap();
    let events = told(&world).len();
    world.ask(RemoveAgents(vec![a])).unwrap();
    assert_eq!([state(&mut world, own), state(&mut world, free)], [TaskState::Pending; 2]);
    assert_eq!(told(&world).len(), events);
    world.restart();
    assert_eq!(world.ask(Get::<TaskView>(own)).unwrap().task.assignee.as_deref(), Some("a"));
    assert_eq!(code(claim(&mut world, own, b)), "task_assigned");
    let heir = world.spawn("a");
    claim(&mut world, own, heir).unwrap();
    claim(&mut world, free, b).unwrap();
}

#[test]
fn a_deleted_task_is_gone_wherever_it_was() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let (waiting, running, done) =
        (post(&mut world, "w", None), post(&mut world, "r", None), post(&mut world, "d", None));
    claim(&mut world, running, agent).unwrap();
    claim(&mut world, done, agent).unwrap();
    end(&mut world, done, false, "x").unwrap();
    let removed = [waiting, running, done].map(|task| world.ask(Remove::<Task>(task)).unwrap().task.state);
    assert_eq!(removed, [TaskState::Cancelled, TaskState::Cancelled, TaskState::Completed]);
    assert_eq!(end(&mut world, running, false, "x").unwrap_err().kind, RefusalKind::NotFound);
    world.restart();
    assert!([waiting, running, done].iter().all(|task| world.ask(Get::<TaskView>(*task)).is_err()));
    assert_eq!(world.ask(GetQueueStatus).unwrap().pending, 0);
    assert!(!world.store.keys().any(|(_, key)| key[0] == b'j'));
}

#[test]
fn depth_and_throughput_are_counted_and_come_back_after_a_restart() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let tasks: Vec<TaskId> = (0..6).map(|_| post(&mut world, "t", None)).collect();
    let oldest = world.ask(Get::<TaskView>(tasks[4])).unwrap().task.created_at;
    for (at, task) in tasks[..4].iter().enumerate() {
        claim(&mut world, *task, agent).unwrap();
        if at < 3 {
            end(&mut world, *task, at == 0, "x").unwrap();
        }
    }
    let read = |world: &mut TestWorld| {
        let QueueStatus { pending, running, completed, failed, .. } = world.ask(GetQueueStatus).unwrap();
        (pending, running, completed, failed)
    };
    let rates = |world: &mut TestWorld| {
        let queue = world.ask(GetQueueStatus).unwrap();
        (queue.completed_last_minute, queue.completed_last_hour, queue.failed_last_minute, queue.failed_last_hour)
    };
    assert_eq!((read(&mut world), rates(&mut world)), ((2, 1, 2, 1), (2, 2, 1, 1)));
    assert_eq!(world.ask(GetQueueStatus).unwrap().oldest_pending_at, Some(oldest));
    later(&mut world, 120);
    assert_eq!(rates(&mut world), (0, 2, 0, 1));
    world.restart();
    assert_eq!((read(&mut world), rates(&mut world)), ((2, 1, 2, 1), (0, 2, 0, 1)));
    later(&mut world, 3_600);
    assert_eq!(rates(&mut world), (0, 0, 0, 0));
}

#[test]
fn ended_tasks_are_kept_up_to_a_bound_and_the_oldest_go() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let mut claims = Vec::new();
    for _ in 0..limit::TASKS_ENDED_MAX + 3 {
        world.begin(PostTask { title: "t".into(), ..PostTask::default() });
        claims.push(world.begin(ClaimNextTask { agent, by: None }));
    }
    world.step();
    let ends: Vec<TaskId> = claims.iter().map(|claim| claim.take().unwrap().unwrap().unwrap().id).collect();
    for (n, task) in ends.iter().enumerate() {
        world.begin(EndTask { task: *task, failed: n % 2 == 0, result: None, only_of: None, by: None });
    }
    world.step();
    let queue = world.ask(GetQueueStatus).unwrap();
    assert_eq!(queue.completed + queue.failed, limit::TASKS_ENDED_MAX);
    assert!(ends[..3].iter().all(|task| world.ask(Get::<TaskView>(*task)).is_err()));
    assert!(world.ask(Get::<TaskView>(ends[3])).is_ok());
    let stored = world.store.keys().filter(|(_, key)| key[0] == b'j').count();
    assert_eq!(stored, limit::TASKS_ENDED_MAX);
}

#[test]
fn a_full_queue_takes_no_more_until_there_is_room() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let failed = post(&mut world, "f", None);
    claim(&mut world, failed, agent).unwrap();
    end(&mut world, failed, true, "x").unwrap();
    for _ in 0..limit::TASKS_OPEN_MAX {
        world.begin(PostTask { title: "t".into(), ..PostTask::default() });
    }
    world.step();
    let refused = world.ask(PostTask { title: "one more".into(), ..PostTask::default() }).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("tasks_full")));
    assert!(refused.retry_after_secs.is_some());
    assert_eq!(world.ask(RetryTask(failed)).unwrap_err().kind, RefusalKind::TooMany);
    let task = world.ask(ClaimNextTask { agent, by: None }).unwrap().unwrap().id;
    assert!(world.ask(PostTask { title: "one more".into(), ..PostTask::default() }).is_err(), "a claim makes no room");
    end(&mut world, task, false, "x").unwrap();
    world.ask(PostTask { title: "one more".into(), ..PostTask::default() }).unwrap();
}

#[test]
fn lists_page_and_filter() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let tasks: Vec<TaskId> = (0..5).map(|n| post(&mut world, "t", [None, Some("a")][n % 2])).collect();
    claim(&mut world, tasks[1], agent).unwrap();
    let page = |world: &mut TestWorld, filter: TaskFilter, after, limit| {
        let page = world.ask(ListTasks { filter, after, limit }).unwrap();
        (page.items.iter().map(|view| view.id).collect::<Vec<_>>(), page.next, page.total)
    };
    let all = TaskFilter::default();
    let (first, next, total) = page(&mut world, all.clone(), None, 3);
    assert_eq!((&*first, next, total), (&tasks[..3], Some(tasks[2]), Some(5)));
    world.ask(Remove::<Task>(tasks[2])).unwrap();
    let (rest, next, _) = page(&mut world, all, next, 3);
    assert_eq!((&*rest, next), (&tasks[3..], None));
    let running = TaskFilter { state: Some(TaskState::Running), ..TaskFilter::default() };
    assert_eq!(page(&mut world, running, None, 9).0, [tasks[1]]);
    let mine = TaskFilter { assignee: Some("a".into()), ..TaskFilter::default() };
    assert_eq!(page(&mut world, mine, None, 9).0, [tasks[1], tasks[3]]);
    let free = TaskFilter { assignee: Some("".into()), ..TaskFilter::default() };
    assert_eq!(page(&mut world, free, None, 9).0, [tasks[0], tasks[4]]);
}

#[test]
fn the_texts_of_tasks_take_so_many_bytes() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let task = post(&mut world, "t", None);
    claim(&mut world, task, agent).unwrap();
    world.engine.world_mut().resource_mut::<Tasks>().used.bytes += limit::TASKS_BYTES_MAX - 1;
    let more = || PostTask { title: "m".into(), ..PostTask::default() };
    let refused = world.ask(more()).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::TooMany, Some("tasks_full")));
    assert!(refused.retry_after_secs.is_some());
    // One that is open may come to its end, whatever that says; it is not tried again then.
    end(&mut world, task, true, "x").unwrap();
    assert_eq!(world.ask(RetryTask(task)).unwrap_err().code.as_deref(), Some("tasks_full"));
    world.ask(Remove::<Task>(task)).unwrap();
    world.ask(more()).unwrap();
}

#[test]
fn a_name_that_was_free_gives_no_agent_a_task_of_others() {
    use agentsvc_components::Actor;
    use agentsvc_components::kernel::id::{KeyId, UserId};
    let mut world = TestWorld::new();
    let user = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(UserId(Uuid::from_u128(1))) };
    let mut parent = crate::testing::spawn_command("parent");
    parent.manifest.capabilities.agent_spawn = Some(true);
    parent.hash = crate::manifest::hash(&parent.manifest);
    let parent = world.ask(parent).unwrap().agent;
    // Nobody is called so when the first is posted, and whoever is meant by the second goes.
    let (early, gone) = (post(&mut world, "early", Some("worker")), {
        let first = world.spawn("worker");
        let task = post(&mut world, "gone", Some("worker"));
        world.ask(RemoveAgents(vec![first])).unwrap();
        task
    });
    let child = crate::testing::spawn_command("worker");
    let spawned = world.ask(crate::agent::SpawnChild { parent, child, by: None }).unwrap().agent;
    for task in [early, gone] {
        assert_eq!(code(claim(&mut world, task, spawned)), "task_assigned");
    }
    assert!(world.ask(ClaimNextTask { agent: spawned, by: None }).unwrap().is_none());
    // The one that is meant is found by its name.
    let meant = post(&mut world, "meant", Some("worker"));
    world.restart();
    claim(&mut world, meant, spawned).unwrap();
    world.ask(RemoveAgents(vec![spawned])).unwrap();
    world.actor = user;
    let of_user = world.ask(crate::testing::spawn_command("worker")).unwrap().agent;
    let own = post(&mut world, "own", Some("worker"));
    world.actor = Actor::Api;
    for task in [early, gone] {
        assert_eq!(code(claim(&mut world, task, of_user)), "task_assigned");
    }
    claim(&mut world, own, of_user).unwrap();
    world.ask(RemoveAgents(vec![of_user])).unwrap();
    // One that a person makes for all is who was meant.
    let again = world.spawn("worker");
    for task in [early, gone] {
        claim(&mut world, task, again).unwrap();
    }
}
