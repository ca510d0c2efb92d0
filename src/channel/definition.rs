//! A channel as it is to run: made of its entry, the file of secrets and the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::{SidecarChannel, prefix};
use super::secrets::Secrets;
use crate::kernel::config::{MASK, Secret};
use crate::kernel::sandbox::ServerProgram;

/// Variables of the daemon that each adapter gets beside those of every program.
const PASSED: &[&str] = &[
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
/// Those of them that name what an adapter must read.
const PATHS: &[&str] = &["PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Values of adapters of the SDK that no prefix tells from others; none is a secret.
const UNPREFIXED: &[&str] = &["ALLOWED_USERS"];
/// Where adapters keep their state, as they find it.
const HOME_VARIABLE: &str = "LIBREFANG_HOME";
/// How the adapters of the SDK are named.
const MODULES: &str = "librefang.sidecar.adapters.";
/// Secrets that are shorter are not looked for: they are parts of words.
const SECRET_BYTES_MIN: usize = 6;

/// A channel as it is to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: Box<str>,
    pub(crate) config: Arc<SidecarChannel>,
    /// Its program, found.
    pub(crate) command: String,
    /// What it gets beside what every program gets.
    pub(crate) environment: BTreeMap<String, Secret>,
    /// What it gets of `secrets.env` if it describes a value of this name.
    pub(crate) offered: BTreeMap<String, Secret>,
    /// Names of `secrets.env` that are not offered, because nothing tells that they are for this channel.
    pub(crate) withheld: BTreeSet<String>,
    /// Its own directory.
    pub(crate) directory: PathBuf,
}

/// What definitions are made with.
pub(crate) struct Sources<'a> {
    pub(crate) home: &'a Path,
    pub(crate) secrets: &'a Secrets,
    /// A variable of the daemon.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Is a variable the daemon's own, such as the key of a provider? An adapter gets it only where the entry names it.
    pub(crate) is_daemons: &'a dyn Fn(&str) -> bool,
}

impl Definition {
    /// The channel of this name. Blocks on the disk.
    pub(crate) fn new(name: &str, config: &Arc<SidecarChannel>, sources: &Sources<'_>) -> Self {
        let mut environment = BTreeMap::new();
        let named = |key: &str| config.env_passthrough.iter().any(|named| **named == *key);
        let passed = PASSED.iter().copied().chain(config.env_passthrough.iter().map(|key| &**key));
        for key in passed {
            environment.extend((sources.variable)(key).map(|value| (key.to_owned(), Secret::new(value))));
        }
        if config.channel_overrides.clear_done_reaction == Some(true) {
            // The adapter knows how its platform takes a sign away.
            let key = format!("{}_CLEAR_DONE_REACTION", prefix(config.channel_type(name)));
            environment.insert(key, Secret::new("true"));
        }
        let (common, own) = sources.secrets.of(name);
        let (mut offered, mut withheld) = (BTreeMap::new(), BTreeSet::new());
        let adapter = adapter_of(&config.args);
        let prefixes = [Some(name), Some(config.channel_type(name)), adapter.as_deref()].map(|of| of.map(prefix));
        let is_prefixed = |key: &str| {
            let has = |of: &String| key.strip_prefix(&**of).is_some_and(|rest| rest.starts_with('_'));
            UNPREFIXED.contains(&key) || prefixes.iter().flatten().any(has)
        };
        for (key, value) in common {
            if named(key) {
                environment.entry(key.to_owned()).or_insert_with(|| value.clone());
            } else if !(sources.is_daemons)(key) && !sources.secrets.is_anothers(name, key) {
                if is_prefixed(key) {
                    offered.insert(key.to_owned(), value.clone());
                } else {
                    withheld.insert(key.to_owned());
                }
            }
        }
        environment.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value.clone())));
        environment.extend(config.env.0.iter().map(|(key, value)| (key.to_string(), value.clone())));
        let directory = sources.home.join("channel_state").join(name);
        environment.insert(HOME_VARIABLE.to_owned(), Secret::new(directory.display().to_string()));
        offered.retain(|key, _| !environment.contains_key(key));
        withheld.retain(|key| !environment.contains_key(key));
        Self {
            name: name.into(),
            command: found(name, &config.command, sources.home),
            config: Arc::clone(config),
            environment,
            offered,
            withheld,
            directory,
        }
    }

    /// The value that the adapter has of one that it describes.
    pub(crate) fn value(&self, described: &str) -> Option<&Secret> {
        self.environment.get(described).or_else(|| self.offered.get(described))
    }

    /// The program, as it is started; `more` stands behind its arguments.
    pub(crate) fn program(&self, more: &[&str]) -> ServerProgram {
        let variable = |key: &str| self.environment.get(key).map(Secret::expose);
        let mut readable: Vec<PathBuf> = self.config.readable_paths.clone();
        readable.extend(PATHS.iter().filter_map(|key| variable(key)).flat_map(std::env::split_paths));
        readable.extend(roots(Path::new(&self.command)));
        let environment = self.environment.iter().map(|(key, value)| (key.clone(), OsString::from(value.expose())));
        ServerProgram {
            shown: Vec::new(),
            memory_bytes: None,
            command: self.command.clone(),
            arguments: self
                .config
                .args
                .iter()
                .map(ToString::to_string)
                .chain(more.iter().map(|it| (*it).to_owned()))
                .collect(),
            directory: self.directory.clone(),
            environment: environment.collect(),
            readable: readable.into_iter().filter(|path| path.is_absolute() && path.exists()).collect(),
            writable: Vec::new(),
            network: self.config.network,
        }
    }

    /// The adapter of the SDK that it runs.
    pub(crate) fn adapter(&self) -> Option<String> {
        adapter_of(&self.config.args)
    }

    /// The values that must not be shown: all but those of the system.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let own = self.environment.iter().filter(|(key, _)| !PASSED.contains(&key.as_str()) && *key != HOME_VARIABLE);
        own.chain(&self.offered).map(|(_, value)| value.expose()).filter(|secret| secret.len() >= SECRET_BYTES_MIN)
    }

    /// The text without its secrets.
    pub(crate) fn masked(&self, mut text: String) -> String {
        for secret in self.secrets() {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }
}

