//! What clients say of a server: a catalog entry with credentials, or how it is reached.

use std::collections::BTreeMap;

use agentsvc_systems::mcp::limits::MCP_VALUE_BYTES_MAX;
use agentsvc_systems::mcp::{GivenTransport, McpOauth, McpTransport};
use hyper::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::shape::CatalogItem;
use crate::http::error::Error;
use crate::http::json::given;

/// What a hidden value is shown as. Who sends it back means the value that is there.
const MASK: &str = "***";
/// Variables of the daemon itself.
const OWN_PREFIX: &str = "AGENTSVC_";

/// An MCP server: `template_id` with `credentials`, or `name` with `transport`. Fields that are left out stay unchanged in an
/// update.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ServerBody {
    /// Name: 1 to 32 letters, digits, `-` or `_`. A server from the catalog has the name of its entry.
    pub(crate) name: Option<String>,
    /// Entry of the MCP catalog.
    pub(crate) template_id: Option<String>,
    /// Values of the variables that the entry requires. Never returned.
    credentials: Option<BTreeMap<String, String>>,
    /// `stdio`, `http`, `sse` or `http_compat`, or an object with this as `type` and the fields below.
    transport: Option<Value>,
    /// Program of a stdio server: a name to search in `[exec_policy] path`, or an absolute path. It starts only if `[exec_policy]
    /// mode` is `full`.
    command: Option<String>,
    /// Its arguments.
    args: Option<Vec<String>>,
    /// URL of an http or sse server.
    url: Option<String>,
    /// Base URL of an http_compat server.
    base_url: Option<String>,
    /// Tools of an http_compat server: `name`, `description`, `path`, `method`, `request_mode`, `response_mode`, `input_schema`.
    tools: Option<Vec<Value>>,
    /// Environment variables: `{"NAME": "value"}` or `["NAME=value"]`. A name without a value keeps its value in an update. Never
    /// returned.
    env: Option<Values>,
    /// Headers of requests to the server: `{"Name": "value"}` or `["Name: value"]`, as `env`.
    headers: Option<Values>,
    /// Timeout of a call in seconds, 1 to 600. Default: 30.
    pub(crate) timeout_secs: Option<u16>,
    /// Whether the program can use the network. Default: false.
    pub(crate) network: Option<bool>,
    /// Whether the server may ask the model of the agent that calls it, at the agent's cost (sampling): `off` (default), `approve` or
    /// `on`. Another `transport` without this field sets it to `off`.
    pub(crate) sampling: Option<String>,
    /// Maximum tokens of the answers that sampling gives it in one call, 1 to 1000000. Default: 4096.
    pub(crate) sampling_max_tokens: Option<u32>,
    /// OAuth settings where the server does not give them itself: `auth_url`, `token_url`, `client_id`, `scopes`,
    /// `user_scopes`. Null removes them.
    #[serde(deserialize_with = "given")]
    oauth: Option<Option<Map<String, Value>>>,
}

/// The list of tools that you accept.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AcceptBody {
    /// `tools_review.hash` of the server, as you have read it.
    pub(crate) hash: Option<String>,
}

/// Values under names.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Values {
    Named(BTreeMap<String, Option<String>>),
    Listed(Vec<String>),
}

impl Values {
    /// The pairs; null and the mask are no values.
    fn pairs(self, divider: char) -> Vec<(String, Option<String>)> {
        let pairs: Vec<(String, Option<String>)> = match self {
            Self::Named(values) => values.into_iter().collect(),
            Self::Listed(lines) => lines.iter().map(|line| pair(line, divider)).collect(),
        };
        pairs.into_iter().map(|(name, value)| (name, value.filter(|value| value != MASK))).collect()
    }
}

fn pair(line: &str, divider: char) -> (String, Option<String>) {
    match line.split_once(divider) {
        Some((name, value)) if divider == ':' => (name.trim().to_owned(), Some(value.trim().to_owned())),
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (line.trim().to_owned(), None),
    }
}

/// Names with their values, where those are given.
type Pairs = Vec<(String, Option<String>)>;
/// Values that are not sealed yet.
pub(crate) type Plain = Option<Pairs>;

/// A body that was checked.
pub(crate) struct Read {
    pub(crate) transport: Option<McpTransport>,
    pub(crate) env: Plain,
    pub(crate) headers: Plain,
    pub(crate) oauth: Option<Option<McpOauth>>,
}

impl ServerBody {
    /// An entry of the catalog with credentials.
    pub(crate) fn of_entry(id: String, credentials: BTreeMap<String, String>) -> Self {
        Self { template_id: Some(id), credentials: Some(credentials), ..Self::default() }
    }

