//! `plugin.toml` (facts 3.2). What concerns runs of hooks stands in `[hooks]`, as the documentation of plugins has it, or at the
//! top, where plugins write it that others check: both places are read.

use std::collections::BTreeMap;

use agentsvc_systems::kernel::pattern_bounds::BoundedPatterns;
use serde_json::{Map, Value};

use super::hook::Hook;
use super::keys::{Keys, at_most, text_of};
use super::runtime::Runtime;
use crate::skill_source::folders::check_name;

/// The file.
pub(crate) const FILE: &str = "plugin.toml";
/// Bytes of the file.
pub(crate) const FILE_BYTES_MAX: u64 = 256 << 10;
/// Entries of a table or list in it.
const ENTRIES_MAX: usize = 256;
/// Seconds that a hook may be given.
const TIMEOUT_SECS_MAX: u64 = 600;
/// Tries after the first.
const RETRIES_MAX: u64 = 10;
/// Milliseconds between two tries.
const RETRY_DELAY_MS_MAX: u64 = 60_000;
/// Seconds that an answer may be kept.
const CACHE_TTL_SECS_MAX: u64 = 86_400;
/// MiB of memory that a hook may be given.
const MEMORY_MIB_MAX: u64 = 64 << 10;

agentsvc_components::enum_words! {
    /// What becomes of a turn when a hook fails.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum OnFailure [parse] {
        /// It goes on without, and the log says so.
        #[default]
        Warn = "warn",
        /// It fails.
        Abort = "abort",
        /// It goes on without.
        Skip = "skip",
    }
}

/// When a hook that fails again and again is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Breaker {
    /// Failures, one after the other.
    pub(crate) failures_max: u32,
    /// Seconds until it is tried again.
    pub(crate) reset_secs: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures_max: 5, reset_secs: 60 }
    }
}

/// How hooks run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) timeout_secs: Option<u64>,
    pub(crate) on_failure: OnFailure,
    pub(crate) max_retries: u32,
    pub(crate) retry_delay_ms: u64,
    /// Plugins of a higher one come first.
    pub(crate) priority: i64,
    /// `ingest` runs for messages that contain this.
    pub(crate) ingest_filter: Option<String>,
    /// `ingest` runs for messages that match this.
    pub(crate) ingest_regex: Option<BoundedPatterns>,
    /// Hooks run for these agents, by id or name; empty: for all.
    pub(crate) only_for_agents: Vec<String>,
    pub(crate) cache_ttl_secs: u64,
    pub(crate) assemble_cache_ttl_secs: u64,
    pub(crate) compact_cache_ttl_secs: u64,
    pub(crate) is_persistent: bool,
    pub(crate) max_memory_mib: Option<u64>,
    pub(crate) allow_network: bool,
    pub(crate) allow_filesystem: bool,
    pub(crate) has_shared_state: bool,
    pub(crate) breaker: Breaker,
    pub(crate) allowed_secrets: Vec<String>,
}

/// A variable that hooks expect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variable {
    pub(crate) description: String,
    pub(crate) required: bool,
}

/// JSON schemas of a hook.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    pub(crate) input: Option<Value>,
    pub(crate) output: Option<Value>,
}

/// A setting of the plugin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) kind: String,
    pub(crate) default: Value,
    pub(crate) description: String,
}

/// A program that the plugin needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needed {
    pub(crate) binary: String,
    pub(crate) install_hint: String,
}

/// A plugin as its file describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) author: String,
    /// The file of what it needs, such as `requirements.txt`.
    pub(crate) requirements: Option<String>,
    pub(crate) depends: Vec<String>,
    /// The files of its hooks.
    pub(crate) hooks: BTreeMap<Hook, String>,
    pub(crate) runtime: Runtime,
    pub(crate) rules: Rules,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) env_schema: BTreeMap<String, Variable>,
    pub(crate) schemas: BTreeMap<Hook, Schemas>,
    pub(crate) config: BTreeMap<String, Setting>,
    /// SHA-256 in hex by file.
    pub(crate) integrity: BTreeMap<String, String>,
    pub(crate) needed: Vec<Needed>,
    /// Names and descriptions by language.
    pub(crate) i18n: Map<String, Value>,
    /// What is odd, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// Reads the text of a `plugin.toml`.
