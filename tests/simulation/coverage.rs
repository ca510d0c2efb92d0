//! Which transitions of the tables were taken. A row of a table that no run takes is not tested by any.

use std::collections::BTreeMap;

use agentsvc_components::approval::Approval;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::task::Task;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord};
use agentsvc_components::workflow::record::RunRecord;
use agentsvc_systems::Commit;
use agentsvc_systems::event::told;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::read_as;
use agentsvc_systems::world::WorldStats;

use super::disk::{End, Rows};

/// The transitions that there are: machine, from, to. A turn that goes through `Reserving` within a step is seen behind it.
const TABLE: &[(&str, &str, &str)] = &[
    ("turn", "none", "Queued"),
    ("turn", "none", "Reserving"),
    ("turn", "none", "Calling"),
    ("turn", "none", "failed budget_exceeded"),
    ("turn", "Queued", "Reserving"),
    ("turn", "Queued", "Calling"),
    ("turn", "Queued", "interrupted"),
    ("turn", "Queued", "failed session_removed"),
    ("turn", "Queued", "failed budget_exceeded"),
    ("turn", "Reserving", "Calling"),
    ("turn", "Reserving", "failed budget_exceeded"),
    ("turn", "Reserving", "failed session_removed"),
    ("turn", "WaitingForTools", "failed turn_limit_reached"),
    ("turn", "Reserving", "stopped"),
    ("turn", "Reserving", "interrupted"),
    ("turn", "Calling", "done"),
    ("turn", "Calling", "WaitingForTools"),
    ("turn", "Calling", "WaitingForApproval"),
    ("turn", "Calling", "Reserving"),
    ("turn", "Calling", "failed provider_error"),
    ("turn", "Calling", "failed session_removed"),
    ("turn", "Calling", "failed tool_circuit_breaker"),
    ("turn", "Calling", "Stopping"),
    ("turn", "Calling", "interrupted"),
    ("turn", "Calling", "stopped"),
    ("turn", "WaitingForTools", "WaitingForTools"),
    ("turn", "WaitingForTools", "WaitingForApproval"),
    ("turn", "WaitingForTools", "Reserving"),
    ("turn", "WaitingForTools", "Calling"),
    ("turn", "WaitingForTools", "failed tool_circuit_breaker"),
    ("turn", "WaitingForTools", "failed budget_exceeded"),
    ("turn", "WaitingForTools", "failed session_removed"),
    ("turn", "WaitingForTools", "stopped"),
    ("turn", "WaitingForTools", "interrupted"),
    ("turn", "WaitingForApproval", "WaitingForTools"),
    ("turn", "WaitingForApproval", "Calling"),
    ("turn", "WaitingForApproval", "Reserving"),
    ("turn", "WaitingForApproval", "stopped"),
    ("turn", "WaitingForApproval", "interrupted"),
    ("turn", "WaitingForApproval", "failed session_removed"),
    ("turn", "Stopping", "stopped"),
    ("turn", "Stopping", "failed session_removed"),
    ("turn, restart", "Calling", "Calling"),
    ("turn, restart", "Calling", "Reserving"),
    ("turn, restart", "WaitingForTools", "WaitingForTools"),
    ("turn, restart", "WaitingForApproval", "WaitingForApproval"),
    ("turn, restart", "Stopping", "stopped"),
    ("turn, restart", "Reserving", "Calling"),
    ("turn, restart", "Calling", "stopped"),
    ("step of a turn", "Tool", "Ok"),
    ("step of a turn", "Tool", "Error"),
    ("step of a turn", "Tool", "Unknown"),
    ("step of a turn", "Tool", "Refused"),
    ("step of a turn", "Model", "Stopped"),
    ("run", "none", "Running"),
    ("run", "none", "Completed"),
    ("run", "Running", "Completed"),
    ("run", "Running", "Failed"),
    ("run", "Running", "Cancelled"),
    ("run", "none", "Failed"),
    ("step of a run", "Pending", "Running"),
    ("step of a run", "Pending", "Completed"),
    ("step of a run", "Pending", "Skipped"),
    ("step of a run", "Pending", "Cancelled"),
    ("step of a run", "Running", "Completed"),
    ("step of a run", "Running", "Retrying"),
    ("step of a run", "Running", "Skipped"),
    ("step of a run", "Running", "Failed"),
    ("step of a run", "Running", "Cancelled"),
    ("step of a run", "Retrying", "Running"),
    ("step of a run", "Retrying", "Cancelled"),
    ("approval", "none", "Pending"),
    ("approval", "Pending", "Approved"),
    ("approval", "Pending", "Rejected"),
    ("approval", "Pending", "Expired"),
    ("task", "none", "Pending"),
    ("task", "Pending", "Running"),
    ("task", "Running", "Pending"),
    ("task", "Running", "Completed"),
    ("task", "Running", "Failed"),
    ("task", "Failed", "Pending"),
    ("budget", "", "hourly used up"),
    ("budget", "", "daily used up"),
    ("budget", "", "monthly used up"),
    ("end of the process", "Kill", "none kept"),
    ("end of the process", "Kill", "some kept"),
    ("end of the process", "Kill", "all kept"),
    ("end of the process", "FullDisk", "none kept"),
    ("end of the process", "FullDisk", "some kept"),
    ("end of the process", "SyncFailed", "none kept"),
    ("end of the process", "SyncFailed", "some kept"),
    ("end of the process", "SyncFailed", "all kept"),
    ("end of the process", "Torn", "none kept"),
    ("end of the process", "Torn", "some kept"),
    ("compaction", "", "completed"),
    ("compaction", "", "failed"),
    ("scan of a reply", "", "done"),
    ("scan of a reply", "", "failed"),
    ("scan of a reply", "", "lost"),
    ("scan of a reply", "", "retry"),
];

