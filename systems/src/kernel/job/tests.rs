//! Jobs in a whole world: one by one, and at random with kills, late outcomes and clocks that jump.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::kernel::record::{Space, StoredComponent};
use agentsvc_components::{AgentId, RefusalKind};
use bevy_ecs::prelude::Resource;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::id_generator::IdGenerator;
use crate::testing::TestWorld;

/// What was heard of jobs.
#[derive(Resource, Default)]
struct Heard(Vec<(JobId, JobEvent)>);

fn hear(world: &mut World, id: JobId, _: &Job, event: JobEvent) {
    world.get_resource_or_init::<Heard>().0.push((id, event));
}

const ANY: JobKind = JobKind {
    name: "test_any",
    repeatable: true,
    tries_max: 3,
    backoff_ms: 1_000,
    backoff_ms_max: 3_000,
    deadline_ms: 60_000,
    timeout_ms: 500,
    lane: 2,
    subject_lane: 2,
    is_shared: false,
    is_ordered: false,
    subject_count_max: 20,
    subject_bytes_max: 10_000,
    count_max: 20,
    input_bytes_max: 100,
    bytes_max: 1_000,
    settle: hear,
};

/// The kinds that worlds of tests have beside those of the domains.
pub(super) const KINDS: &[JobKind] = &[
    ANY,
    JobKind { name: "test_once", repeatable: false, is_ordered: true, subject_lane: 1, lane: 3, ..ANY },
    JobKind { name: "test_fair", subject_lane: 1, subject_count_max: 3, lane: 3, ..ANY },
    JobKind { name: "test_places", subject_lane: 4, lane: 8, count_max: 400, subject_count_max: 400, ..ANY },
    JobKind { name: "test_shared", is_shared: true, subject_lane: 4, lane: 16, count_max: 100, ..ANY },
    JobKind { name: "test_turns", subject_lane: 1, lane: 1, count_max: 100, ..ANY },
];

pub(super) fn new(subject: u128) -> NewJob {
    NewJob { subject: Uuid::from_u128(subject), owner: None, holder: None, input: "input".into() }
}

pub(super) fn user(id: u128) -> Holder {
    Holder::User(UserId(Uuid::from_u128(id)))
}

pub(super) fn family(id: u128) -> Holder {
    Holder::Family(AgentId(Uuid::from_u128(id)))
}

pub(super) fn of(holder: Holder, subject: u128) -> NewJob {
    NewJob { holder: Some(holder), input: "".into(), ..new(subject) }
}

/// Adds a job in a step of its own.
pub(super) fn added(world: &mut TestWorld, kind: &'static str, new: NewJob) -> JobId {
    world.now = world.now.plus_ms(1);
    world.engine.set_now(world.now);
    let id = add(world.engine.world_mut(), kind, new).unwrap();
    world.step();
    id
}

