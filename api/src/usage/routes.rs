//! What model calls used: totals, today, by model and by day (spec 3, Usage).

use crate::http::blocking::spawn_blocking;
use agentsvc_components::kernel::limit;
use agentsvc_components::usage::UsageSum;
use agentsvc_systems::budget::GetUsageSummary;
use agentsvc_systems::usage::{Days, GetUsage, ListDailyUsage, ListUsageByModel, UsageTotals, UsageWindow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::usage::days::{DayRange, date_of, too_many};
use crate::usage::store::UsageStore;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/usage", "Get the usage of a period", |call| Box::pin(usage(call)))
        .query::<UsageQuery>()
        .replies(&[Reply::json::<UsageBody>(200, "totals")]),
    Route::get("/api/usage/summary", "Get today's usage", |call| Box::pin(summary(call)))
        .query::<RangeQuery>()
        .replies(&[Reply::json::<SummaryBody>(200, "the usage of today and the tokens of this hour")]),
    Route::get("/api/usage/by-model", "Get the usage by model", |call| Box::pin(by_model(call)))
        .query::<RangeQuery>()
        .replies(&[Reply::json::<ByModelBody>(200, "models, most expensive first")]),
    Route::get("/api/usage/daily", "Get the usage by day", |call| Box::pin(daily(call)))
        .query::<DailyQuery>()
        .replies(&[Reply::json::<DailyBody>(200, "days, oldest first")]),
];

/// The period: a rolling window, or whole days.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct UsageQuery {
    /// `hour`, `day`, `week` or `month`: the last 1, 24, 168 or 720 hours. Default: `day`.
    period: Option<String>,
    /// The first day, `YYYY-MM-DD` in UTC.
    start_date: Option<String>,
    /// The last day.
    end_date: Option<String>,
}

/// The range of days.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RangeQuery {
    /// The first day, `YYYY-MM-DD` in UTC.
    start_date: Option<String>,
    /// The last day.
    end_date: Option<String>,
}

/// Totals of a period.
#[derive(Serialize, JsonSchema)]
struct UsageBody {
    /// The requested period; `range` for days.
    period: &'static str,
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_cost_usd: f64,
    /// Model calls with any outcome.
    request_count: u64,
    /// Agents with model calls.
    active_agents: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_date: Option<String>,
}

/// The periods and their hours.
const PERIODS: [(&str, u32); 4] = [("hour", 1), ("day", 24), ("week", 168), ("month", 720)];

async fn usage(call: Call) -> Result<Response, Error> {
    let query: UsageQuery = call.query()?;
    let range = DayRange::read(query.start_date.as_deref(), query.end_date.as_deref())?;
    let named = query.period.as_deref();
    let known = |text: &str| PERIODS.into_iter().find(|(word, _)| *word == text);
    let unknown = || Error::bad_field("period", "period: expected hour, day, week or month");
    let (period, hours) = known(named.unwrap_or("day")).ok_or_else(unknown)?;
    if range.is_open() {
        let totals = call.ask(GetUsage(UsageWindow::Hours(hours))).await?;
        return reply::ok(&body(period, totals, range));
    }
    if named.is_some() {
        return Err(Error::bad_field("period", "period: cannot be combined with start_date or end_date"));
    }
    let mut totals = call.ask(GetUsage(UsageWindow::Days(range.from, range.to))).await?;
    let content = call.api.service::<dyn UsageStore>()?;
    let (from, to) = (range.from.unwrap_or(0), range.to.unwrap_or(i64::MAX - 1));
    let active = spawn_blocking(move || content.active_agents(from, to)).await;
    totals.active_agents = active.map_err(|_| Error::internal("the usage events could not be read"))??;
    reply::ok(&body("range", totals, range))
}

fn body(period: &'static str, totals: UsageTotals, range: DayRange) -> UsageBody {
    let UsageTotals { sum, active_agents } = totals;
    UsageBody {
        period,
        total_input_tokens: sum.input_tokens,
        total_output_tokens: sum.output_tokens,
        total_cost_usd: sum.cost.usd(),
        request_count: sum.requests,
        active_agents,
        start_date: range.from.map(date_of),
        end_date: range.to.map(date_of),
    }
}

shape! {
    /// Totals of one model, day or agent.
    struct Sum from sum: UsageSum {
        let UsageSum { input_tokens, output_tokens, cost, requests, .. } = sum;
    } {
        input_tokens: u64 = input_tokens,
        output_tokens: u64 = output_tokens,
        cost_usd: f64 = cost.usd(),
        /// Model calls.
        requests: u64 = requests,
    }
}

