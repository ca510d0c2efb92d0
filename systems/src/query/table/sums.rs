//! Budgets, and what is shared or counted: manifests, providers and models.

use agentsvc_components::Micros;
use agentsvc_components::manifest::{Manifest, SessionMode};
use agentsvc_components::usage::UsageSum;

use super::agents::AGENTS;
use super::{Field, Item, Kind, Relation, Row, field};
use crate::budget::{self, BudgetView};
use crate::config::Settings;
use crate::kernel::index;
use crate::query::source::Source;
use crate::query::value::{Type, Value};
use crate::turn::Admission;

pub(super) static BUDGETS: Kind = Kind {
    name: "budgets",
    text: "The budget of everybody together, and that of each agent.",
    fields: &BUDGET_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Whose; nothing for everybody's.",
        follow: |row| match row.item {
            Item::Scope(scope) => index::agent(row.world, scope.agent()?).ok().map(Item::Entity),
            _ => None,
        },
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
    source: Source::Budgets,
};

const BUDGET_FIELDS: [Field; 13] = [
    field("scope", Type::Text, "`global`, or the agent's id.", |row| match row.item {
        Item::Scope(scope) => Value::Text(scope.to_string().into()),
        _ => Value::Null,
    }),
    field("agent_id", Type::Id, "Whose; nothing for everybody's.", |row| match row.item {
        Item::Scope(scope) => Value::maybe(scope.agent(), |id| Value::Id(id.0)),
        _ => Value::Null,
    }),
    field("status", Type::Word(&["ok", "warning", "exceeded"]), "How much of it is spent.", |row| {
        budget(row, |view| Value::text(view.status))
    }),
    field("today_usd", Type::Number, "Dollars of today (UTC).", |row| {
        budget(row, |view| Value::Number(view.today.usd()))
    }),
    field("month_usd", Type::Number, "Dollars of this month.", |row| {
        budget(row, |view| Value::Number(view.month.usd()))
    }),
    field("hour_tokens", Type::Number, "Tokens of this hour.", |row| {
        budget(row, |view| Value::count(view.hour_tokens))
    }),
    field("reserved_usd", Type::Number, "Dollars reserved for calls that are out.", |row| {
        budget(row, |view| Value::Number(view.reserved.usd()))
    }),
    field("total_usd", Type::Number, "Dollars so far.", |row| budget(row, |view| Value::Number(view.total.cost.usd()))),
    field("tokens", Type::Number, "Tokens so far.", |row| budget(row, |view| Value::count(view.total.tokens()))),
    field("requests", Type::Number, "Model calls so far.", |row| budget(row, |view| Value::count(view.total.requests))),
    field("daily_limit_usd", Type::Number, "Dollars of a day.", |row| budget(row, |view| dollars(view.limits.daily))),
    field("monthly_limit_usd", Type::Number, "Dollars of a month.", |row| {
        budget(row, |view| dollars(view.limits.monthly))
    }),
    field("hourly_token_limit", Type::Number, "Tokens of an hour.", |row| {
        budget(row, |view| Value::maybe(view.limits.hourly_tokens, Value::count))
    }),
];

fn dollars(limit: Option<Micros>) -> Value<'static> {
    Value::maybe(limit, |limit| Value::Number(limit.usd()))
}

fn budget<'w>(row: &Row<'w>, read: impl FnOnce(&BudgetView) -> Value<'static>) -> Value<'w> {
    match row.item {
        Item::Scope(scope) => read(&budget::view(row.world, scope)),
        _ => Value::Null,
    }
}

pub(super) static MANIFESTS: Kind = Kind {
    name: "manifests",
    text: "Different manifests; agents with equal ones share one.",
    fields: &MANIFEST_FIELDS,
    relations: &[],
    shown: &["hash", "agents", "provider", "model", "description"],
    source: Source::Manifests,
};

