//! The typed form of an agent manifest (spec 1, Agent manifest).
//!
//! The text as written, unknown keys included, is content and lives in the store. The world keeps this
//! typed form, without the name, so that agents that differ only by name share one value.

pub mod channel;

use crate::kernel::domain::Domain;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernel::id::AgentId;
use crate::kernel::record::is_default;
use crate::manifest::channel::ChannelOverrides;
use crate::usage::Limits;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "manifest", uses: &["usage"] };

/// SHA-256 over the stored form of a [`Manifest`]; two agents with equal hashes share one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ManifestHash(pub [u8; 32]);

/// A manifest and its hash, shared by every agent that has it.
#[derive(Debug, PartialEq)]
pub struct Interned {
    /// The content hash of `manifest`.
    pub hash: ManifestHash,
    /// The manifest itself.
    pub manifest: Manifest,
}

/// A shared manifest.
pub type SharedManifest = Arc<Interned>;

/// What an agent is, but for its name. Every key is optional in the text; the defaults are the empty value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// The author's version of the manifest.
    pub version: Box<str>,
    /// Description of the agent.
    pub description: Box<str>,
    /// Who wrote it.
    pub author: Box<str>,
    /// The module that runs the agent; `builtin:chat` when empty.
    pub module: Box<str>,
    /// Free words to find the agent by.
    pub tags: Vec<Box<str>>,
    /// The model to ask.
    pub model: ModelChoice,
    /// Models to try, in order, when the first fails.
    pub fallback_models: Vec<ModelChoice>,
    /// The text that opens every prompt; written as `system_prompt` at top level or under `[model]`.
    pub system_prompt: Box<str>,
    /// Capabilities of the agent.
    pub capabilities: Capabilities,
    /// Skills, by name.
    pub skills: Vec<Box<str>>,
    /// MCP servers, by name.
    pub mcp_servers: Vec<Box<str>>,
    /// When not empty: only these tools, by name or glob.
    pub tool_allowlist: Vec<Box<str>>,
    /// Never these tools, by name or glob.
    pub tool_blocklist: Vec<Box<str>>,
    /// A person approves each call of these tools, by name or glob, beside those that the configuration names.
    pub require_approval: Vec<Box<str>>,
    /// Session continuity of fired turns; `None` is `persistent`.
    pub session_mode: Option<SessionMode>,
    /// At most this many past messages go into a prompt; `None` leaves it to the token budget.
    pub max_history_messages: Option<u32>,
    /// Identity of the agent.
    pub identity: Identity,
    /// What it may spend and use, where the manifest says so (`[limits]`).
    #[serde(skip_serializing_if = "Limits::is_open")]
    pub limits: Limits,
    /// Whether the agent learns from its turns, where the manifest says so (`[proactive_memory]`).
    #[serde(skip_serializing_if = "is_default")]
    pub proactive_memory: MemoryChoice,
    /// `[[triggers]]`: made when an agent of this manifest is spawned. Left out of the stored form when there are none,
    /// so that the hashes of an earlier release hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<ManifestTrigger>,
    /// Whether and when an agent of this manifest consolidates its memory; left out of the stored form likewise.
    #[serde(skip_serializing_if = "AutoDream::is_unset")]
    pub auto_dream: AutoDream,
    /// When an agent of this manifest acts by itself (`schedule`); left out of the stored form likewise.
    #[serde(skip_serializing_if = "is_default")]
    pub wake: Wake,
    /// `[autonomous]`; left out of the stored form likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autonomous: Option<Autonomous>,
    /// Model calls of one turn at most; left out of the stored form likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// The agent has no skills, whatever [`skills`](Self::skills) says; left out of the stored form when it is not so.
    #[serde(skip_serializing_if = "is_default")]
    pub skills_disabled: bool,
    /// The skills that the agent was frozen with, each as `<name>@<hash>`; `None` while it follows those that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_skills: Option<Vec<Box<str>>>,
    /// `channels`: the channel types in which the agent answers; empty means all. Left out of the stored form likewise.
    #[serde(skip_serializing_if = "is_default")]
    pub channels: Vec<Box<str>>,
    /// `[channel_overrides]`; left out of the stored form likewise.
    #[serde(skip_serializing_if = "is_default")]
    pub channel_overrides: Box<ChannelOverrides>,
    /// `[metadata.routing]`; left out of the stored form likewise.
    #[serde(skip_serializing_if = "is_default")]
    pub routing: Routing,
}

