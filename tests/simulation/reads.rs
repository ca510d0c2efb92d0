//! Lists agree with counts, however often the world was changed.

use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_systems::agent::{AgentFilter, ListAgents};
use agentsvc_systems::approval::{CountApprovals, ListApprovals};
use agentsvc_systems::goal::{GoalFilter, ListGoals};
use agentsvc_systems::schedule::ListSchedules;
use agentsvc_systems::session::ListSessions;
use agentsvc_systems::task::{ListTasks, TaskFilter};
use agentsvc_systems::trigger::ListTriggers;
use agentsvc_systems::workflow::ListWorkflows;

use super::harness::Harness;

/// Reads every list, whole, and compares it with the world's own counts.
pub(crate) fn read(harness: &mut Harness) -> Result<(), String> {
    let stats = harness.engine.stats();
    let limit = limit::PAGE_ITEMS_MAX;
    let wrong = |refusal: agentsvc_components::Refusal| refusal.message;
    let agents =
        harness.read(ListAgents { filter: AgentFilter::default(), after: None, limit }).map_err(wrong)?.items.len();
    let sessions = harness.read(ListSessions { limit, ..ListSessions::default() }).map_err(wrong)?.items.len();
    let triggers = harness.read(ListTriggers { agent: None, after: None, limit }).map_err(wrong)?.items.len();
    let goals = ListGoals { filter: GoalFilter::default(), after: None, limit };
    let goals = harness.read(goals).map_err(wrong)?.items.len();
    let tasks = harness.read(ListTasks { filter: TaskFilter::default(), after: None, limit }).map_err(wrong)?;
    let open = tasks.items.iter().filter(|view| view.task.state.is_open()).count();
    let workflows = harness.read(ListWorkflows { filter: (), after: None, limit }).map_err(wrong)?.items.len();
    let pending = harness.read(ListApprovals { limit, ..ListApprovals::default() }).map_err(wrong)?.items.len();
    let counted = harness.read(CountApprovals).map_err(wrong)?.pending;
    let kinds = [ScheduleKind::Schedule, ScheduleKind::Cron];
    let mut plans = [0; 2];
    for (kind, count) in kinds.into_iter().zip(&mut plans) {
        *count = harness.read(ListSchedules { kind, agent: None, after: None, limit }).map_err(wrong)?.items.len();
    }
    let listed = [agents, sessions, triggers, goals, open, workflows, pending, plans[0], plans[1]];
    let counts = [
        stats.agents,
        stats.sessions,
        stats.triggers,
        stats.goals,
        stats.tasks_pending + stats.tasks_running,
        stats.workflows,
        counted,
        stats.schedules,
        stats.cron_jobs,
    ];
    if listed == counts { Ok(()) } else { Err(format!("lists have {listed:?}, and counts are {counts:?}")) }
}