/// Tokens of this hour.
#[derive(Serialize, JsonSchema)]
struct Quota {
    /// 0 if unlimited.
    hourly_token_limit: u64,
    hourly_tokens_used: u64,
    hourly_reset_at: Moment,
}

/// Usage of today.
#[derive(Serialize, JsonSchema)]
struct SummaryBody {
    today: Sum,
    quota: Quota,
    /// The requested days.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Sum>,
}

async fn summary(call: Call) -> Result<Response, Error> {
    let query: RangeQuery = call.query()?;
    let days = DayRange::read(query.start_date.as_deref(), query.end_date.as_deref())?;
    let summary = call.ask(GetUsageSummary).await?;
    let range = if days.is_open() {
        None
    } else {
        Some(call.ask(GetUsage(UsageWindow::Days(days.from, days.to))).await?.sum.into())
    };
    reply::ok(&SummaryBody {
        today: summary.today.into(),
        quota: Quota {
            hourly_token_limit: summary.hourly_token_limit,
            hourly_tokens_used: summary.hourly_tokens_used,
            hourly_reset_at: Moment(summary.hourly_reset_at),
        },
        range,
    })
}

/// Usage of a model.
#[derive(Serialize, JsonSchema)]
struct ModelRow {
    model: Box<str>,
    provider: Box<str>,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    request_count: u64,
}

/// Usage by model.
#[derive(Serialize, JsonSchema)]
struct ByModelBody {
    models: Vec<ModelRow>,
}

async fn by_model(call: Call) -> Result<Response, Error> {
    let query: RangeQuery = call.query()?;
    let DayRange { from, to } = DayRange::read(query.start_date.as_deref(), query.end_date.as_deref())?;
    let models = call.ask(ListUsageByModel { from, to }).await?;
    let rows = models.into_iter().map(|used| ModelRow {
        model: used.model,
        provider: used.provider,
        input_tokens: used.sum.input_tokens,
        output_tokens: used.sum.output_tokens,
        cost_usd: used.sum.cost.usd(),
        request_count: used.sum.requests,
    });
    reply::ok(&ByModelBody { models: rows.collect() })
}

/// The range of days.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DailyQuery {
    /// Number of days up to today, 1 to 366. Default: 7. Cannot be combined with dates.
    days: Option<String>,
    /// The first day, `YYYY-MM-DD` in UTC.
    start_date: Option<String>,
    /// The last day.
    end_date: Option<String>,
}

/// One day.
#[derive(Serialize, JsonSchema)]
struct DayRow {
    date: String,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    request_count: u64,
}

/// The days.
#[derive(Serialize, JsonSchema)]
struct DailyBody {
    /// Including days without usage.
    days: Vec<DayRow>,
    total: usize,
}

async fn daily(call: Call) -> Result<Response, Error> {
    let query: DailyQuery = call.query()?;
    let range = DayRange::read(query.start_date.as_deref(), query.end_date.as_deref())?;
    let days = match query.days.as_deref() {
        Some(_) if !range.is_open() => {
            return Err(Error::bad_field("days", "days: cannot be combined with start_date or end_date"));
        }
        Some(text) => Days::Last(window(text)?),
        None if range.is_open() => Days::Last(7),
        None => {
            range.check_span(crate::http::timestamp::now().timestamp().div_euclid(86_400))?;
            Days::Range(range.from, range.to)
        }
    };
    let days: Vec<DayRow> = call
        .ask(ListDailyUsage(days))
        .await?
        .days
        .into_iter()
        .map(|used| DayRow {
            date: date_of(used.day),
            input_tokens: used.sum.input_tokens,
            output_tokens: used.sum.output_tokens,
            cost_usd: used.sum.cost.usd(),
            request_count: used.sum.requests,
        })
        .collect();
    reply::ok(&DailyBody { total: days.len(), days })
}

/// The number of days of a rolling window.
fn window(text: &str) -> Result<u32, Error> {
    let days: u32 = match text.parse() {
        Ok(days) if days > 0 => days,
        // A number that is too long for any type is too large, not no number.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => u32::MAX,
        _ => return Err(Error::bad_field("days", "days: expected a whole number of at least 1")),
    };
    if days > limit::USAGE_DAYS_MAX {
        return Err(Error::bad_field("days", format!("days: {}", too_many())));
    }
    Ok(days)
}
