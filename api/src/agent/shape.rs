//! How agents look in JSON (spec 1, Agent summary and Agent detail).

use agentsvc_components::agent::{AgentMode, AgentState};
use agentsvc_components::manifest::{Capabilities, Identity, ModelChoice};
use agentsvc_systems::agent::{AgentSummary, AgentView};
use agentsvc_systems::config::memory::MemorySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::http::shape::words;
use crate::http::timestamp::Moment;

/// A word list of a manifest.
pub(crate) type Words<'a> = &'a [Box<str>];

/// One item of `GET /api/agents`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SummaryShape<'a> {
    id: Uuid,
    name: &'a str,
    state: &'static str,
    created_at: Moment,
    model_provider: &'a str,
    model_name: &'a str,
}

/// An agent summary that writes itself in its shape.
pub(crate) struct Summary(pub(crate) AgentSummary);

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let agent = &self.0;
        let shape = SummaryShape {
            id: agent.id.0,
            name: &agent.name,
            state: agent.state.as_str(),
            created_at: Moment(agent.created_at),
            model_provider: &agent.provider,
            model_name: &agent.model,
        };
        shape.serialize(serializer)
    }
}

/// The whole agent. Borrows from the world's view: this is written on a hot path.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentDetail<'a> {
    id: Uuid,
    name: &'a str,
    state: &'static str,
    mode: &'static str,
    created_at: Moment,
    updated_at: Moment,
    session_id: Uuid,
    message_count: u32,
    model: ModelShape<'a>,
    capabilities: CapabilitiesShape<'a>,
    description: &'a str,
    tags: Words<'a>,
    system_prompt: &'a str,
    skills: Words<'a>,
    mcp_servers: Words<'a>,
    tool_allowlist: Words<'a>,
    tool_blocklist: Words<'a>,
    max_history_messages: Option<u32>,
    identity: IdentityShape<'a>,
    proactive_memory: MemoryShape<'a>,
    version: &'a str,
    author: &'a str,
    module: &'a str,
    input_tokens: u64,
    output_tokens: u64,
}

/// The model in effect, including the daemon's defaults.
#[derive(Serialize, JsonSchema)]
struct ModelShape<'a> {
    provider: &'a str,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
}

/// Capabilities of the agent.
#[derive(Serialize, JsonSchema)]
struct CapabilitiesShape<'a> {
    tools: Words<'a>,
    network: Words<'a>,
    memory_read: Words<'a>,
    memory_write: Words<'a>,
    shell: Words<'a>,
    agent_spawn: bool,
    file_system: bool,
}

/// What the agent's memory does with its turns: `[proactive_memory]` of the manifest over that of the configuration.
#[derive(Serialize, JsonSchema)]
struct MemoryShape<'a> {
    enabled: bool,
    auto_memorize: bool,
    auto_retrieve: bool,
    /// The model that extracts entries, as provider/model. Null: rules extract them.
    extraction_model: Option<&'a str>,
}

/// Identity of the agent.
#[derive(Serialize, JsonSchema)]
struct IdentityShape<'a> {
    avatar: &'a str,
    persona: &'a str,
}

impl<'a> AgentDetail<'a> {
    /// The detail of an agent.
    pub(crate) fn of(view: &'a AgentView) -> Self {
        let manifest = &view.manifest.manifest;
        Self {
            id: view.id.0,
            name: &view.name,
            state: view.state.as_str(),
            mode: Mode::from(view.mode).as_str(),
            created_at: Moment(view.created_at),
            updated_at: Moment(view.updated_at),
            session_id: view.session.0,
            message_count: view.message_count,
            model: ModelShape::of(view, &manifest.model),
            capabilities: CapabilitiesShape::of(&manifest.capabilities),
            description: &manifest.description,
            tags: &manifest.tags,
            system_prompt: &manifest.system_prompt,
            skills: &manifest.skills,
            mcp_servers: &manifest.mcp_servers,
            tool_allowlist: &manifest.tool_allowlist,
            tool_blocklist: &manifest.tool_blocklist,
            max_history_messages: manifest.max_history_messages,
            identity: IdentityShape::of(&manifest.identity),
            proactive_memory: MemoryShape::of(&view.memory),
            version: &manifest.version,
            author: &manifest.author,
            module: if manifest.module.is_empty() { "builtin:chat" } else { &manifest.module },
            input_tokens: view.input_tokens,
            output_tokens: view.output_tokens,
        }
    }
}

impl<'a> MemoryShape<'a> {
    fn of(memory: &'a MemorySettings) -> Self {
        let &MemorySettings { enabled, auto_memorize, auto_retrieve, .. } = memory;
        Self { enabled, auto_memorize, auto_retrieve, extraction_model: memory.extraction_model.as_deref() }
    }
}

impl<'a> ModelShape<'a> {
    fn of(view: &'a AgentView, choice: &ModelChoice) -> Self {
        let (temperature, max_tokens) = (choice.temperature, choice.max_tokens);
        Self { provider: &view.provider, model: &view.model, temperature, max_tokens }
    }
}

impl<'a> CapabilitiesShape<'a> {
    fn of(capabilities: &'a Capabilities) -> Self {
        Self {
            tools: &capabilities.tools,
            network: &capabilities.network,
            memory_read: &capabilities.memory_read,
            memory_write: &capabilities.memory_write,
            shell: &capabilities.shell,
            agent_spawn: capabilities.agent_spawn.unwrap_or(false),
            file_system: capabilities.file_system.unwrap_or(true),
        }
    }
}

impl<'a> IdentityShape<'a> {
    fn of(identity: &'a Identity) -> Self {
        Self { avatar: &identity.avatar, persona: &identity.persona }
    }
}

words! {
    /// Mode of an agent.
    #[derive(Clone, Copy, Serialize, JsonSchema)]
    pub(crate) enum Mode for AgentMode {
        /// Follows the default model and new skills.
        Normal,
        /// Its model is pinned and its skills are frozen.
        Stable,
    }
}

impl Mode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Stable => "Stable",
        }
    }
}

words! {
    /// An agent's state in queries.
    #[derive(Clone, Copy, Deserialize, JsonSchema)]
    pub(crate) enum State for AgentState {
        /// Accepts messages.
        #[serde(alias = "running")]
        Running,
        /// Refuses messages until it is started.
        #[serde(alias = "stopped")]
        Stopped,
        /// Failed and needs attention.
        #[serde(alias = "crashed")]
        Crashed,
        /// Deleted.
        #[serde(alias = "terminated")]
        Terminated,
    }
}
