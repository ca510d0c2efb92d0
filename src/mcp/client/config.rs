//! `[mcp_servers.<name>]` and `[[mcp_servers]]`: servers of others that bring tools. `[extensions]`: how they are kept running.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use agentsvc_components::mcp::SamplingRule;
use agentsvc_systems::mcp::limits::{
    MCP_SAMPLING_TOKENS_MAX, MCP_SERVER_NAME_BYTES_MAX, MCP_SERVERS_MAX, MCP_TIMEOUT_SECS_MAX, MCP_VALUE_BYTES_MAX,
    MCP_VALUES_MAX,
};
use agentsvc_systems::mcp::{GivenTransport, McpOauth, McpTransport, tool_prefix};
use reqwest::header::{HeaderName, HeaderValue};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::kernel::config::text::directory;
use crate::kernel::config::{MASK, Reader, Secret, Word, table};
use crate::kernel::vault;

table! {
    /// `[mcp_servers.<name>]`.
    pub struct McpClient {
        /// Program of the MCP server: an absolute path, or a name to search in `[exec_policy] path`.
        command: Box<str> => text(program).example("npx").protected(),
        /// Its arguments.
        args: Vec<Box<str>> => list(argument)
            .example("[\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/docs\"]").protected(),
        /// How it is reached, in place of `command` and `args`: `type` is stdio, http, sse or http_compat.
        transport: Option<Transport> => object(transport)
            .example("{ type = \"http\", url = \"https://mcp.example.com/mcp\" }").protected(),
        /// Entry of the MCP catalog that says how it is reached, in place of `command` or `transport`.
        template_id: Option<Box<str>> => text(template).example("github").protected(),
        /// Its environment variables: NAME passes the daemon's own, NAME=value sets one. Values are never shown.
        env: Vec<Variable> => list(variable).example("[\"GITHUB_TOKEN\", \"MODE=ro\"]").protected(),
        /// Headers of requests to a server over HTTP. Values are never shown.
        headers: Vec<Header> => list(header).example("[\"X-Key: value\"]").protected(),
        /// How a server over HTTP is signed in to, where it does not say so itself: client_id, client_secret_env, scopes,
        /// user_scopes, auth_url and token_url.
        oauth: Option<McpOauth> => object(oauth).example("{ client_id = \"agentsvc\", scopes = [\"read\"] }").protected(),
        /// Directories that it can read and run programs from, beside the system's.
        readable_paths: Vec<PathBuf> => list(directory).example("[\"/opt/tools\"]").protected(),
        /// Directories that it can read and change, beside its own.
        writable_paths: Vec<PathBuf> => list(directory).example("[\"/srv/docs\"]").protected(),
        /// Allow it to use the network.
        network: bool => flag().example("true").protected(),
        /// Timeout of a call in seconds.
        timeout_secs: u64 = 30 => integer(1..=MCP_TIMEOUT_SECS_MAX).example("60").protected(),
        /// Allow it to ask you for input during a call, as an approval (elicitation).
        elicitation: bool = true => flag().example("false").protected(),
        /// Whether it may ask the model of the agent that calls it, at the agent's cost: off, approve (each request waits for
        /// your approval) or on.
        sampling: SamplingRule => choice(SamplingRule::WORDS).example("approve").protected(),
        /// Maximum tokens of the answers that sampling gives it in one call.
        sampling_max_tokens: u32 = 4_096 => integer(1..=MCP_SAMPLING_TOKENS_MAX).example("10000").protected(),
    }
}

table! {
    /// `[extensions]`: how MCP servers are kept running.
    pub struct Extensions {
        /// Start an MCP server again when it ends, or when it does not answer.
        auto_reconnect: bool = true => flag(),
        /// Attempts without success after which a server stays down until it is reconnected by hand, 1 to 1000.
        reconnect_max_attempts: u32 = 10 => integer(1..=1_000),
        /// Maximum seconds between two attempts. The first is after 5 seconds; each further one takes twice as long.
        reconnect_max_backoff_secs: u64 = 300 => integer(5..=3_600),
        /// Seconds between two health checks of a connected server, 5 to 3600. Three that fail restart it.
        health_check_interval_secs: u64 = 60 => integer(5..=3_600),
    }
}

