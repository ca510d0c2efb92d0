//! Metrics of turns.

use bevy_ecs::prelude::Resource;

use super::ToolLane;
use crate::kernel::index::Index;
use crate::kernel::metric::Metric;
use crate::model::ModelTotals;
use crate::usage::CallTotals;

/// Turns since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct TurnTotals {
    /// Messages taken.
    pub messages: u64,
    /// Turns that gave an answer.
    pub completed: u64,
    /// Turns that ended in an error.
    pub failed: u64,
    /// Turns that were stopped.
    pub stopped: u64,
    /// Turns that were interrupted.
    pub interrupted: u64,
    /// Turns resumed after a restart.
    pub resumed: u64,
    /// Completed tool calls.
    pub tool_calls: u64,
    /// Tool calls with unknown effect: the daemon crashed while they ran.
    pub tools_unknown: u64,
    /// Messages of agents to agents refused because too many turns were begun one after the other.
    pub too_deep: u64,
    /// Messages of agents to agents refused because a minute had too many.
    pub rate_limited: u64,
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_turns_open", "Open turns, including queued ones.", |world, out| {
        out.value(world.resource::<Index>().turn_count())
    }),
    Metric::gauge("agentsvc_tools_out", "Active tool calls.", |world, out| {
        out.value(world.resource::<ToolLane>().out())
    }),
    Metric::counter(
        "agentsvc_tools_unknown_total",
        "Tool calls with unknown effect: the daemon crashed while they ran.",
        |world, out| out.value(world.resource::<TurnTotals>().tools_unknown),
    ),
    Metric::counter("agentsvc_messages_total", "Messages received.", |world, out| {
        out.value(world.resource::<TurnTotals>().messages)
    }),
    Metric::counter(
        "agentsvc_agent_messages_refused_total",
        "Messages from agent to agent refused by the limits of cascades, by reason.",
        |world, out| {
            let totals = world.resource::<TurnTotals>();
            out.labelled(("reason", "too_deep"), totals.too_deep);
            out.labelled(("reason", "rate_limited"), totals.rate_limited);
        },
    ),
    Metric::counter("agentsvc_turns_total", "Ended turns, by outcome.", |world, out| {
        let totals = world.resource::<TurnTotals>();
        out.labelled(("end", "completed"), totals.completed);
        out.labelled(("end", "failed"), totals.failed);
        out.labelled(("end", "stopped"), totals.stopped);
        out.labelled(("end", "interrupted"), totals.interrupted);
    }),
    Metric::counter("agentsvc_turns_resumed_total", "Turns resumed after the start.", |world, out| {
        out.value(world.resource::<TurnTotals>().resumed)
    }),
    Metric::counter("agentsvc_model_calls_total", "Completed model calls.", |world, out| {
        out.value(world.resource::<ModelTotals>().calls)
    }),
    Metric::counter("agentsvc_tool_calls_total", "Completed tool calls.", |world, out| {
        out.value(world.resource::<TurnTotals>().tool_calls)
    }),
    Metric::counter("agentsvc_tokens_total", "Tokens of model calls, by direction.", |world, out| {
        let totals = world.resource::<CallTotals>();
        out.labelled(("side", "input"), totals.input_tokens);
        out.labelled(("side", "output"), totals.output_tokens);
    }),
];