/// The tries that went out since this was asked last.
pub(super) fn tries(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

fn heard(world: &mut TestWorld) -> Vec<(JobId, JobEvent)> {
    world.engine.world_mut().get_resource_or_init::<Heard>().0.drain(..).collect()
}

pub(super) fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

fn retry() -> TryEnd {
    TryEnd::Retry { after_ms: None, reason: "busy".to_owned() }
}

fn rows(world: &TestWorld) -> usize {
    world.store.keys().filter(|(space, key)| *space == Space::World && key[0] == Job::KEY).count()
}

#[test]
fn a_job_is_tried_until_it_is_done() {
    let mut world = TestWorld::new();
    let id = added(&mut world, "test_any", new(1));
    let first = tries(&mut world).remove(0);
    assert_eq!((first.attempt, &*first.input, rows(&world)), (Attempt::of(id, 1), "input", 1));
    world.outcome(JobOutcome(first.attempt, retry()));
    assert_eq!(heard(&mut world), [(id, JobEvent::Retried("busy".to_owned()))]);
    let due = (DOMAIN.next_due)(world.engine.world()).unwrap().ms_since(world.now) as i64;
    assert!((500..=1_000).contains(&due), "{due}");
    wait(&mut world, due - 1);
    assert!(tries(&mut world).is_empty(), "it is not due yet");
    wait(&mut world, 1);
    let second = tries(&mut world).remove(0).attempt;
    world.outcome(JobOutcome(first.attempt, TryEnd::Done("late".to_owned())));
    assert_eq!((second.number, world.engine.world().resource::<StaleOutcomes>().0), (2, 1));
    let after_ms = Some(20_000);
    world.outcome(JobOutcome(second, TryEnd::Retry { after_ms, reason: "later".to_owned() }));
    assert_eq!(
        (DOMAIN.next_due)(world.engine.world()).unwrap().ms_since(world.now),
        20_000,
        "the other side has said so"
    );
    wait(&mut world, 20_000);
    let third = tries(&mut world).remove(0).attempt;
    world.outcome(JobOutcome(third, TryEnd::Done("ok".to_owned())));
    assert_eq!(heard(&mut world)[1..], [(id, JobEvent::Done("ok".to_owned()))]);
    let (_, counts) = jobs(world.engine.world()).counts().find(|(name, _)| *name == "test_any").unwrap();
    assert_eq!(counts, JobCounts { done: 1, retried: 2, ..JobCounts::default() });
    assert_eq!(rows(&world), 0);
}

#[test]
fn a_job_fails_after_its_last_try_and_at_its_deadline() {
    let mut world = TestWorld::new();
    let id = added(&mut world, "test_any", new(1));
    for number in 1..=3 {
        let attempt = tries(&mut world).remove(0).attempt;
        assert_eq!(attempt.number, number);
        world.outcome(JobOutcome(attempt, retry()));
        wait(&mut world, 3_000);
    }
    assert_eq!(heard(&mut world).last(), Some(&(id, JobEvent::Failed("busy".to_owned()))));
    let id = added(&mut world, "test_any", new(1));
    let attempt = tries(&mut world).remove(0).attempt;
    let after_ms = Some(60_000);
    world.outcome(JobOutcome(attempt, TryEnd::Retry { after_ms, reason: "much later".to_owned() }));
    assert_eq!(heard(&mut world), [(id, JobEvent::Failed("much later".to_owned()))]);
    let behind: Vec<_> = (0..3).map(|_| added(&mut world, "test_any", new(1))).collect();
    wait(&mut world, 60_000);
    let attempt = tries(&mut world).remove(0).attempt;
    world.outcome(JobOutcome(attempt, TryEnd::Failed("no".to_owned())));
    assert_eq!(heard(&mut world)[1], (behind[2], JobEvent::Failed("the deadline passed".to_owned())));
}

#[test]
fn a_lane_is_bounded_and_subjects_keep_their_order() {
    let mut world = TestWorld::new();
    let any: Vec<_> = (0..4).map(|_| added(&mut world, "test_any", new(1))).collect();
    let out = tries(&mut world);
    assert_eq!(out.iter().map(|run| run.attempt.job).collect::<Vec<_>>(), any[..2]);
    world.outcome(JobOutcome(out[0].attempt, TryEnd::Done(String::new())));
    assert_eq!(tries(&mut world).remove(0).attempt.job, any[2]);
    let ordered: Vec<_> = [7, 7, 8].map(|subject| added(&mut world, "test_once", new(subject))).into();
    let out = tries(&mut world);
    assert_eq!(out.iter().map(|run| run.attempt.job).collect::<Vec<_>>(), [ordered[0], ordered[2]]);
    world.outcome(JobOutcome(out[0].attempt, retry()));
    assert!(tries(&mut world).is_empty(), "the second waits until the first is done");
    assert!(cancel(world.engine.world_mut(), ordered[0]) && !cancel(world.engine.world_mut(), ordered[0]));
    world.step();
    assert_eq!(tries(&mut world).remove(0).attempt.job, ordered[1]);
}

#[test]
fn one_subject_takes_its_share_of_a_lane_and_no_more() {
    let mut world = TestWorld::new();
    let of = |world: &mut TestWorld, subject| added(world, "test_fair", new(subject));
    let slow: Vec<_> = (0..3).map(|_| of(&mut world, 7)).collect();
    let other = of(&mut world, 8);
    let out = tries(&mut world);
    assert_eq!(out.iter().map(|run| run.attempt.job).collect::<Vec<_>>(), [slow[0], other]);
    let full = add(world.engine.world_mut(), "test_fair", new(7)).unwrap_err();
    assert!(full.message.contains("3 test_fair jobs of one subject are open, of 3 at most"), "{full:?}");
    let refused = jobs(world.engine.world()).counts().find(|(kind, _)| *kind == "test_fair").unwrap().1.refused;
    assert_eq!(refused, 1);
    world.outcome(JobOutcome(out[0].attempt, retry()));
    assert_eq!(tries(&mut world).remove(0).attempt.job, slow[1], "the next one need not wait for the one that failed");
    assert_eq!(cancel_all(world.engine.world_mut(), "test_fair", Uuid::from_u128(7)), 3);
    world.step();
    assert_eq!(world.engine.check(), [] as [String; 0]);
    assert!(of(&mut world, 7) != other && tries(&mut world).len() == 1);
}

#[test]
fn what_was_out_is_repeated_or_unknown_after_a_restart() {
    let mut world = TestWorld::new();
    let (any, once) = (added(&mut world, "test_any", new(1)), added(&mut world, "test_once", new(1)));
    let lost = tries(&mut world);
    assert_eq!(lost.len(), 2);
    world.restart();
    assert_eq!(heard(&mut world), [(once, JobEvent::Unknown)]);
    let again = tries(&mut world);
    assert_eq!(again.iter().map(|run| run.attempt).collect::<Vec<_>>(), [Attempt::of(any, 2)]);
    world.outcome(JobOutcome(lost[0].attempt, TryEnd::Done(String::new())));
    assert!(heard(&mut world).is_empty(), "that was the try before");
    world.outcome(JobOutcome(again[0].attempt, TryEnd::Lost("it took too long".to_owned())));
    assert_eq!(heard(&mut world), [(any, JobEvent::Retried("it took too long".to_owned()))]);
    let once = added(&mut world, "test_once", new(1));
    let attempt = tries(&mut world).remove(0).attempt;
    world.outcome(JobOutcome(attempt, TryEnd::Lost("it took too long".to_owned())));
    assert_eq!(heard(&mut world), [(once, JobEvent::Unknown)]);
}

#[test]
fn a_full_kind_refuses_and_names_its_limit() {
    let mut world = TestWorld::new();
    let mut refused = |input: usize| {
        let new = NewJob { input: "x".repeat(input).into(), ..new(1) };
        add(world.engine.world_mut(), "test_any", new).unwrap_err()
    };
    let long = refused(101);
    assert!(long.kind == RefusalKind::BadRequest && long.message.contains("100 at most"), "{long:?}");
    for _ in 0..10 {
        add(world.engine.world_mut(), "test_any", NewJob { input: "x".repeat(100).into(), ..new(1) }).unwrap();
    }
    let bytes = add(world.engine.world_mut(), "test_any", new(1)).unwrap_err();
    assert!(bytes.message.contains("1000 bytes already, of 1000 at most"), "{bytes:?}");
    for _ in 0..20 {
        add(world.engine.world_mut(), "test_once", NewJob { input: "".into(), ..new(1) }).unwrap();
    }
    let count = add(world.engine.world_mut(), "test_once", new(1)).unwrap_err();
    assert!(count.message.contains("20 test_once jobs already, of 20 at most"), "{count:?}");
    world.step();
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_holder_leaves_jobs_of_a_kind_to_others_also_over_a_restart() {
    let mut world = TestWorld::new();
    let of = |user: u128, input: &str| NewJob {
        holder: Some(Holder::User(UserId(Uuid::from_u128(user)))),
        input: input.into(),
        ..new(user)
    };
    let ids: Vec<JobId> = (0..5).map(|_| added(&mut world, "test_any", of(1, ""))).collect();
    let full = add(world.engine.world_mut(), "test_any", of(1, "")).unwrap_err();
    assert!(full.kind == RefusalKind::TooMany && full.message.contains("of one user"), "{full:?}");
    world.restart();
    add(world.engine.world_mut(), "test_any", of(1, "")).unwrap_err();
    added(&mut world, "test_any", of(2, &"x".repeat(100)));
    added(&mut world, "test_any", of(2, &"x".repeat(100)));
    add(world.engine.world_mut(), "test_any", of(2, &"x".repeat(100))).unwrap_err();
    added(&mut world, "test_any", of(2, &"x".repeat(50)));
    assert!(cancel(world.engine.world_mut(), ids[0]));
    added(&mut world, "test_any", of(1, ""));
    added(&mut world, "test_any", new(3));
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn the_jobs_of_an_agent_are_in_its_slot_and_end_with_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = added(&mut world, "test_any", NewJob { owner: Some(agent), ..new(1) });
    let nobodys = added(&mut world, "test_any", new(1));
    let born = world.engine.world().resource::<IdGenerator>().born();
    assert_eq!([id.0, nobodys.0].map(|id| Slot::of_id(id, born)), [Slot::of_name("a"), Slot::ROOT]);
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&Abort(Attempt::of(id, 1)))));
    assert_eq!((heard(&mut world), rows(&world)), (vec![], 1), "the other job stays");
}

