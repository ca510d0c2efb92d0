//! Budgets: what may be spent, by everybody and by each agent (spec 3, Budget).

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::{AgentId, Micros, Refusal};
use agentsvc_systems::budget::{AgentBudget, BudgetView, CorrectBudget, GetBudget, ListAgentBudgets, SetBudget};
use agentsvc_systems::usage::Correction;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/budget", "Get the global budget", |call| Box::pin(read(call)))
        .replies(&[Reply::json::<BudgetBody>(200, "limits and spending")]),
    Route::put("/api/budget", "Set the global budget", |call| Box::pin(set(call)))
        .body::<LimitsBody>()
        .replies(&[Reply::json::<BudgetBody>(200, "the updated budget")]),
    Route::post("/api/budget/correct", "Correct what is booked for a budget", |call| Box::pin(correct(call)))
        .body::<CorrectionBody>()
        .replies(&[
            Reply::json::<BudgetBody>(200, "the corrected budget"),
            Reply::error(404, "the agent does not exist"),
            Reply::error(409, "nothing is booked yet"),
        ]),
    Route::get("/api/budget/agents", "List agents by spending", |call| Box::pin(list(call))).replies(&[Reply::json::<
        Vec<AgentRow>,
    >(
        200,
        "the agents with model calls, highest spending first",
    )]),
    Route::get("/api/budget/agents/{id}", "Get the budget of an agent", |call| Box::pin(read_agent(call)))
        .reaching(Reach::Agent)
        .replies(&[Reply::json::<BudgetBody>(200, "limits and spending")]),
    Route::put("/api/budget/agents/{id}", "Set the budget of an agent", |call| Box::pin(set_agent(call)))
        .body::<LimitsBody>()
        .replies(&[Reply::json::<BudgetBody>(200, "the updated budget")]),
    Route::get("/api/budget/users/{id}", "Get the budget of a user", |call| Box::pin(read_user(call)))
        .reaching(Reach::Filtered)
        .replies(&[Reply::json::<BudgetBody>(200, "limits and spending of all agents of the user")]),
    Route::put("/api/budget/users/{id}", "Set the budget of a user", |call| Box::pin(set_user(call)))
        .body::<LimitsBody>()
        .replies(&[Reply::json::<BudgetBody>(200, "the updated budget")]),
];

shape! {
    /// A budget. A limit of 0 means unlimited.
    struct BudgetBody from view: BudgetView {
        let [day, month, hour] = view.resets.map(Moment);
    } {
        /// Absent for the global budget, and for that of a user.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<Uuid> = view.scope.agent().map(|agent| agent.0),
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_name: Option<Box<str>> = view.agent_name,
        /// The user whose budget it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        user_id: Option<Uuid> = view.scope.user().map(|user| user.0),
        daily_limit_usd: f64 = view.limits.daily.unwrap_or_default().usd(),
        monthly_limit_usd: f64 = view.limits.monthly.unwrap_or_default().usd(),
        /// Tokens per clock hour.
        hourly_token_limit: u64 = view.limits.hourly_tokens.unwrap_or(0),
        today_spent_usd: f64 = view.today.usd(),
        month_spent_usd: f64 = view.month.usd(),
        hourly_tokens_used: u64 = view.hour_tokens,
        /// All time.
        total_cost_usd: f64 = view.total.cost.usd(),
        /// The same as `today_spent_usd`.
        today_cost_usd: f64 = view.today.usd(),
        /// Reserved for active calls.
        reserved_usd: f64 = view.reserved.usd(),
        /// `ok`, `warning` (80 % of a limit used) or `exceeded`.
        status: &'static str = view.status,
        daily_reset_at: Moment = day,
        monthly_reset_at: Moment = month,
        hourly_reset_at: Moment = hour,
    }
}

/// New limits. Omitted limits are unchanged; 0 or null removes a limit.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct LimitsBody {
    /// Dollars per UTC day.
    #[serde(deserialize_with = "given")]
    daily_limit_usd: Option<Option<f64>>,
    /// Dollars per calendar month.
    #[serde(deserialize_with = "given")]
    monthly_limit_usd: Option<Option<f64>>,
    /// Tokens per clock hour, at most 2^63 - 1.
    #[serde(deserialize_with = "given")]
    hourly_token_limit: Option<Option<u64>>,
}

