//! Workflows: pipelines of steps that agents carry out (spec 1, Workflow, Workflow run).
//!
//! A definition is a list of steps. A run keeps the steps as they were when it began and goes through them; each step is a
//! turn of its agent, which the run hears the end of in the same step of the world. So a run is parked data like a turn:
//! its record says how far it is, and after a kill it goes on from there. What is settled is never repeated, because a
//! step's output and its end are one commit.
//!
//! The transition table stands at the head of `machine.rs`, the condition language at the head of `condition/mod.rs`.

pub mod audit_kinds;
mod cancel;
mod change;
mod check;
mod condition;
mod definition;
mod due;
mod end;
pub mod error_codes;
mod flow;
mod footprint;
mod judge;
mod machine;
mod metrics;
pub(crate) mod query;
mod reach;
mod registry;
mod resume;
pub(crate) mod rows;
mod runs;
mod settle;
mod show;
mod start;
mod template;

pub use cancel::CancelRun;
pub(crate) use change::WorkflowRemoved;
pub use change::{CreateWorkflow, UpdateWorkflow, WorkflowPatch};
pub use definition::{NewStep, NewWorkflow};
pub(crate) use end::RunCompleted;
pub use end::RunEnd;
pub use registry::{RegistryWorkflow, converted};
pub use runs::{GetRun, ListRuns, RunSummary, RunView};
pub(crate) use show::Definitions;
pub use show::{ListWorkflows, WorkflowSummary, WorkflowView};
pub use start::{RunWorkflow, StartRun, WorkflowChoice};

pub(crate) use check::check;
pub(crate) use due::{beat, clock_set_back, next_due};
use end::caller_ended;
pub(crate) use machine::advance;
pub(crate) use settle::turn_ended;

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;

use agentsvc_components::workflow::{Caller, Workflow, WorkflowRun};
use agentsvc_components::{AgentId, RunId, Timestamp, TurnId, WorkflowId};

use crate::event::told::inherits;
use crate::kernel::command::ReplySlot;
use crate::kernel::counters::{PerStep, Totals};
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::{self, Remove};
use crate::kernel::fires::Fires;
use crate::kernel::footprint::{Measure, entries};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::kept::Kept;
use crate::kernel::outbox::Exclusive;
use crate::kernel::quota::Used;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::share::Shares;
use crate::kernel::stage::Stage;
use crate::taint;
use crate::turn::{FiredTurnEnded, TurnClosed};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::Origin;
use agentsvc_components::workflow::record::RunRecord;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "event", "taint", "turn", "manifest", "session"],
    kinds: &[
        Kind::record::<RunRecord>().with_entities::<WorkflowRun>(rows::run),
        Kind::component::<Workflow>(),
        Kind::new(rows::PARTS, rows::read_part),
    ],
    restore: &[(Phase::Waiting, restore_components::<Workflow>), (Phase::Waiting, resume::restore)],
    rows: rows::parts,
    install,
    measures: &[
        Measure::of::<WorkflowId>("workflows", footprint::definition, entries(28, 2)),
        Measure::of::<RunId>("runs", footprint::run, entries(32, 3)),
    ],
    systems: &[
        System { stage: Stage::Time, name: "workflow_beat", run: beat },
        System { stage: Stage::Fire, name: "workflow_advance", run: advance },
    ],
    has_work,
    next_due,
    clock_set_back,
    check,
    is_quiet: |world| world.resource::<Workflows>().open() == 0 && nobody_waits(world),
    commands: &[
        CommandDef::of::<CancelRun>(),
        CommandDef::of::<CreateWorkflow>(),
        CommandDef::of::<Remove<Workflow>>(),
        CommandDef::of::<RunWorkflow>(),
        CommandDef::of::<StartRun>(),
        CommandDef::of::<UpdateWorkflow>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::RunTotals>()],
    per_step: &[PerStep::of::<judge::Told>()],
    metrics: metrics::ALL,
    ..Domain::named("workflow")
};

