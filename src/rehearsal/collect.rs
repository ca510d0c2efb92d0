//! Keeps count of what happens in a fork, step by step, and makes the report at the end. What it holds grows with agents,
//! schedules and triggers, never with fires.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use agentsvc_api::rehearsal::runs::{Approvals, BudgetLine, BusiestMinute, OUTCOMES, Overlaps, Turns};
use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::{Actor, AgentId, Micros, ScheduleId, Timestamp};
use agentsvc_systems::budget::{EXCEEDED, GetBudget};
use agentsvc_systems::rehearsal::Note;
use agentsvc_systems::{Engine, ReplySlot};
use uuid::Uuid;

use super::directory::{Directory, SourceKind};
use super::fork::{Step, Watcher};
use super::history::Costs;
use super::spool::{Reasons, Row, Spool};
use super::timeline::Parts;

mod report;

pub use report::Ending;

/// Lines of budgets and approvals in a report.
const LINES_MAX: usize = 1_000;
/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// The place of `waiting` among the outcomes.
const WAITING: usize = OUTCOMES.len() - 1;
/// The place of `fired`.
const FIRED: usize = 0;

/// Counts by outcome.
type Counts = [u64; OUTCOMES.len()];

/// A schedule, cron job or trigger while it is counted.
#[derive(Clone, Copy, Debug, Default)]
struct SourceTally {
    outcomes: Counts,
    completed: u64,
    failed: u64,
}

/// An agent while it is counted.
#[derive(Clone, Copy, Debug, Default)]
struct AgentTally {
    fires: u64,
    turns: u64,
    /// Failed turns.
    failed: u64,
    /// Those of them that a budget ended.
    over_budget: u64,
    calls: u64,
    usage: Usage,
}

/// Keeps count of a fork.
pub struct Collector {
    directory: Directory,
    costs: HashMap<AgentId, Costs>,
    spool: Spool,
    reasons: Reasons,
    /// Slots that wait for the run before them.
    waiting: HashSet<(ScheduleId, Timestamp)>,
    outcomes: Counts,
    sources: HashMap<Uuid, SourceTally>,
    agents: HashMap<AgentId, AgentTally>,
    turns: Turns,
    usage: Usage,
    calls: u64,
    unpriced: u64,
    overlaps: Overlaps,
    skips: BTreeMap<(SourceKind, usize, u32), u64>,
    budgets: Vec<BudgetLine>,
    approvals: Approvals,
    minute: (i64, u64),
    busiest: (i64, u64),
    parts: Parts,
    /// Fires and skips so far.
    fires: u64,
    /// What ended it.
    failed: Option<String>,
}

impl Collector {
    /// Counts from `from` to `until`. `waiting` are the slots that wait already.
    pub fn new(
        directory: Directory,
        costs: HashMap<AgentId, Costs>,
        waiting: HashSet<(ScheduleId, Timestamp)>,
        spool: Spool,
        (from, until): (Timestamp, Timestamp),
    ) -> Self {
        Self {
            directory,
            costs,
            spool,
            reasons: Reasons::default(),
            waiting,
            outcomes: [0; OUTCOMES.len()],
            sources: HashMap::new(),
            agents: HashMap::new(),
            turns: Turns::default(),
            usage: Usage::default(),
            calls: 0,
            unpriced: 0,
            overlaps: Overlaps::default(),
            skips: BTreeMap::new(),
            budgets: Vec::new(),
            approvals: Approvals::default(),
            minute: (i64::MIN, 0),
            busiest: (i64::MIN, 0),
            parts: Parts::new(from, until),
            fires: 0,
            failed: None,
        }
    }

    /// Fires, skips included, and turns that have ended so far.
    pub const fn so_far(&self) -> (u64, u64) {
        (self.fires, self.turns.completed + self.turns.failed + self.turns.over_budget)
    }

