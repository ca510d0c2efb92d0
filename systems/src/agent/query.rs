//! What queries see of agents and of their manifests.

use agentsvc_components::agent::{Agent, AgentMode, SpawnedBy};
use agentsvc_components::manifest::{Manifest, ManifestHash, SessionMode, SharedManifest};
use agentsvc_components::usage::{Period, Scope};
use agentsvc_components::{AgentId, Micros, SessionId};
use bevy_ecs::prelude::{Entity, World};

use super::manifests::Manifests;
use crate::config::Settings;
use crate::kernel::expr::{Type, Value};
use crate::kernel::index::{self, Index};
use crate::kernel::table::{Field, Item, Kind, Lookup, Relation, Row, Source, field, id_at};
use crate::usage::Rollups;

/// The fields of what belongs to an agent that name it.
pub(crate) const BY_AGENT: &[&str] = &["agent_id", "agent.id", "agent.name"];

/// The agent that has this id or name.
pub(crate) fn named(world: &World, key: &Value<'_>) -> Option<(AgentId, Entity)> {
    let entity = match key {
        Value::Id(id) => index::agent(world, AgentId(*id)).ok()?,
        Value::Text(name) => index::agent_named(world, name)?,
        _ => return None,
    };
    Some((*world.get::<AgentId>(entity)?, entity))
}

/// The agent `id` as a row.
pub(crate) fn row_of<'w>(row: &Row<'w>, id: Option<AgentId>) -> Option<Item<'w>> {
    index::agent(row.world, id?).ok().map(Item::Entity)
}

pub(crate) static AGENTS: Kind = Kind {
    name: "agents",
    text: "Live agents.",
    fields: &AGENT_FIELDS,
    relations: &[Relation {
        name: "parent",
        to: &AGENTS,
        text: "The agent that spawned it.",
        follow: |row| {
            let parent = row.get::<SpawnedBy>()?.0;
            index::agent(row.world, parent).ok().map(Item::Entity)
        },
    }],
    shown: &["name", "state", "model", "tokens", "cost_usd", "updated_at", "id"],
    source: Source {
        by_id: Some(|world, id| index::agent(world, AgentId(id)).ok()),
        lookups: &[Lookup {
            fields: &["name"],
            rows: |page, name| {
                let agent = named(page.world, name);
                page.one(agent.map(|(_, agent)| Item::Entity(agent)))
            },
        }],
        ..Source::of(|page| {
            let found = page.world.resource::<Index>().agents_after(page.after().map(AgentId));
            page.entities(found.map(|(id, agent)| (id.0, agent)))
        })
    },
};

const AGENT_FIELDS: [Field; 19] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &AgentId| Value::Id(id.0))),
    field("name", Type::Text, "Its name.", |row| row.of(|agent: &Agent| Value::text(&agent.name))),
    field("state", Type::Word(&["Running", "Stopped", "Crashed", "Terminated"]), "Where it is in its life.", |row| {
        row.of(|agent: &Agent| Value::text(agent.state.as_str()))
    }),
    field("mode", Type::Word(&["Normal", "Stable"]), "Does it follow changes of the daemon?", |row| {
        row.of(|agent: &Agent| {
            Value::text(match agent.mode {
                AgentMode::Normal => "Normal",
                AgentMode::Stable => "Stable",
            })
        })
    }),
    field("provider", Type::Text, "The provider that it asks.", |row| {
        row.of(|agent: &Agent| {
            Value::text(row.world.resource::<Settings>().provider_of(&agent.manifest.manifest.model))
        })
    }),
    field("model", Type::Text, "The model that it asks.", |row| {
        row.of(|agent: &Agent| Value::text(row.world.resource::<Settings>().model_of(&agent.manifest.manifest.model)))
    }),
    field("description", Type::Text, "What its manifest says about it.", |row| {
        row.of(|agent: &Agent| Value::text(&agent.manifest.manifest.description))
    }),
    field("tags", Type::Text, "The tags of its manifest, with commas between.", |row| {
        row.of(|agent: &Agent| row.joined(&agent.manifest.manifest.tags))
    }),
    field("created_at", Type::Time, "When it was spawned.", |row| {
        row.of(|agent: &Agent| Value::Time(agent.created_at))
    }),
    field("updated_at", Type::Time, "When its manifest, mode, state or current session last changed.", |row| {
        row.of(|agent: &Agent| Value::Time(agent.updated_at))
    }),
    field("input_tokens", Type::Number, "Tokens of its prompts so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens))
    }),
    field("output_tokens", Type::Number, "Tokens of its answers so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.output_tokens))
    }),
    field("tokens", Type::Number, "Tokens of its prompts and answers so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens.saturating_add(agent.output_tokens)))
    }),
    field("cost_usd", Type::Number, "Dollars that its model calls cost so far.", |row| cost(row, None)),
    field("today_usd", Type::Number, "Dollars that they cost today (UTC).", |row| cost(row, Some(Period::Daily))),
    field("open_turns", Type::Number, "Its open turns, of which at most 100 are counted.", |row| {
        let index = row.world.resource::<Index>();
        Value::maybe(row.entity(), |entity| Value::count(index.turns_of(entity).take(100).count() as u64))
    }),
    field("parent_id", Type::Id, "The agent that spawned it.", |row| row.of(|by: &SpawnedBy| Value::Id(by.0.0))),
    field("session_id", Type::Id, "Its current session.", |row| {
        row.of(|agent: &Agent| id_at(row, agent.current, |id: SessionId| id.0))
    }),
    field("tainted", Type::Bool, "Its instructions or its files hold untrusted content.", |row| {
        row.of(|agent: &Agent| Value::Bool(!agent.taint.own.is_none() || !agent.taint.files.is_none()))
    }),
];

