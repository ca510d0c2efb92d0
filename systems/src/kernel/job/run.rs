//! A job on its way: its tries begin when they are due, and end it or are followed by another one.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{Job, JobOutcome, JobState, RunJob, TryEnd};

use super::{JobEvent, JobKind, Jobs, change, now};
use crate::kernel::arrivals::Settle;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;

/// What becomes of a job whose deadline has passed.
const TOO_LATE: &str = "the deadline passed";

/// Begins the jobs that are due, as far as the lanes have room.
pub(super) fn start_due(world: &mut World, now: Timestamp) {
    for at in 0..world.resource::<Jobs>().lanes.len() {
        loop {
            let lane = &world.resource::<Jobs>().lanes[at];
            let (kind, Some(id)) = (lane.kind, lane.first(now)) else { break };
            if !start(world, id, &kind) {
                break;
            }
        }
    }
}

/// Begins a try of a job, unless it is too late for one. False when there is no such job.
fn start(world: &mut World, id: JobId, kind: &JobKind) -> bool {
    let now = now(world);
    let Some((entity, job)) = found(world, id) else { return false };
    if job.deadline <= now {
        end(world, entity, JobEvent::Failed(TOO_LATE.to_owned()));
        return true;
    }
    change(world, entity, |job| {
        job.state = JobState::Out;
        job.tries += 1;
    });
    if let Some(lane) = world.resource_mut::<Jobs>().lane(kind.name) {
        lane.began(&job, now);
    }
    world.effect(RunJob {
        attempt: Attempt::of(id, job.tries + 1),
        kind: kind.name,
        subject: job.subject,
        owner: job.owner,
        created_at: job.created_at,
        timeout_ms: kind.timeout_ms,
        input: job.input,
    });
    true
}

/// A job and its entity.
fn found(world: &World, id: JobId) -> Option<(Entity, Job)> {
    let entity = world.resource::<Jobs>().get(id)?;
    Some((entity, world.get::<Job>(entity)?.clone()))
}

/// Ends a job, and tells its domain how.
fn end(world: &mut World, entity: Entity, event: JobEvent) {
    let Some(job) = world.get::<Job>(entity).cloned() else { return };
    let id = id_of::<JobId>(world, entity);
    world.despawn(entity);
    tell(world, id, &job, event);
}

/// Counts what became of a job, and tells its domain.
fn tell(world: &mut World, id: JobId, job: &Job, event: JobEvent) {
    let mut jobs = world.resource_mut::<Jobs>();
    let Some(lane) = jobs.lane(&job.kind) else { return };
    lane.count(&event);
    let settle = lane.kind.settle;
    settle(world, id, job, event);
}

impl Settle for JobOutcome {
    fn settle(self, world: &mut World) {
        let Self(Attempt { job: id, number }, end_of_try) = self;
        let out = found(world, id).filter(|(_, job)| job.state == JobState::Out && job.tries == number);
        let Some((entity, job)) = out else {
            world.resource_mut::<StaleOutcomes>().0 += 1;
            return;
        };
        match end_of_try {
            TryEnd::Done(brought) => end(world, entity, JobEvent::Done(brought)),
            TryEnd::Failed(reason) => end(world, entity, JobEvent::Failed(reason)),
            TryEnd::Retry { after_ms, reason } => retry(world, entity, &job, after_ms, reason),
            TryEnd::Lost(reason) if world.resource::<Jobs>().kind(&job.kind).is_some_and(|kind| kind.repeatable) => {
                retry(world, entity, &job, None, reason)
            }
            TryEnd::Lost(_) => end(world, entity, JobEvent::Unknown),
        }
    }
}

/// Another try follows, or none when there have been enough or it would come too late.
fn retry(world: &mut World, entity: Entity, job: &Job, after_ms: Option<u32>, reason: String) {
    let Some(kind) = world.resource::<Jobs>().kind(&job.kind) else { return };
    let due = now(world).plus_ms(pause_ms(world, &kind, job.tries).max(i64::from(after_ms.unwrap_or(0))));
    if job.tries >= kind.tries_max || due >= job.deadline {
        return end(world, entity, JobEvent::Failed(reason));
    }
    change(world, entity, |job| {
        job.state = JobState::Waiting;
        job.due = due;
    });
    let id = id_of::<JobId>(world, entity);
    if let Some(job) = world.get::<Job>(entity).cloned() {
        tell(world, id, &job, JobEvent::Retried(reason));
    }
}

/// Milliseconds until the next try: the backoff, of which up to a half is left to chance.
fn pause_ms(world: &mut World, kind: &JobKind, tries: u32) -> i64 {
    let doubled = kind.backoff_ms.saturating_mul(1 << tries.saturating_sub(1).min(30)).min(kind.backoff_ms_max).max(1);
    let chance = world.resource_mut::<IdGenerator>().below(doubled as u64 / 2 + 1);
    doubled - chance as i64
}

/// After a start: a try that was out is repeated at once, or its effect is unknown.
pub(super) fn resume(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let mut all: Vec<JobId> = world.resource::<Jobs>().by_id.keys().copied().collect();
    all.sort_unstable();
    for id in all {
        let Some((entity, job)) = found(world, id) else { continue };
        if job.owner.is_some_and(|owner| index::agent(world, owner).is_err()) {
            world.despawn(entity);
            continue;
        }
        if job.state != JobState::Out {
            continue;
        }
        let Some(kind) = world.resource::<Jobs>().kind(&job.kind) else { continue };
        if !kind.repeatable {
            end(world, entity, JobEvent::Unknown);
        } else if job.tries >= kind.tries_max {
            end(world, entity, JobEvent::Failed("the daemon ended during its last try".to_owned()));
        } else {
            let now = now(world);
            change(world, entity, |job| {
                job.state = JobState::Waiting;
                job.due = now;
            });
        }
    }
    // While the daemon was down the clock may have been set back, too.
    let now = now(world);
    clock_set_back(world, now);
    Ok(())
}

/// The clock was set back: no job waits longer than it would have, or lasts longer.
pub(super) fn clock_set_back(world: &mut World, now: Timestamp) {
    let mut all: Vec<JobId> = world.resource::<Jobs>().by_id.keys().copied().collect();
    all.sort_unstable();
    for id in all {
        let Some((entity, job)) = found(world, id) else { continue };
        let Some(kind) = world.resource::<Jobs>().kind(&job.kind) else { continue };
        let due: Timestamp = job.due.min(now.plus_ms(kind.backoff_ms_max));
        let deadline = job.deadline.min(now.plus_ms(kind.deadline_ms));
        if (due, deadline) != (job.due, job.deadline) {
            change(world, entity, |job| (job.due, job.deadline) = (due, deadline));
        }
    }
    world.resource_mut::<Jobs>().lanes.iter_mut().for_each(|lane| lane.clock_set_back(now));
}
