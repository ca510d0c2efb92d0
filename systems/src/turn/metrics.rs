//! Metrics of turns.

use super::ToolLane;
use crate::kernel::index::Index;
use crate::kernel::metric::{Metric, totals};

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
        |world, out| out.value(totals(world).tools_unknown),
    ),
    Metric::counter("agentsvc_messages_total", "Messages received.", |world, out| out.value(totals(world).messages)),
    Metric::counter(
        "agentsvc_agent_messages_refused_total",
        "Messages from agent to agent refused by the limits of cascades, by reason.",
        |world, out| {
            let totals = totals(world);
            out.labelled(("reason", "too_deep"), totals.agent_messages_too_deep);
            out.labelled(("reason", "rate_limited"), totals.agent_messages_rate_limited);
        },
    ),
    Metric::counter("agentsvc_turns_total", "Ended turns, by outcome.", |world, out| {
        let totals = totals(world);
        out.labelled(("end", "completed"), totals.turns_completed);
        out.labelled(("end", "failed"), totals.turns_failed);
        out.labelled(("end", "stopped"), totals.turns_stopped);
        out.labelled(("end", "interrupted"), totals.turns_interrupted);
    }),
    Metric::counter("agentsvc_turns_resumed_total", "Turns resumed after the start.", |world, out| {
        out.value(totals(world).turns_resumed)
    }),
    Metric::counter("agentsvc_model_calls_total", "Completed model calls.", |world, out| {
        out.value(totals(world).model_calls)
    }),
    Metric::counter("agentsvc_tool_calls_total", "Completed tool calls.", |world, out| {
        out.value(totals(world).tool_calls)
    }),
    Metric::counter("agentsvc_tokens_total", "Tokens of model calls, by direction.", |world, out| {
        let totals = totals(world);
        out.labelled(("side", "input"), totals.input_tokens);
        out.labelled(("side", "output"), totals.output_tokens);
    }),
];
