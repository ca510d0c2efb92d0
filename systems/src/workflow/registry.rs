//! Workflows as registries have them: TOML with `parameters`, and steps with `prompt_template` and `depends_on`. They become
//! workflows of this daemon:
//!
//! | there | here |
//! | --- | --- |
//! | steps that depend on the same steps | `fan_out` steps in a row, with a `collect` step between two such rows |
//! | `{{<step>}}` | the variable of that step |
//! | `{{<parameter>}}` | its value, if one is given; else `{{run_input.<parameter>}}`, with the default |
//! | no agents | the agent that is given for all |

use std::collections::{BTreeMap, BTreeSet, HashMap};

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::StepMode;
use agentsvc_components::{AgentId, Refusal};
use serde::Deserialize;

use super::{NewStep, NewWorkflow, template};
use crate::manifest;

/// What a default says in place of the whole input of a run.
pub(super) const WHOLE: &str = "run_input";

/// A workflow of a registry, and what is said of it here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryWorkflow {
    /// Its text.
    pub toml: String,
    /// Who carries out steps that name nobody.
    pub agent_id: Option<AgentId>,
    /// The same by name.
    pub agent_name: Option<String>,
    /// Values of its parameters that hold for every run.
    pub values: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Text {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    default: Option<toml::Value>,
}

#[derive(Deserialize)]
struct Step {
    name: String,
    #[serde(default)]
    prompt_template: String,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    agent_name: Option<String>,
    #[serde(default)]
    timeout_secs: Option<u64>,
}

fn bad(field: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::bad_field(field, format!("{field}: {why}"))
}

/// The field of all that is within the text.
const FIELD: &str = "workflow_toml";

/// Converts a workflow of a registry.
///
/// # Errors
/// What cannot be read, or does not fit together, with its place.
pub fn converted(given: RegistryWorkflow) -> Result<NewWorkflow, Refusal> {
    let most = limit::WORKFLOW_PROMPTS_BYTES_MAX;
    if given.toml.len() > most {
        return Err(bad(FIELD, format!("longer than {most} bytes")));
    }
    manifest::check_depth(&given.toml).map_err(|error| bad(FIELD, error))?;
    let text: Text = toml::from_str(&given.toml).map_err(|error| bad(FIELD, error.message().replace('\n', ", ")))?;
    if text.steps.is_empty() || text.steps.len() > limit::WORKFLOW_STEPS_MAX {
        return Err(bad(FIELD, format!("steps must be 1 to {}", limit::WORKFLOW_STEPS_MAX)));
    }
    let names: HashMap<&str, usize> = text.steps.iter().enumerate().map(|(at, step)| (&*step.name, at)).collect();
    if names.len() < text.steps.len() {
        return Err(bad(FIELD, "two steps have the same name"));
    }
    let known: BTreeSet<&str> = text.parameters.iter().map(|parameter| &*parameter.name).collect();
    if let Some(name) = given.values.keys().find(|name| !known.contains(&***name)) {
        return Err(bad("values", format!("the workflow has no parameter {name}")));
    }
    let inputs = inputs(&text.parameters, &given.values);
    let (mut steps, mut left) = (Vec::new(), most);
    for (at, level) in levels(&text.steps, &names)?.into_iter().enumerate() {
        for (chunk, side_by_side) in level.chunks(limit::WORKFLOW_FAN_OUT_MAX).enumerate() {
            let is_wide = side_by_side.len() > 1;
            if is_wide && steps.last().is_some_and(|step: &NewStep| step.mode == StepMode::FanOut) {
                let name = Some(format!("join-{at}-{chunk}"));
                steps.push(NewStep { name, mode: StepMode::Collect, ..NewStep::default() });
            }
            let mode = if is_wide { StepMode::FanOut } else { StepMode::Sequential };
            for at in side_by_side {
                steps.push(step(&text.steps[*at], mode, (&inputs, &mut left), &given)?);
            }
        }
    }
    Ok(NewWorkflow { name: text.name, description: text.description, steps })
}

