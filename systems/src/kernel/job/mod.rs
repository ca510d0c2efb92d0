//! Jobs: durable work for the outside that outlives a restart. A domain lists its kinds of jobs in `jobs` of its `DOMAIN`,
//! adds jobs with [`add`], and hears in `settle` of the kind what becomes of each try.
//!
//! | rule | why |
//! |---|---|
//! | each kind has a lane: so many tries at once, and no more | what is out stays bounded |
//! | jobs wait in the order in which they are due; nothing looks at all of them | cost grows with what is due |
//! | places go to holders in turn, and to the subjects of each in turn; a user with a limited role has a quarter of them at most, a family of agents three quarters | no user and no family keeps the others out |
//! | only the first job of a subject is in the queue, and none while as many as may be are out | one slow receiver does not take all; where the kind asks for order, events arrive as they happened |
//! | each try is stored before it goes out, and its number fences what comes back | no try counts twice |
//! | a try that was out when the daemon ended is tried again only when its kind is repeatable | nothing is done twice unasked |
//! | jobs, and the bytes of their inputs, are bounded for each kind | memory stays bounded |
//! | who holds a share of a kind has a part of that | no user and no family of agents takes the room of all others |

mod lane;
mod metrics;
mod run;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turn_tests;
mod turns;

pub use lane::JobCounts;

use std::collections::BTreeSet;
use std::sync::Arc;

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;
use hashbrown::HashMap;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{Job, JobOutcome, JobState};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, Refusal, Timestamp};
use uuid::Uuid;

use self::lane::Lane;
use super::check::Faults;
use super::clock::Now;
use super::counters::{StaleOutcomes, Totals};
use super::domain::{Domain, Phase, System};
use super::id_generator::{mint, mint_beside};
use super::index::id_of;
use super::inputs::table::OutcomeDef;
use super::outbox::{Emit, Outbox};
use super::reaction::{Removed, on};
use super::record::{self, Kind, restore_components};
use super::stage::Stage;

/// One kind of jobs.
#[derive(Clone, Copy, Debug)]
pub struct JobKind {
    /// Its name: stored with each job, and never another one.
    pub name: &'static str,
    /// May a try be repeated of which nobody knows whether it took effect?
    pub repeatable: bool,
    /// Tries of one job at most.
    pub tries_max: u32,
    /// Milliseconds before the second try; they double from try to try.
    pub backoff_ms: i64,
    /// Milliseconds between two tries at most.
    pub backoff_ms_max: i64,
    /// Milliseconds after which a job fails, however many tries are left.
    pub deadline_ms: i64,
    /// Milliseconds that one try may take.
    pub timeout_ms: u32,
    /// Tries that are out at once, at most; of a user with a limited role one in
    /// [`POOL_SHARES`](agentsvc_components::kernel::limit::POOL_SHARES) of that, of a family of agents the others.
    pub lane: usize,
    /// Tries of jobs of one subject that are out at once, at most.
    pub subject_lane: usize,
    /// Has one subject jobs of several holders? Then each has the same part of its places, too, and of its jobs one in
    /// [`POOL_SHARES`](agentsvc_components::kernel::limit::POOL_SHARES).
    pub is_shared: bool,
    /// Do the jobs of one subject begin in the order in which they were added, none before those before it have ended? Else
    /// in the order in which they are due. For kinds with one try of a subject at once.
    pub is_ordered: bool,
    /// Jobs at most; of one holder one in [`POOL_SHARES`](agentsvc_components::kernel::limit::POOL_SHARES) of that.
    pub count_max: usize,
    /// Jobs of one subject at most.
    pub subject_count_max: usize,
    /// Bytes of the inputs of one subject at most.
    pub subject_bytes_max: usize,
    /// Bytes of one input at most.
    pub input_bytes_max: usize,
    /// Bytes of all inputs at most; of one holder the same part of that.
    pub bytes_max: usize,
    /// Hears what becomes of a job. One that has ended is gone already.
    pub settle: fn(&mut World, JobId, &Job, JobEvent),
}

/// What became of a try, or of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// The try failed for this reason; the job is tried again when it is due.
    Retried(String),
    /// The job is done; what it brought.
    Done(String),
    /// The job has failed for this reason.
    Failed(String),
    /// The daemon ended while a try was out that must not be repeated: nobody knows whether it took effect.
    Unknown,
}

/// What [`add`] is told of a new job.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What it is for.
    pub subject: Uuid,
    /// Whose it is.
    pub owner: Option<AgentId>,
    /// Whose share of the jobs of its kind it takes; `None` is bounded with all others alone.
    pub holder: Option<Holder>,
    /// What its performer needs.
    pub input: Arc<str>,
}

/// All jobs, and the lanes that they wait in.
#[derive(Resource, Default)]
pub struct Jobs {
    by_id: HashMap<JobId, Entity>,
    by_owner: BTreeSet<(AgentId, JobId)>,
    /// In the order of the domains.
    lanes: Vec<Lane>,
}

