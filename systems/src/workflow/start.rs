//! A run begins, asked for by a person or by the tool call of a turn.

use crate::workflow::audit_kinds;
use crate::workflow::error_codes;
use agentsvc_components::turn::error_codes as turn_codes;
use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::turn::{Origin, PendingState, Turn};
use agentsvc_components::workflow::record::RunPlanRecord;
use agentsvc_components::workflow::{Caller, RunState, StepRun, Workflow, WorkflowRun};
use agentsvc_components::{Refusal, RefusalKind, RunId, TurnId, WorkflowId};
use serde_json::json;

use super::end::RunEnd;
use super::reach::pinned;
use super::{Definitions, RunWaiters, Workflows, flow, rows};
use crate::agent::acting_holder;
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::find;
use crate::kernel::id_generator::mint;
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::taint;
use crate::turn::is_going;

/// Fired turns, one begun by the other, after which a turn may begin no run. A run that begins itself anew through
/// messages nobody waits for ends here.
const TURNS_DEEP_MAX: u8 = 16;

/// The workflow that is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkflowChoice {
    /// The one of this id.
    Id(WorkflowId),
    /// The one of this id or name.
    Named(String),
}

/// Begins a run and waits only until that is safe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartRun {
    /// Of which workflow.
    pub workflow: WorkflowId,
    /// What it is given.
    pub input: String,
}

command! {
    write "start_run" StartRun => RunId, Root, |it, world|
        Answer::stored(start(world, &WorkflowChoice::Id(it.workflow), it.input, None))
}

/// Begins a run and waits for its end. A tool call is answered by one run, however often it asks: after a crash it
/// finds the one that it began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunWorkflow {
    /// Of which workflow.
    pub workflow: WorkflowChoice,
    /// What it is given.
    pub input: String,
    /// The tool call that asks: its turn's attempt and its log row.
    pub caller: Option<(Attempt, u32)>,
}

command! {
    write "run_workflow" RunWorkflow => RunEnd, Root, |it, world| {
        let id = match find_or_start(world, it) {
            Ok(id) => id,
            Err(refusal) => return Answer::Now(Err(refusal)),
        };
        let found = world.resource::<Workflows>().run(id).and_then(|entity| world.get::<WorkflowRun>(entity));
        if let Some(end) = found.and_then(|run| RunEnd::of(id, run)) {
            return Answer::Stored(end);
        }
        let waiting = world.resource_mut::<RunWaiters>().0.get().get(&id).map_or(0, Vec::len);
        if waiting >= limit::WORKFLOW_WAITERS_MAX {
            return Answer::Now(Err(Refusal::new(
                RefusalKind::TooMany,
                "too many requests are waiting for this run; \
                try again later",
            )));
        }
        Answer::Later(Box::new(move |world, slot| {
            world.resource_mut::<RunWaiters>().0.get().entry(id).or_default().push(slot);
        }))
    }
}

fn find_or_start(world: &mut World, command: RunWorkflow) -> Result<RunId, Refusal> {
    let RunWorkflow { workflow, input, caller } = command;
    let Some((from, index)) = caller else { return start(world, &workflow, input, None) };
    let turn = waiting_turn(world, from, index)?;
    let caller = Caller { turn: TurnId(from.job.0), index };
    match world.resource::<Workflows>().callers.get(&caller) {
        Some(run) => Ok(*run),
        None => start(world, &workflow, input, Some((caller, turn))),
    }
}

/// The turn of `from`, while its call at `index` still waits for a result.
fn waiting_turn(world: &World, from: Attempt, index: u32) -> Result<Entity, Refusal> {
    let gone = || Refusal::conflict("the calling turn has ended").with_code(turn_codes::TURN_ENDED);
    let entity = index::turn(world, TurnId(from.job.0)).ok_or_else(gone)?;
    let turn =
        world.get::<Turn>(entity).filter(|turn| turn.attempt == from.number && !turn.cancelled).ok_or_else(gone)?;
    if is_going(world, entity) {
        return Err(gone());
    }
    let waits = turn.pending.iter().any(|pending| pending.index == index && pending.state == PendingState::Out);
    if waits { Ok(entity) } else { Err(gone()) }
}

