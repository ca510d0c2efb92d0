//! A server as it is to run: made of the configuration or of what clients stored, with the catalog and the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::mcp::{McpServer, SealedValue};
use agentsvc_systems::mcp::{McpOauth, McpTransport};
use serde_json::{Map, Value};

use super::asks::Rules;
use super::compat::compat_tool;
use super::config::{Header, HeaderText, McpClient, shown};
use super::variables::expanded;
use super::wire::{Authorize, Compat, Endpoint, Transport};
use crate::kernel::config::Secret;
use crate::kernel::sandbox::ServerProgram;
use crate::kernel::sandbox::config::ExecMode;
use crate::mcp::catalog::{Catalog, Entry, oauth_settings};

/// Programs that read the variables of their arguments themselves.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ash", "ksh"];
/// Why a command that a client added does not start.
const NOT_FULL: &str = "commands that were added over the API start only if [exec_policy] mode is \"full\"";

/// Who said what a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `config.toml`.
    Config,
    /// A client.
    Api,
}

/// A server as it is to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// Its name.
    pub(crate) name: Box<str>,
    pub(crate) source: Source,
    /// The catalog entry that it was made from.
    pub(crate) template_id: Option<Box<str>>,
    /// How it is reached, where that is known.
    pub(crate) transport: Option<McpTransport>,
    /// Its variables; those without a value do not exist.
    pub(crate) env: Vec<(Box<str>, Option<Secret>)>,
    /// Headers of requests to it.
    pub(crate) headers: Vec<(Box<str>, Secret)>,
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) network: bool,
    /// The operator says where it is: it may be on a private host.
    pub(crate) trusted: bool,
    pub(crate) timeout: Duration,
    pub(crate) asks: Rules,
    pub(crate) oauth: Option<McpOauth>,
    /// The secret of the client that `oauth` names.
    pub(crate) client_secret: Option<Secret>,
    /// Why it cannot start.
    pub(crate) fault: Option<String>,
}

/// What definitions are made with.
pub(crate) struct Sources<'a> {
    pub(crate) catalog: &'a Catalog,
    /// A variable of the daemon.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// What opens values that clients gave.
    pub(crate) unseal: &'a dyn Fn(&str) -> Result<Secret, String>,
    /// What commands may run.
    pub(crate) mode: ExecMode,
}

