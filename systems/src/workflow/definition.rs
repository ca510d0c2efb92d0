//! A definition as it comes in, and what must hold before it is kept. Every refusal names the key, such as
//! `steps[2].condition`.

use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{ErrorMode, Step, StepAgent, StepMode};
use agentsvc_components::{AgentId, Refusal};
use serde::{Deserialize, Serialize};

use super::condition::{Condition, is_keyword, is_name};

/// The time of an attempt unless the step says otherwise (spec 1, Limits).
const TIMEOUT_SECS: u64 = 120;
/// The attempts after the first one unless the step says otherwise (spec 1, Limits).
const RETRIES: u64 = 3;
/// The iterations of a loop unless the step says otherwise (spec 1, Limits).
const ITERATIONS: u64 = 5;
/// The prompt of a step that has none.
const PROMPT: &str = "{{input}}";

/// A workflow to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewWorkflow {
    /// Its name; not empty.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its steps; one at least.
    pub steps: Vec<NewStep>,
}

/// A step to keep (spec 1, Workflow, step object). What is left out gets its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewStep {
    /// Its name; `step-1` and so on when left out.
    pub name: Option<String>,
    /// Who carries it out; this or `agent_name`. The agent need not be there yet.
    pub agent_id: Option<AgentId>,
    /// Who carries it out, by name.
    pub agent_name: Option<String>,
    /// The message, a template; `{{input}}` when left out.
    pub prompt: Option<String>,
    /// How it is carried out.
    pub mode: StepMode,
    /// Seconds of one attempt; 120 when left out.
    pub timeout_secs: Option<u64>,
    /// What its failure does.
    pub error_mode: ErrorMode,
    /// Attempts after the first one; 3 when left out.
    pub max_retries: Option<u64>,
    /// The variable that stores its output.
    pub output_var: Option<String>,
    /// When it runs; for the mode `conditional`.
    pub condition: Option<String>,
    /// How often it runs at most; 5 when left out.
    pub max_iterations: Option<u64>,
    /// When it has run enough; for the mode `loop`.
    pub until: Option<String>,
}

/// Checks a workflow's name.
pub(super) fn name(name: &str) -> Result<Box<str>, Refusal> {
    text("name", name, limit::NAME_BYTES_MAX)
}

/// Checks a workflow's description.
pub(super) fn description(text: &str) -> Result<Box<str>, Refusal> {
    let most = limit::WORKFLOW_DESCRIPTION_BYTES_MAX;
    if text.len() > most {
        return Err(bad("description", format!("longer than {most} bytes")));
    }
    Ok(text.into())
}

/// Checks the steps of a workflow.
pub(super) fn steps(steps: Vec<NewStep>) -> Result<Arc<[Step]>, Refusal> {
    if steps.is_empty() {
        return Err(bad("steps", "a workflow needs at least one step"));
    }
    if steps.len() > limit::WORKFLOW_STEPS_MAX {
        return Err(bad("steps", format!("more than {}", limit::WORKFLOW_STEPS_MAX)));
    }
    let mut checked: Vec<Step> = Vec::with_capacity(steps.len());
    let (mut side_by_side, mut patterns) = (0, limit::WORKFLOW_PATTERNS_SIZE_MAX);
    for (at, new) in steps.into_iter().enumerate() {
        side_by_side = if new.mode == StepMode::FanOut { side_by_side + 1 } else { 0 };
        if side_by_side > limit::WORKFLOW_FAN_OUT_MAX {
            let why = format!("more than {} fan_out steps in a row", limit::WORKFLOW_FAN_OUT_MAX);
            return Err(bad(&format!("steps[{at}].mode"), why));
        }
        let next = step(at, new, &checked, &mut patterns)?;
        checked.push(next);
    }
    if checked.iter().map(|step| step.prompt.len()).sum::<usize>() > limit::WORKFLOW_PROMPTS_BYTES_MAX {
        let why = format!("the prompts are longer than {} bytes in total", limit::WORKFLOW_PROMPTS_BYTES_MAX);
        return Err(bad("steps", why));
    }
    Ok(checked.into())
}

/// A refusal of one key.
fn bad(field: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::bad_field(field, format!("{field}: {why}"))
}