/// What a program with a path reads to start: an interpreter has its library beside its directory, and that of an environment
/// is a link to one elsewhere. Blocks on the disk.
fn roots(program: &Path) -> Vec<PathBuf> {
    if !program.is_absolute() {
        return Vec::new();
    }
    let files = [Some(program.to_owned()), program.canonicalize().ok()];
    let root = |file: PathBuf| match file.parent().filter(|bin| bin.ends_with("bin")).and_then(Path::parent) {
        Some(root) if root != Path::new("/") => root.to_owned(),
        _ => file,
    };
    files.into_iter().flatten().map(root).collect()
}

/// The adapter of the SDK that these arguments name.
pub(crate) fn adapter_of(args: &[Box<str>]) -> Option<String> {
    let module = args.iter().skip_while(|arg| &***arg != "-m").nth(1)?;
    module.strip_prefix(MODULES).map(str::to_owned)
}

/// The program that a channel runs: what has no path may lie beside the daemon or in its home.
fn found(name: &str, command: &str, home: &Path) -> String {
    let wanted = if command.is_empty() { format!("librefang-sidecar-{name}") } else { command.to_owned() };
    if wanted.contains('/') || !wanted.starts_with("librefang-sidecar-") {
        return wanted;
    }
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(Path::to_owned));
    let places = beside.into_iter().chain([home.join("bin")]).map(|place| place.join(&wanted));
    places.filter(|path| path.is_file()).find_map(|path| path.to_str().map(str::to_owned)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_its_order_and_nothing_of_others() {
        let secrets = Secrets::parse(
            "A=file\nB=file\nC=file\nD=file\nTELEGRAM_E=file-e\nBOT_E=file-b\nTELEGRAMS=x\nSMTP_PASSWORD=x\nP=file-p\nAGENTSVC_VAULT_KEY=v\nBOT__AGENTSVC_VAULT_KEY=v\n\
             BOT__B=own\nBOT__C=own\nOTHER__D=x\nPYTHONPATH=/evil\nX_API_KEY=k\n",
        );
        let mut config =
            SidecarChannel { env_passthrough: vec!["A".into(), "P".into(), "Q".into()], ..SidecarChannel::default() };
        config.channel_type = "telegram".into();
        config.channel_overrides.clear_done_reaction = Some(true);
        config.env.0.insert("C".into(), Secret::new("entry"));
        let variable = |key: &str| match key {
            "A" | "TELEGRAM_E" | "TZ" | "SECRET_OF_DAEMON" | "PYTHONPATH" => Some(format!("daemon {key}")),
            _ => None,
        };
        let is_daemons = |key: &str| key.ends_with("_API_KEY");
        let sources =
            Sources { home: Path::new("/h"), secrets: &secrets, variable: &variable, is_daemons: &is_daemons };
        let definition = Definition::new("bot", &Arc::new(config), &sources);
        let value = |key: &str| definition.environment.get(key).map(|value| value.expose().to_owned());
        let values = ["A", "B", "C", "P", "TZ", "PYTHONPATH"].map(|key| value(key).unwrap());
        assert_eq!(values, ["daemon A", "own", "entry", "file-p", "daemon TZ", "daemon PYTHONPATH"]);
        // Of the file it gets only what it describes and has its prefix, and nothing of the daemon or of other channels.
        let offered: Vec<&str> = definition.offered.keys().map(String::as_str).collect();
        assert_eq!(offered, ["BOT_E", "TELEGRAM_E"]);
        assert_eq!(definition.value("TELEGRAM_E").map(Secret::expose), Some("file-e"));
        assert_eq!(definition.withheld.iter().collect::<Vec<_>>(), ["SMTP_PASSWORD", "TELEGRAMS"]);
        assert_eq!(definition.masked("it is file-e".to_owned()), "it is ***");
        assert_eq!(value("TELEGRAM_CLEAR_DONE_REACTION").as_deref(), Some("true"));
        assert_eq!(value("LIBREFANG_HOME").unwrap(), "/h/channel_state/bot");
        let never = ["D", "E", "OTHER__D", "BOT__B", "SECRET_OF_DAEMON", "AGENTSVC_VAULT_KEY", "X_API_KEY"];
        assert!(never.into_iter().all(|key| value(key).is_none()));
        assert_eq!(definition.command, "librefang-sidecar-bot");
        assert_eq!(definition.masked("it is daemon A".to_owned()), "it is ***");
    }

    #[test]
    fn adapters_of_the_sdk_are_known() {
        let args = |words: &[&str]| words.iter().map(|word| Box::from(*word)).collect::<Vec<Box<str>>>();
        assert_eq!(adapter_of(&args(&["-u", "-m", "librefang.sidecar.adapters.ntfy"])).as_deref(), Some("ntfy"));
        assert_eq!(adapter_of(&args(&["bot.py"])), None);
    }
}
