//! What flows through a run: the input of each step, its variables and its prompt. All of it follows from the outputs of
//! the steps before, so that nothing else has to be stored.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_components::workflow::{Step, StepMode, StepRun, WorkflowRun};

use serde_json::{Map, Value};

use super::registry::WHOLE;
use super::template::{self, TooLong};

/// The steps that go together with the one at `at`, which is the first of them: fan_out steps in a row, else itself.
pub(super) fn group(steps: &[Step], at: usize) -> Range<usize> {
    let is_fan_out = |step: &&Step| step.mode == StepMode::FanOut;
    let length = steps.get(at..).unwrap_or_default().iter().take_while(is_fan_out).count();
    at..at + length.max(1)
}

/// What comes out of the steps before `upto`: the outputs of the last of them that gave any, joined by a blank line when
/// they ran side by side; else the run's input.
pub(super) fn before(run: &WorkflowRun, upto: usize) -> Arc<str> {
    let (mut at, mut last) = (0, None);
    while at < upto {
        let group = group(&run.steps, at);
        at = group.end;
        if run.outputs[group.clone()].iter().any(Option::is_some) {
            last = Some(group);
        }
    }
    let given: Vec<&Arc<str>> = last.map(|group| run.outputs[group].iter().flatten().collect()).unwrap_or_default();
    match given.as_slice() {
        [] => run.input.clone(),
        [one] => Arc::clone(one),
        several => {
            let texts: Vec<&str> = several.iter().map(|text| &***text).collect();
            joined(&texts, limit::WORKFLOW_OUTPUT_BYTES_MAX)
        }
    }
}

/// What `{{input}}` of a step stands for: what came before it, or in a loop the output of the iteration before.
pub(super) fn input(run: &WorkflowRun, step: usize) -> Arc<str> {
    match &run.outputs[step] {
        Some(output) if run.steps[step].mode == StepMode::Loop => Arc::clone(output),
        _ => before(run, usize::from(run.at)),
    }
}

/// What the steps before, or the iterations of this one, stored under `name`: empty when they gave nothing, `None` when
/// none of them has a variable of this name.
pub(super) fn variable<'a>(run: &'a WorkflowRun, step: usize, name: &str) -> Option<&'a str> {
    let seen = (0..usize::from(run.at)).chain([step]);
    let stores = |at: &usize| run.steps[*at].output_var.as_deref() == Some(name);
    let mut found = None;
    for at in seen.filter(stores) {
        found = run.outputs[at].as_deref().or(found).or(Some(""));
    }
    found
}

/// What names of members of the run's input begin with.
const OF_RUN: &str = "run_input.";

/// The members of the input of a run, if it is a JSON object.
struct Given<'a> {
    whole: &'a str,
    members: HashMap<String, String>,
}

impl<'a> Given<'a> {
    /// Those of `input`, if the prompt asks for any.
    fn of(input: &'a str, prompt: &str) -> Self {
        let asked = prompt.contains(OF_RUN).then(|| serde_json::from_str::<Map<String, Value>>(input).ok()).flatten();
        let text = |value: Value| match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let members = asked.into_iter().flatten().map(|(name, value)| (name, text(value))).collect();
        Self { whole: input, members }
    }

    /// The member of `<name>`, or of `<name>|<default>` that or the default.
    fn find<'s>(&'s self, name: &'s str) -> Option<&'s str> {
        let (name, default) = match name.split_once('|') {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        let default = || default.map(|default| if default == WHOLE { self.whole } else { default });
        self.members.get(name).map(|text| &**text).or_else(default)
    }
}

/// The message that a step begins with.
pub(super) fn prompt(run: &WorkflowRun, step: usize) -> Result<String, String> {
    let (input, most) = (input(run, step), limit::MESSAGE_BYTES_MAX);
    let given = Given::of(&run.input, &run.steps[step].prompt);
    let missing = Cell::new(None);
    let rendered = template::render(&run.steps[step].prompt, most, |name| match name {
        "input" => Some(&*input),
        name => variable(run, step, name).or_else(|| match name.strip_prefix(OF_RUN) {
            Some(member) => given.find(member).or_else(|| {
                missing.set(Some(member));
                None
            }),
            None => (name == WHOLE).then_some(&*run.input),
        }),
    });
    if let Some(name) = missing.get() {
        return Err(format!("the input of the run must be a JSON object with {name:?}"));
    }
    let text = rendered.map_err(|TooLong| format!("the prompt with its variables is longer than {most} bytes"))?;
    if text.is_empty() { Err("the prompt with its variables is empty".to_owned()) } else { Ok(text) }
}

/// What the last iteration of a loop was given, once it has come to its end.
pub(super) fn given(run: &WorkflowRun) -> Arc<str> {
    run.given.clone().unwrap_or_default()
}

/// A text of at most so many bytes; of a longer one the beginning, and a note that says so.
pub(super) fn cut(text: &str, bytes_max: usize) -> Arc<str> {
    if text.len() <= bytes_max { text.into() } else { joined(&[text], bytes_max) }
}

/// The same of texts with a blank line between them. No more of them is copied than is kept.
fn joined(texts: &[&str], bytes_max: usize) -> Arc<str> {
    const BETWEEN: &str = "\n\n";
    let whole = texts.iter().map(|text| text.len()).sum::<usize>() + BETWEEN.len() * texts.len().saturating_sub(1);
    if whole <= bytes_max {
        return texts.join(BETWEEN).into();
    }
    let note = format!("\n[... truncated: the full text is {whole} bytes ...]");
    let most = bytes_max.saturating_sub(note.len());
    let mut kept = String::with_capacity(bytes_max);
    let parts = texts.iter().enumerate().flat_map(|(at, text)| [if at > 0 { BETWEEN } else { "" }, *text]);
    for part in parts {
        let end = part.floor_char_boundary(most - kept.len());
        kept.push_str(&part[..end]);
        if end < part.len() {
            break;
        }
    }
    format!("{kept}{note}").into()
}

/// Bytes that a run takes: its texts, and about what stands around them.
pub(super) fn bytes(run: &WorkflowRun) -> usize {
    const AROUND_BYTES: usize = 1 << 10;
    let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
    let step = |step: &Step| step.prompt.len() + long(&step.condition) + long(&step.until);
    let steps: usize = run.steps.iter().map(step).sum();
    let around = AROUND_BYTES + run.steps.len() * (size_of::<Step>() + size_of::<StepRun>());
    let outputs: usize = run.outputs.iter().chain([&run.output, &run.given]).flatten().map(|text| text.len()).sum();
    around + steps + outputs + run.input.len()
}
