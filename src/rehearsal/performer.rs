//! The outside of a fork: effects come back as outcomes after a virtual latency. It has no network, no disk and no
//! process, only what is in its fields; the tools of the house are never asked.

use std::collections::{BTreeMap, HashMap};

use agentsvc_components::Timestamp;
use agentsvc_components::event::Happened;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::effect::Effect;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, OutcomeKind, SummaryEnd};

use super::script::Script;

/// Answers the effects of a fork.
pub struct Performer {
    script: Script,
    /// What comes back when, in the order in which it went out.
    due: BTreeMap<(Timestamp, u64), OutcomeKind>,
    /// Where the model calls that are out stand in `due`.
    out: HashMap<Attempt, (Timestamp, u64)>,
    count: u64,
}

impl Performer {
    /// Answers by `script`.
    #[must_use]
    pub fn new(script: Script) -> Self {
        Self { script, due: BTreeMap::new(), out: HashMap::new(), count: 0 }
    }

    /// Tells the script what happened.
    pub fn hear(&mut self, events: &[Happened]) {
        events.iter().for_each(|happened| self.script.hear(&happened.event));
    }

    /// Takes in an effect of a step at `now`. What a model or tool does takes at least a millisecond, which is the next
    /// moment; what only erases is done at once; what only shows or seals is dropped.
    pub fn perform(&mut self, now: Timestamp, effect: Effect) {
        match effect {
            Effect::CallModel(call) => {
                let (latency_ms, end) = self.script.answer(&call);
                let place = self.put(later(now, latency_ms), OutcomeKind::Model(call.attempt, end));
                self.out.insert(call.attempt, place);
            }
            Effect::Summarize(call) => {
                let (latency_ms, end) = self.script.summary(&call);
                let place = self.put(later(now, latency_ms), OutcomeKind::Summary(call.attempt, end));
                self.out.insert(call.attempt, place);
            }
            Effect::Abort(attempt) => self.abort(now, attempt),
            Effect::RunTool(run) => {
                let (latency_ms, end) = self.script.tool(&run);
                self.put(later(now, latency_ms), OutcomeKind::Tool(run.attempt, end));
            }
            Effect::Sweep(log) => drop(self.put(now, OutcomeKind::Swept(log))),
            Effect::SweepAgent(agent) => drop(self.put(now, OutcomeKind::SweptAgent(agent))),
            Effect::Publish(_) | Effect::TrimTraces(_) | Effect::SweepUsage(_) | Effect::SealAudit(_) => {}
        }
    }

    fn put(&mut self, at: Timestamp, outcome: OutcomeKind) -> (Timestamp, u64) {
        self.count += 1;
        self.due.insert((at, self.count), outcome);
        (at, self.count)
    }

    /// A call that is given up comes back with nothing in it. Tool calls come back when they would have.
    fn abort(&mut self, now: Timestamp, attempt: Attempt) {
        let Some(outcome) = self.out.remove(&attempt).and_then(|place| self.due.remove(&place)) else { return };
        let aborted = match outcome {
            OutcomeKind::Model(attempt, end) => {
                let (provider, model) = match end {
                    ModelEnd::Answered(answer) | ModelEnd::Aborted(answer) => (answer.provider, answer.model),
                    ModelEnd::Failed(_) => Default::default(),
                };
                let nothing = ModelAnswer { provider, model, ..ModelAnswer::default() };
                OutcomeKind::Model(attempt, ModelEnd::Aborted(nothing))
            }
            OutcomeKind::Summary(attempt, _) => {
                let written = Err("it was given up".to_owned());
                OutcomeKind::Summary(attempt, SummaryEnd { usage: Usage::default(), written, calls: Vec::new() })
            }
            other => other,
        };
        self.put(later(now, 1), aborted);
    }

    /// When the next outcome comes back.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next outcome that has come back by `now`.
    pub fn take(&mut self, now: Timestamp) -> Option<OutcomeKind> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= now)?;
        let outcome = first.remove();
        if let OutcomeKind::Model(attempt, _) | OutcomeKind::Summary(attempt, _) = &outcome {
            self.out.remove(attempt);
        }
        Some(outcome)
    }
}

fn later(now: Timestamp, latency_ms: u32) -> Timestamp {
    now.plus_ms(i64::from(latency_ms.max(1)))
}
