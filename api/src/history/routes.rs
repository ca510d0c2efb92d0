//! What happened in the installation, for charts of the past.

use agentsvc_components::history::Activity;
use agentsvc_systems::history::{GetOpenHours, Hour};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::series::{Series, Step};
use super::store::HistoryStore;
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::{Moment, parse, timestamp_now};

/// What an answer costs the client's rate budget: it reads much.
const COST: u32 = 10;
/// Milliseconds of the range where none is named: a day.
const RANGE_MS: i64 = 24 * 60 * 60 * 1_000;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/history", "Get what happened by minute, hour or day", |call| Box::pin(history(call)))
        .cost(COST)
        .query::<HistoryQuery>()
        .replies(&[Reply::json::<HistoryBody>(200, "the steps, oldest first")])];

/// The time and its steps.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct HistoryQuery {
    /// The beginning, RFC 3339. Default: 24 hours before `to`.
    from: Option<String>,
    /// The end, RFC 3339. Default: now.
    to: Option<String>,
    /// `minute`, `hour` (default) or `day`.
    step: Option<String>,
}

/// What happened.
#[derive(Serialize, JsonSchema)]
struct HistoryBody {
    /// Including steps in which nothing happened.
    points: Vec<Point>,
    total: usize,
}

shape! {
    /// What happened in one step.
    struct Figures from activity: &Activity {
        let turns = activity.turns();
    } {
        /// Turns that ended.
        turns: u64 = turns,
        /// Turns with an answer.
        turns_completed: u64 = activity.turns_completed,
        turns_failed: u64 = activity.turns_failed,
        turns_stopped: u64 = activity.turns_stopped,
        turns_interrupted: u64 = activity.turns_interrupted,
        /// Average time from message to end of the turns that ended, in milliseconds; null without any.
        turn_ms_average: Option<u64> = activity.turn_ms.checked_div(turns),
        /// 95 % of these turns took no longer, to within 10 %; null without any.
        turn_ms_p95: Option<u64> = activity.duration_ms_at(95),
        /// Model calls with any outcome.
        model_calls: u64 = activity.model_calls,
        /// Model calls that failed or were interrupted by a crash.
        model_calls_failed: u64 = activity.model_calls_failed,
        input_tokens: u64 = activity.input_tokens,
        output_tokens: u64 = activity.output_tokens,
        cost_usd: f64 = activity.cost.usd(),
        /// Tool calls with any outcome.
        tool_calls: u64 = activity.tool_calls,
        /// Tool calls that failed, were refused, or were interrupted by a crash.
        tool_calls_failed: u64 = activity.tool_calls_failed,
        /// Messages over the REST API, WebSockets and the OpenAI-compatible endpoint, including those of the web page.
        client_messages: u64 = activity.client_messages,
        /// Messages of channels.
        chat_messages: u64 = activity.chat_messages,
        /// Messages of other agents, of this daemon or over A2A and the network.
        agent_messages: u64 = activity.agent_messages,
        /// Messages of schedules, triggers, workflows, hooks and auto-dream.
        automatic_messages: u64 = activity.automatic_messages,
        /// The most turns that waited for a slot of their provider at the same time.
        turns_waiting_max: u64 = activity.turns_waiting_max,
    }
}

/// One step.
#[derive(Serialize, JsonSchema)]
struct Point {
    /// When it begins.
    from: Moment,
    #[serde(flatten)]
    figures: Figures,
}

async fn history(call: Call) -> Result<Response, Error> {
    let query: HistoryQuery = call.query()?;
    let named = |field: &str, text: &Option<String>| text.as_deref().map(|text| parse(field, text)).transpose();
    let (from, to) = (named("from", &query.from)?, named("to", &query.to)?);
    let to = to.unwrap_or_else(timestamp_now);
    let from = from.unwrap_or_else(|| to.plus_ms(-RANGE_MS));
    let unknown = || Error::bad_field("step", "step: expected minute, hour or day");
    let step = query.step.as_deref().map_or(Some(Step::default()), Step::parse).ok_or_else(unknown)?;
    let mut series = Series::new(from, to, step)?;
    // The world first: what it closes meanwhile stands on the disk under an hour and a number that it has told.
    let open = call.ask(GetOpenHours).await?;
    let store = call.api.service::<dyn HistoryStore>()?;
    let read = spawn_blocking(move || {
        let is_told = |it: &Hour| open.iter().any(|told| (told.hour, told.number) == (it.hour, it.number));
        let (first, last) = series.hours();
        store.hours(first, last, &mut |hour| {
            if !is_told(&hour) {
                series.add(&hour);
            }
        })?;
        open.iter().for_each(|hour| series.add(hour));
        Ok::<_, Error>(series)
    });
    let series = read.await.map_err(|_| Error::internal("the history could not be read"))??;
    let point = |(at, activity)| Point { from: Moment(series.begins(at)), figures: Figures::from(activity) };
    let points: Vec<Point> = series.points.iter().enumerate().map(point).collect();
    reply::ok(&HistoryBody { total: points.len(), points })
}
