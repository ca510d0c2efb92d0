//! Instances of hands: packages of agents that work together (spec 2, Hands).

use std::collections::BTreeMap;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "hand", uses: &[] };

uuid_id! {
    /// Names one instance of a hand.
    HandInstanceId
}

enum_words! {
    /// Does an instance act by itself?
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum HandState [as_str] {
        /// Its agents act at their times and at events.
        #[default]
        Running = "running",
        /// Its agents answer messages only.
        Paused = "paused",
    }
}

/// One agent of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandMember {
    /// Its role in the hand.
    pub role: Box<str>,
    /// Which agent.
    pub agent: AgentId,
    /// The name that it was given.
    pub name: Box<str>,
    /// Was it deleted by itself?
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_gone: bool,
}

/// What a client chose for a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandValue {
    /// The text; sealed by the vault where it is a secret.
    pub text: Box<str>,
    /// Is it sealed?
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_sealed: bool,
}

/// An environment variable that the commands of an instance get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandVariable {
    /// Its name.
    pub name: Box<str>,
    /// Its value, sealed by the vault; without one it is that of the daemon's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Box<str>>,
}

/// The state of one instance of a hand.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandInstance {
    /// The hand's id.
    pub hand: Box<str>,
    /// The version that was activated.
    pub version: Box<str>,
    /// Which instance of the hand, from 1; the names of the agents of all but the first end with `#` and it.
    pub number: u32,
    /// Running or paused.
    pub state: HandState,
    /// Its agents, in the order of their roles.
    pub members: Vec<HandMember>,
    /// Index of the coordinator among them.
    pub coordinator: u32,
    /// Values of settings, by key.
    #[serde(default)]
    pub config: BTreeMap<Box<str>, HandValue>,
    /// Environment variables of its commands.
    #[serde(default)]
    pub environment: Vec<HandVariable>,
    /// The section of the agents' prompts that says the settings.
    #[serde(default)]
    pub settings_text: Box<str>,
    /// When it was activated.
    pub activated_at: Timestamp,
    /// When a client last changed it.
    pub updated_at: Timestamp,
    /// Turns of its agents that have ended.
    #[serde(default)]
    pub turns: u64,
    /// Those of them that failed.
    #[serde(default)]
    pub failed: u64,
}

stored!(HandInstance: b'H', HandInstanceId);

impl HandInstance {
    /// The agent that the user talks with.
    #[must_use]
    pub fn coordinator(&self) -> Option<&HandMember> {
        self.members.get(self.coordinator as usize)
    }

    /// The member that is this agent.
    #[must_use]
    pub fn member(&self, agent: AgentId) -> Option<&HandMember> {
        self.members.iter().find(|member| member.agent == agent)
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let members: usize = self.members.iter().map(|member| member.role.len() + member.name.len()).sum();
        let config: usize = self.config.iter().map(|(key, value)| key.len() + value.text.len()).sum();
        let variable = |it: &HandVariable| it.name.len() + it.sealed.as_deref().map_or(0, str::len);
        let environment: usize = self.environment.iter().map(variable).sum();
        self.hand.len() + self.version.len() + self.settings_text.len() + members + config + environment
    }
}