/// Transitions taken, and how often.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage(BTreeMap<(String, String, String), u64>);

impl Coverage {
    /// Adds another one's.
    pub(crate) fn add(&mut self, other: &Self) {
        for (transition, count) in &other.0 {
            *self.0.entry(transition.clone()).or_default() += count;
        }
    }

    fn note(&mut self, machine: &str, from: impl Into<String>, to: impl Into<String>, times: u64) {
        if times > 0 {
            *self.0.entry((machine.to_owned(), from.into(), to.into())).or_default() += times;
        }
    }

    /// A step: what was stored before it, and what it writes.
    pub(crate) fn step(&mut self, before: &Rows, commit: &Commit, is_fresh: bool) {
        for happened in told::events(commit) {
            if let Event::BudgetExceeded { period, .. } = &happened.event {
                self.note("budget", "", format!("{period} used up"), 1);
            }
        }
        let mut ends = BTreeMap::new();
        for op in commit.ops.iter().filter(|op| op.space == Space::Content && op.key.first() == Some(&b'y')) {
            let Some(trace) = op.value.as_ref().and_then(|row| record::decode::<TraceRecord>(&op.key, row).ok()) else {
                continue;
            };
            if let Some(recalled) = &trace.recalled {
                self.note("memory of a turn", "", recalled.status.as_str(), 1);
            }
            for step in &trace.steps {
                self.note(
                    "step of a turn",
                    if step.kind == StepKind::Tool { "Tool" } else { "Model" },
                    status(step.status),
                    1,
                );
            }
            let code = trace.code.as_deref().unwrap_or_default();
            let end = match trace.end {
                TurnEnd::Failed if code.starts_with("provider") || code == "internal" => {
                    "failed provider_error".to_owned()
                }
                TurnEnd::Failed => format!("failed {code}"),
                end => format!("{end:?}").to_lowercase(),
            };
            ends.insert([&b"t"[..], trace.turn.0.as_bytes()].concat(), end);
        }
        let mut last: BTreeMap<&[u8], Option<&Vec<u8>>> = BTreeMap::new();
        for op in commit.ops.iter().filter(|op| op.space == Space::World) {
            last.insert(&op.key, op.value.as_ref());
        }
        for (key, after) in last {
            let from = before.get(key);
            let machine = if is_fresh && key[0] == b't' { "turn, restart" } else { machine_of(key[0]) };
            if machine.is_empty() {
                continue;
            }
            let name = |row: Option<&Vec<u8>>| row.map_or_else(|| "none".to_owned(), |row| state(key, row));
            let end = ends.get(key).cloned();
            self.note(machine, name(from), end.unwrap_or_else(|| name(after)), 1);
            let run = |row: Option<&Vec<u8>>| read_as::<RunRecord>(key, row?);
            if let (Some(from), Some(to)) = (run(from), run(after)) {
                for (from, to) in from.progress.iter().zip(&to.progress).filter(|(from, to)| from.state != to.state) {
                    self.note("step of a run", from.state.as_str(), to.state.as_str(), 1);
                }
            }
        }
    }