/// What jobs bring to the world.
pub(crate) const DOMAIN: Domain = Domain {
    kinds: &[Kind::component::<Job>()],
    restore: &[(Phase::Owned, restore_components::<Job>), (Phase::Joined, run::resume)],
    outcomes: &[OutcomeDef::of::<JobOutcome>()],
    systems: &[System { stage: Stage::Decide, name: "job_start", run: |world| run::start_due(world, now(world)) }],
    install,
    check,
    has_work: |world| jobs(world).lanes.iter().any(|lane| lane.first(now(world)).is_some()),
    is_quiet: |world| world.resource::<Jobs>().lanes.iter().all(|lane| lane.out() == 0),
    next_due: |world| jobs(world).lanes.iter().filter_map(Lane::next_due).min(),
    clock_set_back: |world| run::clock_set_back(world, now(world)),
    totals: &[Totals::of::<StaleOutcomes>()],
    metrics: metrics::ALL,
    ..Domain::named("job")
};

fn install(world: &mut World) {
    let mut jobs = Jobs::default();
    let kinds = super::domain::all().iter().flat_map(|domain| domain.jobs);
    #[cfg(test)]
    let kinds = kinds.chain(tests::KINDS);
    kinds.for_each(|kind| jobs.add_kind(*kind));
    world.insert_resource(jobs);
    world.register_component_hooks::<JobId>().on_insert(inserted).on_remove(removed);
    on(world, |world, gone: &Removed<AgentId>| owner_removed(world, gone.id));
}

fn jobs(world: &World) -> &Jobs {
    world.resource::<Jobs>()
}

fn now(world: &World) -> Timestamp {
    world.resource::<Now>().0
}

impl Jobs {
    /// Makes the lane of a kind.
    fn add_kind(&mut self, kind: JobKind) {
        self.lanes.push(Lane::new(kind));
    }

    /// The lane of a kind; `None` when this release has no such kind. Few, so that a look at each costs less than a hash.
    fn lane(&mut self, kind: &str) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.kind.name == kind)
    }

    /// What a kind asks for; `None` when this release has no such kind.
    fn kind(&self, kind: &str) -> Option<JobKind> {
        self.lanes.iter().map(|lane| lane.kind).find(|of| of.name == kind)
    }

    fn insert(&mut self, id: JobId, entity: Entity, job: &Job) {
        self.by_id.insert(id, entity);
        self.by_owner.extend(job.owner.map(|owner| (owner, id)));
        if let Some(lane) = self.lane(&job.kind) {
            lane.insert(id, job);
        }
    }

    fn remove(&mut self, id: JobId, job: &Job) {
        self.by_id.remove(&id);
        if let Some(owner) = job.owner {
            self.by_owner.remove(&(owner, id));
        }
        if let Some(lane) = self.lane(&job.kind) {
            lane.remove(id, job);
        }
    }

    /// How many jobs of each kind wait and are out, and what became of the others since the start.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, JobCounts)> + '_ {
        self.lanes.iter().map(|lane| (lane.kind.name, lane.counts()))
    }

    /// Takes over what became of the jobs of another world since the start.
    pub(super) fn count_on_from(&mut self, other: &Self) {
        self.lanes.iter_mut().zip(&other.lanes).for_each(|(lane, other)| lane.count_on_from(other));
    }

    /// The job `id`.
    #[must_use]
    pub fn get(&self, id: JobId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }
}

/// Adds a job of the kind `kind`; its first try is due at once.
///
/// # Errors
/// The kind has no room left, or the input is too long; the refusal names the limit.
///
/// # Panics
/// No domain lists the kind.
pub fn add(world: &mut World, kind: &'static str, new: NewJob) -> Result<JobId, Refusal> {
    let now = now(world);
    let lane = world.resource_mut::<Jobs>().into_inner().lane(kind).expect("a domain lists the kind of each job");
    lane.admit(new.subject, new.holder, new.input.len())?;
    let deadline = now.plus_ms(lane.kind.deadline_ms);
    let NewJob { subject, owner, holder, input } = new;
    let id: JobId = match owner {
        Some(owner) => mint_beside(world, owner.0),
        None => mint(world, Slot::ROOT),
    };
    let (tries, state) = (0, JobState::Waiting);
    let kind = kind.into();
    let job = Job { kind, subject, owner, holder, tries, created_at: now, due: now, deadline, state, input };
    let entity = world.spawn((id, job)).id();
    world.mark(entity);
    Ok(id)
}

/// Refuses another job of a kind for `subject` with an input of so many bytes where there is no room, and counts that.
///
/// # Errors
/// The refusal names the limit.
pub fn admit(world: &mut World, kind: &str, subject: Uuid, bytes: usize) -> Result<(), Refusal> {
    let lane = world.resource_mut::<Jobs>().into_inner().lane(kind);
    lane.map_or(Ok(()), |lane| lane.admit(subject, None, bytes))
}

