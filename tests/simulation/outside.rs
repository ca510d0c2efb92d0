//! What the world asks of the outside, and how it comes back: late, out of order, twice, or not at all.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::agent::sweep::{AgentSwept, SweepAgent};
use agentsvc_components::compaction::call::{Summary, SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::recall::{MemoryRecalled, Recall, RecallStatus, Recalled, RecalledEntry};
use agentsvc_components::session::message::Usage;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::ModelOutcome;
use agentsvc_components::usage::record::{SweepUsage, UsageSwept};
use agentsvc_components::{AgentId, LogId, TurnId};
use agentsvc_systems::a2a::outbound::{ASK, SEND};
use agentsvc_systems::config::taint::TaintPolicy;
use agentsvc_systems::injection::shield;
use agentsvc_systems::kernel::record;
use agentsvc_systems::proactive_memory::keys::companions;
use agentsvc_systems::proactive_memory::{MEMORIZE, MEMORIZE_BY_MODEL};
use agentsvc_systems::turn::{Reply, SCAN_REPLY};
use agentsvc_systems::{channel, delivery};

use super::harness::{ANSWER, CONTEXT, Harness};
use super::{a2a_outbound, chats, deliveries, entries, media, staff, webhooks};

/// One thing that is out.
#[derive(Clone)]
pub(crate) enum Out {
    Model(Box<ModelCall>),
    Tool(Box<ToolRun>),
    Summary(Box<SummaryCall>),
    Job(Box<RunJob>),
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
    /// The newest try of each job.
    tried: BTreeMap<JobId, u32>,
}

impl Outside {
    /// The process dies: nothing that is out comes back.
    pub(crate) fn die(&mut self) {
        self.out.clear();
        self.lost.clear();
        self.aborted.clear();
        self.past.clear();
    }

    /// The tool calls that are out: whose, and of which turn.
    pub(crate) fn tools(&self) -> Vec<(AgentId, TurnId)> {
        let run = |out: &Out| if let Out::Tool(run) = out { Some((run.agent, run.turn())) } else { None };
        self.out.iter().filter_map(run).collect()
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
pub(crate) fn begin(harness: &mut Harness, effects: Vec<AnyEffect>) -> Result<(), String> {
    for effect in effects {
        let out = if let Some(call) = effect.get::<ModelCall>() {
            reserved(harness, call.attempt)?;
            Out::Model(Box::new(call.clone()))
        } else if let Some(call) = effect.get::<SummaryCall>() {
            reserved(harness, call.attempt)?;
            Out::Summary(Box::new(call.clone()))
        } else if let Some(run) = effect.get::<ToolRun>() {
            once(harness, run)?;
            judged(harness, run)?;
            Out::Tool(Box::new(run.clone()))
        } else if let Some(run) = effect.get::<RunJob>() {
            in_order(harness, run)?;
            if run.kind == channel::SEND {
                chats::goes_out(harness, run)?;
            }
            Out::Job(Box::new(run.clone()))
        } else if let Some(SweepLog(log)) = effect.get() {
            Out::Log(*log)
        } else if let Some(SweepAgent(agent)) = effect.get() {
            Out::Agent(*agent)
        } else if let Some(SweepUsage(before)) = effect.get() {
            Out::Back(UsageSwept(*before).into())
        } else {
            if let Some(Abort(attempt)) = effect.get() {
                harness.outside.aborted.insert((attempt.job, attempt.number));
            }
            continue;
        };
        harness.outside.out.push(out);
    }
    Ok(())
}

/// No model call without a durable reservation.
fn reserved(harness: &Harness, attempt: Attempt) -> Result<(), String> {
    let key = [&b"bc"[..], attempt.job.0.as_bytes(), &attempt.number.to_be_bytes()].concat();
    // What came back between the step and its sync is settled already.
    let is_settled = !harness.disk.seen.contains_key(&key);
    if harness.disk.world.contains_key(&key) || is_settled {
        return Ok(());
    }
    Err(format!("the call {attempt:?} goes out without a durable reservation"))
}

/// No tool call begins twice unknown to the world, and none that has its result.
fn once(harness: &mut Harness, run: &ToolRun) -> Result<(), String> {
    let is_new = harness.outside.begun.insert((run.turn(), run.index));
    if !is_new && run.runs_before == 0 {
        return Err(format!("the tool call of turn {} at row {} begins a second time", run.turn(), run.index));
    }
    let key = record::message_key(record::MessageKey { log: run.log, ordinal: run.ordinal, index: run.index });
    if harness.disk.content.contains_key(&key) && harness.disk.waiting() == 0 {
        return Err(format!("the tool call of turn {} at row {} has its result, and begins", run.turn(), run.index));
    }
    Ok(())
}

/// No command runs files of which its turn does not have the taint, where taint keeps turns from something.
fn judged(harness: &Harness, run: &ToolRun) -> Result<(), String> {
    let counts = matches!(harness.settings.security.taint, TaintPolicy::Approve | TaintPolicy::Deny);
    if !counts || run.runs_before > 0 || run.call.name != "shell_exec" || run.taint.holds(run.agent_taint.files) {
        return Ok(());
    }
    Err(format!("the command of turn {} at row {} was judged without the files that it can run", run.turn(), run.index))
}

/// No try of a job begins twice, none comes after a later one, and each is durable before it begins.
fn in_order(harness: &mut Harness, run: &RunJob) -> Result<(), String> {
    let Attempt { job, number } = run.attempt;
    let before = harness.outside.tried.insert(job, number).unwrap_or_default();
    if number <= before {
        return Err(format!("try {number} of job {job} begins after try {before}"));
    }
    let key = [&b"q"[..], job.0.as_bytes()].concat();
    // What came back, or was cancelled, between the step and its sync is gone already.
    let is_gone = !harness.disk.seen.contains_key(&key);
    if !is_gone && !harness.disk.world.contains_key(&key) {
        return Err(format!("try {number} of job {job} begins before it is durable"));
    }
    Ok(())
}

/// One of what is out comes back.
pub(crate) fn answer(harness: &mut Harness) {
    if harness.outside.out.is_empty() {
        return;
    }
    let at = harness.rng.below(harness.outside.out.len());
    let out = harness.outside.out.swap_remove(at);
    come_back(harness, out);
}

/// Everything that is out comes back, what was lost included.
pub(crate) fn answer_all(harness: &mut Harness) {
    let lost = std::mem::take(&mut harness.outside.lost);
    harness.outside.out.extend(lost);
    for out in std::mem::take(&mut harness.outside.out) {
        come_back(harness, out);
    }
}

fn come_back(harness: &mut Harness, out: Out) {
    match out {
        Out::Model(call) => {
            recall(harness, &call);
            let end = staff::model(harness, &call);
            deliver(harness, ModelOutcome(call.attempt, end));
        }
        Out::Tool(run) => staff::tool(harness, &run),
        Out::Summary(call) => {
            let end = summary(harness, &call);
            deliver(harness, SummaryOutcome(call.attempt, end));
        }
        Out::Job(run) if [MEMORIZE, MEMORIZE_BY_MODEL].contains(&run.kind) => {
            entries::memorize(harness, run.attempt, &run.input)
        }
        Out::Job(run) if media::is_media(&run) => media::answer(harness, &run),
        Out::Job(run) => {
            let end = match run.kind {
                SEND | ASK => a2a_outbound::answer(harness),
                channel::SEND => chats::answer(harness),
                delivery::NAME => deliveries::answer(harness),
                SCAN_REPLY => scan(harness, &run),
                _ => webhooks::answer(harness),
            };
            deliver(harness, JobOutcome(run.attempt, end));
        }
        Out::Log(log) => {
            record::log_prefixes(log).for_each(|prefix| harness.disk.erase(&prefix));
            deliver(harness, LogSwept(log));
        }
        Out::Agent(agent) => {
            let prefix = record::entry_prefix(agent);
            let entries = harness.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
            let leads: Vec<_> = entries.flat_map(|(key, value)| companions(key, value)).collect();
            leads.iter().for_each(|key| harness.disk.erase(key));
            record::agent_prefixes(agent).iter().for_each(|prefix| harness.disk.erase(prefix));
            deliver(harness, AgentSwept(agent));
        }
        Out::Back(outcome) => deliver(harness, outcome),
    }
}

/// An outcome comes back to the world.
pub(crate) fn deliver(harness: &mut Harness, outcome: impl Into<AnyOutcome>) {
    let outcome = outcome.into();
    harness.note(|| format!("{outcome:?}").chars().take(150).collect());
    harness.outside.past.push(outcome.clone());
    if harness.outside.past.len() > 20 {
        harness.outside.past.remove(0);
    }
    harness.engine.outcome(outcome);
}

/// A call that is to search the agent's memory says what it found, now and then that it found nothing in time.
fn recall(harness: &mut Harness, call: &ModelCall) {
    if !matches!(call.recall, Some(Recall::Search(_))) || harness.rng.chance(20) {
        return;
    }
    let is_late = harness.rng.chance(20);
    let entry = RecalledEntry {
        id: MemoryEntryId(call.attempt.job.0),
        content: "likes tea".into(),
        category: "preference".into(),
        score: 0.5,
        taint: if harness.rng.chance(30) { Taint::WEB } else { Taint::NONE },
        plugin: Box::default(),
    };
    let status = if is_late { RecallStatus::Late } else { RecallStatus::Done };
    let memories = if is_late { Vec::new() } else { vec![entry] };
    let recalled = Recalled { status, mode: "lexical".into(), duration_ms: 1, memories };
    deliver(harness, MemoryRecalled(call.attempt, recalled));
}

/// An outcome that came before comes again: it is stale.
pub(crate) fn repeat(harness: &mut Harness) {
    let past = harness.outside.past.clone();
    if let Some(outcome) = harness.rng.any(&past) {
        harness.note(|| format!("{outcome:?}").chars().take(150).collect());
        harness.engine.outcome(outcome);
    }
}

/// One of what is out does not come back before the next start, or before somebody gives it up.
pub(crate) fn lose(harness: &mut Harness) {
    if harness.outside.out.is_empty() {
        return;
    }
    let at = harness.rng.below(harness.outside.out.len());
    let out = harness.outside.out.swap_remove(at);
    harness.outside.lost.push(out);
}

/// What becomes of a scan of what another agent wrote. It comes late, or not before the next start, as everything may.
fn scan(harness: &mut Harness, run: &RunJob) -> TryEnd {
    let end = match harness.rng.below(10) {
        0 => TryEnd::Failed("there is no thread for it".to_owned()),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 => TryEnd::Retry { after_ms: None, reason: "too much is scanned".to_owned() },
        3 => TryEnd::Done("this is no report".to_owned()),
        _ => {
            let reply: Reply = serde_json::from_str(&run.input).expect("what the world wrote");
            let shielded = shield(harness.settings.security.prompt_injection, &reply.source, reply.content).here();
            TryEnd::Done(serde_json::to_string(&shielded).expect("plain data"))
        }
    };
    harness.coverage.scan(&end);
    end
}

fn summary(harness: &mut Harness, call: &SummaryCall) -> SummaryEnd {
    let usage = Usage::of(harness.rng.below(CONTEXT as usize) as u64, harness.rng.below(ANSWER as usize) as u64);
    let written = Summary {
        text: harness.text("summary"),
        upto: call.upto,
        messages: harness.rng.below(6) as u32,
        provider: "acme".into(),
        model: "one".into(),
        taint: Taint::NONE,
    };
    let written = if harness.rng.chance(70) { Ok(written) } else { Err("the model did not answer".to_owned()) };
    SummaryEnd { usage, written, calls: Vec::new() }
}