    /// A try to scan what another agent wrote has ended.
    pub(crate) fn scan(&mut self, end: &TryEnd) {
        let end = match end {
            TryEnd::Done(_) => "done",
            TryEnd::Failed(_) => "failed",
            TryEnd::Lost(_) => "lost",
            TryEnd::Retry { .. } => "retry",
        };
        self.note("scan of a reply", "", end, 1);
    }

    /// The process ends, and so many of the steps that wait for a sync are there afterwards.
    pub(crate) fn end(&mut self, end: End, kept: usize, waiting: usize) {
        let what = match kept {
            _ if kept == waiting => "all kept",
            0 => "none kept",
            _ => "some kept",
        };
        self.note("end of the process", format!("{end:?}"), what, 1);
    }

    /// Totals of a world that ends.
    pub(crate) fn stats(&mut self, stats: &WorldStats) {
        for outcome in FireOutcome::ALL {
            self.note("match of a trigger", "", outcome.as_str(), stats.trigger_totals.outcomes.of(outcome));
        }
        for (outcome, count) in stats.schedule_outcomes.counts() {
            self.note("slot of a schedule", "", outcome, count);
        }
        self.note("compaction", "", "completed", stats.compaction_totals.completed);
        self.note("compaction", "", "failed", stats.compaction_totals.failed);
    }

    /// Prints what was taken, and which rows of the tables never were; gives how many those are.
    pub(crate) fn print(&self) -> usize {
        let mut machine = "";
        for ((of, from, to), count) in &self.0 {
            if of != machine {
                println!("{of}:");
                machine = of;
            }
            println!("  {count:>9}  {from} -> {to}");
        }
        let is_taken =
            |row: &(&str, &str, &str)| self.0.contains_key(&(row.0.to_owned(), row.1.to_owned(), row.2.to_owned()));
        let outcomes = FireOutcome::ALL.map(|outcome| ("match of a trigger", "", outcome.as_str()));
        let slots =
            agentsvc_components::schedule::Tally::default().counts().map(|(word, _)| ("slot of a schedule", "", word));
        let rows: Vec<_> = TABLE.iter().copied().chain(outcomes).chain(slots).collect();
        let never: Vec<_> = rows.iter().filter(|row| !is_taken(row)).collect();
        println!("{} of {} transitions of the tables were taken", rows.len() - never.len(), rows.len());
        never.iter().for_each(|(machine, from, to)| println!("  never: {machine}: {from} -> {to}"));
        never.len()
    }
}

const fn status(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Ok => "Ok",
        StepStatus::Error => "Error",
        StepStatus::Unknown => "Unknown",
        StepStatus::Refused => "Refused",
        StepStatus::Stopped => "Stopped",
    }
}

const fn machine_of(kind: u8) -> &'static str {
    match kind {
        b't' => "turn",
        b'n' => "run",
        b'i' => "approval",
        b'j' => "task",
        _ => "",
    }
}

/// The state that a row of a machine is in.
fn state(key: &[u8], row: &[u8]) -> String {
    match key[0] {
        b't' => read_as::<TurnRecord>(key, row).map(|turn| format!("{:?}", turn.state)),
        b'n' => read_as::<RunRecord>(key, row).map(|run| format!("{:?}", run.state)),
        b'i' => record::decode::<Approval>(key, row).map(|approval| format!("{:?}", approval.state)).ok(),
        b'j' => record::decode::<Task>(key, row).map(|task| format!("{:?}", task.state)).ok(),
        _ => None,
    }
    .unwrap_or_default()
}
