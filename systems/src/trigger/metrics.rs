//! Metrics of triggers.

use super::{TriggerTotals, Triggers, Waves};
use crate::kernel::metric::Metric;
use agentsvc_components::trigger::FireOutcome;

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_triggers", "Triggers, enabled or not.", |world, out| {
        out.value(world.resource::<Triggers>().len())
    }),
    Metric::gauge("agentsvc_trigger_matches_waiting", "Trigger matches waiting for delivery.", |world, out| {
        out.value(world.resource::<Waves>().waiting())
    }),
    Metric::counter("agentsvc_trigger_outcomes_total", "Ended trigger matches, by outcome.", |world, out| {
        let counts = &world.resource::<TriggerTotals>().outcomes;
        for outcome in FireOutcome::ALL {
            out.labelled(("outcome", outcome.as_str()), counts.of(outcome));
        }
    }),
    Metric::counter(
        "agentsvc_trigger_turns_over_budget_total",
        "Triggered turns that ended because a budget was exhausted.",
        |world, out| out.value(world.resource::<TriggerTotals>().turns_over_budget),
    ),
];