fn text(field: &str, text: &str, most: usize) -> Result<Box<str>, Refusal> {
    if text.trim().is_empty() {
        return Err(bad(field, "must not be empty"));
    }
    if text.len() > most {
        return Err(bad(field, format!("longer than {most} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(bad(field, "must not contain control characters"));
    }
    Ok(text.into())
}

/// Checks the step at `at`, behind those that are checked already; its regular expressions have such size at most, all together.
fn step(at: usize, new: NewStep, before: &[Step], patterns: &mut usize) -> Result<Step, Refusal> {
    let field = |key: &str| format!("steps[{at}].{key}");
    let name = match &new.name {
        Some(name) => text(&field("name"), name, limit::NAME_BYTES_MAX)?,
        None => format!("step-{}", at + 1).into(),
    };
    let output_var = new.output_var.as_deref().map(|name| variable(&field("output_var"), name)).transpose()?;
    let stored: Vec<&str> = before.iter().filter_map(|step| step.output_var.as_deref()).collect();
    let condition = condition(&field("condition"), new.condition.as_deref(), &stored, patterns)?;
    if new.mode == StepMode::Conditional && condition.is_none() {
        return Err(bad(&field("condition"), "missing; a conditional step needs a condition"));
    }
    // A loop's own variable holds what its last iteration gave.
    let stored: Vec<&str> = stored.into_iter().chain(output_var.as_deref()).collect();
    let until = self::condition(&field("until"), new.until.as_deref(), &stored, patterns)?;
    Ok(Step {
        name,
        agent: agent(at, &new)?,
        prompt: prompt(&field("prompt"), &new)?,
        mode: new.mode,
        timeout_secs: number(
            &field("timeout_secs"),
            new.timeout_secs,
            TIMEOUT_SECS,
            1,
            limit::WORKFLOW_TIMEOUT_SECS_MAX,
        )?,
        error_mode: new.error_mode,
        max_retries: number(&field("max_retries"), new.max_retries, RETRIES, 0, limit::WORKFLOW_RETRIES_MAX)?,
        max_iterations: number(
            &field("max_iterations"),
            new.max_iterations,
            ITERATIONS,
            1,
            limit::WORKFLOW_ITERATIONS_MAX,
        )?,
        output_var,
        condition,
        until,
    })
}

/// Who carries the step out; needed unless it only collects.
fn agent(at: usize, new: &NewStep) -> Result<Option<StepAgent>, Refusal> {
    match (new.agent_id, &new.agent_name) {
        (Some(_), Some(_)) => Err(bad(&format!("steps[{at}].agent_name"), "give agent_id or agent_name, not both")),
        (Some(id), None) => Ok(Some(StepAgent::Id(id))),
        (None, Some(name)) => text(&format!("steps[{at}].agent_name"), name, limit::NAME_BYTES_MAX)
            .map(|name| Some(StepAgent::Name(name))),
        (None, None) if new.mode == StepMode::Collect => Ok(None),
        (None, None) => Err(bad(&format!("steps[{at}].agent_id"), "missing; give agent_id or agent_name")),
    }
}

fn prompt(field: &str, new: &NewStep) -> Result<Box<str>, Refusal> {
    let most = limit::WORKFLOW_PROMPT_BYTES_MAX;
    match new.prompt.as_deref() {
        None => Ok(PROMPT.into()),
        Some(prompt) if prompt.len() > most => Err(bad(field, format!("longer than {most} bytes"))),
        Some(prompt) if prompt.trim().is_empty() && new.mode != StepMode::Collect => {
            Err(bad(field, "must not be empty"))
        }
        Some(prompt) => Ok(prompt.into()),
    }
}

fn variable(field: &str, name: &str) -> Result<Box<str>, Refusal> {
    let most = limit::WORKFLOW_VARIABLE_BYTES_MAX;
    if name.len() > most {
        return Err(bad(field, format!("longer than {most} bytes")));
    }
    if !is_name(name) {
        return Err(bad(field, "must begin with a letter or _, followed by letters, digits, _, - and ."));
    }
    if is_keyword(name) {
        return Err(bad(field, format!("{name:?} is a reserved word; choose another name")));
    }
    Ok(name.into())
}

fn condition(
    field: &str,
    text: Option<&str>,
    stored: &[&str],
    patterns: &mut usize,
) -> Result<Option<Box<str>>, Refusal> {
    let most = limit::WORKFLOW_CONDITION_BYTES_MAX;
    let Some(text) = text else { return Ok(None) };
    if text.len() > most {
        return Err(bad(field, format!("longer than {most} bytes")));
    }
    let parsed = Condition::parse(text, &|name| stored.contains(&name)).map_err(|error| bad(field, error))?;
    let left = patterns.checked_sub(parsed.patterns_size());
    *patterns = left.ok_or_else(|| bad(field, "the regular expressions of the workflow are too large together"))?;
    Ok(Some(text.into()))
}

fn number(field: &str, given: Option<u64>, otherwise: u64, least: u32, most: u32) -> Result<u32, Refusal> {
    let value = u32::try_from(given.unwrap_or(otherwise)).ok().filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| bad(field, format!("must be from {least} to {most}")))
}