    /// A template that is not of the catalog, as if the client had written it here: it gets no more than the client can give.
    pub(crate) fn of_template(item: &CatalogItem, network: bool, credentials: BTreeMap<String, String>) -> Self {
        let oauth = item.text.oauth.as_ref().and_then(|oauth| match serde_json::to_value(oauth) {
            Ok(Value::Object(oauth)) => Some(Some(oauth)),
            _ => None,
        });
        Self {
            name: Some(item.id.clone()),
            transport: Some(Value::Object(item.transport.clone())),
            env: Some(Values::Named(credentials.into_iter().map(|(name, value)| (name, Some(value))).collect())),
            network: Some(network),
            oauth,
            ..Self::default()
        }
    }

    /// Checks the body. `entry` is the catalog entry of the server, and `has_own` says that a server from the catalog was given a
    /// transport of its own; `known` are the variables that it has.
    ///
    /// # Errors
    /// 400 naming the field.
    pub(crate) fn read(mut self, entry: Option<&CatalogItem>, known: &[String]) -> Result<Read, Error> {
        let (transport, compat) = self.transport()?;
        let env = match (self.credentials.take(), self.env.take()) {
            (None, env) => env.map(|env| env.pairs('=')),
            (Some(_), Some(_)) => return Err(Error::bad_field("env", "env and credentials are the same; send one")),
            (Some(credentials), None) => Some(with_kept(credentials, known)),
        };
        for (name, value) in env.iter().flatten() {
            check_variable(name, value.as_deref())?;
            let is_declared = |entry: &CatalogItem| entry.text.required_env.iter().any(|it| it.name == *name);
            if transport.is_none() && !entry.is_none_or(is_declared) {
                let text = format!("the catalog entry declares no variable {name}");
                return Err(Error::bad_field("credentials", text));
            }
        }
        let headers = match (self.headers.take().map(|headers| headers.pairs(':')), compat) {
            (headers, compat) if compat.is_empty() => headers,
            (headers, compat) => Some(headers.unwrap_or_default().into_iter().chain(compat).collect()),
        };
        for (name, value) in headers.iter().flatten() {
            check_header(name, value.as_deref())?;
        }
        let oauth = match self.oauth.take() {
            Some(Some(given)) => Some(Some(oauth(given)?)),
            Some(None) => Some(None),
            None => None,
        };
        Ok(Read { transport, env, headers, oauth })
    }

    /// How the server is reached, and the headers that were written there.
    fn transport(&mut self) -> Result<(Option<McpTransport>, Pairs), Error> {
        let wrong = |why: String| Error::bad_field("transport", format!("transport: {why}"));
        let mut object = match self.transport.take() {
            Some(Value::Object(object)) => object,
            Some(Value::String(kind)) => std::iter::once(("type".to_owned(), Value::String(kind))).collect(),
            Some(_) => return Err(wrong("must be a string or an object".to_owned())),
            None if self.command.is_some() => std::iter::once(("type".to_owned(), "stdio".into())).collect(),
            None if self.url.is_some() => std::iter::once(("type".to_owned(), "http".into())).collect(),
            None => return Ok((None, Vec::new())),
        };
        let beside = [
            ("command", self.command.take().map(Value::from)),
            ("args", self.args.take().map(Value::from)),
            ("url", self.url.take().map(Value::from)),
            ("base_url", self.base_url.take().map(Value::from)),
            ("tools", self.tools.take().map(Value::from)),
        ];
        for (key, value) in beside {
            if let Some(value) = value {
                object.entry(key).or_insert(value);
            }
        }
        let given = GivenTransport::read(object).map_err(wrong)?;
        if given.headers.iter().any(|header| header.value_env.is_some()) {
            return Err(wrong("headers: value_env is for config.toml only; send `value`".to_owned()));
        }
        let headers = given.headers.into_iter().map(|it| (it.name, it.value.filter(|value| value != MASK)));
        Ok((Some(given.transport), headers.collect()))
    }
}

/// The credentials, and the variables that are kept.
fn with_kept(credentials: BTreeMap<String, String>, known: &[String]) -> Vec<(String, Option<String>)> {
    let kept = known.iter().filter(|name| !credentials.contains_key(*name)).map(|name| (name.clone(), None));
    let kept: Vec<_> = kept.collect();
    let new = credentials.into_iter().map(|(name, value)| (name, Some(value).filter(|value| value != MASK)));
    kept.into_iter().chain(new).collect()
}

