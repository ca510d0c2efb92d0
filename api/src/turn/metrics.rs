//! How an agent has done: tokens of its life, and rates and latencies of its newest turns (spec 1, Other agent routes).

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord};
use agentsvc_systems::agent::{AgentView, GetAgent};
use agentsvc_systems::turn::ListOpenTurns;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;
use crate::turn::store::TraceStore;
use crate::turn::traces;

/// What it costs the client's rate budget: up to a thousand rows are read.
const COST: u32 = 5;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/agents/{id}/metrics", "Get the metrics of an agent", |call| Box::pin(metrics(call)))
        .cost(COST)
        .replies(&[Reply::json::<MetricsBody>(200, "tokens, rates and latencies")])];

/// Metrics of an agent.
#[derive(Serialize, JsonSchema)]
struct MetricsBody {
    agent_id: Uuid,
    /// Tokens of all its model calls since it was created.
    tokens: Tokens,
    /// Their cost; null for models without a price.
    cost_usd: f64,
    /// Turns that the values below are computed from.
    window: Window,
    turns: Turns,
    /// Share of failed turns in the window; 0 if there are none.
    error_rate: f64,
    /// Milliseconds from a message to the end of its turn, including waiting.
    latency_ms: Latency,
    model_calls: Calls,
    tool_calls: Calls,
}

/// Tokens.
#[derive(Serialize, JsonSchema)]
struct Tokens {
    input: u64,
    output: u64,
    total: u64,
}

/// The newest ended turns.
#[derive(Serialize, JsonSchema)]
struct Window {
    /// Number of turns in the window.
    turns: usize,
    /// Maximum size of the window.
    turns_max: usize,
    /// Start of the oldest turn.
    from: Option<Moment>,
    /// End of the newest turn.
    to: Option<Moment>,
}

/// Turns by outcome.
#[derive(Default, Serialize, JsonSchema)]
struct Turns {
    done: usize,
    failed: usize,
    stopped: usize,
    interrupted: usize,
    /// Open turns, including queued ones; not part of the window.
    open: usize,
    /// Average model calls per turn of the window.
    iterations_avg: f64,
}

/// Durations; 0 if there are none.
#[derive(Default, Serialize, JsonSchema)]
struct Latency {
    avg: f64,
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
}

/// Model or tool calls.
#[derive(Serialize, JsonSchema)]
struct Calls {
    total: usize,
    /// Calls that failed or whose outcome is unknown.
    errors: usize,
    /// Calls refused by the loop guard.
    refused: usize,
    error_rate: f64,
    latency_ms: Latency,
}

async fn metrics(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let view = call.ask(GetAgent(agent)).await?;
    let (_, open) = call.ask(ListOpenTurns { agent, limit: 0 }).await?;
    let content = call.api.service::<dyn TraceStore>()?;
    let newest = move |content: &dyn TraceStore| content.traces(agent, None, limit::METRIC_TURNS_MAX);
    let traces = traces::read(content, newest).await?;
    reply::ok(&body(&view, open, &traces))
}

fn body(view: &AgentView, open: usize, traces: &[TraceRecord]) -> MetricsBody {
    let ends = |end| traces.iter().filter(|trace| trace.end == end).count();
    let iterations: u64 = traces.iter().map(|trace| u64::from(trace.iterations)).sum();
    let failed = ends(TurnEnd::Failed);
    MetricsBody {
        agent_id: view.id.0,
        tokens: Tokens {
            input: view.input_tokens,
            output: view.output_tokens,
            total: view.input_tokens.saturating_add(view.output_tokens),
        },
        cost_usd: view.cost.usd(),
        window: Window {
            turns: traces.len(),
            turns_max: limit::METRIC_TURNS_MAX,
            from: traces.last().map(|trace| Moment(trace.started_at)),
            to: traces.iter().map(|trace| trace.ended_at).max().map(Moment),
        },
        turns: Turns {
            done: ends(TurnEnd::Done),
            failed,
            stopped: ends(TurnEnd::Stopped),
            interrupted: ends(TurnEnd::Interrupted),
            open,
            iterations_avg: rate(iterations as f64, traces.len()),
        },
        error_rate: rate(failed as f64, traces.len()),
        latency_ms: latency(traces.iter().map(|trace| trace.ended_at.ms_since(trace.started_at)).collect()),
        model_calls: calls(traces, StepKind::Model),
        tool_calls: calls(traces, StepKind::Tool),
    }
}

fn calls(traces: &[TraceRecord], kind: StepKind) -> Calls {
    let steps = || traces.iter().flat_map(|trace| &trace.steps).filter(move |step| step.kind == kind);
    let total = steps().count();
    let errors = steps().filter(|step| matches!(step.status, StepStatus::Error | StepStatus::Unknown)).count();
    Calls {
        total,
        errors,
        refused: steps().filter(|step| step.status == StepStatus::Refused).count(),
        error_rate: rate(errors as f64, total),
        latency_ms: latency(steps().map(|step| u64::from(step.duration_ms)).collect()),
    }
}

/// `part` of `count`, to four digits behind the point.
fn rate(part: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { (part / count as f64 * 10_000.0).round() / 10_000.0 }
}

/// Percentiles by nearest rank.
fn latency(mut times: Vec<u64>) -> Latency {
    times.sort_unstable();
    let Some(max) = times.last().copied() else { return Latency::default() };
    let percentile = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    Latency {
        avg: rate(times.iter().sum::<u64>() as f64, times.len()),
        p50: percentile(50),
        p95: percentile(95),
        p99: percentile(99),
        max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let of = |times: Vec<u64>| {
            let Latency { p50, p95, p99, max, .. } = latency(times);
            [p50, p95, p99, max]
        };
        assert_eq!(of((1..=100).rev().collect()), [50, 95, 99, 100]);
        assert_eq!(of(vec![7]), [7; 4]);
        assert_eq!(of(vec![]), [0; 4]);
        assert_eq!(of(vec![1, 2, 3, 4]), [2, 4, 4, 4]);
        assert!((latency(vec![1, 2]).avg - 1.5).abs() < f64::EPSILON);
    }
}
