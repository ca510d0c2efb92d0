//! What must hold of workflows and their runs.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::RunId;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{Origin, Turn};
use agentsvc_components::workflow::{StepState, Workflow, WorkflowRun};

use super::show::{Definitions, QUOTA};
use super::{Workflows, flow};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, state};
use crate::kernel::index;
use crate::kernel::share::Shares;

/// Says which index is wrong, and which step would never end ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Workflow>(world, faults, |_, _, _, _| {});
    QUOTA.check(world.resource::<Definitions>().used, faults);
    let mut runs = world.query::<(Entity, &RunId, &WorkflowRun)>();
    let world = &*world;
    let (mut scan, workflows) = (Workflows::default(), world.resource::<Workflows>());
    let mut known = BTreeSet::new();
    for (entity, id, run) in runs.iter(world) {
        scan.insert_run(*id, entity, run);
        known.insert((*id, entity));
        faults.that(state::<Workflow>(world, run.workflow).is_some(), || {
            format!("run {id}: the workflow does not exist")
        });
        for (step, progress) in (0..).zip(&run.progress) {
            scan.due.extend(progress.due.map(|due| (due, *id, step)));
            if let (StepState::Running, Some(turn)) = (progress.state, progress.turn) {
                let of_step = index::turn(world, turn).and_then(|turn| world.get::<Turn>(turn));
                let is_its = of_step.is_some_and(|turn| turn.origin == Origin::Workflow { run: *id, step });
                faults.that(is_its, || format!("run {id}: step {step} waits for a turn that is not open"));
            }
        }
        let is_moving = !run.state.is_open()
            || workflows.ready.contains(id)
            || workflows.undecided.contains(&(run.holder, *id))
            || run.progress.iter().any(is_under_way);
        faults.that(is_moving, || format!("run {id}: it is {:?}, and none of its steps is running", run.state));
    }
    faults.same("runs", &workflows.runs.iter().map(|(id, run)| (*id, run.entity)).collect(), &known);
    faults.same("runs by workflow", &workflows.runs_of, &scan.runs_of);
    faults.same("ended runs", &workflows.ended, &scan.ended);
    faults.same("ended runs by workflow", &workflows.ended_of, &scan.ended_of);
    faults.same("steps that are due", &workflows.due, &scan.due);
    faults.same("ended runs by holders", &workflows.kept, &scan.kept);
    faults.same("bytes of ended runs", &workflows.kept_bytes, &scan.kept_bytes);
    let (mut open_bytes, mut shares) = (0, Shares::default());
    for (_, id, run) in runs.iter(world).filter(|(.., run)| run.state.is_open()) {
        let Some(known) = workflows.runs.get(id) else { continue };
        // What it may become is counted before it does.
        faults.that(known.bytes >= flow::bytes(run), || {
            format!("run {id}: it takes {} bytes, {} counted", flow::bytes(run), known.bytes)
        });
        shares.add(run.holder, 1, known.bytes);
        open_bytes += known.bytes;
    }
    faults.same("bytes of open runs", &workflows.open_bytes, &open_bytes);
    faults.same("open runs by holders", &workflows.shares, &shares);
    faults.that(workflows.open_bytes <= limit::WORKFLOW_RUNS_OPEN_BYTES_MAX, || {
        format!("open runs take {} bytes", workflows.open_bytes)
    });
}

/// Will this step be heard of?
const fn is_under_way(step: &agentsvc_components::workflow::StepRun) -> bool {
    matches!(step.state, StepState::Running | StepState::Retrying)
}
