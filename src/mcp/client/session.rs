//! What is agreed with a server at the start, what it has, and calls of it.

use std::time::Duration;

use agentsvc_api::http::json::memory_bytes;
pub(super) use agentsvc_api::mcp::version::Version;
use agentsvc_systems::mcp::limits::{MCP_SERVER_LIST_BYTES_MAX, MCP_SERVER_TOOLS_MAX};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::connection::{Connection, Failure};
use super::mirrored::{self, Mirrored};

/// Time that a server has to say what it is. Some are downloaded first.
const START_TIME_MAX: Duration = Duration::from_secs(120);
/// Time that one page of a list may take.
const LIST_TIME_MAX: Duration = Duration::from_secs(60);
/// Pages of a list without an entry, one after the other.
const EMPTY_PAGES_MAX: usize = 8;
/// Bytes of a server's name for something that it has.
const NAME_BYTES_MAX: usize = 256;
/// Bytes of a description that are kept.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;
/// Bytes of the schema of an input.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// What a server may say of the effects of a tool: with one of these, a second call changes nothing more.
const HINTS: [&str; 2] = ["readOnlyHint", "idempotentHint"];
/// Time that a server has to take the level of its log.
const LEVEL_TIME_MAX: Duration = Duration::from_secs(5);
/// The level from which servers log.
const LOG_LEVEL: &str = "info";
/// What a server says in the place of a version is shown to this length.
const VERSION_BYTES_SHOWN: usize = 32;
/// Time until a subscription that ended is asked for again; twice as long each time.
const SUBSCRIBE_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// What a subscription waits for: longer than any server runs.
const SUBSCRIPTION_TIME_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Adds to the parameters of a request what its version wants there.
pub(super) fn mark(version: Version, params: &mut Value, capabilities: impl FnOnce() -> Value) {
    if !version.is_stateless() {
        return;
    }
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = version.as_str().into();
    meta["io.modelcontextprotocol/clientInfo"] = client();
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities();
    meta["io.modelcontextprotocol/logLevel"] = LOG_LEVEL.into();
}

/// What a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl Features {
    fn of(capabilities: &Value) -> Self {
        let has = |name: &str| capabilities[name].is_object();
        Self { tools: has("tools"), resources: has("resources"), prompts: has("prompts") }
    }
}

/// Something of a server that agents can call.
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
    /// Properties of its input that stand in headers, too; see [`mirrored`].
    #[serde(skip)]
    pub(super) mirrored: Vec<Mirrored>,
    /// How it is called.
    #[serde(skip)]
    pub(super) means: Means,
}

/// How something of a server is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Means {
    /// As a tool.
    #[default]
    Tool,
    /// By `resources/list` and `resources/templates/list`.
    ListResources,
    /// By `resources/read`.
    ReadResource,
    /// By `prompts/list`.
    ListPrompts,
    /// By `prompts/get`.
    GetPrompt,
}

impl Described {
    /// Does the server say that a second call changes nothing more?
    pub(super) fn is_repeatable(&self) -> bool {
        let says = |hint: &&str| self.annotations.get(*hint).and_then(Value::as_bool) == Some(true);
        self.means != Means::Tool || HINTS.iter().any(says)
    }

    /// Cut to what may be kept of it; `None` when it cannot be.
    fn bounded(mut self) -> Option<Self> {
        if self.name.len() > NAME_BYTES_MAX || self.input_schema.to_string().len() > SCHEMA_BYTES_MAX {
            return None;
        }
        let description = self.description.unwrap_or_default();
        // A copy, because a text that is cut keeps its memory.
        let kept = &description[..description.floor_char_boundary(DESCRIPTION_BYTES_MAX)];
        self.description = (!kept.is_empty()).then(|| kept.to_owned());
        self.annotations.retain(|hint, value| HINTS.contains(&&**hint) && value.is_boolean());
        Some(self)
    }

    fn new(name: &str, description: &str, properties: &Value, required: &[&str], means: Means) -> Self {
        let input_schema = json!({ "type": "object", "properties": properties, "required": required });
        Self {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            input_schema,
            annotations: Map::new(),
            mirrored: Vec::new(),
            means,
        }
    }
}

fn client() -> Value {
    json!({ "name": "agentsvc", "version": env!("CARGO_PKG_VERSION") })
}

/// Agrees on a version. Gives what the server has.
pub(super) async fn initialize(connection: &Connection) -> Result<Features, Failure> {
    let newest = Version::INITIALIZED.as_str();
    let params =
        json!({ "protocolVersion": newest, "capabilities": connection.capabilities(), "clientInfo": client() });
    let said = match connection.request("initialize", params, START_TIME_MAX).await {
        // Servers of the newest version need not know `initialize`.
        Err(Failure::Refused(said)) => return discover(connection).await.map_err(|_| Failure::Refused(said)),
        said => said?,
    };
    let version = said["protocolVersion"].as_str().unwrap_or("none");
    match Version::parse(version) {
        Some(version) if !version.is_stateless() => connection.agree(version),
        _ => {
            return Err(Failure::Unanswered(unknown(version)));
        }
    }
    connection.notify("notifications/initialized").await;
    let capabilities = &said["capabilities"];
    if capabilities["logging"].is_object() {
        // One that refuses logs what it wants to; what is too much is left out here.
        let _refused = connection.request("logging/setLevel", json!({ "level": LOG_LEVEL }), LEVEL_TIME_MAX).await;
    }
    Ok(Features::of(capabilities))
}

