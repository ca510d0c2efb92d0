//! Numbers about the world that cost nothing to read.

use bevy_ecs::prelude::{Resource, World};
use serde::Serialize;

use crate::agent::manifests::Manifests;
use crate::approval::Approvals;
use crate::audit;
use crate::budget::Budgets;
use crate::compaction::Compactions;
use crate::goal::Goals;
use crate::kernel::command::{Answer, Command};
use crate::kernel::index::Index;
use crate::schedule;
use crate::task::Tasks;
use crate::trigger::{Triggers, Waves};
use crate::turn::{Admission, ToolLane};
use crate::workflow::Workflows;
use agentsvc_components::schedule::Tally;
use agentsvc_components::task::TaskState;
use agentsvc_components::trigger::{FireOutcome, OutcomeCounts};

/// Totals since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default, Serialize)]
pub struct Counters {
    /// Messages taken.
    pub messages: u64,
    /// Turns that gave an answer.
    pub turns_completed: u64,
    /// Turns that ended in an error.
    pub turns_failed: u64,
    /// Turns that were stopped.
    pub turns_stopped: u64,
    /// Turns that were interrupted.
    pub turns_interrupted: u64,
    /// Turns resumed after a restart.
    pub turns_resumed: u64,
    /// Model calls that came back, however they ended.
    pub model_calls: u64,
    /// Tool calls that came back.
    pub tool_calls: u64,
    /// Tool calls whose effect is unknown: the daemon died while they ran.
    pub tools_unknown: u64,
    /// Texts from outside that looked like prompt injections.
    pub injections_found: u64,
    /// Those of them that were withheld.
    pub injections_withheld: u64,
    /// Sensitive tool calls of turns that had read untrusted content, which ran and went on record.
    pub tainted_calls_noted: u64,
    /// Such calls that waited for a person.
    pub tainted_calls_gated: u64,
    /// Such calls that were refused.
    pub tainted_calls_refused: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Compactions that ended in a summary.
    pub compactions_completed: u64,
    /// Compactions that ended without one.
    pub compactions_failed: u64,
    /// What model calls cost, in micro-dollars.
    pub cost_micros: u64,
    /// Model calls that were out when the daemon ended: their cost is what was reserved.
    pub model_calls_unknown: u64,
    /// Model calls of models whose price is not known.
    pub model_calls_unpriced: u64,
    /// Turns and compactions refused because a budget is used up.
    pub budget_refusals: u64,
    /// Tasks posted.
    pub tasks_posted: u64,
    /// Tasks completed.
    pub tasks_completed: u64,
    /// Tasks failed.
    pub tasks_failed: u64,
    /// Tasks deleted before they were done.
    pub tasks_cancelled: u64,
    /// Claims of tasks given up because nobody ended them in time.
    pub task_claims_expired: u64,
    /// Custom events published.
    pub events_custom: u64,
    /// Workflow runs that came to their end.
    pub workflow_runs_completed: u64,
    /// Workflow runs that failed.
    pub workflow_runs_failed: u64,
    /// Workflow runs that were cancelled.
    pub workflow_runs_cancelled: u64,
    /// Outcomes that came too late and were dropped.
    pub outcomes_stale: u64,
    /// Turns of triggers that ended because a budget was used up; among the outcomes their matches are `fired`.
    #[serde(skip)]
    pub trigger_turns_over_budget: u64,
    /// How matches of triggers ended.
    #[serde(skip)]
    pub trigger_outcomes: OutcomeCounts,
    /// Outcomes of the slots and turns of schedules and cron jobs.
    pub schedule_outcomes: Tally,
}

impl Counters {
    /// Turns that triggers, schedules and cron jobs began.
    #[must_use]
    pub const fn fires(&self) -> u64 {
        self.trigger_outcomes.of(FireOutcome::Fired) + self.schedule_outcomes.fired
    }
}

/// A reading of the world.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct WorldStats {
    /// Live agents.
    pub agents: usize,
    /// Sessions.
    pub sessions: usize,
    /// Sessions made for one request, which no list shows.
    pub sessions_hidden: usize,
    /// Different manifests.
    pub manifests: usize,
    /// Open turns, queued ones included.
    pub turns_open: usize,
    /// Turns that wait for a slot of their provider.
    pub turns_waiting: usize,
    /// Model calls out.
    pub calls_out: usize,
    /// Tool calls out.
    pub tools_out: usize,
    /// Compactions under way.
    pub compactions_open: usize,
    /// Turns and compactions that wait for money that is reserved for others.
    pub budget_waiting: usize,
    /// Entries of the audit trail that are kept.
    pub audit_entries: u64,
    /// Goals.
    pub goals: usize,
    /// Tasks that wait in the queue.
    pub tasks_pending: usize,
    /// Tasks that are claimed.
    pub tasks_running: usize,
    /// Tasks, open and ended ones.
    pub tasks: usize,
    /// Workflow definitions.
    pub workflows: usize,
    /// Workflow runs, under way and ended ones.
    pub workflow_runs: usize,
    /// Workflow runs under way.
    pub workflow_runs_open: usize,
    /// Triggers, switched off or not.
    pub triggers: usize,
    /// Matches of triggers that wait to be delivered.
    pub matches_waiting: usize,
    /// Schedules.
    pub schedules: usize,
    /// Cron jobs.
    pub cron_jobs: usize,
    /// Approvals that wait for a person.
    pub approvals_pending: usize,
    /// Approvals, pending and decided ones.
    pub approvals: usize,
    /// Totals since the daemon started.
    #[serde(flatten)]
    pub totals: Counters,
}

impl WorldStats {
    pub(crate) fn of(world: &World) -> Self {
        let index = world.resource::<Index>();
        let admission = world.resource::<Admission>();
        let (schedules, cron_jobs) = schedule::counts(world);
        Self {
            agents: index.agent_count(),
            sessions: index.session_count(),
            sessions_hidden: index.hidden_count(),
            manifests: world.resource::<Manifests>().len(),
            turns_open: index.turn_count(),
            turns_waiting: admission.waiting(),
            calls_out: admission.out(),
            tools_out: world.resource::<ToolLane>().out(),
            compactions_open: world.resource::<Compactions>().len(),
            budget_waiting: world.resource::<Budgets>().waiting(),
            audit_entries: world.resource::<audit::Trail>().head().kept(),
            goals: world.resource::<Goals>().len(),
            tasks_pending: world.resource::<Tasks>().count(TaskState::Pending),
            tasks_running: world.resource::<Tasks>().count(TaskState::Running),
            tasks: world.resource::<Tasks>().len(),
            workflows: world.resource::<Workflows>().len(),
            workflow_runs: world.resource::<Workflows>().all(),
            workflow_runs_open: world.resource::<Workflows>().open(),
            triggers: world.resource::<Triggers>().len(),
            matches_waiting: world.resource::<Waves>().waiting(),
            schedules,
            cron_jobs,
            approvals_pending: world.resource::<Approvals>().pending(),
            approvals: world.resource::<Approvals>().len(),
            totals: *world.resource::<Counters>(),
        }
    }
}

/// Reads the numbers.
#[derive(Clone, Copy, Debug)]
pub struct GetStats;

impl Command for GetStats {
    type Reply = WorldStats;
    const NAME: &'static str = "get_stats";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<WorldStats> {
        Answer::read(WorldStats::of(world))
    }
}
