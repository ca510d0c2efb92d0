//! Workflows in virtual time: definitions, modes, errors, nested runs, and kills at every committed step.

mod change;
mod crash;
mod definition;
mod end;
mod errors;
mod judge;
mod modes;
mod nested;
mod shares;

use agentsvc_components::session::message::text_of;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::workflow::{ErrorMode, RunState, StepMode, StepState, WorkflowRun};
use agentsvc_components::{Refusal, WorkflowId};

use super::*;
use crate::testing::{Asked, TestWorld};

/// A step of the agent `a`.
fn step(prompt: &str) -> NewStep {
    NewStep { agent_name: Some("a".into()), prompt: Some(prompt.into()), ..NewStep::default() }
}

fn fan_out(prompt: &str) -> NewStep {
    NewStep { mode: StepMode::FanOut, ..step(prompt) }
}

fn collect() -> NewStep {
    NewStep { mode: StepMode::Collect, ..NewStep::default() }
}

fn when(condition: &str, prompt: &str) -> NewStep {
    NewStep { mode: StepMode::Conditional, condition: Some(condition.into()), ..step(prompt) }
}

fn repeat(until: Option<&str>, prompt: &str) -> NewStep {
    NewStep { mode: StepMode::Loop, until: until.map(Into::into), ..step(prompt) }
}

fn named(name: &str, step: NewStep) -> NewStep {
    NewStep { name: Some(name.into()), ..step }
}

fn stored(variable: &str, step: NewStep) -> NewStep {
    NewStep { output_var: Some(variable.into()), ..step }
}

fn retried(step: NewStep) -> NewStep {
    NewStep { error_mode: ErrorMode::Retry, ..step }
}

fn skipped(step: NewStep) -> NewStep {
    NewStep { error_mode: ErrorMode::Skip, ..step }
}

/// A world with the agent `a`.
fn world() -> TestWorld {
    let mut world = TestWorld::new();
    world.spawn("a");
    world
}

fn create(world: &mut TestWorld, steps: Vec<NewStep>) -> Result<WorkflowView, Refusal> {
    world.ask(CreateWorkflow(NewWorkflow { name: "w".into(), description: "what for".into(), steps }))
}

fn make(world: &mut TestWorld, steps: Vec<NewStep>) -> WorkflowId {
    create(world, steps).unwrap().id
}

/// Begins a run that is waited for.
fn begin(world: &mut TestWorld, workflow: WorkflowId, input: &str) -> Asked<RunEnd> {
    let workflow = WorkflowChoice::Id(workflow);
    let asked = world.begin(RunWorkflow { workflow, input: input.into(), caller: None });
    world.step();
    asked
}

/// What the model of a call is asked.
fn heard(world: &TestWorld, call: &ModelCall) -> String {
    world.rows(call.log).last().map(|row| text_of(&row.blocks)).unwrap_or_default()
}

/// Answers the next model call; gives what it was asked.
fn reply(world: &mut TestWorld, answer: &str) -> String {
    let call = world.next_call();
    let heard = heard(world, &call);
    world.answer(call.attempt, answer);
    heard
}

/// The model repeats what it is asked.
fn echo(world: &mut TestWorld) -> String {
    let call = world.next_call();
    let heard = heard(world, &call);
    world.answer(call.attempt, &format!("<{heard}>"));
    heard
}

/// The next model call fails; gives what it was asked.
fn fail(world: &mut TestWorld) -> String {
    let call = world.next_call();
    let failure =
        ModelFailure { code: FailureCode::ProviderTimeout, message: "no answer in time".into(), spent: Vec::new() };
    world.outcome(ModelOutcome(call.attempt, ModelEnd::Failed(failure)));
    heard(world, &call)
}

/// Time passes, and the beat sees it.
fn beat(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

/// The newest run of a workflow.
fn newest(world: &mut TestWorld, workflow: WorkflowId) -> WorkflowRun {
    let page = world.ask(ListRuns { workflow, after: None, limit: 1_000 }).unwrap();
    world.ask(GetRun(page.items.last().unwrap().id)).unwrap().run
}

fn states(run: &WorkflowRun) -> Vec<StepState> {
    run.progress.iter().map(|step| step.state).collect()
}

/// How a run that was waited for ended.
#[track_caller]
fn ended(asked: &Asked<RunEnd>) -> (RunState, String) {
    let end = asked.take().expect("the run has ended").unwrap();
    let text = end.error.map_or_else(|| end.output.to_string(), Into::into);
    (end.state, text)
}

#[track_caller]
fn completed(asked: &Asked<RunEnd>) -> String {
    let (state, text) = ended(asked);
    assert_eq!(state, RunState::Completed, "{text}");
    text
}

fn kinds(world: &TestWorld) -> Vec<&'static str> {
    let kinds = world.events.iter().map(|event| event.kind().as_str());
    kinds.filter(|kind| kind.starts_with("workflow_")).collect()
}