/// `[metadata.routing]`: words that lead messages of chats to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Routing {
    /// Words and phrases that name it.
    pub aliases: Vec<Box<str>>,
    /// Words and phrases that hint at it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weak_aliases: Vec<Box<str>>,
}

/// `schedule`: when an agent acts by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// Never.
    #[default]
    Reactive,
    /// Again and again, so many seconds after the last time.
    Continuous(u32),
    /// When this rule says: cron or interval syntax.
    Periodic(Box<str>),
    /// At events: conditions as written.
    Proactive(Vec<Box<str>>),
}

impl Wake {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Reactive | Self::Continuous(_) => 0,
            Self::Periodic(rule) => rule.len(),
            Self::Proactive(conditions) => conditions.iter().map(|condition| condition.len()).sum(),
        }
    }
}

/// `[autonomous]`: the agent acts by itself at a fixed interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Autonomous {
    /// Seconds between two turns.
    pub heartbeat_interval_secs: u32,
    /// Model calls of one turn at most.
    pub max_iterations: u32,
    /// Time of the day in which it does not act.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Turns that may fail one after the other; with one more it stops acting by itself.
    pub max_restarts: u32,
}

impl Default for Autonomous {
    fn default() -> Self {
        Self { heartbeat_interval_secs: 30, max_iterations: 50, quiet_hours: None, max_restarts: 10 }
    }
}

/// A span of each day, in minutes after midnight by the schedule's clock: from `from` on and before `to`. It may go over
/// midnight; it is never the whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QuietHours {
    /// Its first minute, 0 to 1439.
    pub from: u16,
    /// The minute after its last, 0 to 1439.
    pub to: u16,
}

/// `auto_dream_enabled` and what it goes with. What is not there is as the configuration says; an agent whose manifest says
/// nothing does not dream by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoDream {
    /// `auto_dream_enabled`.
    pub enabled: Option<bool>,
    /// `auto_dream_min_hours`.
    pub min_hours: Option<u32>,
    /// `auto_dream_min_sessions`.
    pub min_sessions: Option<u32>,
}

impl AutoDream {
    /// Does the manifest say nothing of it?
    #[must_use]
    pub const fn is_unset(&self) -> bool {
        self.enabled.is_none() && self.min_hours.is_none() && self.min_sessions.is_none()
    }
}

impl Manifest {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let list = |words: &[Box<str>]| words.iter().map(|word| word.len()).sum::<usize>();
        let own = &self.capabilities;
        let lists = [
            &self.tags,
            &self.skills,
            &self.mcp_servers,
            &self.tool_allowlist,
            &self.tool_blocklist,
            &self.require_approval,
            &own.tools,
            &own.network,
            &own.memory_read,
            &own.memory_write,
            &own.shell,
            &self.channels,
            &self.routing.aliases,
            &self.routing.weak_aliases,
        ];
        let identity = &self.identity;
        let texts = [
            &self.version,
            &self.description,
            &self.author,
            &self.module,
            &self.system_prompt,
            &identity.avatar,
            &identity.persona,
        ];
        texts.iter().map(|text| text.len()).sum::<usize>()
            + lists.iter().map(|words| list(words)).sum::<usize>()
            + self.model.bytes()
            + self.fallback_models.iter().map(ModelChoice::bytes).sum::<usize>()
            + self.proactive_memory.extraction_model.as_ref().map_or(0, |model| model.len())
            + self.triggers.iter().map(ManifestTrigger::bytes).sum::<usize>()
            + self.wake.bytes()
            + self.channel_overrides.bytes()
            + self.frozen_skills.as_deref().map_or(0, list)
    }

    /// Does an agent of this manifest run without a message that asks for it?
    #[must_use]
    pub fn acts_by_itself(&self) -> bool {
        let is_woken = !self.triggers.is_empty() || self.wake != Wake::Reactive || self.autonomous.is_some();
        is_woken || self.auto_dream.enabled == Some(true)
    }

    /// Model calls of one turn at most.
    #[must_use]
    pub fn iterations_max(&self) -> Option<u32> {
        self.max_iterations.or_else(|| self.autonomous.as_ref().map(|own| own.max_iterations)).filter(|most| *most > 0)
    }
}