fn check_variable(name: &str, value: Option<&str>) -> Result<(), Error> {
    let bad = |text: String| Err(Error::bad_field("env", format!("env: {text}")));
    let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !is_valid || name.len() > 128 {
        return bad("a name must have at most 128 letters, digits or `_`, and no digit first".to_owned());
    }
    if name.starts_with(OWN_PREFIX) {
        return bad(format!("names that begin with {OWN_PREFIX} are the daemon's own"));
    }
    match value {
        Some(value) if value.contains('\0') => bad(format!("the value of {name} contains the character NUL")),
        Some(value) if value.len() > MCP_VALUE_BYTES_MAX => {
            bad(format!("the value of {name} is longer than {MCP_VALUE_BYTES_MAX} bytes"))
        }
        _ => Ok(()),
    }
}

fn check_header(name: &str, value: Option<&str>) -> Result<(), Error> {
    let bad = |text: String| Err(Error::bad_field("headers", format!("headers: {text}")));
    if HeaderName::from_bytes(name.as_bytes()).is_err() || name.len() > 128 {
        return bad("a name must have at most 128 letters, digits or hyphens".to_owned());
    }
    match value {
        Some(value) if value.len() > MCP_VALUE_BYTES_MAX || HeaderValue::from_str(value).is_err() => {
            bad(format!("the value of {name} cannot be sent or is longer than {MCP_VALUE_BYTES_MAX} bytes"))
        }
        _ => Ok(()),
    }
}

fn oauth(given: Map<String, Value>) -> Result<McpOauth, Error> {
    let bad = |text: String| Error::bad_field("oauth", format!("oauth: {text}"));
    let read: McpOauth = serde_json::from_value(Value::Object(given)).map_err(|error| bad(error.to_string()))?;
    if read.client_secret_env.is_some() {
        // The token endpoint would get any variable of the daemon.
        return Err(bad("client_secret_env is for config.toml only".to_owned()));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<Read, String> {
        let body: ServerBody = serde_json::from_value(body).unwrap();
        body.read(None, &["KEPT".to_owned()]).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn all_spellings_of_a_transport_are_the_same() {
        for body in [
            json!({ "transport": "stdio", "command": "npx", "args": ["-y"] }),
            json!({ "transport": { "type": "stdio", "command": "npx", "args": ["-y"] } }),
            json!({ "transport": { "type": "stdio", "command": "npx" }, "command": "other", "args": ["-y"] }),
            json!({ "command": "npx", "args": ["-y"] }),
        ] {
            let transport = read(body.clone()).unwrap().transport.unwrap();
            let expected = McpTransport::Stdio { command: "npx".to_owned(), args: vec!["-y".to_owned()] };
            assert_eq!(transport, expected, "{body}");
        }
        assert_eq!(read(json!({ "url": "https://h" })).unwrap().transport.unwrap().kind(), "http");
        assert!(read(json!({ "name": "x" })).unwrap().transport.is_none());
    }

    #[test]
    fn values_are_given_kept_or_refused() {
        let pairs = |pairs: &[(&str, Option<&str>)]| -> Plain {
            Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect())
        };
        let both = pairs(&[("A", Some("1")), ("B", None), ("C", None)]);
        assert_eq!(read(json!({ "env": { "A": "1", "B": null, "C": "***" } })).unwrap().env, both);
        assert_eq!(read(json!({ "env": ["A=1", "B", "C=***"] })).unwrap().env, both);
        assert_eq!(read(json!({ "headers": ["X: a:b"] })).unwrap().headers, pairs(&[("X", Some("a:b"))]));
        let compat = json!({ "transport": { "type": "http_compat", "base_url": "https://h",
            "headers": [{ "name": "K", "value": "v" }] } });
        assert_eq!(read(compat).unwrap().headers, pairs(&[("K", Some("v"))]));
        assert_eq!(
            read(json!({ "credentials": { "A": "1" } })).unwrap().env,
            pairs(&[("KEPT", None), ("A", Some("1"))])
        );
        for (body, message) in [
            (json!({ "env": ["1A=x"] }), "env: a name"),
            (json!({ "env": { "AGENTSVC_VAULT_KEY": "x" } }), "the daemon's own"),
            (json!({ "env": {}, "credentials": {} }), "send one"),
            (json!({ "headers": { "X Y": "1" } }), "headers: a name"),
            (json!({ "headers": { "X": "a\nb" } }), "cannot be sent"),
            (json!({ "oauth": { "client_secret_env": "OPENAI_API_KEY" } }), "config.toml only"),
            (json!({ "oauth": { "x": 1 } }), "unknown field"),
            (json!({ "transport": 7 }), "must be a string or an object"),
            (json!({ "transport": "stdio" }), "missing field `command`"),
            (
                json!({ "transport": { "type": "http_compat", "base_url": "https://h",
                "headers": [{ "name": "K", "value_env": "OPENAI_API_KEY" }] } }),
                "config.toml only",
            ),
        ] {
            let said = read(body.clone()).err().unwrap_or_default();
            assert!(said.contains(message), "{body}: {said}");
        }
    }
}