/// The indexes of runs.
#[derive(Resource, Default)]
pub(crate) struct Workflows {
    runs: HashMap<RunId, Known>,
    runs_of: BTreeSet<(WorkflowId, RunId)>,
    callers: BTreeMap<Caller, RunId>,
    /// Ended runs, in the order of their ends.
    ended: BTreeSet<(Timestamp, RunId)>,
    /// The same, workflow by workflow.
    ended_of: BTreeSet<(WorkflowId, Timestamp, RunId)>,
    /// Runs that can go on.
    ready: BTreeSet<RunId>,
    /// Runs whose next step waits for its condition, by whose they are.
    undecided: BTreeSet<(Option<Holder>, RunId)>,
    /// Whose condition was told last, and which run's: the next one is another's.
    told_last: Option<(Option<Holder>, RunId)>,
    /// When a step of a run has run out of time, or is to be tried again.
    due: BTreeSet<(Timestamp, RunId, u16)>,
    /// Steps that came back without their turn; looked at once all ends of turns are told.
    orphans: Vec<(RunId, u16, TurnId)>,
    open_bytes: usize,
    /// What each holder takes of the runs under way.
    shares: Shares,
    /// Ended runs, by whose share they take.
    kept: Kept<RunId>,
    kept_bytes: usize,
}

/// What the index knows of a run.
#[derive(Clone, Copy)]
struct Known {
    entity: Entity,
    holder: Option<Holder>,
    /// Bytes that it takes, as they are counted in `open_bytes` or `kept_bytes`.
    bytes: usize,
}

impl Workflows {
    /// How many runs there are, ended ones included.
    pub(crate) fn all(&self) -> usize {
        self.runs.len()
    }

    /// How many runs are under way.
    pub(crate) fn open(&self) -> usize {
        self.runs.len() - self.ended.len()
    }

    /// The run `id`.
    pub(crate) fn run(&self, id: RunId) -> Option<Entity> {
        self.runs.get(&id).map(|known| known.entity)
    }

