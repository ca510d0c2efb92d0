//! Metrics of tasks.

use super::Tasks;
use crate::kernel::metric::{Metric, totals};
use agentsvc_components::task::TaskState;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_tasks_open", "Open tasks, by state.", |world, out| {
        let tasks = world.resource::<Tasks>();
        out.labelled(("state", "pending"), tasks.count(TaskState::Pending));
        out.labelled(("state", "running"), tasks.count(TaskState::Running));
    }),
    Metric::counter("agentsvc_tasks_posted_total", "Tasks posted.", |world, out| out.value(totals(world).tasks_posted)),
    Metric::counter("agentsvc_tasks_total", "Ended tasks, by outcome.", |world, out| {
        let totals = totals(world);
        out.labelled(("end", "completed"), totals.tasks_completed);
        out.labelled(("end", "failed"), totals.tasks_failed);
        out.labelled(("end", "cancelled"), totals.tasks_cancelled);
    }),
    Metric::counter("agentsvc_task_claims_expired_total", "Expired task claims.", |world, out| {
        out.value(totals(world).task_claims_expired)
    }),
];
