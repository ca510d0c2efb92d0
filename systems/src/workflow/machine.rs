//! The run of a workflow: from its input through its steps to its output.
//!
//! | run       | step      | what happens                              | step             | leaves behind                      |
//! |-----------|-----------|-------------------------------------------|------------------|------------------------------------|
//! | (none)    |           | asked for                                 | all Pending      | run record, its plan               |
//! | Pending   |           | the first step begins                     |                  | `workflow_started`                 |
//! | Running   | Pending   | its turn comes (spec 1, Workflow, `mode`) | Running          | turn, run record                   |
//! | Running   | Pending   | it is a collect                           | Completed        | its text                           |
//! | Running   | Pending   | its condition is told: it does not hold   | Skipped          | run record                         |
//! | Running   | Running   | the turn gave an answer                   | Completed        | its text, run record               |
//! | Running   | Running   | the same, in a loop that may go on        | Pending          | its text, run record               |
//! | Running   | Pending   | in a loop: its condition is told: it holds | Completed       | run record                         |
//! | Running   | Pending   | to tell its condition takes too long      | Failed           | run record                         |
//! | Running   | Running   | the turn failed, was stopped or is gone   | see below        | run record                         |
//! | Running   | Running   | its time is up                            | see below        | run record, the turn is stopped    |
//! | Running   | Pending   | its turn could not begin                  | see below        | run record                         |
//! | Running   | Retrying  | the pause is over                         | Running          | turn, run record                   |
//! | Running   |           | every step is settled                     |                  | Completed: output, reply, `workflow_completed` |
//! | Running   | Failed    | its neighbours are settled too            | rest Cancelled   | Failed: reply, `workflow_failed`   |
//! | any       |           | cancel; the definition or the caller goes | rest Cancelled   | Cancelled: turns stopped, reply, `workflow_failed` |
//! | any       | Running   | restart                                   | Running          | (its turn goes on, with its whole time again) |
//! | any       | other     | restart                                   | the same         | (a pause ends when it would have)  |
//!
//! Conditions are told one after the other, as many as a step of the world has time for (`judge.rs`).
//!
//! An attempt that failed: `retry` and attempts are left -> Retrying; `skip` -> Skipped (a loop that gave something ->
//! Completed with that); otherwise Failed. Steps of a fan_out group all come to their end before the run goes on or fails.
//! An attempt is fenced by its turn: the end of a turn that the step does not wait for any more is not heard.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::event::Event;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::session::Session;
use agentsvc_components::turn::Origin;
use agentsvc_components::workflow::{RunState, StepAgent, StepMode, StepState, WorkflowRun};
use agentsvc_components::{Refusal, RunId, TurnId};

use super::{Workflows, end, flow, judge, settle};
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::fires::Fires;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::turn::{Fired, Place, Said, begin_fired};

/// Moves the runs that can go on.
// &mut World: a step of a run begins turns.
pub(crate) fn advance(world: &mut World) {
    for (run, step, turn) in std::mem::take(&mut world.resource_mut::<Workflows>().orphans) {
        settle::lost(world, run, step, turn);
    }
    // Else runs that are ready all the time would leave none to those that wait.
    judge::judge_one(world);
    while world.resource::<Fires>().workflows_may()
        && let Some(run) = world.resource_mut::<Workflows>().ready.pop_first()
    {
        if let Some(entity) = world.resource::<Workflows>().run(run) {
            go_on(world, entity);
        }
    }
    judge::judge_waiting(world);
}

/// Goes through the steps of a run until one of them has to be waited for, or to its end.
pub(super) fn go_on(world: &mut World, entity: Entity) {
    start(world, entity);
    while let Some(run) = world.get::<WorkflowRun>(entity).filter(|run| run.state.is_open()) {
        let at = usize::from(run.at);
        if at >= run.steps.len() {
            return end::end(world, entity, RunState::Completed, None);
        }
        let group = flow::group(&run.steps, at);
        for step in group.clone() {
            step_on(world, entity, step);
        }
        let Some(run) = world.get::<WorkflowRun>(entity) else { return };
        if !run.progress[group.clone()].iter().all(|step| step.state.is_settled()) {
            return;
        }
        if let Some(failed) = group.clone().find(|step| run.progress[*step].state == StepState::Failed) {
            let why = run.progress[failed].error.as_deref().unwrap_or("it failed");
            let why = format!("step {:?} failed: {why}", run.steps[failed].name);
            return end::end(world, entity, RunState::Failed, Some(why));
        }
        change(world, entity, |run| run.at = group.end as u16);
    }
}