const MANIFEST_FIELDS: [Field; 15] = [
    field("hash", Type::Text, "The first half of the SHA-256 of its stored form, in hexadecimal.", |row| {
        match row.item {
            Item::Manifest(shared, _) => {
                Value::Text(shared.hash.0[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
            }
            _ => Value::Null,
        }
    }),
    field("agents", Type::Number, "Agents that have it.", |row| match row.item {
        Item::Manifest(_, owners) => Value::count(owners.into()),
        _ => Value::Null,
    }),
    field("provider", Type::Text, "The provider that it asks.", |row| {
        of(row, |manifest| Value::text(row.world.resource::<Settings>().provider_of(&manifest.model)))
    }),
    field("model", Type::Text, "The model that it asks.", |row| {
        of(row, |manifest| Value::text(row.world.resource::<Settings>().model_of(&manifest.model)))
    }),
    field("version", Type::Text, "The author's version.", |row| of(row, |manifest| Value::text(&manifest.version))),
    field("author", Type::Text, "Who wrote it.", |row| of(row, |manifest| Value::text(&manifest.author))),
    field("description", Type::Text, "One sentence about the agent.", |row| {
        of(row, |manifest| Value::text(&manifest.description))
    }),
    field("tags", Type::Text, "Its tags, with commas between.", |row| of(row, |manifest| row.joined(&manifest.tags))),
    field("tools", Type::Text, "The tools that it grants, with commas between.", |row| {
        of(row, |manifest| row.joined(&manifest.capabilities.tools))
    }),
    field("skills", Type::Text, "Its skills, with commas between.", |row| {
        of(row, |manifest| row.joined(&manifest.skills))
    }),
    field("fallbacks", Type::Number, "Models to try when the first fails.", |row| {
        of(row, |manifest| Value::count(manifest.fallback_models.len() as u64))
    }),
    field("triggers", Type::Number, "Triggers that are made with an agent of it.", |row| {
        of(row, |manifest| Value::count(manifest.triggers.len() as u64))
    }),
    field("max_tokens", Type::Number, "Bound of one answer in tokens.", |row| {
        of(row, |manifest| Value::maybe(manifest.model.max_tokens, |most| Value::count(most.into())))
    }),
    field("session_mode", Type::Word(&["persistent", "new"]), "Where its fired turns run.", |row| {
        of(row, |manifest| {
            Value::text(match manifest.session_mode {
                Some(SessionMode::New) => "new",
                Some(SessionMode::Persistent) | None => "persistent",
            })
        })
    }),
    field("prompt_bytes", Type::Number, "Bytes of the text that opens every prompt.", |row| {
        of(row, |manifest| Value::count(manifest.system_prompt.len() as u64))
    }),
];

fn of<'w>(row: &Row<'w>, read: impl FnOnce(&'w Manifest) -> Value<'w>) -> Value<'w> {
    match row.item {
        Item::Manifest(shared, _) => read(&shared.manifest),
        _ => Value::Null,
    }
}

pub(super) static PROVIDERS: Kind = Kind {
    name: "providers",
    text: "Providers of models that are asked now, or that turns wait for.",
    fields: &PROVIDER_FIELDS,
    relations: &[],
    shown: &["name", "calls_out", "calls_max"],
    source: Source::Providers,
};

const PROVIDER_FIELDS: [Field; 4] = [
    field("name", Type::Text, "Its name.", |row| provider(row, Value::text)),
    field("calls_out", Type::Number, "Model calls that are out.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Admission>().lane_of(name).0.into()))
    }),
    field("calls_max", Type::Number, "Model calls that may be out at once.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Settings>().calls_max(name).into()))
    }),
    field("agents_waiting", Type::Number, "Agents whose turns wait for a place.", |row| {
        provider(row, |name| Value::count(row.world.resource::<Admission>().lane_of(name).1 as u64))
    }),
];

fn provider<'w>(row: &Row<'w>, read: impl FnOnce(&'w str) -> Value<'w>) -> Value<'w> {
    match row.item {
        Item::Provider(name) => read(name),
        _ => Value::Null,
    }
}

pub(super) static MODELS: Kind = Kind {
    name: "models",
    text: "Models that were asked, with what they used so far.",
    fields: &MODEL_FIELDS,
    relations: &[],
    shown: &["provider", "model", "requests", "input_tokens", "output_tokens", "cost_usd"],
    source: Source::Models,
};

const MODEL_FIELDS: [Field; 8] = [
    field("provider", Type::Text, "Its provider.", |row| match row.item {
        Item::Model(provider, ..) => Value::text(provider),
        _ => Value::Null,
    }),
    field("model", Type::Text, "Its id.", |row| match row.item {
        Item::Model(_, model, _) => Value::text(model),
        _ => Value::Null,
    }),
    field("requests", Type::Number, "Model calls.", |row| used(row, |sum| Value::count(sum.requests))),
    field("input_tokens", Type::Number, "Tokens of prompts.", |row| used(row, |sum| Value::count(sum.input_tokens))),
    field("cached_tokens", Type::Number, "Cached tokens of prompts.", |row| {
        used(row, |sum| Value::count(sum.cached_input_tokens))
    }),
    field("output_tokens", Type::Number, "Tokens of answers.", |row| used(row, |sum| Value::count(sum.output_tokens))),
    field("tokens", Type::Number, "Tokens of both.", |row| used(row, |sum| Value::count(sum.tokens()))),
    field("cost_usd", Type::Number, "Dollars.", |row| used(row, |sum| Value::Number(sum.cost.usd()))),
];

fn used<'w>(row: &Row<'w>, read: impl FnOnce(UsageSum) -> Value<'w>) -> Value<'w> {
    match row.item {
        Item::Model(_, _, sum) => read(sum),
        _ => Value::Null,
    }
}
