//! A narrower form of an agent, for single turns of it.

use serde::{Deserialize, Serialize};

use crate::kernel::money::Micros;
use crate::kernel::record::is_default;
use crate::manifest::{Capabilities, Manifest};

/// What a turn is that is not the agent's whole self: it has instructions, tools and limits of its own. It is stored with the
/// turn, so that a restart changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnProfile {
    /// Takes the place of the agent's system text.
    pub system_prompt: Box<str>,
    /// The only tools that the turn can call, by name. The agent's own grants of tools do not count, its blocklist does.
    pub tools: Vec<Box<str>>,
    /// Names of memory that the turn may read and write beside what the agent may.
    pub memory: Vec<Box<str>>,
    /// Model calls at most; 0 is without bound.
    #[serde(skip_serializing_if = "is_default")]
    pub calls_max: u32,
    /// Tokens at most, after which no further call goes out; 0 is without bound.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens_max: u64,
    /// Costs at most, after which no further call goes out; 0 is without bound.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_max: Micros,
}

impl TurnProfile {
    /// The manifest that counts for the turn: that of the agent, narrowed.
    #[must_use]
    pub fn applied(&self, own: &Manifest) -> Manifest {
        let with = |names: &[Box<str>]| names.iter().chain(&self.memory).cloned().collect();
        Manifest {
            version: own.version.clone(),
            model: own.model.clone(),
            fallback_models: own.fallback_models.clone(),
            system_prompt: self.system_prompt.clone(),
            capabilities: Capabilities {
                tools: self.tools.clone(),
                memory_read: with(&own.capabilities.memory_read),
                memory_write: with(&own.capabilities.memory_write),
                file_system: Some(false),
                ..Capabilities::default()
            },
            tool_blocklist: own.tool_blocklist.clone(),
            require_approval: own.require_approval.clone(),
            limits: own.limits,
            ..Manifest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrowed_manifest_grants_only_what_the_profile_names() {
        let words = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect::<Vec<Box<str>>>();
        let mut own = Manifest { system_prompt: "Be loud.".into(), skills: words(&["x"]), ..Manifest::default() };
        own.capabilities.tools = words(&["*"]);
        own.capabilities.shell = words(&["*"]);
        own.capabilities.network = words(&["*"]);
        own.capabilities.memory_read = words(&["self.notes.*"]);
        own.capabilities.agent_spawn = Some(true);
        own.tool_allowlist = words(&["shell_exec"]);
        own.tool_blocklist = words(&["memory_store"]);
        own.mcp_servers = words(&["files"]);
        let profile = TurnProfile {
            system_prompt: "Be quiet.".into(),
            tools: words(&["memory_search"]),
            memory: words(&["self.entries"]),
            ..TurnProfile::default()
        };
        let narrow = profile.applied(&own);
        assert_eq!((&*narrow.system_prompt, &narrow.capabilities.tools), ("Be quiet.", &words(&["memory_search"])));
        assert_eq!(narrow.capabilities.memory_read, words(&["self.notes.*", "self.entries"]));
        assert_eq!(narrow.capabilities.memory_write, words(&["self.entries"]));
        assert!(narrow.capabilities.shell.is_empty() && narrow.capabilities.network.is_empty());
        assert!(narrow.skills.is_empty() && narrow.mcp_servers.is_empty() && narrow.tool_allowlist.is_empty());
        assert_eq!((narrow.capabilities.agent_spawn, narrow.tool_blocklist), (None, words(&["memory_store"])));
    }
}