/// What an agent's calls cost: so far, or in the period that is now.
fn cost<'w>(row: &Row<'w>, period: Option<Period>) -> Value<'w> {
    row.of(|id: &AgentId| {
        let (rollups, scope) = (row.world.resource::<Rollups>(), Scope::Agent(*id));
        let cost = match period {
            None => rollups.total(scope).cost,
            Some(period) => Micros(rollups.spent(scope, period, row.now()).spent),
        };
        Value::Number(cost.usd())
    })
}

pub(crate) static MANIFESTS: Kind = Kind {
    name: "manifests",
    text: "Different manifests; agents with equal ones share one.",
    fields: &MANIFEST_FIELDS,
    relations: &[],
    shown: &["hash", "agents", "provider", "model", "description"],
    source: Source::of(|page| {
        let manifests = page.world.resource::<Manifests>();
        let keys = manifests.hashes().map(|hash| hash.0.as_slice().into());
        page.listed(keys, |key| {
            let (shared, _) = manifests.get(ManifestHash(key.try_into().ok()?))?;
            Some(Item::Other(shared))
        })
    }),
};

const MANIFEST_FIELDS: [Field; 15] = [
    field("hash", Type::Text, "The first half of the SHA-256 of its stored form, in hexadecimal.", |row| {
        shared(row, |shared| {
            Value::Text(shared.hash.0[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
        })
    }),
    field("agents", Type::Number, "Agents that have it.", |row| {
        let owners = |hash| Some(row.world.resource::<Manifests>().get(hash)?.1);
        shared(row, |shared| Value::maybe(owners(shared.hash), |owners| Value::count(owners.into())))
    }),
    field("provider", Type::Text, "The provider that it asks.", |row| {
        of_manifest(row, |manifest| Value::text(row.world.resource::<Settings>().provider_of(&manifest.model)))
    }),
    field("model", Type::Text, "The model that it asks.", |row| {
        of_manifest(row, |manifest| Value::text(row.world.resource::<Settings>().model_of(&manifest.model)))
    }),
    field("version", Type::Text, "The author's version.", |row| {
        of_manifest(row, |manifest| Value::text(&manifest.version))
    }),
    field("author", Type::Text, "Who wrote it.", |row| of_manifest(row, |manifest| Value::text(&manifest.author))),
    field("description", Type::Text, "One sentence about the agent.", |row| {
        of_manifest(row, |manifest| Value::text(&manifest.description))
    }),
    field("tags", Type::Text, "Its tags, with commas between.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.tags))
    }),
    field("tools", Type::Text, "The tools that it grants, with commas between.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.capabilities.tools))
    }),
    field("skills", Type::Text, "Its skills, with commas between.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.skills))
    }),
    field("fallbacks", Type::Number, "Models to try when the first fails.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.fallback_models.len() as u64))
    }),
    field("triggers", Type::Number, "Triggers that are made with an agent of it.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.triggers.len() as u64))
    }),
    field("max_tokens", Type::Number, "Bound of one answer in tokens.", |row| {
        of_manifest(row, |manifest| Value::maybe(manifest.model.max_tokens, |most| Value::count(most.into())))
    }),
    field("session_mode", Type::Word(&["persistent", "new"]), "Where its fired turns run.", |row| {
        of_manifest(row, |manifest| {
            Value::text(match manifest.session_mode {
                Some(SessionMode::New) => "new",
                Some(SessionMode::Persistent) | None => "persistent",
            })
        })
    }),
    field("prompt_bytes", Type::Number, "Bytes of the text that opens every prompt.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.system_prompt.len() as u64))
    }),
];

fn of_manifest<'w>(row: &Row<'w>, read: impl FnOnce(&'w Manifest) -> Value<'w>) -> Value<'w> {
    shared(row, |shared| read(&shared.manifest))
}

fn shared<'w>(row: &Row<'w>, read: impl FnOnce(&'w SharedManifest) -> Value<'w>) -> Value<'w> {
    Value::maybe(row.other_as(), read)
}