/// What a random run knows of jobs, beside the world.
#[derive(Default)]
struct Oracle {
    out: Vec<RunJob>,
    past: Vec<(Attempt, TryEnd)>,
    ended: BTreeSet<JobId>,
    begun: BTreeMap<JobId, u32>,
    events: BTreeMap<&'static str, u32>,
}

impl Oracle {
    /// Takes in what a step left, and holds it against the rules.
    fn look(&mut self, world: &mut TestWorld) {
        for run in tries(world) {
            let (id, number) = (run.attempt.job, run.attempt.number);
            assert!(self.begun.insert(id, number).is_none_or(|before| before < number), "{id} began twice");
            assert!(!self.ended.contains(&id), "{id} has ended");
            self.out.push(run);
        }
        for (id, event) in heard(world) {
            let name = match event {
                JobEvent::Retried(_) => "retried",
                JobEvent::Done(_) => "done",
                JobEvent::Failed(_) => "failed",
                JobEvent::Unknown => "unknown",
            };
            *self.events.entry(name).or_default() += 1;
            assert!(name == "retried" || self.ended.insert(id), "{id} ended twice");
        }
        let live = |run: &RunJob| jobs(world.engine.world()).get(run.attempt.job).is_some();
        let ordered: Vec<_> = self.out.iter().filter(|run| run.kind == "test_once" && live(run)).collect();
        let subjects: BTreeSet<_> = ordered.iter().map(|run| run.subject).collect();
        assert_eq!(ordered.len(), subjects.len(), "one at a time for each subject");
        assert_eq!(world.engine.check(), [] as [String; 0]);
        let stored = world.store.iter().filter(|((space, _), _)| *space == Space::World);
        let stored = stored.map(|((_, key), value)| (key.clone(), value.clone())).collect();
        assert_eq!(world.engine.differences(&stored), [] as [String; 0]);
    }

