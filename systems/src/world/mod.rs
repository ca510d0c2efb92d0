//! Numbers about the whole world that cost nothing to read.

mod bounds;

use bevy_ecs::prelude::World;

use crate::agent::manifests::Manifests;
use crate::approval::Approvals;
use crate::budget::Budgets;
use crate::compaction::{CompactionTotals, Compactions};
use crate::goal::Goals;
use crate::kernel::command::{Answer, command};
use crate::kernel::domain::Domain;
use crate::kernel::engine::Engine;
use crate::kernel::index::Index;
use crate::kernel::metric::Samples;
use crate::model::admission::Admission;
use crate::schedule::ScheduleTotals;
use crate::task::Tasks;
use crate::trigger::{TriggerTotals, Triggers, Waves};
use crate::turn::{ToolLane, TurnTotals};
use crate::usage::CallTotals;
use crate::workflow::{Definitions, Workflows};
use crate::{audit, schedule};
use agentsvc_components::schedule::Tally;
use agentsvc_components::task::TaskState;
use agentsvc_components::trigger::FireOutcome;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[
        "agent",
        "approval",
        "audit",
        "budget",
        "compaction",
        "goal",
        "memory",
        "model",
        "schedule",
        "session",
        "task",
        "trigger",
        "turn",
        "usage",
        "workflow",
    ],
    check: bounds::check,
    ..Domain::named("world")
};

/// A reading of the world.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorldStats {
    /// Live agents.
    pub agents: usize,
    /// Sessions.
    pub sessions: usize,
    /// Sessions created for a single request, not listed.
    pub sessions_hidden: usize,
    /// Different manifests.
    pub manifests: usize,
    /// Open turns, including queued ones.
    pub turns_open: usize,
    /// Turns waiting for a slot of their provider.
    pub turns_waiting: usize,
    /// Model calls out.
    pub calls_out: usize,
    /// Tool calls out.
    pub tools_out: usize,
    /// Compactions under way.
    pub compactions_open: usize,
    /// Turns and compactions waiting for budget reserved by other calls.
    pub budget_waiting: usize,
    /// Audit log entries.
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
    /// Open workflow runs.
    pub workflow_runs_open: usize,
    /// Triggers, enabled or not.
    pub triggers: usize,
    /// Trigger matches waiting for delivery.
    pub matches_waiting: usize,
    /// Schedules.
    pub schedules: usize,
    /// Cron jobs.
    pub cron_jobs: usize,
    /// Pending approvals.
    pub approvals_pending: usize,
    /// Approvals, pending and decided ones.
    pub approvals: usize,
    /// Turns of triggers that ended because a budget was used up, and how matches ended, since the daemon started.
    pub trigger_totals: TriggerTotals,
    /// Slots and turns of schedules and cron jobs since the daemon started, by outcome.
    pub schedule_outcomes: Tally,
    /// Turns since the daemon started.
    pub turn_totals: TurnTotals,
    /// What model calls used since the daemon started.
    pub call_totals: CallTotals,
    /// Compactions since the daemon started.
    pub compaction_totals: CompactionTotals,
}

impl WorldStats {
    /// Turns started by triggers, schedules and cron jobs since the daemon started.
    #[must_use]
    pub const fn fires(&self) -> u64 {
        self.trigger_totals.outcomes.of(FireOutcome::Fired) + self.schedule_outcomes.fired
    }

    fn of(world: &World) -> Self {
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
            audit_entries: world.resource::<audit::AuditChain>().head().kept(),
            goals: world.resource::<Goals>().len(),
            tasks_pending: world.resource::<Tasks>().count(TaskState::Pending),
            tasks_running: world.resource::<Tasks>().count(TaskState::Running),
            tasks: world.resource::<Tasks>().len(),
            workflows: world.resource::<Definitions>().len(),
            workflow_runs: world.resource::<Workflows>().all(),
            workflow_runs_open: world.resource::<Workflows>().open(),
            triggers: world.resource::<Triggers>().len(),
            matches_waiting: world.resource::<Waves>().waiting(),
            schedules,
            cron_jobs,
            approvals_pending: world.resource::<Approvals>().pending(),
            approvals: world.resource::<Approvals>().len(),
            trigger_totals: *world.resource::<TriggerTotals>(),
            schedule_outcomes: world.resource::<ScheduleTotals>().0,
            turn_totals: *world.resource::<TurnTotals>(),
            call_totals: *world.resource::<CallTotals>(),
            compaction_totals: *world.resource::<CompactionTotals>(),
        }
    }
}

/// Reads the numbers.
#[derive(Clone, Copy, Debug)]
pub struct GetStats;

command!(read "get_stats" GetStats => WorldStats, All, |_, world| Answer::read(WorldStats::of(world)));

impl Engine {
    /// Counts and totals; costs the same however large the world is.
    #[must_use]
    pub fn stats(&self) -> WorldStats {
        WorldStats::of(self.world())
    }

    /// Reads all metrics into `samples`; costs the same however large the world is.
    pub fn read_metrics(&self, samples: &mut Samples) {
        samples.read(self.world());
    }
}
