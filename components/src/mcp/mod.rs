//! MCP servers that clients added over the API (spec 3, MCP servers).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;
use crate::kernel::record::stored;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "mcp", uses: &[] };

uuid_id! {
    /// Names one MCP server. Clients name it by its name.
    McpServerId
}

uuid_id! {
    /// Names the accepted tools of one MCP server. They are found by the name of the server.
    McpPinId
}

/// A tool of an MCP server as it was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// Its name, as it stands behind `mcp_<server>_`.
    pub name: Box<str>,
    /// SHA-256 of all that models read of it, in hex.
    pub hash: Box<str>,
}

/// The tools of an MCP server as they were accepted: of `config.toml`, or added over the API.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpPin {
    /// The name of the server; no other pin has it.
    pub server: Box<str>,
    /// The tools in the order of their names, each once.
    pub tools: Vec<PinnedTool>,
    /// The hash of the other list that the audit log has last; `None` when there was none since the tools were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Box<str>>,
    /// Since when changes are counted.
    #[serde(default)]
    pub noted_since: Timestamp,
    /// Changes that were put on the audit log since then.
    #[serde(default)]
    pub notes: u32,
    /// When the tools were last accepted.
    pub updated_at: Timestamp,
}

stored!(McpPin: b'P', McpPinId);

impl McpPin {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let tools: usize = self.tools.iter().map(|tool| tool.name.len() + tool.hash.len()).sum();
        self.server.len() + self.noted.as_deref().map_or(0, str::len) + tools
    }
}

/// An environment variable of a server, or a header of requests to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedValue {
    /// Its name.
    pub name: Box<str>,
    /// Its value, sealed by the vault.
    pub value: Box<str>,
}

enum_words! {
    /// Whether a server may ask the model of the agent that calls it (sampling).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SamplingRule [as_str, Word] {
        /// No.
        #[default]
        Off = "off",
        /// When a person agrees to the request.
        Approve = "approve",
        /// Yes.
        On = "on",
    }
}

/// What a stored server may ask of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSampling {
    /// May it?
    pub rule: SamplingRule,
    /// The most tokens of the answers in one call; `None` is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

/// The configuration of one MCP server.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name; no other stored server has it.
    pub name: Box<str>,
    /// The catalog entry that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<Box<str>>,
    /// How it is reached, as JSON; `None`: as its catalog entry says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<Box<str>>,
    /// Its environment variables.
    #[serde(default)]
    pub env: Vec<SealedValue>,
    /// Headers of requests to it.
    #[serde(default)]
    pub headers: Vec<SealedValue>,
    /// Timeout of a call in seconds; `None` is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// May its program use the network?
    #[serde(default)]
    pub network: bool,
    /// How it is signed in to, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Box<str>>,
    /// What it may ask of models.
    #[serde(default)]
    pub sampling: StoredSampling,
    /// When it was added.
    pub created_at: Timestamp,
    /// When a client last changed it.
    pub updated_at: Timestamp,
}

stored!(McpServer: b'M', McpServerId);

impl McpServer {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let sealed = |values: &[SealedValue]| values.iter().map(|it| it.name.len() + it.value.len()).sum::<usize>();
        let texts = text(&self.template_id) + text(&self.transport) + text(&self.oauth);
        self.name.len() + texts + sealed(&self.env) + sealed(&self.headers)
    }
}
