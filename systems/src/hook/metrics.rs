//! Metrics of hooks.

use agentsvc_components::hook::HookState;
use bevy_ecs::prelude::Resource;

use super::index::Calls;
use crate::kernel::metric::Metric;

/// Calls since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct HookTotals {
    completed: u64,
    failed: u64,
    stopped: u64,
    timed_out: u64,
    pub(super) repeated: u64,
}

impl HookTotals {
    /// Counts the end of a call.
    pub(super) fn ended(&mut self, how: HookState) {
        match how {
            HookState::Completed => self.completed += 1,
            HookState::Stopped => self.stopped += 1,
            HookState::TimedOut => self.timed_out += 1,
            HookState::Failed | HookState::Waiting | HookState::Running => self.failed += 1,
        }
    }
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_hook_calls", "Hook calls that are kept, by state.", |world, out| {
        let calls = world.resource::<Calls>();
        out.labelled(("state", "waiting"), calls.waiting_count());
        out.labelled(("state", "running"), calls.running_count());
        out.labelled(("state", "ended"), calls.len() - calls.waiting_count() - calls.running_count());
    }),
    Metric::counter("agentsvc_hook_calls_total", "Ended hook calls, by outcome.", |world, out| {
        let totals = world.resource::<HookTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
        out.labelled(("end", "stopped"), totals.stopped);
        out.labelled(("end", "timed_out"), totals.timed_out);
    }),
    Metric::counter(
        "agentsvc_hook_calls_repeated_total",
        "Hook calls that were sent again under the same idempotency key.",
        |world, out| out.value(world.resource::<HookTotals>().repeated),
    ),
];
