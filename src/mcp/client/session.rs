//! What is agreed with a server when it starts, and the tools that it has.

use std::time::Duration;

use agentsvc_systems::mcp::limits::MCP_SERVER_TOOLS_MAX;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Failure};

/// Versions that are spoken, from the oldest. Later ones have no `initialize`; their servers take these, too.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Time that a server has to say what it is. Some are downloaded first.
const START_TIME_MAX: Duration = Duration::from_secs(120);
/// Time that one page of tools may take.
const LIST_TIME_MAX: Duration = Duration::from_secs(60);

/// A tool as a server describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Described {
    /// The server's name for it.
    pub(super) name: String,
    /// For the model.
    pub(super) description: Option<String>,
    /// The JSON schema of its input.
    pub(super) input_schema: Value,
    /// What it says of its effects.
    pub(super) annotations: Map<String, Value>,
}

impl Described {
    /// Does the server say that a second call changes nothing more?
    pub(super) fn is_repeatable(&self) -> bool {
        let says = |hint: &str| self.annotations.get(hint).and_then(Value::as_bool) == Some(true);
        says("readOnlyHint") || says("idempotentHint")
    }
}

/// Agrees on a version. Gives whether the server has tools.
pub(super) async fn initialize(connection: &Connection) -> Result<bool, Failure> {
    let newest = VERSIONS[VERSIONS.len() - 1];
    let client = json!({ "name": "agentsvc", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": newest, "capabilities": {}, "clientInfo": client });
    let said = connection.request("initialize", params, START_TIME_MAX).await?;
    let version = said["protocolVersion"].as_str().unwrap_or("none");
    if !VERSIONS.contains(&version) {
        return Err(Failure::Unanswered(format!("it speaks version {version:?} of the protocol")));
    }
    connection.notify("notifications/initialized").await;
    Ok(said["capabilities"]["tools"].is_object())
}

/// Every tool of the server, as many as there may be. What describes no tool is left out.
pub(super) async fn list(connection: &Connection) -> Result<Vec<Described>, Failure> {
    let (mut tools, mut params) = (Vec::new(), json!({}));
    // A page without tools counts, too: a server could send such pages for ever.
    for _ in 0..MCP_SERVER_TOOLS_MAX {
        let mut page = connection.request("tools/list", params, LIST_TIME_MAX).await?;
        let Value::Array(described) = page["tools"].take() else {
            return Err(Failure::Unanswered("its list of tools is none".to_owned()));
        };
        tools.extend(described.into_iter().filter_map(|tool| serde_json::from_value::<Described>(tool).ok()));
        match page["nextCursor"].take() {
            Value::String(cursor) if tools.len() < MCP_SERVER_TOOLS_MAX => params = json!({ "cursor": cursor }),
            _ => break,
        }
    }
    tools.truncate(MCP_SERVER_TOOLS_MAX);
    Ok(tools)
}