    /// Why it could not go on.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn note(&mut self, now: Timestamp, note: Note) {
        match note {
            Note::Slot { schedule, outcome, last, count, why } => {
                let queued = self.waiting.remove(&(schedule, last));
                if queued {
                    self.overlaps.queued += 1;
                    let waited_secs = now.ms_since(last) as f64 / 1_000.0;
                    self.overlaps.longest_wait_secs = self.overlaps.longest_wait_secs.max(waited_secs);
                }
                match outcome.as_str() {
                    "overlapped" => self.overlaps.skipped += count,
                    "refused" if !queued => self.overlaps.refused += count,
                    _ => {}
                }
                let reason = self.reasons.place(&why);
                self.fire(now, schedule.0, (last, outcome.as_str(), count), queued, reason, None);
            }
            Note::SlotWaits { schedule, slot } => drop(self.waiting.insert((schedule, slot))),
            Note::Match { trigger, outcome, at, on } => {
                self.fire(now, trigger.0, (at, outcome.as_str(), 1), false, 0, Some(on));
            }
            Note::Ended { origin, end, .. } => {
                let source = match origin {
                    Origin::Trigger { trigger } => trigger.0,
                    Origin::Schedule { schedule } => schedule.0,
                    _ => return,
                };
                let tally = self.sources.entry(source).or_default();
                if end == TurnEnd::Done { tally.completed += 1 } else { tally.failed += 1 }
            }
            Note::Call { agent, usage, priced, .. } => {
                self.calls += 1;
                self.unpriced += u64::from(!priced);
                self.usage = self.usage.plus(usage);
                let tally = self.agents.entry(agent).or_default();
                tally.calls += 1;
                tally.usage = tally.usage.plus(usage);
                self.parts.at(now).cost += usage.cost.0;
            }
        }
    }

    /// A fire has come to its end.
    fn fire(
        &mut self,
        now: Timestamp,
        id: Uuid,
        (nominal, word, count): (Timestamp, &str, u64),
        queued: bool,
        reason: u32,
        event: Option<EventKind>,
    ) {
        // What was made on the way is in no directory; nothing makes any in a rehearsal.
        let Some(card) = self.directory.sources.get(&id) else { return };
        let outcome = OUTCOMES.iter().position(|known| *known == word).unwrap_or_default();
        let (kind, agent) = (card.kind, card.agent);
        self.outcomes[outcome] += count;
        self.fires += count;
        self.sources.entry(id).or_default().outcomes[outcome] += count;
        if outcome == FIRED {
            self.agents.entry(agent).or_default().fires += 1;
            self.parts.at(now).fires += 1;
            self.in_minute(now);
        } else {
            *self.skips.entry((kind, outcome, reason)).or_default() += count;
            self.parts.at(now).skips += count;
        }
        let row = Row {
            kind,
            id,
            agent,
            nominal,
            fired: now,
            outcome: u8::try_from(outcome).unwrap_or_default(),
            queued,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            reason,
            event,
        };
        if let Err(error) = self.spool.push(&row) {
            self.failed = Some(format!("the list of fires could not be written: {error}"));
        }
        if self.fires > limit::REHEARSAL_FIRES_MAX {
            let most = limit::REHEARSAL_FIRES_MAX;
            self.failed = Some(format!("more than {most} fires; rehearse a shorter time"));
        }
    }

    /// Time only goes on, so that one minute is counted at a time.
    fn in_minute(&mut self, now: Timestamp) {
        let minute = now.0.div_euclid(MINUTE_MS);
        if self.minute.0 != minute {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        if self.minute.1 > self.busiest.1 {
            self.busiest = self.minute;
        }
    }

    fn event(&mut self, now: Timestamp, event: Event, engine: &mut Engine) {
        match event {
            Event::TurnCompleted { agent, .. } => {
                self.turns.completed += 1;
                self.agents.entry(agent).or_default().turns += 1;
                self.parts.at(now).turns += 1;
            }
            Event::TurnFailed { agent, code, .. } => {
                let over_budget = code == EXCEEDED.as_str();
                if over_budget {
                    self.turns.over_budget += 1
                } else {
                    self.turns.failed += 1
                }
                let tally = self.agents.entry(agent).or_default();
                tally.turns += 1;
                tally.failed += 1;
                tally.over_budget += u64::from(over_budget);
                self.parts.at(now).turns += 1;
            }
            Event::BudgetWarning { scope, period, agent } => {
                self.budget(now, "warning", (scope, period, agent), engine)
            }
            Event::BudgetExceeded { scope, period, agent } => {
                self.budget(now, "exceeded", (scope, period, agent), engine);
            }
            Event::ApprovalRequested { agent, tool, .. } => {
                self.approvals.requested += 1;
                if self.approvals.items.len() < LINES_MAX {
                    self.approvals.items.push(agentsvc_api::rehearsal::runs::ApprovalLine {
                        agent_id: agent.0,
                        agent_name: self.directory.name(agent).to_owned(),
                        tool,
                        at: now.to_string(),
                    });
                }
            }
            Event::ApprovalResolved { decision, .. } if decision == "expired" => self.approvals.expired += 1,
            _ => {}
        }
    }

    fn budget(
        &mut self,
        now: Timestamp,
        event: &'static str,
        (scope, period, agent): (String, String, Option<AgentId>),
        engine: &mut Engine,
    ) {
        if self.budgets.len() >= LINES_MAX {
            return;
        }
        let limits = limits_of(engine, agent.map_or(Scope::Global, Scope::Agent));
        let limit_usd = match period.as_str() {
            "daily" => limits.daily,
            "monthly" => limits.monthly,
            _ => None,
        };
        self.budgets.push(BudgetLine {
            scope,
            agent_id: agent.map(|agent| agent.0),
            agent_name: agent.map(|agent| self.directory.name(agent).to_owned()),
            event,
            limit_usd: limit_usd.map(Micros::usd),
            limit_tokens: limits.hourly_tokens.filter(|_| period == "hourly"),
            period,
            at: now.to_string(),
        });
    }

    fn busiest_minute(&self) -> Option<BusiestMinute> {
        let (minute, fires) = self.busiest;
        (fires > 0).then(|| BusiestMinute { at: Timestamp(minute * MINUTE_MS).to_string(), fires })
    }
}

impl Watcher for Collector {
    fn step(&mut self, step: Step, engine: &mut Engine) -> ControlFlow<()> {
        let Step { now, events, notes } = step;
        notes.into_iter().for_each(|note| self.note(now, note));
        events.into_iter().for_each(|happened| self.event(now, happened.event, engine));
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The limits in force at `scope`; none when its agent is gone.
fn limits_of(engine: &mut Engine, scope: Scope) -> Limits {
    let (sender, receiver) = std::sync::mpsc::channel();
    let slot = ReplySlot::new(move |reply| drop(sender.send(reply)));
    engine.command(Actor::System, GetBudget(scope), slot);
    receiver.try_recv().ok().and_then(Result::ok).map(|view| view.limits).unwrap_or_default()
}
