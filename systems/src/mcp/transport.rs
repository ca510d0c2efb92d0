//! How an MCP server is reached, as the configuration, the catalog and clients write it (facts 4.1).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits;

/// Words of a command, its program included.
const WORDS_MAX: usize = 256;
/// Tools of plain HTTP.
const COMPAT_TOOLS_MAX: usize = 256;
/// Bytes of a URL.
const URL_BYTES_MAX: usize = 2_048;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum McpTransport {
    /// A program: a message is a line of its standard input or output.
    Stdio {
        /// Its name or absolute path.
        command: String,
        /// Its arguments.
        #[serde(default)]
        args: Vec<String>,
    },
    /// Streamable HTTP.
    Http {
        /// Where it is.
        url: String,
    },
    /// HTTP with server-sent events, as versions up to 2024-11-05 have it.
    Sse {
        /// Where it is.
        url: String,
    },
    /// Plain HTTP that knows nothing of MCP.
    HttpCompat {
        /// What paths are below.
        base_url: String,
        /// Its tools.
        #[serde(default)]
        tools: Vec<CompatTool>,
    },
}

/// A tool that is one request of plain HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatTool {
    /// Its name.
    pub name: String,
    /// For the model.
    #[serde(default)]
    pub description: String,
    /// Below the base URL; `{name}` stands for the argument of this name.
    pub path: String,
    /// The method of the request.
    #[serde(default)]
    pub method: CompatMethod,
    /// Where arguments go that are not in the path.
    #[serde(default)]
    pub request_mode: RequestMode,
    /// What becomes of the answer.
    #[serde(default)]
    pub response_mode: ResponseMode,
    /// The JSON schema of its input.
    #[serde(default = "any_object")]
    pub input_schema: Value,
}

fn any_object() -> Value {
    serde_json::json!({ "type": "object" })
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompatMethod {
    /// `GET`
    #[serde(alias = "GET")]
    Get,
    /// `POST`
    #[default]
    #[serde(alias = "POST")]
    Post,
    /// `PUT`
    #[serde(alias = "PUT")]
    Put,
    /// `PATCH`
    #[serde(alias = "PATCH")]
    Patch,
    /// `DELETE`
    #[serde(alias = "DELETE")]
    Delete,
}

/// Where arguments go that are not in the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestMode {
    /// Into a JSON body.
    #[default]
    JsonBody,
    /// Into the query.
    Query,
    /// Nowhere.
    None,
}

/// What becomes of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseMode {
    /// JSON, written anew with line breaks.
    #[default]
    Json,
    /// Text as it is.
    Text,
}

/// A header of plain HTTP as it is written: with its value, or with the daemon's variable that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default)]
    pub value: Option<String>,
    /// The variable that has its value.
    #[serde(default)]
    pub value_env: Option<String>,
}

/// How a server is signed in to, where its own metadata do not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpOauth {
    /// A word of the catalog, such as `google`; shown only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Where users sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    /// Where tokens are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    /// The client that is registered there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The daemon's variable with the client's secret; in the configuration only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// What is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// What is asked for in the name of the user, beside `scopes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_scopes: Vec<String>,
}

/// A transport as it is written, and the headers that stand in it.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenTransport {
    /// How the server is reached.
    pub transport: McpTransport,
    /// Headers of plain HTTP.
    pub headers: Vec<CompatHeader>,
}

impl GivenTransport {
    /// Reads and checks the object that describes a transport.
    ///
    /// # Errors
    /// What must be otherwise, without values.
    pub fn read(mut object: Map<String, Value>) -> Result<Self, String> {
        if let Some(Value::String(kind)) = object.get_mut("type") {
            // As others spell it.
            *kind = kind.to_ascii_lowercase().replace('-', "_");
            if matches!(&**kind, "streamable_http" | "streamablehttp") {
                "http".clone_into(kind);
            }
        }
        let headers = match object.get("type").and_then(Value::as_str) {
            Some("http_compat") => object.remove("headers"),
            _ => None,
        };
        let headers: Vec<CompatHeader> = match headers {
            None | Some(Value::Null) => Vec::new(),
            Some(given) => serde_json::from_value(given).map_err(|error| format!("headers: {error}"))?,
        };
        if headers.len() > limits::MCP_VALUES_MAX {
            return Err(format!("headers must be at most {}", limits::MCP_VALUES_MAX));
        }
        let transport = serde_json::from_value(Value::Object(object)).map_err(|error| reason(&error))?;
        let given = Self { transport, headers };
        given.transport.check()?;
        Ok(given)
    }
}

/// The error without the value that it found.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.replace("missing field `type`", "needs `type`: stdio, http, sse or http_compat")
}