/// The servers of the configuration in force.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configured(pub BTreeMap<Box<str>, McpClient>);

/// How a server is reached, with the headers that were written beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// How.
    pub transport: McpTransport,
    /// Headers of plain HTTP.
    pub headers: Vec<Header>,
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = shown(&self.transport);
        if !self.headers.is_empty() {
            shown["headers"] = self.headers.iter().map(Header::shown).collect();
        }
        shown.serialize(serializer)
    }
}

/// A transport as it is shown: the query of a URL may hold a key.
pub(crate) fn shown(transport: &McpTransport) -> Value {
    let mut shown = serde_json::to_value(transport).unwrap_or_default();
    for key in ["url", "base_url"] {
        if let Some(Value::String(url)) = shown.get_mut(key)
            && let Some(at) = url.find('?')
        {
            url.truncate(at + 1);
            url.push_str(MASK);
        }
    }
    shown
}

/// A variable of a server's environment; shown by its name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: Box<str>,
    /// Its value; `None` is the daemon's own.
    pub value: Option<Secret>,
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Some(_) => serializer.collect_str(&format_args!("{}={MASK}", self.name)),
            None => serializer.serialize_str(&self.name),
        }
    }
}

/// A header of requests to a server; shown by its name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: Box<str>,
    /// Its value, or the daemon's variable that has it.
    pub value: HeaderText,
}

/// Where the value of a header is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderText {
    /// Here.
    Value(Secret),
    /// In a variable of the daemon.
    Variable(Box<str>),
}

impl Header {
    fn shown(&self) -> Value {
        match &self.value {
            HeaderText::Value(_) => serde_json::json!({ "name": self.name, "value": MASK }),
            HeaderText::Variable(name) => serde_json::json!({ "name": self.name, "value_env": name }),
        }
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}: {MASK}", self.name))
    }
}

/// Notes problems of servers beside their values.
pub(crate) fn note_servers(servers: &BTreeMap<Box<str>, McpClient>, reader: &mut Reader<'_, '_>) {
    if servers.len() > MCP_SERVERS_MAX {
        reader.problem("mcp_servers", format!("must be at most {MCP_SERVERS_MAX} servers"));
    }
    let mut prefixes: BTreeMap<String, &str> = BTreeMap::new();
    for (name, server) in servers {
        let path = ["mcp_servers", name];
        if !is_name(name) {
            let message = format!("the name must have 1 to {MCP_SERVER_NAME_BYTES_MAX} letters, digits, `-` or `_`");
            reader.problem_at(&path, message);
        } else if let Some(other) = prefixes.insert(tool_prefix(name), name) {
            reader.problem_at(&path, format!("the tools of this server have the same names as those of {other}"));
        }
        let is_reached = !server.command.is_empty() || server.transport.is_some() || server.template_id.is_some();
        if !is_reached && !reader.is_wrong_below(&path) {
            reader.problem_at(&path, "needs `command`, `transport` or `template_id`".to_owned());
        }
        if server.env.len() > MCP_VALUES_MAX || server.headers.len() > MCP_VALUES_MAX {
            reader.problem_at(&path, format!("`env` and `headers` must have at most {MCP_VALUES_MAX} items"));
        }
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MCP_SERVER_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_valid)
}

fn program(text: &str) -> Result<Box<str>, String> {
    let is_path = text.starts_with('/');
    if text.is_empty() || text.contains('\0') || (text.contains('/') && !is_path) {
        Err("must be an absolute path or the name of a program".to_owned())
    } else {
        Ok(text.into())
    }
}

fn argument(text: &str) -> Result<Box<str>, String> {
    if text.contains('\0') { Err("must not contain the character NUL".to_owned()) } else { Ok(text.into()) }
}

