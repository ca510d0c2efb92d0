//! Metrics of tasks.

use bevy_ecs::prelude::Resource;

use super::Tasks;
use crate::kernel::metric::Metric;
use agentsvc_components::task::TaskState;

/// Tasks since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct TaskTotals {
    /// Tasks posted.
    pub(super) posted: u64,
    /// Tasks completed.
    pub(super) completed: u64,
    /// Tasks failed.
    pub(super) failed: u64,
    /// Tasks deleted before they were done.
    pub(super) cancelled: u64,
    /// Expired claims.
    pub(super) claims_expired: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_tasks_open", "Open tasks, by state.", |world, out| {
        let tasks = world.resource::<Tasks>();
        out.labelled(("state", "pending"), tasks.count(TaskState::Pending));
        out.labelled(("state", "running"), tasks.count(TaskState::Running));
    }),
    Metric::counter("agentsvc_tasks_posted_total", "Tasks posted.", |world, out| {
        out.value(world.resource::<TaskTotals>().posted)
    }),
    Metric::counter("agentsvc_tasks_total", "Ended tasks, by outcome.", |world, out| {
        let totals = world.resource::<TaskTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
        out.labelled(("end", "cancelled"), totals.cancelled);
    }),
    Metric::counter("agentsvc_task_claims_expired_total", "Expired task claims.", |world, out| {
        out.value(world.resource::<TaskTotals>().claims_expired)
    }),
];
