//! What queries see of budgets.

use agentsvc_components::usage::Scope;
use agentsvc_components::{AgentId, Micros};
use uuid::Uuid;

use super::BudgetView;
use crate::agent::query::{self, AGENTS, BY_AGENT, named};
use crate::kernel::expr::{Type, Value};
use crate::kernel::index::Index;
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Relation, Row, Source, field};

/// Stands for the budget of everybody together; no agent has this id.
const GLOBAL: Uuid = Uuid::nil();

/// Whose budget the row is.
fn scope(row: &Row<'_>) -> Option<Scope> {
    match row.item {
        Item::Id(GLOBAL) => Some(Scope::Global),
        Item::Id(id) => Some(Scope::Agent(AgentId(id))),
        _ => None,
    }
}

pub(crate) static BUDGETS: Kind = Kind {
    name: "budgets",
    text: "The global budget and the budget of each agent.",
    fields: &BUDGET_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Agent; null for the global budget.",
        follow: |row| query::row_of(row, scope(row)?.agent()),
    }],
    shown: &[
        "scope",
        "agent.name",
        "status",
        "today_usd",
        "daily_limit_usd",
        "month_usd",
        "monthly_limit_usd",
        "total_usd",
    ],
    source: Source {
        lookups: &[Lookup {
            fields: BY_AGENT,
            rows: |page, agent| {
                let agent = named(page.world, agent);
                page.one(agent.map(|(id, _)| Item::Id(id.0)))
            },
        }],
        // A budget is summed up for each of its fields.
        cost: 8,
        ..Source::of(|page| {
            let global = matches!(page.cursor, Cursor::Start).then_some(GLOBAL);
            let agents = page.world.resource::<Index>().agents_after(page.after().map(AgentId));
            let scopes = global.into_iter().chain(agents.map(|(id, _)| id.0));
            page.walk(scopes.map(|id| (id, Item::Id(id))), Cursor::After)
        })
    },
};

const BUDGET_FIELDS: [Field; 13] = [
    field("scope", Type::Text, "`global`, or the agent's id.", |row| {
        Value::maybe(scope(row), |scope| Value::Text(scope.to_string().into()))
    }),
    field("agent_id", Type::Id, "Agent; null for the global budget.", |row| {
        Value::maybe(scope(row).and_then(Scope::agent), |id| Value::Id(id.0))
    }),
    field("status", Type::Word(&["ok", "warning", "exceeded"]), "Status.", |row| {
        budget(row, |view| Value::text(view.status))
    }),
    field("today_usd", Type::Number, "Spent today (UTC), in dollars.", |row| {
        budget(row, |view| Value::Number(view.today.usd()))
    }),
    field("month_usd", Type::Number, "Spent this month, in dollars.", |row| {
        budget(row, |view| Value::Number(view.month.usd()))
    }),
    field("hour_tokens", Type::Number, "Tokens used this hour.", |row| {
        budget(row, |view| Value::count(view.hour_tokens))
    }),
    field("reserved_usd", Type::Number, "Reserved for active calls, in dollars.", |row| {
        budget(row, |view| Value::Number(view.reserved.usd()))
    }),
    field("total_usd", Type::Number, "Spent so far, in dollars.", |row| {
        budget(row, |view| Value::Number(view.total.cost.usd()))
    }),
    field("tokens", Type::Number, "Tokens used so far.", |row| budget(row, |view| Value::count(view.total.tokens()))),
    field("requests", Type::Number, "Model calls so far.", |row| budget(row, |view| Value::count(view.total.requests))),
    field("daily_limit_usd", Type::Number, "Daily limit in dollars.", |row| {
        budget(row, |view| dollars(view.limits.daily))
    }),
    field("monthly_limit_usd", Type::Number, "Monthly limit in dollars.", |row| {
        budget(row, |view| dollars(view.limits.monthly))
    }),
    field("hourly_token_limit", Type::Number, "Hourly token limit.", |row| {
        budget(row, |view| Value::maybe(view.limits.hourly_tokens, Value::count))
    }),
];

fn dollars(limit: Option<Micros>) -> Value<'static> {
    Value::maybe(limit, |limit| Value::Number(limit.usd()))
}

fn budget<'w>(row: &Row<'w>, read: impl FnOnce(&BudgetView) -> Value<'static>) -> Value<'w> {
    Value::maybe(scope(row), |scope| read(&super::view(row.world, scope)))
}
