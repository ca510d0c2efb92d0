//! What queries see of agents and of their manifests.

use agentsvc_components::agent::{Agent, AgentMode, SpawnedBy};
use agentsvc_components::manifest::{Manifest, ManifestHash, SessionMode, SharedManifest};
use agentsvc_components::usage::{Period, Scope};
use agentsvc_components::{AgentId, Micros, SessionId};
use bevy_ecs::prelude::{Entity, World};

use super::index::agent_named;
use super::manifests::Manifests;
use crate::config::Settings;
use crate::kernel::expr::{Type, Value};
use crate::kernel::index::{self, Index};
use crate::kernel::record::hex;
use crate::kernel::table::{Field, Item, Kind, Lookup, Relation, Row, Source, field, id_at};
use crate::usage::Rollups;

/// The fields of what belongs to an agent that name it.
pub(crate) const BY_AGENT: &[&str] = &["agent_id", "agent.id", "agent.name"];

/// The agent that has this id or name.
pub(crate) fn named(world: &World, key: &Value<'_>) -> Option<(AgentId, Entity)> {
    let entity = match key {
        Value::Id(id) => index::agent(world, AgentId(*id)).ok()?,
        Value::Text(name) => agent_named(world, name)?,
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
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &AgentId| Value::Id(id.0))),
    field("name", Type::Text, "Name.", |row| row.of(|agent: &Agent| Value::text(&agent.name))),
    field("state", Type::Word(&["Running", "Stopped", "Crashed", "Terminated"]), "Lifecycle state.", |row| {
        row.of(|agent: &Agent| Value::text(agent.state.as_str()))
    }),
    field("mode", Type::Word(&["Normal", "Stable"]), "Whether its configuration is pinned.", |row| {
        row.of(|agent: &Agent| {
            Value::text(match agent.mode {
                AgentMode::Normal => "Normal",
                AgentMode::Stable => "Stable",
            })
        })
    }),
    field("provider", Type::Text, "Model provider.", |row| {
        row.of(|agent: &Agent| {
            Value::text(row.world.resource::<Settings>().provider_of(&agent.manifest.manifest.model))
        })
    }),
    field("model", Type::Text, "Model id.", |row| {
        row.of(|agent: &Agent| Value::text(row.world.resource::<Settings>().model_of(&agent.manifest.manifest.model)))
    }),
    field("description", Type::Text, "Description from the manifest.", |row| {
        row.of(|agent: &Agent| Value::text(&agent.manifest.manifest.description))
    }),
    field("tags", Type::Text, "Tags from the manifest, separated by commas.", |row| {
        row.of(|agent: &Agent| row.joined(&agent.manifest.manifest.tags))
    }),
    field("created_at", Type::Time, "Creation time.", |row| row.of(|agent: &Agent| Value::Time(agent.created_at))),
    field(
        "updated_at",
        Type::Time,
        "Time of the last change to its manifest, mode, state or current session.",
        |row| row.of(|agent: &Agent| Value::Time(agent.updated_at)),
    ),
    field("input_tokens", Type::Number, "Prompt tokens so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens))
    }),
    field("output_tokens", Type::Number, "Output tokens so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.output_tokens))
    }),
    field("tokens", Type::Number, "Prompt and output tokens so far.", |row| {
        row.of(|agent: &Agent| Value::count(agent.input_tokens.saturating_add(agent.output_tokens)))
    }),
    field("cost_usd", Type::Number, "Cost of its model calls so far, in dollars.", |row| cost(row, None)),
    field("today_usd", Type::Number, "Cost of its model calls today (UTC), in dollars.", |row| {
        cost(row, Some(Period::Daily))
    }),
    field("open_turns", Type::Number, "Open turns, counted up to 100.", |row| {
        let index = row.world.resource::<Index>();
        Value::maybe(row.entity(), |entity| Value::count(index.turns_of(entity).take(100).count() as u64))
    }),
    field("parent_id", Type::Id, "The agent that spawned it.", |row| row.of(|by: &SpawnedBy| Value::Id(by.0.0))),
    field("session_id", Type::Id, "Current session.", |row| {
        row.of(|agent: &Agent| id_at(row, agent.current, |id: SessionId| id.0))
    }),
    field("tainted", Type::Bool, "Whether its instructions or files contain untrusted content.", |row| {
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
    text: "Distinct manifests. Agents with equal manifests share one.",
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
    field("hash", Type::Text, "First half of the SHA-256 of the stored form, in hexadecimal.", |row| {
        shared(row, |shared| Value::Text(hex(&shared.hash.0[..16]).into()))
    }),
    field("agents", Type::Number, "Agents that use it.", |row| {
        let owners = |hash| Some(row.world.resource::<Manifests>().get(hash)?.1);
        shared(row, |shared| Value::maybe(owners(shared.hash), |owners| Value::count(owners.into())))
    }),
    field("provider", Type::Text, "Model provider.", |row| {
        of_manifest(row, |manifest| Value::text(row.world.resource::<Settings>().provider_of(&manifest.model)))
    }),
    field("model", Type::Text, "Model id.", |row| {
        of_manifest(row, |manifest| Value::text(row.world.resource::<Settings>().model_of(&manifest.model)))
    }),
    field("version", Type::Text, "Version given by the author.", |row| {
        of_manifest(row, |manifest| Value::text(&manifest.version))
    }),
    field("author", Type::Text, "Author.", |row| of_manifest(row, |manifest| Value::text(&manifest.author))),
    field("description", Type::Text, "Description of the agent.", |row| {
        of_manifest(row, |manifest| Value::text(&manifest.description))
    }),
    field("tags", Type::Text, "Tags, separated by commas.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.tags))
    }),
    field("tools", Type::Text, "Granted tools, separated by commas.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.capabilities.tools))
    }),
    field("skills", Type::Text, "Skills, separated by commas.", |row| {
        of_manifest(row, |manifest| row.joined(&manifest.skills))
    }),
    field("fallbacks", Type::Number, "Fallback models.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.fallback_models.len() as u64))
    }),
    field("triggers", Type::Number, "Triggers created with each agent.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.triggers.len() as u64))
    }),
    field("max_tokens", Type::Number, "Maximum output tokens.", |row| {
        of_manifest(row, |manifest| Value::maybe(manifest.model.max_tokens, |most| Value::count(most.into())))
    }),
    field(
        "session_mode",
        Type::Word(&["persistent", "new"]),
        "Session in which triggered and scheduled turns run.",
        |row| {
            of_manifest(row, |manifest| {
                Value::text(match manifest.session_mode {
                    Some(SessionMode::New) => "new",
                    Some(SessionMode::Persistent) | None => "persistent",
                })
            })
        },
    ),
    field("prompt_bytes", Type::Number, "Length of the system prompt in bytes.", |row| {
        of_manifest(row, |manifest| Value::count(manifest.system_prompt.len() as u64))
    }),
];

fn of_manifest<'w>(row: &Row<'w>, read: impl FnOnce(&'w Manifest) -> Value<'w>) -> Value<'w> {
    shared(row, |shared| read(&shared.manifest))
}

fn shared<'w>(row: &Row<'w>, read: impl FnOnce(&'w SharedManifest) -> Value<'w>) -> Value<'w> {
    Value::maybe(row.other_as(), read)
}