fn template(text: &str) -> Result<Box<str>, String> {
    if is_name(text) { Ok(text.into()) } else { Err("must be the id of an entry of the MCP catalog".to_owned()) }
}

fn transport(object: Map<String, Value>) -> Result<Transport, String> {
    let GivenTransport { transport, headers } = GivenTransport::read(object)?;
    let headers = headers.into_iter().map(|given| {
        let value = match (given.value, given.value_env) {
            (Some(value), None) => HeaderText::Value(Secret::new(value)),
            (None, Some(name)) if is_variable(&name) => HeaderText::Variable(name.into()),
            (None, Some(_)) => return Err("headers: value_env must be the name of an environment variable".to_owned()),
            _ => return Err("headers: each needs `value` or `value_env`".to_owned()),
        };
        checked_header(given.name.into(), value).map_err(|why| format!("headers: {why}"))
    });
    Ok(Transport { transport, headers: headers.collect::<Result<_, _>>()? })
}

fn oauth(object: Map<String, Value>) -> Result<McpOauth, String> {
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').ok_or("must be \"Name: value\"")?;
    checked_header(name.trim().into(), HeaderText::Value(Secret::new(value.trim())))
}

/// Is it a header that requests can carry? The message keeps the value out.
pub(crate) fn checked_header(name: Box<str>, value: HeaderText) -> Result<Header, String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("the name of a header must have letters, digits and hyphens".to_owned());
    }
    if let HeaderText::Value(value) = &value {
        let is_valid = HeaderValue::from_str(value.expose()).is_ok() && value.expose() != MASK;
        if !is_valid || value.expose().len() > MCP_VALUE_BYTES_MAX {
            return Err(format!("the value of header {name} cannot be sent, is too long or is the mask \"{MASK}\""));
        }
    }
    Ok(Header { name, value })
}

/// Is it the name of an environment variable?
pub(crate) fn is_variable(name: &str) -> bool {
    let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()) && is_valid
}

fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if !is_variable(name) {
        Err("must be NAME or NAME=value".to_owned())
    } else if name == vault::VARIABLE {
        Err(format!("must not be {name}, the key of the vault"))
    } else if value.is_some_and(|value| value == MASK || value.contains('\0')) {
        Err(format!("must not have the value \"{MASK}\", the mask of a hidden secret, or contain the character NUL"))
    } else {
        Ok(Variable { name: name.into(), value: value.map(Secret::new) })
    }
}

#[cfg(test)]
mod tests {
    use super::McpClient;
    use crate::config::{Config, Document};
    use crate::kernel::config::read_table;

    #[test]
    fn values_of_variables_are_not_shown() {
        let text = "[s]\ncommand = \"x\"\nenv = [\"TOKEN\", \"PASS=hunter2\", \"EMPTY=\"]\n";
        let config = read_table::<McpClient>("s", text).unwrap().config;
        assert_eq!(config.env[1].value.as_ref().map(|value| value.expose()), Some("hunter2"));
        let shown = serde_json::to_value(&config).unwrap();
        assert_eq!(shown["env"], serde_json::json!(["TOKEN", "PASS=***", "EMPTY=***"]));
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let wrong = |text: &str| Config::parse(text, "c".as_ref()).unwrap_err().to_string();
        assert!(wrong("[mcp_servers.a]\n").contains("mcp_servers.a: needs `command`, `transport` or `template_id`"));
        assert!(wrong("[mcp_servers.a]\ncommand = \"./x\"\n").contains("must be an absolute path or the name"));
        assert!(wrong("[mcp_servers.\"a b\"]\ncommand = \"x\"\n").contains("the name must have 1 to 32 letters"));
        let same = "[mcp_servers.a-b]\ncommand = \"x\"\n[mcp_servers.a_b]\ncommand = \"x\"\n";
        assert!(wrong(same).contains("the same names as those of a-b"));
        for (variable, message) in [
            ("1A", "must be NAME or NAME=value"),
            ("A B=1", "must be NAME or NAME=value"),
            ("A=***", "the mask of a hidden secret"),
            ("AGENTSVC_VAULT_KEY=x", "the key of the vault"),
        ] {
            let said = wrong(&format!("[mcp_servers.a]\ncommand = \"x\"\nenv = [\"{variable}\"]\n"));
            assert!(said.contains(message), "{variable}: {said}");
        }
    }

