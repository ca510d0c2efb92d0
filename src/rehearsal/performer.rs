//! The outside of a fork: effects come back as outcomes after a virtual latency. It has no network, no disk and no
//! process, only what is in its fields; the tools of the daemon are never asked.

use std::collections::{BTreeMap, HashMap};

use agentsvc_components::Timestamp;
use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::compaction::call::SummaryCall;
use agentsvc_components::compaction::call::{SummaryEnd, SummaryOutcome};
use agentsvc_components::event::EventEnvelope;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::session::message::Usage;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome, ToolOutcome};
use agentsvc_components::usage::record::{SweepUsage, UsageSwept};

use super::script::Script;

/// Answers the effects of a fork.
pub struct Performer {
    script: Script,
    /// What comes back when, in the order in which it went out.
    due: BTreeMap<(Timestamp, u64), AnyOutcome>,
    /// Where the model calls that are out stand in `due`.
    out: HashMap<Attempt, (Timestamp, u64)>,
    count: u64,
}

impl Performer {
    /// Answers by `script`.
    pub fn new(script: Script) -> Self {
        Self { script, due: BTreeMap::new(), out: HashMap::new(), count: 0 }
    }

    /// Tells the script what happened.
    pub fn hear(&mut self, events: &[EventEnvelope]) {
        events.iter().for_each(|happened| self.script.hear(&happened.event));
    }

    /// Takes in an effect of a step at `now`. What a model or tool does takes at least a millisecond, which is the next
    /// moment; what only erases is done at once; what only shows or seals is dropped. Jobs for the outside are done without it.
    pub fn perform(&mut self, now: Timestamp, effect: AnyEffect) {
        if let Some(call) = effect.get::<ModelCall>() {
            let (latency_ms, end) = self.script.answer(call);
            let place = self.put(later(now, latency_ms), ModelOutcome(call.attempt, end));
            self.out.insert(call.attempt, place);
        } else if let Some(call) = effect.get::<SummaryCall>() {
            let (latency_ms, end) = self.script.summary(call);
            let place = self.put(later(now, latency_ms), SummaryOutcome(call.attempt, end));
            self.out.insert(call.attempt, place);
        } else if let Some(Abort(attempt)) = effect.get() {
            self.abort(now, *attempt);
        } else if let Some(run) = effect.get::<ToolRun>() {
            let (latency_ms, end) = self.script.tool(run);
            self.put(later(now, latency_ms), ToolOutcome(run.attempt, end));
        } else if let Some(run) = effect.get::<RunJob>() {
            self.put(later(now, 1), JobOutcome(run.attempt, TryEnd::Done(String::new())));
        } else if let Some(SweepLog(log)) = effect.get() {
            self.put(now, LogSwept(*log));
        } else if let Some(SweepAgent(agent)) = effect.get() {
            self.put(now, AgentSwept(*agent));
        } else if let Some(SweepUsage(before)) = effect.get() {
            self.put(now, UsageSwept(*before));
        }
    }

    fn put(&mut self, at: Timestamp, outcome: impl Into<AnyOutcome>) -> (Timestamp, u64) {
        self.count += 1;
        self.due.insert((at, self.count), outcome.into());
        (at, self.count)
    }

    /// A call that is given up comes back with nothing in it. Tool calls come back when they would have.
    fn abort(&mut self, now: Timestamp, attempt: Attempt) {
        let Some(outcome) = self.out.remove(&attempt).and_then(|place| self.due.remove(&place)) else { return };
        let aborted = match outcome.take::<ModelOutcome>() {
            Ok(outcome) => {
                let (provider, model) = match outcome.1 {
                    ModelEnd::Answered(answer) | ModelEnd::Aborted(answer) => (answer.provider, answer.model),
                    ModelEnd::Failed(_) => Default::default(),
                };
                let nothing = ModelAnswer { provider, model, ..ModelAnswer::default() };
                AnyOutcome::from(ModelOutcome(attempt, ModelEnd::Aborted(nothing)))
            }
            Err(_) => {
                let written = Err("cancelled".to_owned());
                SummaryOutcome(attempt, SummaryEnd { usage: Usage::default(), written, calls: Vec::new() }).into()
            }
        };
        self.put(later(now, 1), aborted);
    }

    /// When the next outcome comes back.
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next outcome that has come back by `now`.
    pub fn take(&mut self, now: Timestamp) -> Option<AnyOutcome> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let outcome = first.remove();
        let model = outcome.get().map(|ModelOutcome(attempt, _)| attempt);
        if let Some(attempt) = model.or_else(|| outcome.get().map(|SummaryOutcome(attempt, _)| attempt)) {
            self.out.remove(attempt);
        }
        Some(outcome)
    }
}

fn later(now: Timestamp, latency_ms: u32) -> Timestamp {
    now.plus_ms(i64::from(latency_ms.max(1)))
}