/// Says that a version is unknown. Agents read it: only what looks like a version is repeated.
fn unknown(version: &str) -> String {
    let is_plain = version.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    if is_plain && version.len() <= VERSION_BYTES_SHOWN {
        format!("it speaks version {version:?} of the protocol")
    } else {
        "it speaks an unknown version of the protocol".to_owned()
    }
}

/// Asks a server without `initialize` what it has.
async fn discover(connection: &Connection) -> Result<Features, Failure> {
    let version = Version::V2026_07_28;
    connection.agree(version);
    let said = connection.request("server/discover", json!({}), LIST_TIME_MAX).await?;
    let supported = said["supportedVersions"].as_array().into_iter().flatten();
    if supported.into_iter().all(|supported| supported != version.as_str()) {
        return Err(Failure::Unanswered("it speaks no known version of the protocol".to_owned()));
    }
    Ok(Features::of(&said["capabilities"]))
}

/// Waits for notices of changes where a server sends them only to those that subscribe. Ends when there is nothing to wait
/// for.
pub(super) async fn subscribe(connection: &Connection) {
    if !connection.version().is_some_and(Version::is_stateless) {
        return;
    }
    let mut rest = SUBSCRIBE_AGAIN_AFTER;
    loop {
        let all = json!({ "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true });
        let params = json!({ "notifications": all });
        match connection.request("subscriptions/listen", params, SUBSCRIPTION_TIME_MAX).await {
            Err(Failure::Refused(_)) => return,
            Ok(_) | Err(Failure::Unanswered(_)) => tokio::time::sleep(rest).await,
        }
        rest = (rest * 2).min(LIST_TIME_MAX);
    }
}

/// Everything of the server that agents can call.
pub(super) async fn describe(connection: &Connection, features: Features) -> Result<Vec<Described>, Failure> {
    let mut all = if features.tools { list(connection).await? } else { Vec::new() };
    let text = |description: &str| json!({ "type": "string", "description": description });
    if features.resources {
        let what = "Lists the resources of this MCP server: their URIs, names and types.";
        all.push(Described::new("list_resources", what, &json!({}), &[], Means::ListResources));
        let (what, uri) = ("Reads a resource of this MCP server.", json!({ "uri": text("The URI of the resource.") }));
        all.push(Described::new("read_resource", what, &uri, &["uri"], Means::ReadResource));
    }
    if features.prompts {
        let what = "Lists the prompts of this MCP server and their arguments.";
        all.push(Described::new("list_prompts", what, &json!({}), &[], Means::ListPrompts));
        let arguments = json!({ "type": "object", "additionalProperties": { "type": "string" },
            "description": "The arguments of the prompt." });
        let input = json!({ "name": text("The name of the prompt."), "arguments": arguments });
        let what = "Gets a prompt of this MCP server, filled in.";
        all.push(Described::new("get_prompt", what, &input, &["name"], Means::GetPrompt));
    }
    Ok(all)
}

/// Every tool of the server, as many as there may be. What describes no tool is left out.
pub(super) async fn list(connection: &Connection) -> Result<Vec<Described>, Failure> {
    let mut left_out = 0_usize;
    let tools = pages(connection, "tools/list", "tools", |tool| {
        let tool = serde_json::from_value::<Described>(tool).ok().and_then(Described::bounded);
        let tool = tool.and_then(|tool| match connection.mirrors() {
            true => Some(Described { mirrored: mirrored::declared(&tool.input_schema)?, ..tool }),
            false => Some(tool),
        });
        left_out += usize::from(tool.is_none());
        tool.map(|tool| (memory_of(&tool.input_schema) + tool.name.len(), tool))
    });
    let tools = tools.await?;
    if left_out > 0 {
        tracing::warn!(server = connection.name(), left_out, "an MCP server has tools that cannot be offered");
    }
    Ok(tools)
}

/// What a value takes in memory, about.
pub(super) fn memory_of(value: &Value) -> usize {
    memory_bytes(value.to_string().as_bytes())
}

/// All pages of a list, as many entries as there may be. `keep` judges and cuts an entry, and says how many bytes it takes.
pub(super) async fn pages<T>(
    connection: &Connection,
    method: &str,
    key: &str,
    mut keep: impl FnMut(Value) -> Option<(usize, T)>,
) -> Result<Vec<T>, Failure> {
    let (mut all, mut params, mut bytes, mut empty) = (Vec::new(), json!({}), 0, 0);
    loop {
        let mut answer = connection.request_held(method, params, LIST_TIME_MAX).await?;
        let page = &mut answer.value;
        let Some(Value::Array(entries)) = page.get_mut(key).map(Value::take) else {
            return Err(Failure::Unanswered(format!("its list of {key} is not valid")));
        };
        let before = all.len();
        for (size, entry) in entries.into_iter().filter_map(&mut keep) {
            bytes += size;
            if bytes > MCP_SERVER_LIST_BYTES_MAX || all.len() == MCP_SERVER_TOOLS_MAX {
                tracing::warn!(
                    server = connection.name(),
                    method,
                    entries = all.len(),
                    "a list of an MCP server is cut"
                );
                return Ok(all);
            }
            all.push(entry);
        }
        // A server could send pages without entries for ever.
        empty = if all.len() == before { empty + 1 } else { 0 };
        match page.get_mut("nextCursor").map(Value::take) {
            Some(Value::String(cursor)) if empty < EMPTY_PAGES_MAX => params = json!({ "cursor": cursor }),
            _ => return Ok(all),
        }
    }
}