impl Sources<'_> {
    /// The server of the configuration with this name. Blocks on the disk.
    pub(crate) fn configured(&self, name: &str, config: &McpClient) -> Definition {
        let mut definition = self.bare(name, Source::Config, config.template_id.clone());
        definition.timeout = Duration::from_secs(config.timeout_secs);
        definition.asks = Rules::of(config);
        definition.trusted = true;
        let entry = self.entry(&mut definition);
        if let Some(given) = &config.transport {
            definition.transport = Some(given.transport.clone());
            self.add_headers(&mut definition, &given.headers);
        } else if !config.command.is_empty() {
            let args = config.args.iter().map(ToString::to_string).collect();
            definition.transport = Some(McpTransport::Stdio { command: config.command.to_string(), args });
        } else if let Some(entry) = &entry {
            self.take_entry(&mut definition, entry);
        }
        let value_of = |variable: &super::config::Variable| {
            let own = || (self.variable)(&variable.name).map(Secret::new);
            (variable.name.clone(), variable.value.clone().or_else(own))
        };
        let given: Vec<_> = config.env.iter().map(value_of).collect();
        set(&mut definition.env, given);
        self.add_headers(&mut definition, &config.headers);
        definition.readable.extend(config.readable_paths.iter().cloned());
        definition.writable.extend(config.writable_paths.iter().cloned());
        definition.network |= config.network;
        definition.oauth = config.oauth.clone().or(definition.oauth);
        definition.take_client_secret(self.variable);
        definition.settled(entry.as_ref())
    }

    /// The server that clients stored. Blocks on the disk.
    pub(crate) fn stored(&self, server: &McpServer) -> Definition {
        let mut definition = self.bare(&server.name, Source::Api, server.template_id.clone());
        definition.timeout = server.timeout_secs.map_or(definition.timeout, |secs| Duration::from_secs(secs.into()));
        definition.asks = definition.asks.with_sampling(server.sampling);
        let own = server.transport.as_deref().map(serde_json::from_str::<McpTransport>);
        // A transport of its own is the client's word, wherever the server came from.
        let entry = if own.is_none() { self.entry(&mut definition) } else { None };
        match own {
            Some(Ok(transport)) => {
                if matches!(transport, McpTransport::Stdio { .. }) && self.mode != ExecMode::Full {
                    definition.fault = Some(NOT_FULL.to_owned());
                }
                definition.transport = Some(transport);
                definition.network = server.network;
            }
            Some(Err(_)) => definition.fault = Some("its transport cannot be read; send it again".to_owned()),
            None => {
                if let Some(entry) = &entry {
                    self.take_entry(&mut definition, entry);
                }
            }
        }
        // What the entry does not declare could change what its program does.
        let is_declared = |name: &str| entry.as_ref().is_none_or(|entry| entry.declares(name));
        let env: Vec<_> = server.env.iter().filter(|it| is_declared(&it.name)).cloned().collect();
        let env = self.unsealed(&mut definition, &env);
        set(&mut definition.env, env.into_iter().map(|(name, value)| (name, Some(value))).collect());
        let headers = self.unsealed(&mut definition, &server.headers);
        definition.headers.extend(headers);
        let oauth = server.oauth.as_deref().and_then(|text| serde_json::from_str(text).ok());
        definition.oauth = oauth.or(definition.oauth);
        definition.settled(entry.as_ref())
    }

    fn bare(&self, name: &str, source: Source, template_id: Option<Box<str>>) -> Definition {
        Definition {
            name: name.into(),
            source,
            template_id,
            transport: None,
            env: Vec::new(),
            headers: Vec::new(),
            readable: Vec::new(),
            writable: Vec::new(),
            network: false,
            trusted: false,
            timeout: Duration::from_secs(McpClient::default().timeout_secs),
            asks: Rules::of(&McpClient::default()),
            oauth: None,
            client_secret: None,
            fault: None,
        }
    }

    /// The catalog entry of a server that has one.
    fn entry(&self, definition: &mut Definition) -> Option<Entry> {
        let id = definition.template_id.clone()?;
        match self.catalog.find(&id) {
            Ok(Some(entry)) => return Some(entry),
            Ok(None) => definition.fault = Some(format!("the MCP catalog has no entry {id:?}")),
            Err(why) => definition.fault = Some(format!("the entry {id:?} of the MCP catalog cannot be used: {why}")),
        }
        None
    }

    /// Takes what the operator's catalog says.
    fn take_entry(&self, definition: &mut Definition, entry: &Entry) {
        definition.trusted = true;
        definition.transport = Some(entry.given.transport.clone());
        definition.network = entry.grants.network;
        definition.readable.extend(entry.grants.readable_paths.iter().cloned());
        definition.writable.extend(entry.grants.writable_paths.iter().cloned());
        definition.oauth = entry.text.oauth.as_ref().map(oauth_settings);
        let own = entry
            .text
            .required_env
            .iter()
            .map(|required| (required.name.as_str().into(), (self.variable)(&required.name).map(Secret::new)));
        definition.env = own.collect();
        for header in &entry.given.headers {
            let named = || header.value_env.as_deref().and_then(self.variable);
            let value = header.value.clone().or_else(named);
            definition.headers.extend(value.map(|value| (header.name.as_str().into(), Secret::new(value))));
        }
    }

    fn add_headers(&self, definition: &mut Definition, headers: &[Header]) {
        for header in headers {
            let value = match &header.value {
                HeaderText::Value(value) => Some(value.clone()),
                HeaderText::Variable(name) => (self.variable)(name).map(Secret::new),
            };
            match value {
                Some(value) => definition.headers.push((header.name.clone(), value)),
                None => definition.fault = Some(format!("header {} has no value in the environment", header.name)),
            }
        }
    }

    fn unsealed(&self, definition: &mut Definition, values: &[SealedValue]) -> Vec<(Box<str>, Secret)> {
        let mut found = Vec::new();
        for SealedValue { name, value } in values {
            match (self.unseal)(value) {
                Ok(value) => found.push((name.clone(), value)),
                Err(why) => {
                    tracing::warn!(server = &*definition.name, %name, why, "a value of an MCP server cannot be decrypted");
                    definition.fault = Some(format!("the value of {name} cannot be decrypted; send it again"));
                }
            }
        }
        found
    }
}

