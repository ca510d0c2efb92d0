//! What a change of an agent leaves on record: an entry for each kind of thing that changed, with the new values where
//! they decide what the agent may do.

use crate::agent::audit_kinds;
use bevy_ecs::prelude::World;
use serde_json::{Map, Value, json};

use agentsvc_components::AgentId;
use agentsvc_components::kernel::audit_kind::AuditKind;

use super::AgentPatch;
use crate::audit::{Audit, names};

/// The entries of one change.
pub(super) struct Changes(Vec<(AuditKind, Value)>);

impl Changes {
    /// The entries that `patch` leaves.
    pub(super) fn of(patch: &AgentPatch) -> Self {
        let mut entries = Vec::new();
        let mut add = |kind, details: Map<String, Value>| {
            if !details.is_empty() {
                entries.push((kind, Value::Object(details)));
            }
        };
        add(audit_kinds::AGENT_MODEL_CHANGED, model(patch));
        let tools = [
            ("tools", &patch.tools),
            ("network", &patch.network),
            ("shell", &patch.shell),
            ("tool_allowlist", &patch.tool_allowlist),
            ("tool_blocklist", &patch.tool_blocklist),
            ("mcp_servers", &patch.mcp_servers),
        ];
        let mut rights = lists(&tools);
        rights.extend(object([
            ("agent_spawn", patch.agent_spawn.map(|may| json!(may))),
            ("file_system", patch.file_system.map(|may| json!(may))),
        ]));
        add(audit_kinds::AGENT_TOOLS_CHANGED, rights);
        add(audit_kinds::AGENT_SKILLS_CHANGED, lists(&[("skills", &patch.skills)]));
        add(audit_kinds::AGENT_UPDATED, rest(patch));
        Self(entries)
    }

    /// Puts them on record.
    pub(super) fn audit(self, world: &mut World, agent: AgentId) {
        for (kind, details) in self.0 {
            world.audit(kind, agent, details);
        }
    }
}

/// The object of the values that are there.
fn object<const N: usize>(values: [(&str, Option<Value>); N]) -> Map<String, Value> {
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn model(patch: &AgentPatch) -> Map<String, Value> {
    object([
        ("provider", patch.provider.as_ref().map(|provider| json!(provider))),
        ("model", patch.model.as_ref().map(|model| json!(model))),
        ("temperature", patch.temperature.map(|temperature| json!(temperature))),
        ("max_tokens", patch.max_tokens.map(|max_tokens| json!(max_tokens))),
    ])
}

/// Lists as they are now: how many names, and the first of them.
fn lists(lists: &[(&str, &Option<Vec<Box<str>>>)]) -> Map<String, Value> {
    let shown = |list: &Vec<Box<str>>| {
        let (count, names) = names(list.iter().map(|name| &**name));
        json!({ "count": count, "names": names })
    };
    lists.iter().filter_map(|(name, list)| Some(((*name).to_owned(), shown(list.as_ref()?)))).collect()
}

/// Everything else: the name as it is now, of the others only that they changed.
fn rest(patch: &AgentPatch) -> Map<String, Value> {
    let fields: Vec<&str> = [
        ("description", patch.description.is_some()),
        ("system_prompt", patch.system_prompt.is_some()),
        ("tags", patch.tags.is_some()),
        ("max_history_messages", patch.max_history_messages.is_some()),
        ("avatar", patch.avatar.is_some()),
        ("persona", patch.persona.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, sent)| sent.then_some(name))
    .collect();
    object([
        ("name", patch.name.as_ref().map(|name| json!(name))),
        ("fields", (!fields.is_empty()).then(|| json!(fields))),
    ])
}
