//! What the world asks of the outside, and how it comes back: late, out of order, twice, or not at all.

use std::collections::BTreeSet;

use agentsvc_components::agent::sweep::{AgentSwept, SweepAgent};
use agentsvc_components::compaction::call::{Summary, SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::session::message::Usage;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::ModelOutcome;
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
    Log(LogId),
    Agent(AgentId),
    /// What came back, and is on its way.
    Back(AnyOutcome),
}

/// Everything that is out.
#[derive(Default)]
pub(crate) struct Outside {
    out: Vec<Out>,
    /// What will not come back before the next start.
    lost: Vec<Out>,
    aborted: BTreeSet<(JobId, u32)>,
    /// The last outcomes, which may come twice.
    past: Vec<AnyOutcome>,
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
        self.aborted.contains(&(attempt.job, attempt.number))
    }

    /// Something is on its way back.
    pub(crate) fn push(&mut self, outcome: AnyOutcome) {
        self.out.push(Out::Back(outcome));
    }
}

/// Effects start: their intent is durable, or they must not.
pub(crate) fn begin(house: &mut House, effects: Vec<AnyEffect>) -> Result<(), String> {
    for effect in effects {
        let out = if let Some(call) = effect.get::<ModelCall>() {
            reserved(house, call.attempt)?;
            Out::Model(Box::new(call.clone()))
        } else if let Some(call) = effect.get::<SummaryCall>() {
            reserved(house, call.attempt)?;
            Out::Summary(Box::new(call.clone()))
        } else if let Some(run) = effect.get::<ToolRun>() {
            once(house, run)?;
            Out::Tool(Box::new(run.clone()))
        } else if let Some(SweepLog(log)) = effect.get() {
            Out::Log(*log)
        } else if let Some(SweepAgent(agent)) = effect.get() {
            Out::Agent(*agent)
        } else {
            if let Some(Abort(attempt)) = effect.get() {
                house.outside.aborted.insert((attempt.job, attempt.number));
            }
            continue;
        };
        house.outside.out.push(out);
    }
    Ok(())
}

/// No model call without a durable reservation.
fn reserved(house: &House, attempt: Attempt) -> Result<(), String> {
    let key = [&b"bc"[..], attempt.job.0.as_bytes(), &attempt.number.to_be_bytes()].concat();
    // What came back between the step and its sync is settled already.
    let is_settled = !house.disk.seen.contains_key(&key);
    if house.disk.world.contains_key(&key) || is_settled {
        return Ok(());
    }
    Err(format!("the call {attempt:?} goes out without a durable reservation"))
}

/// No tool call begins twice unknown to the world, and none that has its result.
fn once(house: &mut House, run: &ToolRun) -> Result<(), String> {
    let is_new = house.outside.begun.insert((run.turn(), run.index));
    if !is_new && !run.resumed {
        return Err(format!("the tool call of turn {} at row {} begins a second time", run.turn(), run.index));
    }
    let key = record::message_key(record::MessageKey { log: run.log, ordinal: run.ordinal, index: run.index });
    if house.disk.content.contains_key(&key) && house.disk.waiting() == 0 {
        return Err(format!("the tool call of turn {} at row {} has its result, and begins", run.turn(), run.index));
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
            deliver(house, ModelOutcome(call.attempt, end));
        }
        Out::Tool(run) => staff::tool(house, &run),
        Out::Summary(call) => {
            let end = summary(house, &call);
            deliver(house, SummaryOutcome(call.attempt, end));
        }
        Out::Log(log) => {
            record::log_prefixes(log).for_each(|prefix| house.disk.erase(&prefix));
            deliver(house, LogSwept(log));
        }
        Out::Agent(agent) => {
            record::agent_prefixes(agent).iter().for_each(|prefix| house.disk.erase(prefix));
            deliver(house, AgentSwept(agent));
        }
        Out::Back(outcome) => deliver(house, outcome),
    }
}

fn deliver(house: &mut House, outcome: impl Into<AnyOutcome>) {
    let outcome = outcome.into();
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