/// Takes a run in; it begins in this step.
fn start(
    world: &mut World,
    choice: &WorkflowChoice,
    input: String,
    caller: Option<(Caller, Entity)>,
) -> Result<RunId, Refusal> {
    let (workflow, entity) = chosen(world, choice)?;
    taint::check_lasting(world)?;
    let most = limit::WORKFLOW_INPUT_BYTES_MAX;
    if input.len() > most {
        return Err(Refusal::bad_field("input", format!("input: longer than {most} bytes")));
    }
    let (above, depth) = match caller {
        Some((_, turn)) => above(world, workflow, turn)?,
        None => (Vec::new(), 1),
    };
    let now = world.resource::<Now>().0;
    let definition = world.get::<Workflow>(entity).ok_or_else(|| Refusal::not_found("workflow", workflow))?;
    let (steps, input): (_, Arc<str>) = (pinned(world, definition.steps.clone())?, input.into());
    let run = WorkflowRun {
        workflow,
        name: definition.name.clone(),
        progress: vec![StepRun::default(); steps.len()],
        outputs: vec![None; steps.len()],
        steps: steps.clone(),
        input: input.clone(),
        caller: caller.map(|(caller, _)| caller),
        above,
        depth,
        state: RunState::Pending,
        at: 0,
        started_at: now,
        ended_at: None,
        error: None,
        given: None,
        judged: 0,
        output: None,
        taint: taint::acting(world),
        user: taint::acting_user(world),
        holder: acting_holder(world),
    };
    check_room(world, &run)?;
    let id: RunId = mint(world, Slot::ROOT);
    world.op(rows::put_plan(id, &RunPlanRecord { steps, input }));
    insert(world, id, run);
    world.audit(audit_kinds::WORKFLOW_RUN_STARTED, None, json!({ "run": id, "workflow": workflow }));
    Ok(id)
}

/// Puts a run into the world; one that is not at its end goes on.
pub(super) fn insert(world: &mut World, id: RunId, run: WorkflowRun) -> Entity {
    let is_open = run.state.is_open();
    let entity = world.spawn((id, run.clone())).id();
    let mut workflows = world.resource_mut::<Workflows>();
    workflows.insert_run(id, entity, &run);
    if is_open {
        workflows.ready.insert(id);
        world.mark(entity);
    }
    entity
}

/// The workflow that is meant; of several with one name none.
fn chosen(world: &World, choice: &WorkflowChoice) -> Result<(WorkflowId, Entity), Refusal> {
    let by_id = |id: WorkflowId| find::<Workflow>(world, id).map(|entity| (id, entity));
    let name = match choice {
        WorkflowChoice::Id(id) => return by_id(*id),
        WorkflowChoice::Named(text) => text,
    };
    if let Ok(id) = name.parse::<WorkflowId>() {
        return by_id(id);
    }
    let is_known = |id: &WorkflowId| find::<Workflow>(world, *id).is_ok();
    let mut found = world.resource::<Definitions>().named(name).filter(is_known);
    match (found.next(), found.next()) {
        (Some(id), None) => by_id(id),
        (Some(one), Some(other)) => {
            let text = format!("several workflows are named {name:?}, such as {one} and {other}; use the id");
            Err(Refusal::conflict(text).with_code(error_codes::WORKFLOW_AMBIGUOUS))
        }
        (None, _) => Err(Refusal::not_found("workflow", name)),
    }
}

/// The workflows in whose steps `turn` runs, itself or through turns that sent messages to others, and how deep its run
/// will be. Refused when `workflow` is among them, or when they are too many.
fn above(world: &World, workflow: WorkflowId, turn: Entity) -> Result<(Vec<WorkflowId>, u8), Refusal> {
    let depth = world.get::<Turn>(turn).map_or(0, |turn| turn.depth).saturating_add(1);
    let mut above = Vec::new();
    let mut next = Some(turn);
    // A chain of messages is bounded where messages are sent.
    for _ in 0..=limit::AGENT_CHAIN_MAX {
        let Some(turn) = next.and_then(|turn| world.get::<Turn>(turn)) else { break };
        if let Origin::Workflow { run, .. } = turn.origin {
            let run = world.resource::<Workflows>().run(run).and_then(|entity| world.get::<WorkflowRun>(entity));
            above = run.map(|run| run.above.iter().copied().chain([run.workflow]).collect()).unwrap_or_default();
            break;
        }
        next = turn.link.as_deref().and_then(|link| index::turn(world, link.turn));
    }
    if above.contains(&workflow) {
        let text = "a workflow cannot be run within itself";
        return Err(Refusal::conflict(text).with_code(error_codes::WORKFLOW_CYCLE));
    }
    if above.len() >= limit::WORKFLOW_DEPTH_MAX || depth > TURNS_DEEP_MAX {
        let text = format!("the limit of {} nested workflow runs is reached", above.len());
        return Err(Refusal::conflict(text).with_code(error_codes::WORKFLOW_TOO_DEEP));
    }
    Ok((above, depth))
}

/// Refuses a run when too many are under way, or those under way take too much: of all, or of whoever begins it.
fn check_room(world: &World, run: &WorkflowRun) -> Result<(), Refusal> {
    let (workflows, bytes) = (world.resource::<Workflows>(), flow::bytes(run));
    if workflows.has_room(run.holder, 1, bytes) {
        return Ok(());
    }
    let text = if workflows.has_room(None, 1, bytes) {
        "too many workflow runs of this user or family of agents are open; try again later"
    } else {
        "too many workflow runs are open; try again later"
    };
    let refusal = Refusal::of(error_codes::WORKFLOW_RUNS_FULL, text);
    Err(Refusal { retry_after_secs: Some(5), ..refusal })
}
