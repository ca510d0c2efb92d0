//! What modules ask of the host: the methods, their parameters, and the fuel that they take.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Something that a module asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCall {
    /// The time: seconds since 1970.
    TimeNow,
    /// The value of a key of the skill's own memory; null if there is none.
    KvGet {
        /// The key.
        key: String,
    },
    /// Sets it.
    KvSet {
        /// The key.
        key: String,
        /// Any JSON, as text.
        value: String,
    },
    /// The text of a file of the workspace.
    FsRead {
        /// Its path.
        path: String,
    },
    /// The names in a directory of the workspace.
    FsList {
        /// Its path; empty for the workspace itself.
        path: String,
    },
    /// Writes a file of the workspace.
    FsWrite {
        /// Its path.
        path: String,
        /// Its text.
        content: String,
    },
    /// A variable of the daemon that is on the list of harmless ones.
    EnvRead {
        /// Its name.
        name: String,
    },
    /// Fetches a URL.
    NetFetch {
        /// The URL.
        url: String,
        /// JSON to post; without it the URL is got.
        body: Option<String>,
    },
    /// Runs a command in the workspace.
    ShellExec {
        /// The command line.
        command: String,
    },
    /// Sends a message to an agent.
    AgentSend {
        /// Name or id.
        target: String,
        /// The message.
        message: String,
    },
    /// Makes an agent.
    AgentSpawn {
        /// Its manifest in TOML.
        manifest: String,
    },
}

/// A request that was read.
pub(super) struct Asked {
    pub(super) call: HostCall,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    #[serde(default)]
    params: Value,
}

impl Asked {
    /// Reads a request: JSON with `method` and `params`.
    ///
    /// # Errors
    /// What must be otherwise, for the module.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let request: Request = serde_json::from_slice(bytes).map_err(|error| format!("invalid request: {error}"))?;
        let params = match request.params {
            Value::Object(params) => params,
            Value::Null => Map::new(),
            _ => return Err("params must be an object".to_owned()),
        };
        let text = |name: &str| match params.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("params.{name} must be a string")),
            None => Err(format!("params.{name} is missing")),
        };
        let call = match &*request.method {
            "time_now" => HostCall::TimeNow,
            "kv_get" => HostCall::KvGet { key: text("key")? },
            "kv_set" => {
                let value = params.get("value").ok_or("params.value is missing")?;
                HostCall::KvSet { key: text("key")?, value: value.to_string() }
            }
            "fs_read" => HostCall::FsRead { path: text("path")? },
            "fs_list" => HostCall::FsList { path: text("path")? },
            "fs_write" => HostCall::FsWrite { path: text("path")?, content: text("content")? },
            "env_read" => HostCall::EnvRead { name: text("name")? },
            "net_fetch" => HostCall::NetFetch { url: text("url")?, body: body(&params)? },
            "shell_exec" => HostCall::ShellExec { command: text("command")? },
            "agent_send" => HostCall::AgentSend { target: text("target")?, message: text("message")? },
            "agent_spawn" => HostCall::AgentSpawn { manifest: text("manifest")? },
            other => {
                let shown: String = other.chars().take(64).collect();
                return Err(format!("unknown method {shown:?}"));
            }
        };
        Ok(Self { call })
    }

    /// Fuel that it takes beside that of its instructions.
    pub(super) const fn fuel(&self) -> u64 {
        match self.call {
            // Each is durable before it answers.
            HostCall::KvSet { .. } | HostCall::FsWrite { .. } => 1_000,
            HostCall::NetFetch { .. } | HostCall::ShellExec { .. } => 5_000,
            HostCall::AgentSend { .. } => 100_000,
            HostCall::AgentSpawn { .. } => 200_000,
            _ => 0,
        }
    }
}

/// The body of a fetch: a text as it is, other JSON as its text.
fn body(params: &Map<String, Value>) -> Result<Option<String>, String> {
    let given = match params.get("body") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(value) => Some(value.to_string()),
    };
    let method = params.get("method").map_or(Some("GET"), Value::as_str).map(str::to_ascii_uppercase);
    match (method.as_deref(), given) {
        (Some("GET"), None) => Ok(None),
        (Some("GET"), Some(_)) => Err("params.body is for the method POST".to_owned()),
        (Some("POST"), given) => Ok(Some(given.unwrap_or_default())),
        _ => Err("params.method must be GET or POST".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(request: &Value) -> Result<HostCall, String> {
        Asked::read(request.to_string().as_bytes()).map(|asked| asked.call)
    }

    #[test]
    fn requests_are_read() {
        assert_eq!(read(&json!({ "method": "time_now" })), Ok(HostCall::TimeNow));
        let set = json!({ "method": "kv_set", "params": { "key": "k", "value": { "n": [1] } } });
        assert_eq!(read(&set), Ok(HostCall::KvSet { key: "k".to_owned(), value: r#"{"n":[1]}"#.to_owned() }));
        let fetch = |params: Value| match read(&json!({ "method": "net_fetch", "params": params }))? {
            HostCall::NetFetch { body, .. } => Ok(body),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(fetch(json!({ "url": "u" })), Ok(None));
        assert_eq!(fetch(json!({ "url": "u", "method": "get", "body": "" })), Ok(None));
        assert_eq!(
            fetch(json!({ "url": "u", "method": "post", "body": { "a": 1 } })),
            Ok(Some(r#"{"a":1}"#.to_owned()))
        );
        assert_eq!(fetch(json!({ "url": "u", "method": "POST" })), Ok(Some(String::new())));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (request, part) in [
            (json!({ "method": "fs_read" }), "params.path is missing"),
            (json!({ "method": "fs_read", "params": { "path": 1 } }), "params.path must be a string"),
            (json!({ "method": "fs_read", "params": [] }), "params must be an object"),
            (json!({ "method": "fs_delete", "params": {} }), "unknown method"),
            (json!({ "params": {} }), "invalid request"),
            (json!({ "method": "kv_set", "params": { "key": "k" } }), "params.value is missing"),
            (json!({ "method": "net_fetch", "params": { "url": "u", "method": "DELETE" } }), "GET or POST"),
            (json!({ "method": "net_fetch", "params": { "url": "u", "body": "b" } }), "for the method POST"),
        ] {
            let why = read(&request).unwrap_err();
            assert!(why.contains(part), "{request}: {why}");
        }
        assert!(Asked::read(b"\xff").is_err() && Asked::read(b"").is_err());
    }

    #[test]
    fn what_is_dear_takes_fuel() {
        let fuel = |method: &str, params: Value| {
            Asked::read(json!({ "method": method, "params": params }).to_string().as_bytes()).unwrap().fuel()
        };
        assert_eq!(fuel("time_now", json!({})), 0);
        assert_eq!(fuel("kv_get", json!({ "key": "k" })), 0);
        assert_eq!(fuel("kv_set", json!({ "key": "k", "value": 1 })), 1_000);
        assert_eq!(fuel("fs_write", json!({ "path": "p", "content": "c" })), 1_000);
        assert_eq!(fuel("net_fetch", json!({ "url": "u" })), 5_000);
        assert_eq!(fuel("shell_exec", json!({ "command": "c" })), 5_000);
        assert_eq!(fuel("agent_send", json!({ "target": "a", "message": "m" })), 100_000);
        assert_eq!(fuel("agent_spawn", json!({ "manifest": "" })), 200_000);
    }
}
