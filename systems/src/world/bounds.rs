//! Queues and maps stay within the bounds that `components/src/kernel/limit.rs` names.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::limit;

use crate::kernel::check::Faults;
use crate::memory::Memories;
use crate::world::WorldStats;
use crate::{agent, session};

/// Says which bound does not hold.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let stats = WorldStats::of(world);
    let open_tasks = stats.tasks_pending + stats.tasks_running;
    let bounds = [
        ("agents", stats.agents, agent::limits::AGENTS_MAX),
        ("sessions", stats.sessions, session::limits::SESSIONS_MAX),
        ("open turns", stats.turns_open, limit::TURNS_OPEN_MAX),
        ("active model calls", stats.calls_out, limit::EFFECTS_OUT_MAX),
        ("active tool calls", stats.tools_out, limit::TOOLS_OUT_MAX),
        ("approvals pending", stats.approvals_pending, limit::APPROVALS_PENDING_MAX),
        ("triggers", stats.triggers, limit::TRIGGERS_MAX),
        ("matches waiting", stats.matches_waiting, limit::MATCHES_WAITING_MAX),
        ("schedules", stats.schedules + stats.cron_jobs, limit::SCHEDULES_MAX),
        ("goals", stats.goals, limit::GOALS_MAX),
        ("open tasks", open_tasks, limit::TASKS_OPEN_MAX),
        ("open workflow runs", stats.workflow_runs_open, limit::WORKFLOW_RUNS_OPEN_MAX),
        ("workflows", stats.workflows, limit::WORKFLOWS_MAX),
        ("compactions under way", stats.compactions_open, limit::COMPACTIONS_MAX),
        ("ended tasks", stats.tasks.saturating_sub(open_tasks), limit::TASKS_ENDED_MAX),
    ];
    for (what, now, most) in bounds {
        faults.that(now <= most, || format!("{what}: {now}; the limit is {most}"));
    }
    for used in world.resource::<Memories>().records() {
        let (entries, bytes) = (used.entries, used.bytes);
        let holds = entries <= limit::MEMORY_ENTRIES_MAX && bytes <= limit::MEMORY_BYTES_MAX;
        faults.that(holds, || format!("agent {}: {entries} memory entries of {bytes} bytes", used.agent));
    }
}