/// Puts the values into `env`, each once.
fn set(env: &mut Vec<(Box<str>, Option<Secret>)>, values: Vec<(Box<str>, Option<Secret>)>) {
    for (name, value) in values {
        env.retain(|(known, _)| *known != name);
        env.push((name, value));
    }
}

impl Definition {
    /// The definition, with a fault where something is missing.
    fn settled(mut self, entry: Option<&Entry>) -> Self {
        let is_required = |name: &str| entry.is_some_and(|entry| entry.declares(name));
        let missing: Vec<&str> = self
            .env
            .iter()
            .filter(|(name, value)| value.is_none() && is_required(name))
            .map(|(name, _)| &**name)
            .collect();
        if self.fault.is_none() && !missing.is_empty() {
            self.fault = Some(format!("it needs a value for {}", missing.join(", ")));
        }
        self
    }

    /// Every secret of it.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let values = self.env.iter().filter_map(|(_, value)| value.as_ref());
        let values = values.chain(self.headers.iter().map(|(_, value)| value)).chain(&self.client_secret);
        values.map(Secret::expose)
    }

    /// The way to it; its program's directory lies in `directories`, and `authorization` signs requests over HTTP.
    ///
    /// # Errors
    /// Why it cannot start.
    pub(crate) fn transport(
        &self,
        directories: &Path,
        authorization: Option<Arc<dyn Authorize>>,
    ) -> Result<Transport, String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let Some(transport) = self.transport.clone() else { return Err("it is not known how to reach it".to_owned()) };
        Ok(match transport {
            McpTransport::Stdio { command, args } => Transport::Stdio(self.program(command, args, directories)),
            McpTransport::Http { url } => Transport::Http(self.endpoint(url, authorization)),
            McpTransport::Sse { url } => Transport::Sse(self.endpoint(url, authorization)),
            McpTransport::HttpCompat { base_url, tools } => Transport::HttpCompat(Compat {
                base_url,
                headers: self.headers.clone(),
                trusted: self.trusted,
                tools: tools.into_iter().map(compat_tool).collect(),
            }),
        })
    }

    fn endpoint(&self, url: String, authorization: Option<Arc<dyn Authorize>>) -> Endpoint {
        Endpoint { url, headers: self.headers.clone(), trusted: self.trusted, authorization }
    }

    fn program(&self, command: String, args: Vec<String>, directories: &Path) -> ServerProgram {
        let directory = directories.join(&*self.name);
        let exposed =
            |(name, value): &(Box<str>, Option<Secret>)| Some((name.to_string(), value.as_ref()?.expose().to_owned()));
        let env: BTreeMap<String, String> = self.env.iter().filter_map(exposed).collect();
        let home = env.get("HOME").cloned().unwrap_or_else(|| directory.display().to_string());
        let name = Path::new(&command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // A shell would read a value as a part of its script.
        let arguments = match SHELLS.contains(&name) {
            true => args,
            false => args.iter().map(|text| expanded(text, &home, &env)).collect(),
        };
        ServerProgram {
            shown: Vec::new(),
            memory_bytes: None,
            command,
            arguments,
            directory,
            environment: env.into_iter().map(|(name, value)| (name, OsString::from(value))).collect(),
            readable: self.readable.clone(),
            writable: self.writable.clone(),
            network: self.network,
        }
    }

    /// How it is reached, as it is shown: the query of a URL may hold a key.
    pub(crate) fn shown_transport(&self) -> Option<Map<String, Value>> {
        shown(self.transport.as_ref()?).as_object().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources<T>(mode: ExecMode, test: impl FnOnce(&Sources<'_>, &Path) -> T) -> T {
        let dir = tempfile::tempdir().unwrap();
        let catalog = Catalog::new(dir.path().to_owned());
        let variable = |name: &str| (name == "OWN").then(|| "from the daemon".to_owned());
        let unseal = |text: &str| match text.strip_prefix("sealed:") {
            Some(text) => Ok(Secret::new(text)),
            None => Err("no".to_owned()),
        };
        test(&Sources { catalog: &catalog, variable: &variable, unseal: &unseal, mode }, dir.path())
    }

    fn entry(dir: &Path, rest: &str) {
        let text =
            format!("id = \"notes\"\n[transport]\ntype = \"stdio\"\ncommand = \"notes\"\nargs = [\"$TOKEN\"]\n{rest}");
        std::fs::write(dir.join("notes.toml"), text).unwrap();
    }

    fn sealed(name: &str, value: &str) -> SealedValue {
        SealedValue { name: name.into(), value: format!("sealed:{value}").into() }
    }

    fn arguments(definition: &Definition) -> Vec<String> {
        match definition.transport("/h".as_ref(), None).unwrap() {
            Transport::Stdio(program) => program.arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_shell_reads_its_variables_itself() {
        sources(ExecMode::Full, |sources, _| {
            let config = |command: &str| McpClient {
                command: command.into(),
                args: vec!["-c".into(), "run $OWN".into()],
                env: vec![super::super::config::Variable { name: "OWN".into(), value: None }],
                ..McpClient::default()
            };
            assert_eq!(arguments(&sources.configured("s", &config("/bin/sh"))), ["-c", "run $OWN"]);
            assert_eq!(arguments(&sources.configured("s", &config("run"))), ["-c", "run from the daemon"]);
        });
    }

    #[test]
    fn commands_of_clients_need_the_full_mode() {
        let server = McpServer {
            name: "s".into(),
            transport: Some("{\"type\":\"stdio\",\"command\":\"sh\"}".into()),
            ..McpServer::default()
        };
        for (mode, starts) in [(ExecMode::Deny, false), (ExecMode::Allowlist, false), (ExecMode::Full, true)] {
            let definition = sources(mode, |sources, _| sources.stored(&server));
            assert_eq!(definition.transport("/h".as_ref(), None).is_ok(), starts, "{mode:?}");
            assert!(!definition.trusted && definition.readable.is_empty() && definition.writable.is_empty());
        }
        let web = McpServer { transport: Some("{\"type\":\"http\",\"url\":\"https://h/?key=1\"}".into()), ..server };
        let definition = sources(ExecMode::Deny, |sources, _| sources.stored(&web));
        assert!(definition.transport("/h".as_ref(), None).is_ok() && !definition.trusted);
        assert_eq!(definition.shown_transport().unwrap()["url"], "https://h/?***");
    }

    #[test]
    fn the_operators_catalog_is_trusted_and_what_it_does_not_declare_is_not_set() {
        let server = McpServer {
            name: "notes".into(),
            template_id: Some("notes".into()),
            env: vec![sealed("TOKEN", "t"), sealed("LD_PRELOAD", "x")],
            ..McpServer::default()
        };
        sources(ExecMode::Deny, |sources, dir| {
            let fault = |definition: &Definition| definition.transport("/h".as_ref(), None).unwrap_err();
            assert!(fault(&sources.stored(&server)).contains("has no entry"));
            entry(dir, "[[required_env]]\nname = \"TOKEN\"\n[[required_env]]\nname = \"OWN\"\n");
            let definition = sources.stored(&server);
            assert_eq!(arguments(&definition), ["t"]);
            let names: Vec<_> = definition.env.iter().map(|(name, _)| &**name).collect();
            assert_eq!((names, definition.network, definition.trusted), (vec!["OWN", "TOKEN"], true, true));
            let without = McpServer { env: Vec::new(), ..server.clone() };
            assert_eq!(fault(&sources.stored(&without)), "it needs a value for TOKEN");
            let broken =
                McpServer { env: vec![SealedValue { name: "TOKEN".into(), value: "?".into() }], ..server.clone() };
            assert!(fault(&sources.stored(&broken)).contains("cannot be decrypted"));
            // A transport of the client's own loses the operator's word.
            let own = Some("{\"type\":\"stdio\",\"command\":\"sh\"}".into());
            assert!(fault(&sources.stored(&McpServer { transport: own, ..server })).contains("[exec_policy] mode"));
            let config = McpClient { template_id: Some("notes".into()), ..McpClient::default() };
            assert_eq!(fault(&sources.configured("n", &config)), "it needs a value for TOKEN");
        });
    }
}
