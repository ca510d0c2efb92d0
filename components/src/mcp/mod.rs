//! MCP servers that clients added over the API (spec 3, MCP servers).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;
use crate::kernel::record::StoredComponent;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "mcp", uses: &[] };

uuid_id! {
    /// Names one MCP server. Clients name it by its name.
    McpServerId
}

/// An environment variable of a server, or a header of requests to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedValue {
    /// Its name.
    pub name: Box<str>,
    /// Its value, sealed by the vault.
    pub value: Box<str>,
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
    /// When it was added.
    pub created_at: Timestamp,
    /// When a client last changed it.
    pub updated_at: Timestamp,
}

impl StoredComponent for McpServer {
    const KEY: u8 = b'M';
    type Id = McpServerId;
}

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