    /// The runs of a workflow in the order of their beginning, from after `after` on.
    pub(crate) fn runs_after(&self, workflow: WorkflowId, after: Option<RunId>) -> impl Iterator<Item = RunId> + '_ {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = after.map_or(Included((workflow, RunId(uuid::Uuid::nil()))), |after| Excluded((workflow, after)));
        self.runs_of.range((from, Unbounded)).take_while(move |(of, _)| *of == workflow).map(|(_, run)| *run)
    }

    /// The runs of all workflows, from after a workflow and its run on.
    pub(crate) fn all_runs_after(
        &self,
        after: Option<(WorkflowId, RunId)>,
    ) -> impl Iterator<Item = (WorkflowId, RunId)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.runs_of.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()
    }

    /// Takes a run in.
    fn insert_run(&mut self, id: RunId, entity: Entity, run: &WorkflowRun) {
        let bytes = flow::bytes(run);
        self.runs.insert(id, Known { entity, holder: run.holder, bytes });
        self.runs_of.insert((run.workflow, id));
        if let Some(caller) = run.caller {
            self.callers.insert(caller, id);
        }
        match run.ended_at {
            Some(at) => {
                self.ended.insert((at, id));
                self.ended_of.insert((run.workflow, at, id));
                self.kept.insert(run.holder, at, id, bytes);
                self.kept_bytes += bytes;
            }
            None => {
                self.open_bytes += bytes;
                self.shares.add(run.holder, 1, bytes);
            }
        }
    }

    /// Takes a run out.
    fn remove_run(&mut self, id: RunId, run: &WorkflowRun) {
        let Some(Known { bytes, .. }) = self.runs.remove(&id) else { return };
        self.runs_of.remove(&(run.workflow, id));
        self.ready.remove(&id);
        self.undecided.remove(&(run.holder, id));
        if let Some(caller) = run.caller.filter(|caller| self.callers.get(caller) == Some(&id)) {
            self.callers.remove(&caller);
        }
        if let Some(at) = run.ended_at {
            self.ended.remove(&(at, id));
            self.ended_of.remove(&(run.workflow, at, id));
            self.kept.remove(run.holder, at, id, bytes);
            self.kept_bytes -= bytes;
        } else {
            self.open_bytes -= bytes;
            self.shares.remove(run.holder, 1, bytes);
        }
        for (step, due) in (0..).zip(run.progress.iter().map(|step| step.due)) {
            if let Some(due) = due {
                self.due.remove(&(due, id, step));
            }
        }
    }

    /// The texts of a run that is under way have become longer by so much.
    fn bytes_of(&self, id: RunId) -> usize {
        self.runs.get(&id).map_or(0, |known| known.bytes)
    }

    fn grow(&mut self, id: RunId, by: usize) {
        if let Some(known) = self.runs.get_mut(&id) {
            known.bytes += by;
            self.open_bytes += by;
            self.shares.add(known.holder, 0, by);
        }
    }

    /// Is there room for so many runs more under way, with so many bytes more: among all, and in the share of the holder?
    fn has_room(&self, holder: Option<Holder>, more: usize, bytes: usize) -> bool {
        let most = Used { count: limit::WORKFLOW_RUNS_OPEN_MAX, bytes: limit::WORKFLOW_RUNS_OPEN_BYTES_MAX };
        self.open() + more <= most.count
            && self.open_bytes + bytes <= most.bytes
            && self.shares.has_room(most, holder, more, bytes)
    }

    /// May the texts of a run under way become longer by so much?
    fn may_grow(&self, id: RunId, by: usize) -> bool {
        by == 0 || self.runs.get(&id).is_some_and(|known| self.has_room(known.holder, 0, by))
    }
}

/// Who waits for which run. An entry lives as long as its run is under way.
#[derive(Resource, Default)]
pub(crate) struct RunWaiters(Exclusive<HashMap<RunId, Vec<ReplySlot<RunEnd>>>>);

/// Does nobody wait for a run?
pub(crate) fn nobody_waits(world: &mut World) -> bool {
    world.resource_mut::<RunWaiters>().0.get().is_empty()
}

/// Prepares a new world for workflows.
pub(crate) fn install(world: &mut World) {
    entities::install::<Workflow>(world);
    world.init_resource::<Workflows>();
    world.init_resource::<RunWaiters>();
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.entity, gone.id));
    on(world, |world, closed: &TurnClosed| caller_ended(world, closed.turn));
    on(world, |world, event: &FiredTurnEnded| {
        if let Origin::Workflow { run, step } = event.origin {
            turn_ended(world, run, step, event.ended.clone());
        }
    });
    inherits(world, |world, event, _, inherited| {
        if let Event::WorkflowCompleted { run, .. } | Event::WorkflowFailed { run, .. } = event
            && let Some(entity) = world.resource::<Workflows>().run(*run)
            && let Some(run) = world.get::<WorkflowRun>(entity)
        {
            inherited.taint = inherited.taint.with(taint::tracked(world, run.taint));
        }
    });
}

/// Can a run go on?
pub(crate) fn has_work(world: &World) -> bool {
    let workflows = world.resource::<Workflows>();
    let is_ready = !workflows.ready.is_empty() || !workflows.undecided.is_empty() && judge::has_time(world);
    is_ready && world.resource::<Fires>().workflows_may() || !workflows.orphans.is_empty()
}

/// An agent leaves the world. Its turns have ended, which the runs hear as usual, and definitions name their agents
/// loosely: a step whose agent is not there when it begins fails, and its error mode says what follows.
pub(crate) const fn agent_removed(_: &mut World, _: Entity, _: AgentId) {}

#[cfg(test)]
mod tests;