/// A step of this daemon. Its prompt takes its bytes from those that are `left` for all steps.
fn step(
    step: &Step,
    mode: StepMode,
    (inputs, left): (&BTreeMap<&str, String>, &mut usize),
    given: &RegistryWorkflow,
) -> Result<NewStep, Refusal> {
    let filled = template::render(&step.prompt_template, *left, |name| inputs.get(name).map(|text| &**text));
    let prompt = filled.map_err(|template::TooLong| {
        let most = limit::WORKFLOW_PROMPTS_BYTES_MAX;
        bad(FIELD, format!("with the parameters filled in, the prompts are longer than {most} bytes in total"))
    })?;
    *left -= prompt.len();
    let (agent_id, agent_name) = match &step.agent_name {
        Some(own) => (None, Some(own.clone())),
        None => (given.agent_id, given.agent_name.clone()),
    };
    Ok(NewStep {
        name: Some(step.name.clone()),
        agent_id,
        agent_name,
        prompt: Some(prompt),
        mode,
        timeout_secs: step.timeout_secs,
        output_var: Some(step.name.clone()),
        ..NewStep::default()
    })
}

/// What stands for each parameter in prompts. A value that is given stands there as it is.
fn inputs<'t>(parameters: &'t [Parameter], values: &BTreeMap<String, String>) -> BTreeMap<&'t str, String> {
    let is_open = |parameter: &&Parameter| parameter.required && !values.contains_key(&parameter.name);
    let is_only = parameters.iter().filter(is_open).count() == 1;
    let of = |parameter: &'t Parameter| {
        let name = &*parameter.name;
        let default = parameter.default.as_ref().map(text_of);
        let stands = match (values.get(name), default) {
            (Some(value), _) => value.clone(),
            (None, _) if parameter.required && is_only => format!("{{{{run_input.{name}|{WHOLE}}}}}"),
            (None, _) if parameter.required => format!("{{{{run_input.{name}}}}}"),
            // Braces and lines cannot stand within a placeholder.
            (None, Some(default)) if default.contains(['{', '}', '|']) || default.trim() != default => default,
            (None, default) => format!("{{{{run_input.{name}|{}}}}}", default.unwrap_or_default()),
        };
        (name, stands)
    };
    parameters.iter().map(of).collect()
}

