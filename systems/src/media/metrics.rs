//! Metrics of media tasks.

use agentsvc_components::media::{MediaFault, MediaKind};
use bevy_ecs::prelude::Resource;

use super::index::MediaTasks;
use crate::kernel::metric::Metric;

/// Tasks since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct MediaTotals {
    completed: [u64; MediaKind::ALL.len()],
    failed: [u64; MediaFault::ALL.len()],
}

impl MediaTotals {
    /// Counts the end of a task.
    pub(super) fn count(&mut self, kind: MediaKind, fault: Option<MediaFault>) {
        match fault {
            None => self.completed[kind as usize] += 1,
            Some(fault) => self.failed[fault as usize] += 1,
        }
    }
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_media_tasks", "Media tasks that are kept, by state.", |world, out| {
        let tasks = world.resource::<MediaTasks>();
        out.labelled(("state", "open"), tasks.open_count());
        out.labelled(("state", "ended"), tasks.len() - tasks.open_count());
    }),
    Metric::counter("agentsvc_media_completed_total", "Completed media tasks, by kind.", |world, out| {
        let totals = world.resource::<MediaTotals>();
        MediaKind::ALL.iter().for_each(|kind| out.labelled(("kind", kind.as_str()), totals.completed[*kind as usize]));
    }),
    Metric::counter("agentsvc_media_failed_total", "Failed media tasks, by reason.", |world, out| {
        let totals = world.resource::<MediaTotals>();
        MediaFault::ALL.iter().for_each(|why| out.labelled(("reason", why.as_str()), totals.failed[*why as usize]));
    }),
];