    fn answer(&mut self, world: &mut TestWorld, rng: &mut ChaCha8Rng) {
        if self.out.is_empty() {
            return;
        }
        let run = self.out.swap_remove(rng.next_u64() as usize % self.out.len());
        let end = match rng.next_u64() % 6 {
            0 => TryEnd::Failed("no".to_owned()),
            1 => TryEnd::Lost("silence".to_owned()),
            2 | 3 => retry(),
            _ => TryEnd::Done("ok".to_owned()),
        };
        self.past.push((run.attempt, end.clone()));
        world.outcome(JobOutcome(run.attempt, end));
    }
}

#[test]
fn jobs_keep_their_rules_whatever_happens() {
    let mut events = BTreeMap::new();
    for seed in 0..20_u8 {
        let (mut world, mut oracle, mut rng) = (TestWorld::new(), Oracle::default(), ChaCha8Rng::from_seed([seed; 32]));
        let mut agents: Vec<AgentId> = (0..3).map(|n| world.spawn(&format!("a{n}"))).collect();
        for _ in 0..150 {
            let dice = rng.next_u64();
            let pick = (dice >> 32) as usize;
            match dice % 20 {
                0..8 => {
                    let kind =
                        ["test_any", "test_once", "test_any", "test_once", "test_shared", "test_turns"][pick % 6];
                    let owner = agents.get(pick % 5).copied();
                    let holder = [None, Some(user(1)), Some(user(2)), Some(family(1))][(pick >> 8) % 4];
                    let new = NewJob { owner, holder, ..new(pick as u128 % 3) };
                    let _full = add(world.engine.world_mut(), kind, new);
                    world.step();
                }
                8..14 => oracle.answer(&mut world, &mut rng),
                14..16 => wait(&mut world, [10, 900, 4_000, 50_000][pick % 4]),
                16 => {
                    if let Some((attempt, end)) = oracle.past.get(pick % oracle.past.len().max(1)).cloned() {
                        world.outcome(JobOutcome(attempt, end));
                    }
                }
                17 => {
                    oracle.out.clear();
                    world.restart();
                }
                18 if agents.len() > 1 => {
                    let gone = agents.swap_remove(pick % agents.len());
                    world.ask(RemoveAgents(vec![gone])).unwrap();
                }
                _ => wait(&mut world, -30_000),
            }
            oracle.look(&mut world);
        }
        while !jobs(world.engine.world()).by_id.is_empty() {
            oracle.answer(&mut world, &mut rng);
            wait(&mut world, 1_000);
            oracle.look(&mut world);
        }
        oracle.events.into_iter().for_each(|(name, count)| *events.entry(name).or_default() += count);
    }
    assert!(
        events.len() == 4 && events.values().all(|count: &u32| *count > 20),
        "every transition was seen: {events:?}"
    );
}