/// A run that is taken begins.
fn start(world: &mut World, entity: Entity) {
    let Some(run) = world.get::<WorkflowRun>(entity).filter(|run| run.state == RunState::Pending) else { return };
    let (workflow, name, by) = (run.workflow, run.name.to_string(), run.caller.map(|caller| caller.turn));
    change(world, entity, |run| run.state = RunState::Running);
    let run = id_of::<RunId>(world, entity);
    world.event(Event::WorkflowStarted { workflow, run, name, by });
}

/// Begins a step whose time has come.
fn step_on(world: &mut World, entity: Entity, step: usize) {
    let now = world.resource::<Now>().0;
    let Some(run) = world.get::<WorkflowRun>(entity) else { return };
    let (at, progress) = (&run.steps[step], &run.progress[step]);
    match progress.state {
        StepState::Pending if at.mode == StepMode::Collect => {
            let joined = flow::input(run, step);
            settle::give(world, entity, step, &joined);
        }
        StepState::Pending if judge::question(run, step).is_some() => {
            let waiting = (run.holder, id_of::<RunId>(world, entity));
            world.resource_mut::<Workflows>().undecided.insert(waiting);
        }
        StepState::Pending => attempt(world, entity, step),
        StepState::Retrying if progress.due.is_none_or(|due| due <= now) => attempt(world, entity, step),
        _ => {}
    }
}

/// Asks the agent of a step.
pub(super) fn attempt(world: &mut World, entity: Entity, step: usize) {
    let now = world.resource::<Now>().0;
    let Some(run) = world.get::<WorkflowRun>(entity) else { return };
    let timeout_ms = i64::from(run.steps[step].timeout_secs) * 1_000;
    let begun = begin(world, entity, step);
    change(world, entity, |run| {
        let progress = &mut run.progress[step];
        progress.attempts += 1;
        progress.started_at.get_or_insert(now);
    });
    match begun {
        Ok(turn) => {
            change(world, entity, |run| {
                let progress = &mut run.progress[step];
                (progress.state, progress.turn) = (StepState::Running, Some(turn));
            });
            settle::set_due(world, entity, step, Some(now.plus_ms(timeout_ms)));
        }
        Err(why) => settle::fault(world, entity, step, why),
    }
}

/// Begins the turn of a step.
fn begin(world: &mut World, entity: Entity, step: usize) -> Result<TurnId, String> {
    let run = world.get::<WorkflowRun>(entity).ok_or("the run no longer exists")?;
    let (text, depth, taint) = (flow::prompt(run, step)?, run.depth, run.taint);
    let origin = Origin::Workflow { run: id_of(world, entity), step: step as u16 };
    let agent = agent_of(world, run, step).map_err(|refusal| refusal.message)?;
    let place = place(world, agent, run.caller.is_some());
    let user = run.user.clone();
    let said = Said::new(world, text);
    let begun =
        begin_fired(world, Fired { agent, place, said, origin, depth, taint, began_in: None, user, profile: None });
    begun.map(|(_, taken)| taken.turn).map_err(|refusal| refusal.message)
}

/// Where a step of an agent runs: on its own, unless the manifest says that fired turns share the current session. Not even
/// then when a turn waits for the run and the session is busy, for that may be the turn's own.
fn place(world: &World, agent: Entity, is_awaited_by_turn: bool) -> Place {
    let Some(agent) = world.get::<Agent>(agent) else { return Place::Hidden };
    let is_busy = || world.get::<Session>(agent.current).is_some_and(|session| session.head.is_some());
    let is_persistent = agent.manifest.manifest.session_mode == Some(SessionMode::Persistent);
    if is_persistent && !(is_awaited_by_turn && is_busy()) { Place::Current } else { Place::Hidden }
}

fn agent_of(world: &World, run: &WorkflowRun, step: usize) -> Result<Entity, Refusal> {
    match &run.steps[step].agent {
        Some(StepAgent::Id(id)) => index::agent(world, *id),
        Some(StepAgent::Name(name)) => {
            crate::agent::shared_agent_named(world, name).ok_or_else(|| Refusal::not_found("agent", name))
        }
        None => Err(Refusal::not_found("agent", "of the step")),
    }
}

/// Changes a run, and marks it.
pub(super) fn change(world: &mut World, entity: Entity, change: impl FnOnce(&mut WorkflowRun)) {
    if let Some(mut run) = world.get_mut::<WorkflowRun>(entity) {
        change(&mut run);
        world.mark(entity);
    }
}
