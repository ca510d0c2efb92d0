//! What the turns of an agent were like so far, from its traces: what they cost, and how they went.

use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord};

/// Turns of an agent whose cost counts: the newest.
pub const COSTS_MAX: usize = 64;
/// Turns of an agent that are repeated: the newest.
pub const TURNS_MAX: usize = 16;
/// Model calls of all turns that are kept for repeating; agents that are read later have no more then.
pub const CALLS_MAX: usize = 2_000_000;
/// Bytes of an answer that is repeated; the rest is cut.
pub const TEXT_BYTES_MAX: usize = 2 << 10;

/// What an agent's turns cost: count, mean and scatter, by Welford's way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Turns.
    pub count: u64,
    /// The mean, in dollars.
    pub mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
}

impl Costs {
    /// Adds a turn.
    pub fn add(&mut self, usd: f64) {
        self.count += 1;
        let before = usd - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (usd - self.mean);
    }

    /// The variance of one turn. A single turn is taken to scatter by as much as it cost.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { self.mean * self.mean } else { self.squares / (self.count - 1) as f64 }
    }
}

/// An agent's past.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// What its turns cost.
    pub costs: Costs,
    /// Turns that can be repeated, the newest first.
    pub turns: Vec<PlayedTurn>,
}

/// A turn that can be repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayedTurn {
    /// Its model calls, at least one.
    pub calls: Vec<PlayedCall>,
    /// Its answer, where it was read.
    pub text: Option<Box<str>>,
}

/// A model call of such a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayedCall {
    /// Tokens of its prompt.
    pub input: u32,
    /// Tokens of its answer.
    pub output: u32,
    /// Cached tokens of its prompt.
    pub cached: u32,
    /// How long it took.
    pub latency_ms: u32,
    /// It had no answer.
    pub failed: bool,
    /// The tools that its answer called and that came back.
    pub tools: Vec<PlayedTool>,
}

/// A tool call of such a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedTool {
    /// The tool.
    pub name: Box<str>,
    /// How long it took.
    pub duration_ms: u32,
    /// It gave back an error.
    pub failed: bool,
}

/// What an ended turn cost; `None` when it never asked a model.
pub fn cost_of(trace: &TraceRecord) -> Option<f64> {
    let asked = trace.steps.iter().any(|step| step.kind == StepKind::Model);
    asked.then(|| trace.usage.cost.usd())
}

/// The calls of an ended turn; `None` when there is nothing to repeat: it asked no model, or somebody stopped it.
pub fn played(trace: &TraceRecord) -> Option<PlayedTurn> {
    if !matches!(trace.end, TurnEnd::Done | TurnEnd::Failed) {
        return None;
    }
    let mut calls: Vec<PlayedCall> = Vec::new();
    for step in &trace.steps {
        let failed = step.status == StepStatus::Error;
        match step.kind {
            StepKind::Model => {
                let usage = step.usage.unwrap_or_default();
                let short = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
                calls.push(PlayedCall {
                    input: short(usage.input_tokens),
                    output: short(usage.output_tokens),
                    cached: short(usage.cached_input_tokens),
                    latency_ms: step.duration_ms,
                    failed,
                    tools: Vec::new(),
                });
            }
            StepKind::Tool => {
                let tool = PlayedTool { name: step.name.clone(), duration_ms: step.duration_ms, failed };
                if let Some(call) = calls.last_mut() {
                    call.tools.push(tool);
                }
            }
        }
    }
    (!calls.is_empty()).then_some(PlayedTurn { calls, text: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_those_of_the_turns() {
        let mut costs = Costs::default();
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|usd| costs.add(usd));
        assert!((costs.mean - 5.0).abs() < 1e-9);
        assert!((costs.variance() - 32.0 / 7.0).abs() < 1e-9);
        let mut one = Costs::default();
        one.add(3.0);
        assert!((one.variance() - 9.0).abs() < 1e-9, "a single turn says nothing of its scatter");
        assert!(Costs::default().variance().abs() < 1e-9);
    }
}