    #[test]
    fn both_forms_are_read() {
        let text = "[[mcp_servers]]\nname = \"files\"\ntimeout_secs = 9\nenv = [\"A\", \"B=c\"]\n\
                    [mcp_servers.transport]\ntype = \"stdio\"\ncommand = \"npx\"\nargs = [\"-y\"]\n\
                    [[mcp_servers]]\nname = \"web\"\nheaders = [\"X-Key: secret1\"]\n\
                    [mcp_servers.transport]\ntype = \"http\"\nurl = \"https://h/mcp?key=secret3\"\n\
                    [mcp_servers.oauth]\nclient_id = \"c\"\nscopes = [\"a\"]\n\
                    [[mcp_servers]]\nname = \"plain\"\n\
                    [mcp_servers.transport]\ntype = \"http_compat\"\nbase_url = \"https://h\"\n\
                    headers = [{ name = \"K\", value = \"secret2\" }, { name = \"E\", value_env = \"E_KEY\" }]\n\
                    [[mcp_servers.transport.tools]]\nname = \"t\"\ndescription = \"d\"\npath = \"/t\"\nmethod = \"GET\"\n";
        let config = Config::parse(text, "c".as_ref()).unwrap().config;
        let servers = &config.mcp_servers;
        assert_eq!(servers.keys().map(|name| &**name).collect::<Vec<_>>(), ["files", "plain", "web"]);
        assert_eq!((servers["files"].timeout_secs, servers["files"].env.len()), (9, 2));
        let kind = |name: &str| servers[name].transport.as_ref().map(|given| given.transport.kind());
        assert_eq!([kind("files"), kind("web"), kind("plain")], [Some("stdio"), Some("http"), Some("http_compat")]);
        assert_eq!(servers["plain"].transport.as_ref().unwrap().headers.len(), 2);
        let shown = serde_json::to_string(&servers).unwrap();
        assert!(shown.contains("https://h/mcp?***"), "{shown}");
        assert!(!shown.contains("secret") && shown.contains("E_KEY"), "{shown}");
        assert!(!format!("{config:?}").contains("secret1") && !format!("{config:?}").contains("secret2"));
    }

    #[test]
    fn mistakes_in_the_list_are_named() {
        let wrong = |text: &str| Config::parse(text, "c".as_ref()).unwrap_err().to_string();
        let list = |rest: &str| wrong(&format!("[[mcp_servers]]\n{rest}"));
        assert!(list("command = \"x\"\n").contains("mcp_servers: each entry needs `name`"));
        let said = list("name = \"a\"\ncommand = \"x\"\nnam = 1\n");
        assert!(said.contains("mcp_servers.a.nam: unknown key"), "{said}");
        let twice = list("name = \"a\"\ncommand = \"x\"\n[[mcp_servers]]\nname = \"a\"\ncommand = \"x\"\n");
        assert!(twice.contains("mcp_servers.a: duplicate name"), "{twice}");
        let said = list("name = \"a\"\n[mcp_servers.transport]\ntype = \"pigeon\"\n");
        assert!(said.contains("mcp_servers.a.transport: unknown variant `pigeon`"), "{said}");
        let said = list("name = \"a\"\ncommand = \"x\"\nheaders = [\"no colon\"]\n");
        assert!(said.contains("must be \"Name: value\""), "{said}");
        assert!(wrong("mcp_servers = 7\n").contains("mcp_servers: must be a table"));
    }
}
