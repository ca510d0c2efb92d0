//! `[mcp_servers.<name>]`: programs of others that bring tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::tools::prefix;
use crate::kernel::config::text::directory;
use crate::kernel::config::{MASK, Reader, Secret, table};
use crate::kernel::vault;

/// Bytes of a server's name.
const NAME_BYTES_MAX: usize = 32;

table! {
    /// `[mcp_servers.<name>]`.
    pub struct McpClient {
        /// Program of the MCP server: an absolute path, or a name to search in `[exec_policy] path`.
        command: Box<str> => text(program).example("npx").protected().at_restart(),
        /// Its arguments.
        args: Vec<Box<str>> => list(argument)
            .example("[\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/srv/docs\"]").protected().at_restart(),
        /// Its environment variables: NAME passes the daemon's own, NAME=value sets one. Values are never shown.
        env: Vec<Variable> => list(variable).example("[\"GITHUB_TOKEN\", \"MODE=ro\"]").protected().at_restart(),
        /// Directories that it can read and run programs from, beside the system's.
        readable_paths: Vec<PathBuf> => list(directory).example("[\"/opt/tools\"]").protected().at_restart(),
        /// Directories that it can read and change, beside its own.
        writable_paths: Vec<PathBuf> => list(directory).example("[\"/srv/docs\"]").protected().at_restart(),
        /// Allow it to use the network.
        network: bool => flag().example("true").protected().at_restart(),
        /// Timeout of a call in seconds.
        timeout_secs: u64 = 30 => integer(1..=600).example("60").protected().at_restart(),
    }
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

/// Notes what is wrong with servers beside their values.
pub(crate) fn note_servers(servers: &BTreeMap<Box<str>, McpClient>, reader: &mut Reader<'_, '_>) {
    let mut prefixes: BTreeMap<String, &str> = BTreeMap::new();
    for (name, server) in servers {
        let path = ["mcp_servers", name];
        if !is_name(name) {
            let message = format!("the name must have 1 to {NAME_BYTES_MAX} letters, digits, `-` or `_`");
            reader.problem_at(&path, message);
        } else if let Some(other) = prefixes.insert(prefix(name), name) {
            reader.problem_at(&path, format!("the tools of this server have the same names as those of {other}"));
        }
        if server.command.is_empty() && !reader.is_wrong_below(&path) {
            reader.problem_at(&path, "needs `command`".to_owned());
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_valid)
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

fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let is_valid = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !is_valid {
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
        assert!(wrong("[mcp_servers.a]\n").contains("mcp_servers.a: needs `command`"));
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
}
