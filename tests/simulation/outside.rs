//! What the world asks of the outside, and how it comes back: late, out of order, twice, or not at all.

use std::collections::BTreeSet;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::effect::{Effect, ModelCall, SummaryCall, ToolRun};
use agentsvc_components::turn::outcome::{OutcomeKind, Summary, SummaryEnd};
use agentsvc_components::{AgentId, LogId, TurnId};
use agentsvc_systems::kernel::record;

use super::house::{ANSWER, CONTEXT, House};
use super::staff;

/// One thing that is out.
#[derive(Clone)]
pub(crate) enum Out {
    Model(Box<ModelCall>),
    Tool(Box<ToolRun>),
    Summary(Box<SummaryCall>),
    Sweep(LogId),
    SweepAgent(AgentId),
    /// What came back, and is on its way.
    Back(OutcomeKind),
}

/// Everything that is out.
#[derive(Default)]
pub(crate) struct Outside {
    out: Vec<Out>,
    /// What will not come back before the next start.
    lost: Vec<Out>,
    aborted: BTreeSet<(TurnId, u32)>,
    /// The last outcomes, which may come twice.
    past: Vec<OutcomeKind>,
    /// Tool calls that were begun, by turn and row: a second time only when the world knows.
    begun: BTreeSet<(TurnId, u32)>,
}

impl Outside {
    /// The process dies: nothing that is out comes back.
    pub(crate) fn die(&mut self) {
        self.out.clear();
        self.lost.clear();
        self.aborted.clear();
        self.past.clear();
    }

    /// Nothing is out.
    pub(crate) fn is_idle(&self) -> bool {
        self.out.is_empty() && self.lost.is_empty()
    }

    /// Was this given up?
    pub(crate) fn is_aborted(&self, attempt: Attempt) -> bool {
        self.aborted.contains(&(attempt.turn, attempt.number))
    }

    /// Something is on its way back.
    pub(crate) fn push(&mut self, outcome: OutcomeKind) {
        self.out.push(Out::Back(outcome));
    }
}

/// Effects start: their intent is durable, or they must not.
pub(crate) fn begin(house: &mut House, effects: Vec<Effect>) -> Result<(), String> {
    for effect in effects {
        match effect {
            Effect::CallModel(call) => {
                reserved(house, call.attempt)?;
                house.outside.out.push(Out::Model(call));
            }
            Effect::Summarize(call) => {
                reserved(house, call.attempt)?;
                house.outside.out.push(Out::Summary(call));
            }
            Effect::RunTool(run) => {
                once(house, &run)?;
                house.outside.out.push(Out::Tool(run));
            }
            Effect::Abort(attempt) => drop(house.outside.aborted.insert((attempt.turn, attempt.number))),
            Effect::Sweep(log) => house.outside.out.push(Out::Sweep(log)),
            Effect::SweepAgent(agent) => house.outside.out.push(Out::SweepAgent(agent)),
            Effect::Publish(_) | Effect::TrimTraces(_) | Effect::SweepUsage(_) | Effect::SealAudit(_) => {}
        }
    }
    Ok(())
}

/// No model call without a durable reservation.
fn reserved(house: &House, attempt: Attempt) -> Result<(), String> {
    let key = [&b"bc"[..], attempt.turn.0.as_bytes(), &attempt.number.to_be_bytes()].concat();
    // What came back between the step and its sync is settled already.
    let is_settled = !house.disk.seen.contains_key(&key);
    if house.disk.world.contains_key(&key) || is_settled {
        return Ok(());
    }
    Err(format!("the call {attempt:?} goes out without a durable reservation"))
}

/// No tool call begins twice unknown to the world, and none that has its result.
fn once(house: &mut House, run: &ToolRun) -> Result<(), String> {
    let is_new = house.outside.begun.insert((run.attempt.turn, run.index));
    if !is_new && !run.resumed {
        return Err(format!("the tool call of turn {} at row {} begins a second time", run.attempt.turn, run.index));
    }
    let key = record::message_key(record::MessageKey { log: run.log, ordinal: run.ordinal, index: run.index });
    if house.disk.content.contains_key(&key) && house.disk.waiting() == 0 {
        return Err(format!(
            "the tool call of turn {} at row {} has its result, and begins",
            run.attempt.turn, run.index
        ));
    }
    Ok(())
}

/// One of what is out comes back.
pub(crate) fn answer(house: &mut House) {
    if house.outside.out.is_empty() {
        return;
    }
    let at = house.dice.below(house.outside.out.len());
    let out = house.outside.out.swap_remove(at);
    come_back(house, out);
}

/// Everything that is out comes back, what was lost included.
pub(crate) fn answer_all(house: &mut House) {
    let lost = std::mem::take(&mut house.outside.lost);
    house.outside.out.extend(lost);
    for out in std::mem::take(&mut house.outside.out) {
        come_back(house, out);
    }
}

fn come_back(house: &mut House, out: Out) {
    match out {
        Out::Model(call) => {
            let end = staff::model(house, &call);
            deliver(house, OutcomeKind::Model(call.attempt, end));
        }
        Out::Tool(run) => staff::tool(house, &run),
        Out::Summary(call) => {
            let end = summary(house, &call);
            deliver(house, OutcomeKind::Summary(call.attempt, end));
        }
        Out::Sweep(log) => {
            record::log_prefixes(log).for_each(|prefix| house.disk.erase(&prefix));
            deliver(house, OutcomeKind::Swept(log));
        }
        Out::SweepAgent(agent) => {
            record::agent_prefixes(agent).iter().for_each(|prefix| house.disk.erase(prefix));
            deliver(house, OutcomeKind::SweptAgent(agent));
        }
        Out::Back(outcome) => deliver(house, outcome),
    }
}

fn deliver(house: &mut House, outcome: OutcomeKind) {
    house.note(|| format!("{outcome:?}").chars().take(150).collect());
    house.outside.past.push(outcome.clone());
    if house.outside.past.len() > 20 {
        house.outside.past.remove(0);
    }
    house.engine.outcome(outcome);
}

/// An outcome that came before comes again: it is stale.
pub(crate) fn repeat(house: &mut House) {
    let past = house.outside.past.clone();
    if let Some(outcome) = house.dice.any(&past) {
        house.note(|| format!("{outcome:?}").chars().take(150).collect());
        house.engine.outcome(outcome);
    }
}

/// One of what is out does not come back before the next start, or before somebody gives it up.
pub(crate) fn lose(house: &mut House) {
    if house.outside.out.is_empty() {
        return;
    }
    let at = house.dice.below(house.outside.out.len());
    let out = house.outside.out.swap_remove(at);
    house.outside.lost.push(out);
}

fn summary(house: &mut House, call: &SummaryCall) -> SummaryEnd {
    let usage = Usage::of(house.dice.below(CONTEXT as usize) as u64, house.dice.below(ANSWER as usize) as u64);
    let written = Summary {
        text: house.text("summary"),
        upto: call.upto,
        messages: house.dice.below(6) as u32,
        provider: "acme".into(),
        model: "one".into(),
    };
    let written = if house.dice.chance(70) { Ok(written) } else { Err("the model did not answer".to_owned()) };
    SummaryEnd { usage, written, calls: Vec::new() }
}