/// A default as text.
fn text_of(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The steps by how many must be done before each. Without any `depends_on`, one follows the other.
fn levels(steps: &[Step], names: &HashMap<&str, usize>) -> Result<Vec<Vec<usize>>, Refusal> {
    if steps.iter().all(|step| step.depends_on.is_empty()) {
        return Ok((0..steps.len()).map(|at| vec![at]).collect());
    }
    let mut needs = Vec::with_capacity(steps.len());
    for step in steps {
        let find = |name: &String| {
            let missing = || bad(FIELD, format!("step {:?} depends on {name:?}, which does not exist", step.name));
            names.get(&**name).copied().ok_or_else(missing)
        };
        needs.push(step.depends_on.iter().map(find).collect::<Result<Vec<usize>, Refusal>>()?);
    }
    let (mut levels, mut done) = (Vec::new(), vec![false; steps.len()]);
    while done.iter().any(|is_done| !is_done) {
        let is_ready = |at: &usize| !done[*at] && needs[*at].iter().all(|need| done[*need]);
        let level: Vec<usize> = (0..steps.len()).filter(is_ready).collect();
        if level.is_empty() {
            return Err(bad(FIELD, "steps depend on each other in a circle"));
        }
        level.iter().for_each(|at| done[*at] = true);
        levels.push(level);
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEW: &str = r#"
id = "review"
name = "Review"
description = "Reviews"
category = "engineering"
[i18n.de]
name = "Durchsicht"
[[parameters]]
name = "code"
param_type = "string"
required = true
[[parameters]]
name = "language"
required = false
default = "auto-detect"
[[parameters]]
name = "context"
required = false
default = ""
[[steps]]
name = "style"
prompt_template = "Style of {{ code }} in {{language}}. {{context}}"
[[steps]]
name = "security"
prompt_template = "Security of {{code}}"
[[steps]]
name = "all"
prompt_template = "{{style}} and {{security}}"
depends_on = ["style", "security"]
[[steps]]
name = "short"
prompt_template = "Shorter: {{all}}"
depends_on = ["all"]
"#;

    fn given(toml: &str) -> RegistryWorkflow {
        RegistryWorkflow { toml: toml.to_owned(), agent_name: Some("ann".to_owned()), ..RegistryWorkflow::default() }
    }

    fn refusal(given: RegistryWorkflow) -> String {
        converted(given).unwrap_err().to_string()
    }

    #[test]
    fn steps_without_an_order_go_side_by_side_and_the_others_after_them() {
        let NewWorkflow { name, description, steps } = converted(given(REVIEW)).unwrap();
        assert_eq!((&*name, &*description), ("Review", "Reviews"));
        let modes: Vec<_> = steps.iter().map(|step| (step.name.as_deref().unwrap(), step.mode)).collect();
        let (fan_out, sequential) = (StepMode::FanOut, StepMode::Sequential);
        assert_eq!(modes, [("style", fan_out), ("security", fan_out), ("all", sequential), ("short", sequential)]);
        assert!(steps.iter().all(|step| step.output_var == step.name && step.agent_name.as_deref() == Some("ann")));
        let expected =
            "Style of {{run_input.code|run_input}} in {{run_input.language|auto-detect}}. {{run_input.context|}}";
        assert_eq!(steps[0].prompt.as_deref(), Some(expected));
        assert_eq!(steps[2].prompt.as_deref(), Some("{{style}} and {{security}}"));
        assert!(super::super::definition::steps(steps).is_ok());
    }

    #[test]
    fn given_values_stand_in_the_prompts() {
        let values = BTreeMap::from([("code".to_owned(), "{{style}}".to_owned())]);
        let steps = converted(RegistryWorkflow { values, ..given(REVIEW) }).unwrap().steps;
        assert_eq!(steps[1].prompt.as_deref(), Some("Security of {{style}}"));
        let unknown = BTreeMap::from([("other".to_owned(), String::new())]);
        assert!(refusal(RegistryWorkflow { values: unknown, ..given(REVIEW) }).contains("no parameter other"));
        // Two that must be given have names in the input.
        let two = REVIEW.replace("name = \"language\"\nrequired = false", "name = \"language\"\nrequired = true");
        let steps = converted(given(&two)).unwrap().steps;
        assert!(steps[0].prompt.as_deref().unwrap().contains("{{run_input.code}} in {{run_input.language}}"));
    }

    #[test]
    fn prompts_are_filled_in_up_to_their_limit_over_all_steps() {
        let most = limit::WORKFLOW_PROMPTS_BYTES_MAX;
        let step = |name: &str, count: usize| {
            format!("[[steps]]\nname = \"{name}\"\nprompt_template = \"{}\"\n", "{{p}}".repeat(count))
        };
        let filled = |one: usize, two: usize| {
            let text = format!("name = \"w\"\n[[parameters]]\nname = \"p\"\n{}{}", step("a", one), step("b", two));
            let values = BTreeMap::from([("p".to_owned(), "x".repeat(most / 4))]);
            converted(RegistryWorkflow { values, ..given(&text) })
        };
        assert!(filled(2, 2).is_ok());
        for (one, two) in [(5, 0), (2, 3), (1_000, 0)] {
            let refusal = filled(one, two).unwrap_err();
            assert!(refusal.to_string().contains("longer than") && refusal.field.as_deref() == Some(FIELD));
        }
    }

    #[test]
    fn two_rows_side_by_side_are_kept_apart_and_steps_without_any_order_follow_one_another() {
        let step = |name: &str, needs: &str| {
            format!("[[steps]]\nname = \"{name}\"\nprompt_template = \"{name}\"\ndepends_on = [{needs}]\n")
        };
        let both = "\"a\", \"b\"";
        let text = format!("name = \"w\"\n{}{}{}{}", step("a", ""), step("b", ""), step("c", both), step("d", both));
        let steps = converted(given(&text)).unwrap().steps;
        let modes: Vec<_> = steps.iter().map(|step| step.mode).collect();
        let (fan_out, collect) = (StepMode::FanOut, StepMode::Collect);
        assert_eq!(modes, [fan_out, fan_out, collect, fan_out, fan_out]);
        let alone = format!("name = \"w\"\n{}{}", step("a", ""), step("b", ""));
        assert!(converted(given(&alone)).unwrap().steps.iter().all(|step| step.mode == StepMode::Sequential));
        let circle = format!("name = \"w\"\n{}{}", step("a", "\"b\""), step("b", "\"a\""));
        assert!(refusal(given(&circle)).contains("in a circle"));
        let missing = format!("name = \"w\"\n{}", step("a", "\"x\""));
        assert!(refusal(given(&missing)).contains("depends on \"x\""));
        let twice = format!("name = \"w\"\n{}{}", step("a", ""), step("a", ""));
        assert!(refusal(given(&twice)).contains("same name"));
        for text in ["name = \"w\"", "name = ", "steps = 1\nname = \"w\"", &"[".repeat(100_000)] {
            assert!(refusal(given(text)).starts_with("workflow_toml"), "{}", &text[..text.len().min(20)]);
        }
    }
}