///
/// # Errors
/// A sentence that names the key.
pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| format!("{FILE}: {}", error.to_string().trim()))?;
    let root = serde_json::to_value(table).map_err(|error| format!("{FILE}: {error}"))?;
    let Value::Object(mut root) = root else { return Err(format!("{FILE}: must be a table")) };
    let hooks = match root.remove("hooks") {
        None => Map::new(),
        Some(Value::Object(hooks)) => hooks,
        Some(_) => return Err("hooks: must be a table".to_owned()),
    };
    let mut keys = Keys::new(root, hooks);
    let mut manifest = Manifest::default();
    describe(&mut manifest, &mut keys)?;
    manifest.hooks = files(&mut keys)?;
    if let Some(runtime) = keys.text("runtime")? {
        manifest.runtime = Runtime::of(&runtime).unwrap_or_else(|| {
            manifest.warnings.push(format!("runtime: {runtime:?} is not known; python is used"));
            Runtime::Python
        });
    }
    manifest.rules = rules(&mut keys)?;
    tables(&mut manifest, &mut keys)?;
    manifest.warnings.extend(keys.unknown().into_iter().map(|key| format!("{key}: unknown key")));
    Ok(manifest)
}

fn describe(manifest: &mut Manifest, keys: &mut Keys) -> Result<(), String> {
    manifest.name = keys.text("name")?.ok_or("name: missing")?;
    check_name(&manifest.name).map_err(|_| {
        "name: must be 1 to 200 of A-Z, a-z, 0-9, `.`, `_` and `-`, the first a letter or digit".to_owned()
    })?;
    manifest.version = keys.text("version")?.unwrap_or_else(|| "0.1.0".to_owned());
    manifest.description = keys.text("description")?.unwrap_or_default();
    manifest.author = keys.text("author")?.unwrap_or_default();
    manifest.requirements = keys.text("requirements")?.filter(|file| !file.is_empty());
    if let Some(file) = &manifest.requirements {
        inside("requirements", file)?;
    }
    for key in ["librefang_min_version", "agentsvc_min_version"] {
        if let Some(version) = keys.text(key)? {
            manifest.warnings.push(format!("{key}: made for version {version}; this is taken as advice"));
        }
    }
    manifest.depends = keys.texts("plugin_depends")?;
    Ok(())
}

/// The files of the hooks. They stand in `[hooks]` only: at the top their names could mean something else.
fn files(keys: &mut Keys) -> Result<BTreeMap<Hook, String>, String> {
    let mut files = BTreeMap::new();
    for hook in Hook::ALL {
        if let Some(file) = keys.of_hooks(hook.as_str())? {
            inside(&format!("hooks.{}", hook.as_str()), &file)?;
            files.insert(hook, file);
        }
    }
    Ok(files)
}

/// A path of the plugin's folder stays in it.
pub(crate) fn inside(key: &str, path: &str) -> Result<(), String> {
    let is_plain = |part: &str| !part.is_empty() && part != ".." && part != ".";
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.contains(['\\', '\0']) || !path.split('/').all(is_plain) {
        return Err(format!("{key}: must be the path of a file in the folder of the plugin"));
    }
    Ok(())
}

fn rules(keys: &mut Keys) -> Result<Rules, String> {
    let on_failure = match keys.text("on_hook_failure")? {
        None => OnFailure::default(),
        Some(word) => OnFailure::parse(&word).ok_or("on_hook_failure: must be warn, abort or skip")?,
    };
    let ingest_regex = match keys.text("ingest_regex")? {
        None => None,
        Some(pattern) => Some(BoundedPatterns::read(&[pattern], false).map_err(|why| format!("ingest_regex: {why}"))?),
    };
    let number = |keys: &mut Keys, key, max| keys.integer(key).and_then(|value| at_most(key, value, max));
    let breaker = breaker(keys)?;
    Ok(Rules {
        timeout_secs: number(keys, "hook_timeout_secs", TIMEOUT_SECS_MAX)?.filter(|secs| *secs > 0),
        on_failure,
        max_retries: u32::try_from(number(keys, "max_retries", RETRIES_MAX)?.unwrap_or(0)).unwrap_or(0),
        retry_delay_ms: number(keys, "retry_delay_ms", RETRY_DELAY_MS_MAX)?.unwrap_or(500),
        priority: keys.signed("priority")?.unwrap_or(0),
        ingest_filter: keys.text("ingest_filter")?.filter(|text| !text.is_empty()),
        ingest_regex,
        only_for_agents: keys.texts("only_for_agent_ids")?,
        cache_ttl_secs: number(keys, "hook_cache_ttl_secs", CACHE_TTL_SECS_MAX)?.unwrap_or(0),
        assemble_cache_ttl_secs: number(keys, "assemble_cache_ttl_secs", CACHE_TTL_SECS_MAX)?.unwrap_or(0),
        compact_cache_ttl_secs: number(keys, "compact_cache_ttl_secs", CACHE_TTL_SECS_MAX)?.unwrap_or(0),
        is_persistent: keys.flag("persistent_subprocess")?.unwrap_or(false),
        max_memory_mib: number(keys, "max_memory_mb", MEMORY_MIB_MAX)?.filter(|mib| *mib > 0),
        allow_network: keys.flag("allow_network")?.unwrap_or(false),
        allow_filesystem: keys.flag("allow_filesystem")?.unwrap_or(false),
        has_shared_state: keys.flag("enable_shared_state")?.unwrap_or(false),
        breaker,
        allowed_secrets: keys.texts("allowed_secrets")?,
    })
}