/// One of `[[triggers]]`; the fields are those of `POST /api/triggers` (spec 1, Trigger).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestTrigger {
    /// What it waits for: the compact JSON of a pattern, an object with one key.
    pub pattern: Box<str>,
    /// The message; `{{event}}` in it stands for the event's compact JSON.
    pub prompt_template: Box<str>,
    /// Default: true.
    pub enabled: bool,
    /// Fires it has in all; 0 is without bound.
    #[serde(default)]
    pub max_fires: u64,
    /// Seconds between two fires; `None` is the daemon's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_secs: Option<u32>,
    /// Where its turns run; `None` is as the agent's `session_mode` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_mode: Option<SessionMode>,
    /// Who gets the message instead of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent_id: Option<AgentId>,
}

impl ManifestTrigger {
    /// Bytes of its texts: at least those of the trigger that is made of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.pattern.len() + self.prompt_template.len()
    }
}

/// Which model answers. Empty strings mean the daemon's default model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelChoice {
    /// The provider's name, such as `builtin` or `openai`.
    pub provider: Box<str>,
    /// The model's id or alias.
    pub model: Box<str>,
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f32>,
    /// At most this many tokens in one answer.
    pub max_tokens: Option<u32>,
    /// Base URL, if it differs from the provider's.
    pub base_url: Option<Box<str>>,
    /// The environment variable that holds the key, when not the provider's own.
    pub api_key_env: Option<Box<str>>,
}

impl ModelChoice {
    fn bytes(&self) -> usize {
        let option = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        self.provider.len() + self.model.len() + option(&self.base_url) + option(&self.api_key_env)
    }
}

/// What an agent may do (spec 1, Agent manifest, `[capabilities]`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Tool names or globs; `*` grants all.
    pub tools: Vec<Box<str>>,
    /// Hosts it may reach; `*` for all.
    pub network: Vec<Box<str>>,
    /// Memory it may read.
    pub memory_read: Vec<Box<str>>,
    /// Memory it may write.
    pub memory_write: Vec<Box<str>>,
    /// Shell commands it may run; `*` for all.
    pub shell: Vec<Box<str>>,
    /// May it spawn agents; `None` is no.
    pub agent_spawn: Option<bool>,
    /// May it use files of its workspace; `None` is yes.
    pub file_system: Option<bool>,
}

/// What an agent's memory does with its turns. `None` is as the daemon's configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryChoice {
    /// Entries are made of turns and given to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Entries are made of turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_memorize: Option<bool>,
    /// Entries are given to turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_retrieve: Option<bool>,
    /// The model that extracts entries, as `provider/model`; empty: rules, without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extraction_model: Option<Box<str>>,
}

/// How an agent presents itself (`PATCH /api/agents/{id}/identity`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// A picture: a URL, an emoji or a data URI.
    pub avatar: Box<str>,
    /// A short description of its tone.
    pub persona: Box<str>,
}

/// Whether a fired turn goes on in the current session or opens one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// The current session.
    Persistent,
    /// A new session for each fire.
    New,
}