/// Is there room for another job of a kind for `subject` that takes a share of `holder`, whose input is short? Counts a refusal where there is none, so that
/// the input need not be made.
pub fn has_room(world: &mut World, kind: &str, subject: Uuid, holder: Option<Holder>) -> bool {
    let lane = world.resource_mut::<Jobs>().into_inner().lane(kind);
    lane.is_some_and(|lane| lane.admit(subject, holder, 0).is_ok())
}

/// When the next try of a job may begin, or its present one began; `None` when there is no such job.
pub fn due(world: &World, id: JobId) -> Option<Timestamp> {
    world.get::<Job>(jobs(world).get(id)?).map(|job| job.due)
}

/// The job of which this try is out; `None` when it is over, or another try is.
pub fn out(world: &World, attempt: Attempt) -> Option<&Job> {
    let job = world.get::<Job>(jobs(world).get(attempt.job)?)?;
    (job.state == JobState::Out && job.tries == attempt.number).then_some(job)
}

/// Gives a job of which this try is out another input: what a try has done already, so that it is not repeated after a crash.
/// The input must not be longer than one of its kind may be. False when the try is stale, and nothing is changed.
pub fn replace_input(world: &mut World, attempt: Attempt, input: Arc<str>) -> bool {
    let Some(entity) = out(world, attempt).and_then(|_| jobs(world).get(attempt.job)) else { return false };
    change(world, entity, |job| job.input = input);
    true
}

/// Ends a job, of which nothing is heard any more; a try that is out is given up. False when there is none of that id.
pub fn cancel(world: &mut World, id: JobId) -> bool {
    let Some(entity) = jobs(world).get(id) else { return false };
    let out = world.get::<Job>(entity).filter(|job| job.state == JobState::Out).map(|job| job.attempt(id));
    if let Some(attempt) = out {
        world.effect(Abort(attempt));
    }
    world.despawn(entity)
}

/// Ends the jobs of a kind that are for `subject`, as [`cancel`] does; gives how many there were.
pub fn cancel_all(world: &mut World, kind: &str, subject: Uuid) -> usize {
    let of = world.resource_mut::<Jobs>().into_inner().lane(kind).map(|lane| lane.of_subject(subject));
    of.unwrap_or_default().into_iter().filter(|id| cancel(world, *id)).count()
}

/// Ends the jobs of an agent that is removed.
fn owner_removed(world: &mut World, agent: AgentId) {
    let all = (agent, JobId(Uuid::nil()))..=(agent, JobId(Uuid::max()));
    let its: Vec<JobId> = jobs(world).by_owner.range(all).map(|(_, id)| *id).collect();
    for id in its {
        cancel(world, id);
    }
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<JobId>(at.entity).copied() else { return };
    let Some(job) = world.get::<Job>(at.entity).cloned() else { return };
    world.resource_mut::<Jobs>().insert(id, at.entity, &job);
}

/// The entity goes: its record goes with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<JobId>(at.entity).copied() else { return };
    let Some(job) = world.get::<Job>(at.entity).cloned() else { return };
    world.resource_mut::<Jobs>().remove(id, &job);
    world.resource_mut::<Outbox>().ops.push(record::remove_component::<Job>(id));
}

/// Changes a job in its component and in every index, and marks it.
fn change(world: &mut World, entity: Entity, change: impl FnOnce(&mut Job)) {
    let Some(before) = world.get::<Job>(entity).cloned() else { return };
    let id = id_of::<JobId>(world, entity);
    let mut after = before.clone();
    change(&mut after);
    let mut jobs = world.resource_mut::<Jobs>();
    jobs.remove(id, &before);
    jobs.insert(id, entity, &after);
    if let Some(mut job) = world.get_mut::<Job>(entity) {
        *job = after;
    }
    world.mark(entity);
}

/// Says which index is wrong, and which job lacks its owner.
fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &JobId, &Job)>();
    let world = &*world;
    let mut scan = Jobs::default();
    jobs(world).lanes.iter().for_each(|lane| scan.add_kind(lane.kind));
    for (entity, id, job) in found.iter(world) {
        scan.insert(*id, entity, job);
        let has_owner = job.owner.is_none_or(|agent| super::index::agent(world, agent).is_ok());
        faults.that(has_owner, || format!("job {id}: its agent is gone"));
    }
    let jobs = jobs(world);
    faults.same("jobs", &jobs.by_id, &scan.by_id);
    faults.same("jobs by owner", &jobs.by_owner, &scan.by_owner);
    for (lane, scan) in jobs.lanes.iter().zip(&mut scan.lanes) {
        scan.serve_as(lane);
        faults.same(lane.kind.name, lane.held(), scan.held());
        faults.that(lane.out() <= lane.kind.lane, || format!("{}: {} jobs are out", lane.kind.name, lane.out()));
        let over = lane.over();
        faults.that(over.is_none(), || format!("{}: more jobs of {over:?} are out than its share", lane.kind.name));
    }
}
