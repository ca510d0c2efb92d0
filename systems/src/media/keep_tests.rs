//! Media tasks are found, deleted, and restored in parts.

use agentsvc_components::kernel::job::Job;
use agentsvc_components::kernel::record::StoredComponent;
use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest, MediaState, MediaTask, MediaTaskId};
use agentsvc_components::usage::Scope;
use agentsvc_components::{Micros, RefusalKind};

use super::tests::{MOST, done, image, result, sound, spent, task, the_try, tries, video, wait};
use super::*;
use crate::kernel::entities::{Get, List};
use crate::testing::TestWorld;

fn ended(world: &mut TestWorld, create: CreateMedia) -> MediaTaskId {
    let id = world.ask(create).unwrap().id;
    let run = the_try(world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
    done(world, run.attempt, &result());
    id
}

/// The rows of a kind go: those of the other part of a backup were not restored.
fn without<K: StoredComponent>(world: &mut TestWorld) {
    world.store.retain(|(_, key), _| key[0] != K::KEY);
}

#[test]
fn tasks_are_found_by_kind_and_state_newest_first() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let mut made = vec![ended(&mut world, image(Some(agent))), ended(&mut world, image(None))];
    made.push(world.ask(video()).unwrap().id);
    let found = |world: &mut TestWorld, filter: MediaFilter| -> Vec<MediaTaskId> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = world.ask(List::<MediaTaskView> { filter, after, limit: 1 }).unwrap();
            all.extend(page.items.iter().map(|view| view.id));
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    };
    let newest = MediaFilter { newest_first: true, ..MediaFilter::default() };
    assert_eq!(found(&mut world, MediaFilter::default()), made);
    assert_eq!(found(&mut world, newest), [made[2], made[1], made[0]]);
    assert_eq!(found(&mut world, MediaFilter { kind: Some(MediaKind::Image), ..newest }), [made[1], made[0]]);
    assert_eq!(found(&mut world, MediaFilter { state: Some(MediaState::Pending), ..newest }), [made[2]]);
    assert_eq!(found(&mut world, MediaFilter { agent: Some(agent), ..newest }), [made[0]]);
    assert_eq!(&*task(&mut world, made[0]).prompt, "a cat");
}

#[test]
fn a_task_keeps_the_beginning_of_its_words_alone() {
    let mut world = TestWorld::new();
    let prompt: Box<str> = "ä".repeat(600).into();
    let id = world.ask(CreateMedia { request: MediaRequest::Video { prompt, duration_secs: None }, ..video() });
    let kept = task(&mut world, id.unwrap().id).prompt;
    assert_eq!(&*kept, "ä".repeat(limits::MEDIA_PROMPT_KEPT_BYTES_MAX / 2));
    sound(&mut world);
}

#[test]
fn an_ended_task_is_removed_and_an_open_one_is_not() {
    let mut world = TestWorld::new();
    let (over, open) = (ended(&mut world, image(None)), world.ask(video()).unwrap().id);
    let refusal = world.ask(RemoveMedia(open)).unwrap_err();
    assert_eq!((refusal.kind, refusal.code), (RefusalKind::Conflict, Some(error_codes::MEDIA_TASK_OPEN)));
    world.ask(RemoveMedia(over)).unwrap();
    for id in [over, MediaTaskId(uuid::Uuid::from_u128(7))] {
        assert_eq!(world.ask(RemoveMedia(id)).unwrap_err().kind, RefusalKind::NotFound);
    }
    assert_eq!(spent(&mut world, Scope::Global).0, Micros(40), "what it cost stays");
    world.restart();
    assert_eq!(world.ask(Get::<MediaTaskView>(over)).unwrap_err().kind, RefusalKind::NotFound);
    assert!(task(&mut world, open).state.is_open());
    sound(&mut world);
}

/// Agents were restored and jobs were not: a provider may have been paid since the backup.
#[test]
fn an_open_task_without_its_job_fails_and_asks_no_provider() {
    let mut world = TestWorld::new();
    let (first, over) = (world.ask(video()).unwrap().id, ended_beside(&mut world));
    without::<Job>(&mut world);
    world.restart();
    wait(&mut world, 60_000);
    assert!(tries(&mut world).is_empty());
    assert_eq!(task(&mut world, first).fault, Some(MediaFault::Unknown));
    assert_eq!(task(&mut world, over).state, MediaState::Completed);
    sound(&mut world);
}

fn ended_beside(world: &mut TestWorld) -> MediaTaskId {
    drop(tries(world));
    ended(world, image(None))
}

/// Jobs were restored and agents were not.
#[test]
fn jobs_without_their_tasks_end_and_tasks_without_their_agents_go() {
    let mut world = TestWorld::new();
    world.ask(video()).unwrap();
    drop(tries(&mut world));
    without::<MediaTask>(&mut world);
    world.restart();
    wait(&mut world, 60_000);
    assert!(tries(&mut world).is_empty(), "it asks for what nobody waits for");
    sound(&mut world);
    let agent = world.spawn("a");
    let lost = ended(&mut world, image(Some(agent)));
    let mut other = TestWorld::new();
    other.store.extend(world.store.clone().into_iter().filter(|((_, key), _)| key[0] == MediaTask::KEY));
    other.restart();
    assert_eq!(other.ask(Get::<MediaTaskView>(lost)).unwrap_err().kind, RefusalKind::NotFound);
    sound(&mut other);
}

/// The task is of a later time than the job: it was paid meanwhile.
#[test]
fn a_job_of_an_earlier_time_than_its_task_is_not_repeated() {
    let mut world = TestWorld::new();
    let id = world.ask(image(None)).unwrap().id;
    let run = the_try(&mut world, MAKE);
    let earlier = world.store.clone();
    world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
    done(&mut world, run.attempt, &result());
    let jobs = earlier.into_iter().filter(|((_, key), _)| key[0] == Job::KEY);
    world.store.extend(jobs);
    world.restart();
    wait(&mut world, 60_000);
    assert!(tries(&mut world).is_empty(), "it would be paid twice");
    let kept = task(&mut world, id);
    assert_eq!((kept.state, kept.cost, kept.fault), (MediaState::Completed, Micros(40), None));
    assert!(kept.cost < MOST);
    sound(&mut world);
}
