//! How much waits in the queue, and how much goes through it.

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::task::{Task, TaskState};

use super::Tasks;
use super::window::Throughput;
use crate::agent;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::state;
use crate::task::metrics::TaskTotals;

/// A reading of the task queue. Costs the same however many tasks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Pending tasks.
    pub pending: usize,
    /// Tasks that are claimed.
    pub running: usize,
    /// Tasks that are done and still kept.
    pub completed: usize,
    /// Tasks that failed and are still kept.
    pub failed: usize,
    /// Tasks cancelled since the daemon started.
    pub cancelled: u64,
    /// Creation time of the oldest pending task.
    pub oldest_pending_at: Option<Timestamp>,
    /// Tasks completed in the last minute, to the second.
    pub completed_last_minute: u64,
    /// Tasks completed in the last hour, to the minute.
    pub completed_last_hour: u64,
    /// Tasks failed in the last minute, to the second.
    pub failed_last_minute: u64,
    /// Tasks failed in the last hour, to the minute.
    pub failed_last_hour: u64,
    /// Claims expired since the daemon started.
    pub claims_expired: u64,
}

/// Reads how the task queue does (spec 2, Task queue).
#[derive(Clone, Copy, Debug)]
pub struct GetQueueStatus;

command!(quick "get_queue_status" GetQueueStatus => QueueStatus, Root, |_, world| Answer::Now(agent::check_shared(world, "tasks").map(|()| status(world))));

fn status(world: &World) -> QueueStatus {
    let (tasks, counters) = (world.resource::<Tasks>(), world.resource::<TaskTotals>());
    let now = world.resource::<Now>().0;
    let throughput = world.resource::<Throughput>();
    let oldest = tasks.oldest_waiting().and_then(|id| state::<Task>(world, id));
    let [completed_last_minute, completed_last_hour] = throughput.completed(now);
    let [failed_last_minute, failed_last_hour] = throughput.failed(now);
    QueueStatus {
        pending: tasks.count(TaskState::Pending),
        running: tasks.count(TaskState::Running),
        completed: tasks.count(TaskState::Completed),
        failed: tasks.count(TaskState::Failed),
        cancelled: counters.cancelled,
        oldest_pending_at: oldest.map(|task| task.created_at),
        completed_last_minute,
        completed_last_hour,
        failed_last_minute,
        failed_last_hour,
        claims_expired: counters.claims_expired,
    }
}