impl McpTransport {
    /// Its word: `stdio`, `http`, `sse` or `http_compat`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::HttpCompat { .. } => "http_compat",
        }
    }

    /// The URL, where there is one.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { url } | Self::Sse { url } => Some(url),
            Self::HttpCompat { base_url, .. } => Some(base_url),
        }
    }

    /// The program, or scheme, host and port of the URL: paths and queries may hold secrets.
    #[must_use]
    pub fn target(&self) -> &str {
        match (self, self.url()) {
            (_, Some(url)) => {
                let start = url.find("://").map_or(0, |at| at + 3);
                let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
                &url[..end]
            }
            (Self::Stdio { command, .. }, None) => command,
            (_, None) => "",
        }
    }

    /// Says what must be otherwise.
    ///
    /// # Errors
    /// A sentence without values.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Stdio { command, args } => {
                let is_path = command.starts_with('/');
                if command.is_empty() || command.contains('\0') || (command.contains('/') && !is_path) {
                    return Err("command must be an absolute path or the name of a program".to_owned());
                }
                if args.iter().any(|argument| argument.contains('\0')) {
                    return Err("args must not contain the character NUL".to_owned());
                }
                let most = WORDS_MAX - 1;
                if args.len() > most { Err(format!("args must be at most {most}")) } else { Ok(()) }
            }
            Self::Http { url } | Self::Sse { url } => check_url("url", url),
            Self::HttpCompat { base_url, tools } => {
                check_url("base_url", base_url)?;
                if tools.len() > COMPAT_TOOLS_MAX {
                    return Err(format!("tools must be at most {COMPAT_TOOLS_MAX}"));
                }
                let mut names = std::collections::BTreeSet::new();
                tools.iter().try_for_each(|tool| {
                    if tool.name.is_empty() || !names.insert(&tool.name) {
                        Err("tools must have names that differ".to_owned())
                    } else if tool.input_schema["type"] != "object" {
                        Err(format!("input_schema of tool {:?} must be of type object", tool.name))
                    } else {
                        Ok(())
                    }
                })
            }
        }
    }
}

fn check_url(key: &str, url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    match rest {
        Some(rest) if url.len() <= URL_BYTES_MAX && !rest.is_empty() && !url.contains(char::is_whitespace) => {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if host.is_empty() || host.contains('@') {
                Err(format!("{key} must have a host, and no user or password; use headers"))
            } else {
                Ok(())
            }
        }
        _ => Err(format!("{key} must be an http or https URL of at most {URL_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(given: Value) -> Result<GivenTransport, String> {
        GivenTransport::read(given.as_object().unwrap().clone())
    }

    #[test]
    fn each_kind_is_read_and_written_back() {
        for given in [
            json!({ "type": "stdio", "command": "npx", "args": ["-y", "x"] }),
            json!({ "type": "http", "url": "https://h/mcp" }),
            json!({ "type": "sse", "url": "http://h:1/sse" }),
            json!({ "type": "http_compat", "base_url": "https://h/api", "tools": [{
                "name": "find", "description": "", "path": "/find/{q}", "method": "get", "request_mode": "query",
                "response_mode": "text", "input_schema": { "type": "object" } }] }),
        ] {
            let found = read(given.clone()).unwrap();
            assert_eq!((found.transport.kind(), &given), (given["type"].as_str().unwrap(), &json!(found.transport)));
        }
        let spelled = read(json!({ "type": "Streamable-HTTP", "url": "https://h" })).unwrap().transport;
        assert_eq!((spelled.kind(), spelled.target()), ("http", "https://h"));
        let compat = json!({ "type": "http_compat", "base_url": "https://h/a?key=1", "headers": [
            { "name": "X-Key", "value": "v" }, { "name": "Y", "value_env": "Y_KEY" }] });
        let compat = read(compat).unwrap();
        assert_eq!((compat.headers.len(), compat.transport.target()), (2, "https://h"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (given, message) in [
            (json!({ "command": "x" }), "needs `type`"),
            (json!({ "type": "pigeon" }), "unknown variant"),
            (json!({ "type": "stdio" }), "missing field `command`"),
            (json!({ "type": "stdio", "command": "./x" }), "absolute path"),
            (json!({ "type": "stdio", "command": "x", "args": ["a\u{0}"] }), "NUL"),
            (json!({ "type": "stdio", "command": "x", "cwd": "/" }), "unknown field `cwd`"),
            (json!({ "type": "http", "url": "ftp://h" }), "http or https"),
            (json!({ "type": "http", "url": "https://u:p@h/" }), "no user or password"),
            (
                json!({ "type": "http_compat", "base_url": "https://h", "tools": [
                { "name": "a", "path": "/", "input_schema": { "type": "string" } }] }),
                "type object",
            ),
        ] {
            let said = read(given.clone()).unwrap_err();
            assert!(said.contains(message), "{given}: {said}");
        }
    }
}