fn breaker(keys: &mut Keys) -> Result<Breaker, String> {
    let mut breaker = Breaker::default();
    for (key, value) in keys.table("circuit_breaker")? {
        let number = value.as_u64().ok_or_else(|| format!("circuit_breaker.{key}: must be a whole number"))?;
        match &*key {
            "max_failures" | "failure_threshold" | "failures" => {
                breaker.failures_max = u32::try_from(number.clamp(1, 1_000)).unwrap_or(1);
            }
            "reset_secs" | "reset_timeout_secs" | "cooldown_secs" => breaker.reset_secs = number.clamp(1, 86_400),
            _ => return Err(format!("circuit_breaker.{key}: unknown key; known are max_failures and reset_secs")),
        }
    }
    Ok(breaker)
}

/// The tables beside the rules.
fn tables(manifest: &mut Manifest, keys: &mut Keys) -> Result<(), String> {
    for (name, value) in bounded("env", keys.table("env")?)? {
        let text = match value {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("env.{name}: must be a text")),
        };
        manifest.env.insert(variable("env", name)?, text);
    }
    for (name, value) in bounded("env_schema", keys.table("env_schema")?)? {
        let description = text_of(&value, "description").or_else(|| value.as_str().map(str::to_owned));
        let required = value["required"].as_bool().unwrap_or(false);
        let read = Variable { description: description.unwrap_or_default(), required };
        // Required ones are written with a `!` before the name by some.
        let (name, read) = match name.strip_prefix('!') {
            Some(name) => (name.to_owned(), Variable { required: true, ..read }),
            None => (name, read),
        };
        manifest.env_schema.insert(variable("env_schema", name)?, read);
    }
    for (name, value) in keys.table("hook_schemas")? {
        let hook = Hook::parse(&name).ok_or_else(|| format!("hook_schemas.{name}: there is no such hook"))?;
        let schema = |key: &str| value.get(key).filter(|schema| !schema.is_null()).cloned();
        manifest.schemas.insert(hook, Schemas { input: schema("input"), output: schema("output") });
    }
    for (name, value) in bounded("config", keys.table("config")?)? {
        let read = match value {
            Value::Object(mut table) => Setting {
                kind: table.get("type").and_then(Value::as_str).unwrap_or("string").to_owned(),
                description: table.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
                default: table.remove("default").unwrap_or_default(),
            },
            default => Setting { kind: "string".to_owned(), default, ..Setting::default() },
        };
        manifest.config.insert(name, read);
    }
    for (file, sum) in keys.table("integrity")? {
        inside("integrity", &file)?;
        let sum = sum.as_str().filter(|sum| is_sum(sum));
        let sum = sum.ok_or_else(|| format!("integrity.{file}: must be a SHA-256 in hex"))?;
        manifest.integrity.insert(file, sum.to_ascii_lowercase());
    }
    manifest.needed = needed(keys)?;
    manifest.i18n = keys.table("i18n")?;
    Ok(())
}

fn needed(keys: &mut Keys) -> Result<Vec<Needed>, String> {
    let Some(list) = keys.take("requires") else { return Ok(Vec::new()) };
    let list = list.as_array().cloned().ok_or("requires: must be a list of tables")?;
    let read = |value: &Value| {
        let binary = text_of(value, "binary").ok_or("requires: each needs `binary`")?;
        Ok(Needed { binary, install_hint: text_of(value, "install_hint").unwrap_or_default() })
    };
    list.iter().take(ENTRIES_MAX).map(read).collect()
}

fn bounded(key: &str, table: Map<String, Value>) -> Result<Map<String, Value>, String> {
    if table.len() > ENTRIES_MAX {
        return Err(format!("{key}: more than {ENTRIES_MAX} keys"));
    }
    Ok(table)
}

fn variable(key: &str, name: String) -> Result<String, String> {
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain { Ok(name) } else { Err(format!("{key}: {name:?} is not the name of an environment variable")) }
}

fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Manifest {
    /// Its name in `language`, or the first one that says so.
    pub(crate) fn display_name(&self, language: &str) -> String {
        let named = self.i18n.get(language).and_then(|words| text_of(words, "name"));
        named.unwrap_or_else(|| self.name.clone())
    }

    /// The languages it has names for.
    pub(crate) fn languages(&self) -> Vec<String> {
        self.i18n.keys().cloned().collect()
    }

    /// The names of all its hooks.
    pub(crate) fn hook_names(&self) -> Vec<&'static str> {
        self.hooks.keys().map(|hook| hook.as_str()).collect()
    }

    /// Texts at a key of a list, for tests of what stands where.
    #[cfg(test)]
    pub(super) fn warned(&self, part: &str) -> bool {
        self.warnings.iter().any(|warning| warning.contains(part))
    }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
