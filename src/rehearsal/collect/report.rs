//! What was counted becomes the report.

use std::time::Duration;

use agentsvc_api::rehearsal::runs::{
    AgentLine, Cost, OUTCOMES, OutcomeCounts, RefusedEvent, Report, SkipLine, SourceLine, Tokens, Told,
};
use agentsvc_components::{AgentId, Timestamp};
use uuid::Uuid;

use super::{AgentTally, Collector, Counts, SourceTally, WAITING};
use crate::rehearsal::directory::Directory;
use crate::rehearsal::forecast::{Forecast, INTERVAL};
use crate::rehearsal::fork::Fate;
use crate::rehearsal::spool::{Reasons, Row};

/// Lines of sources, and of agents, in a report.
const LINES_MAX: usize = 1_000;
/// Lines of skips.
const SKIPS_MAX: usize = 100;

/// How a rehearsal ended.
pub struct Ending {
    /// Virtual time reached.
    pub until: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// Turns that had not ended.
    pub open: u64,
    /// Results of the injected events.
    pub fate: Fate,
}

impl Collector {
    /// Makes the report, and gives what the list of fires needs to be read: its rows, reasons and names.
    pub fn finish(mut self, ending: Ending) -> std::io::Result<(Report, u64, Reasons, Directory)> {
        self.still_waiting(ending.until)?;
        self.spool.flush()?;
        self.turns.open = ending.open;
        let (rows, left_out) = self.spool.counts();
        let (agents, cost) = self.agent_lines();
        let agents_left_out = agents.len().saturating_sub(LINES_MAX);
        let sources = self.source_lines();
        let report = Report {
            rehearsed_until: ending.until.to_string(),
            seconds: ending.took.as_secs_f64(),
            outcomes: counts(&self.outcomes),
            fires_listed: rows,
            fires_left_out: left_out,
            turns: self.turns,
            calls: self.calls,
            tokens: Tokens { input: self.usage.input_tokens, output: self.usage.output_tokens },
            cost,
            overlaps: self.overlaps,
            skips: self.skip_lines(),
            budgets: std::mem::take(&mut self.budgets),
            approvals: std::mem::take(&mut self.approvals),
            events: told(ending.fate),
            busiest_minute: self.busiest_minute(),
            sources_left_out: self.sources.len().saturating_sub(sources.len()),
            sources,
            agents: agents.into_iter().take(LINES_MAX).collect(),
            agents_left_out,
            timeline: self.parts.shape(),
        };
        Ok((report, rows, self.reasons, self.directory))
    }

    /// Slots that are queued still have a line, too.
    fn still_waiting(&mut self, until: Timestamp) -> std::io::Result<()> {
        let mut waiting: Vec<_> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(schedule, slot)| (*slot, *schedule));
        for (schedule, slot) in waiting {
            let Some(card) = self.directory.sources.get(&schedule.0) else { continue };
            let (kind, agent) = (card.kind, card.agent);
            self.overlaps.waiting += 1;
            self.outcomes[WAITING] += 1;
            self.sources.entry(schedule.0).or_default().outcomes[WAITING] += 1;
            let outcome = u8::try_from(WAITING).unwrap_or_default();
            let (id, queued, count, reason) = (schedule.0, true, 1, 0);
            let row = Row { kind, id, agent, nominal: slot, fired: until, outcome, queued, count, reason, event: None };
            self.spool.push(&row)?;
        }
        Ok(())
    }

    /// The busiest sources first.
    fn source_lines(&self) -> Vec<SourceLine> {
        let mut sources: Vec<(&Uuid, &SourceTally)> = self.sources.iter().collect();
        let busy = |tally: &SourceTally| tally.outcomes.iter().sum::<u64>();
        sources.sort_unstable_by_key(|(id, tally)| (std::cmp::Reverse(busy(tally)), **id));
        let line = |(id, tally): (&Uuid, &SourceTally)| {
            let card = self.directory.sources.get(id)?;
            Some(SourceLine {
                kind: card.kind.as_str(),
                id: *id,
                name: card.name.as_deref().map(str::to_owned),
                rule: card.rule.to_string(),
                agent_id: card.agent.0,
                agent_name: self.directory.name(card.agent).to_owned(),
                outcomes: counts(&tally.outcomes),
                turns_completed: tally.completed,
                turns_failed: tally.failed,
            })
        };
        sources.into_iter().filter_map(line).take(LINES_MAX).collect()
    }

    /// The dearest agents first, and the forecast of them all.
    fn agent_lines(&self) -> (Vec<AgentLine>, Cost) {
        let mut agents: Vec<(AgentId, AgentTally)> = self.agents.iter().map(|(id, tally)| (*id, *tally)).collect();
        // Sums of money do not depend on the order of a map.
        agents.sort_unstable_by_key(|(id, _)| *id);
        let (mut sum, mut cost) = (Forecast::default(), Cost { interval: INTERVAL, ..Cost::default() });
        let mut lines = Vec::with_capacity(agents.len());
        for (id, tally) in agents {
            let costs = self.costs.get(&id).copied().unwrap_or_default();
            let usd = tally.usage.cost.usd();
            // Turns that a budget ended are not among those that are paid.
            let paid = tally.turns - tally.over_budget;
            let known = Forecast::from_history(costs, paid);
            let forecast = known.unwrap_or_else(|| Forecast::from_estimate(usd));
            sum = sum.plus(forecast);
            if known.is_some() {
                cost.agents_with_history += 1;
            } else {
                cost.agents_estimated += 1;
            }
            let (low_usd, high_usd) = forecast.interval();
            lines.push(AgentLine {
                id: id.0,
                name: self.directory.name(id).to_owned(),
                fires: tally.fires,
                turns: tally.turns,
                turns_failed: tally.failed,
                calls: tally.calls,
                input_tokens: tally.usage.input_tokens,
                output_tokens: tally.usage.output_tokens,
                rehearsed_usd: usd,
                forecast_usd: forecast.usd,
                low_usd,
                high_usd,
                basis: if known.is_some() { "history" } else { "estimate" },
                history_turns: costs.count,
            });
        }
        lines.sort_by(|one, other| {
            other
                .forecast_usd
                .total_cmp(&one.forecast_usd)
                .then(other.fires.cmp(&one.fires))
                .then(one.id.cmp(&other.id))
        });
        cost.rehearsed_usd = self.usage.cost.usd();
        cost.unpriced_calls = self.unpriced;
        cost.forecast_usd = sum.usd;
        (cost.low_usd, cost.high_usd) = sum.interval();
        (lines, cost)
    }

    /// The most frequent first.
    fn skip_lines(&self) -> Vec<SkipLine> {
        let lines = self.skips.iter().map(|((kind, outcome, reason), count)| SkipLine {
            kind: kind.as_str(),
            outcome: OUTCOMES[*outcome],
            reason: self.reasons.text(*reason).to_owned(),
            count: *count,
        });
        let mut lines: Vec<SkipLine> = lines.collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.count));
        lines.truncate(SKIPS_MAX);
        lines
    }
}

fn counts(counts: &Counts) -> OutcomeCounts {
    let there = OUTCOMES.into_iter().zip(counts.iter().copied()).filter(|(_, count)| *count > 0);
    OutcomeCounts(there.collect())
}

fn told(fate: Fate) -> Told {
    let refused = fate.refused.into_iter().map(|(number, reason)| RefusedEvent { number, reason });
    Told { told: fate.told, refused: refused.collect() }
}