/// A key that is there, null or not.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What was really spent in the current periods. Omitted amounts are unchanged.
#[derive(Deserialize, JsonSchema)]
struct CorrectionBody {
    /// The agent whose budget is corrected. Default: the global budget. Other budgets are unchanged.
    agent_id: Option<Uuid>,
    today_spent_usd: Option<f64>,
    month_spent_usd: Option<f64>,
    hourly_tokens_used: Option<u64>,
    /// All time.
    total_cost_usd: Option<f64>,
    /// Reason for the audit log, at most 1 KiB.
    reason: String,
}

impl LimitsBody {
    fn limits(self) -> Result<Limits, Error> {
        let dollars = |field: &str, given: Option<Option<f64>>| {
            let wrong = || Error::bad_field(field, format!("{field}: expected an amount in dollars, 0 or more"));
            given.map(|usd| Micros::from_usd(usd.unwrap_or(0.0)).ok_or_else(wrong)).transpose()
        };
        if self.hourly_token_limit.flatten().is_some_and(|tokens| i64::try_from(tokens).is_err()) {
            let text = format!("hourly_token_limit: must be at most {}", i64::MAX);
            return Err(Error::bad_field("hourly_token_limit", text));
        }
        Ok(Limits {
            daily: dollars("daily_limit_usd", self.daily_limit_usd)?,
            monthly: dollars("monthly_limit_usd", self.monthly_limit_usd)?,
            hourly_tokens: self.hourly_token_limit.map(Option::unwrap_or_default),
        })
    }
}

async fn read(call: Call) -> Result<Response, Error> {
    reply::ok(&BudgetBody::from(call.ask(GetBudget(Scope::Global)).await?))
}

async fn set(call: Call) -> Result<Response, Error> {
    let limits = call.json::<LimitsBody>()?.limits()?;
    reply::ok(&BudgetBody::from(call.ask(SetBudget { scope: Scope::Global, limits }).await?))
}

async fn correct(call: Call) -> Result<Response, Error> {
    let body = call.json::<CorrectionBody>()?;
    let dollars = |field: &str, given: Option<f64>| {
        let wrong = || Error::bad_field(field, format!("{field}: expected an amount in dollars, 0 or more"));
        given.map(|usd| Micros::from_usd(usd).ok_or_else(wrong)).transpose()
    };
    let correction = Correction {
        today: dollars("today_spent_usd", body.today_spent_usd)?,
        month: dollars("month_spent_usd", body.month_spent_usd)?,
        hour_tokens: body.hourly_tokens_used,
        total: dollars("total_cost_usd", body.total_cost_usd)?,
    };
    let scope = body.agent_id.map_or(Scope::Global, |agent| Scope::Agent(AgentId(agent)));
    reply::ok(&BudgetBody::from(call.ask(CorrectBudget { scope, correction, reason: body.reason }).await?))
}

/// Spending of an agent.
#[derive(Serialize, JsonSchema)]
struct AgentRow {
    agent_id: Uuid,
    agent_name: Box<str>,
    total_cost_usd: f64,
    today_cost_usd: f64,
}

async fn list(call: Call) -> Result<Response, Error> {
    let rows = call.ask(ListAgentBudgets).await?.into_iter().map(|row| {
        let AgentBudget { agent, agent_name, total, today } = row;
        AgentRow { agent_id: agent.0, agent_name, total_cost_usd: total.usd(), today_cost_usd: today.usd() }
    });
    reply::ok(&rows.collect::<Vec<_>>())
}

async fn read_agent(call: Call) -> Result<Response, Error> {
    let scope = Scope::Agent(call.id("id")?);
    reply::ok(&BudgetBody::from(call.ask(GetBudget(scope)).await?))
}

async fn set_agent(call: Call) -> Result<Response, Error> {
    let scope = Scope::Agent(call.id("id")?);
    let limits = call.json::<LimitsBody>()?.limits()?;
    reply::ok(&BudgetBody::from(call.ask(SetBudget { scope, limits }).await?))
}

/// A user with a limited role knows of their own budget alone.
async fn read_user(call: Call) -> Result<Response, Error> {
    let user: UserId = call.id("id")?;
    if call.principal.limited_to().is_some_and(|own| own != user) {
        return Err(Refusal::not_found("user", user).into());
    }
    reply::ok(&BudgetBody::from(call.ask(GetBudget(Scope::User(user))).await?))
}

async fn set_user(call: Call) -> Result<Response, Error> {
    let scope = Scope::User(call.id("id")?);
    let limits = call.json::<LimitsBody>()?.limits()?;
    reply::ok(&BudgetBody::from(call.ask(SetBudget { scope, limits }).await?))
}
