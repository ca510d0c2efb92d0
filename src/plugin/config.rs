//! `[context_engine]`: which plugins take part in turns.

use std::collections::BTreeMap;

use agentsvc_systems::kernel::record::hex;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::kernel::config::{HiddenValues, Reader, Word, table};
use crate::skill_source::folders::check_name;

/// Plugins in force at once.
pub(crate) const STACK_MAX: usize = 16;

table! {
    /// `[context_engine]`.
    #[check(Self::check)]
    pub struct ContextEngine {
        /// What prepares the context of turns: default or sidecar. `default` is the daemon, with the plugins below. `sidecar` asks
        /// the program of `sidecar_command` before the plugins.
        engine: Engine => choice(Engine::WORDS).protected(),
        /// Name of the installed plugin whose hooks run.
        plugin: Option<Box<str>> => text(name).example("keyword-memory").protected(),
        /// Names of several installed plugins whose hooks run, in this order. Not together with `plugin`.
        plugin_stack: Vec<Box<str>> => list(name).protected(),
        /// Program and arguments of the sidecar. It answers each line `{id, method, params}` with a line `{id, ok}` or `{id, error}`.
        sidecar_command: Vec<Box<str>> => list(word).protected(),
        /// Environment variables of the daemon, and secrets of its vault, that a plugin gets if it asks for them, by plugin.
        env_allowed: PerPlugin => object(per_plugin).example("{ notes = [\"NOTES_API_KEY\"] }").protected(),
        /// Values of the settings of plugins, by key. Values are never shown.
        config: HiddenValues => object(HiddenValues::of).example("{ \"notes.limit\" = 20 }").protected(),
        /// Ed25519 public keys, in hex or base64, whose signatures of plugins count beside the daemon's own.
        signing_keys: Vec<SigningKey> => list(signing_key).protected(),
        /// Use and install only plugins that are signed with one of these keys, or with the daemon's own.
        require_signature: bool = false => flag().protected(),
        /// Hooks without a plugin: scripts of this machine.
        hooks: EngineHooks => table(),
    }
}

table! {
    /// `[context_engine.hooks]`.
    pub struct EngineHooks {
        /// Absolute path of the script that brings memories before a turn.
        ingest: Option<Box<str>> => text(path).example("/srv/hooks/ingest.py").protected(),
        /// Absolute path of the script that is told of a turn that has ended.
        after_turn: Option<Box<str>> => text(path).example("/srv/hooks/after_turn.py").protected(),
        /// What runs the scripts: python, native, v, node, deno, go, ruby, bash, bun, php or lua.
        runtime: Box<str> = "python".into() => text(runtime).protected(),
    }
}

impl ContextEngine {
    fn check(&self, reader: &mut Reader<'_, '_>) {
        if self.plugin.is_some() && !self.plugin_stack.is_empty() {
            reader.problem("plugin_stack", "must be empty while `plugin` is set".to_owned());
        }
        if self.plugin_stack.len() > STACK_MAX {
            reader.problem("plugin_stack", format!("must have at most {STACK_MAX} names"));
        }
        let mut names = self.plugin_stack.clone();
        names.sort_unstable();
        names.dedup();
        if names.len() < self.plugin_stack.len() {
            reader.problem("plugin_stack", "must name each plugin once".to_owned());
        }
        if self.engine == Engine::Sidecar && self.sidecar_command.is_empty() {
            reader.problem("sidecar_command", "must be set while `engine` is \"sidecar\"".to_owned());
        }
    }

    /// The plugins in force, in their order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.plugin.iter().chain(&self.plugin_stack).map(|name| &**name)
    }

    /// May the plugin have the variable or secret?
    pub(crate) fn allows(&self, plugin: &str, name: &str) -> bool {
        self.env_allowed.0.get(plugin).is_some_and(|names| names.iter().any(|allowed| **allowed == *name))
    }

    /// The value of a setting of a plugin: under its whole key, or in the table of the plugin.
    pub(crate) fn value(&self, plugin: &str, key: &str) -> Option<&Value> {
        let HiddenValues(values) = &self.config;
        values.get(&format!("{plugin}.{key}")).or_else(|| values.get(plugin)?.as_object()?.get(key))
    }
}

agentsvc_components::enum_words! {
    /// What prepares the context of turns.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Engine [Word] {
        /// The daemon and its plugins.
        #[default]
        Default = "default",
        /// A program of the operator before them.
        Sidecar = "sidecar",
    }
}

/// Names of variables by plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PerPlugin(BTreeMap<Box<str>, Vec<Box<str>>>);

/// An Ed25519 public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKey(pub(crate) Vec<u8>);

impl Serialize for SigningKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

fn signing_key(text: &str) -> Result<SigningKey, String> {
    let key = super::signature::decode(text, 32).map(SigningKey);
    key.ok_or_else(|| "must be the 32 bytes of an Ed25519 public key, in hex or base64".to_owned())
}

fn name(text: &str) -> Result<Box<str>, String> {
    check_name(text).map_err(|_| "must be the name of a plugin".to_owned())?;
    Ok(text.into())
}

fn word(text: &str) -> Result<Box<str>, String> {
    if text.contains('\0') { Err("must not contain a NUL byte".to_owned()) } else { Ok(text.into()) }
}

fn path(text: &str) -> Result<Box<str>, String> {
    if text.starts_with('/') { Ok(text.into()) } else { Err("must be an absolute path".to_owned()) }
}

fn runtime(text: &str) -> Result<Box<str>, String> {
    match super::runtime::Runtime::of(text) {
        Some(runtime) => Ok(runtime.as_str().into()),
        None => Err("must be python, native, v, node, deno, go, ruby, bash, bun, php or lua".to_owned()),
    }
}

fn per_plugin(object: Map<String, Value>) -> Result<PerPlugin, String> {
    let names = |(plugin, value): (String, Value)| {
        let wrong = || format!("{plugin}: must be a list of names of environment variables");
        let list = value.as_array().ok_or_else(wrong)?;
        let is_plain =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let names = list.iter().map(|item| item.as_str().filter(is_plain).map(Box::from));
        Ok((plugin.as_str().into(), names.collect::<Option<Vec<_>>>().ok_or_else(wrong)?))
    };
    object.into_iter().map(names).collect::<Result<_, _>>().map(PerPlugin)
}

#[cfg(test)]
mod tests {
    use super::ContextEngine;
    use crate::kernel::config::read_table;

    #[test]
    fn plugins_are_named_alone_or_in_a_stack() {
        let parse = |text: &str| read_table::<ContextEngine>("context_engine", &format!("[context_engine]\n{text}"));
        let names = |text: &str| parse(text).unwrap().config.names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("plugin = \"a\"\n"), ["a"]);
        assert_eq!(names("plugin_stack = [\"b\", \"a\"]\n"), ["b", "a"]);
        assert_eq!(names(""), [] as [&str; 0]);
        for (text, key) in [
            ("plugin = \"a\"\nplugin_stack = [\"b\", \"a\"]\n", "plugin_stack"),
            ("plugin_stack = [\"a\", \"a\"]\n", "plugin_stack"),
            ("plugin = \"../a\"\n", "plugin"),
            ("engine = \"sidecar\"\n", "sidecar_command"),
            ("engine = \"other\"\n", "engine"),
            ("hooks = { ingest = \"x.py\" }\n", "ingest"),
            ("hooks = { runtime = \"cobol\" }\n", "runtime"),
            ("env_allowed = { a = [\"A=B\"] }\n", "env_allowed"),
            ("signing_keys = [\"x\"]\n", "signing_keys"),
        ] {
            assert!(parse(text).unwrap_err().to_string().contains(key), "{text}");
        }
    }

    #[test]
    fn settings_and_variables_belong_to_one_plugin() {
        let text = "[context_engine]\nenv_allowed = { a = [\"KEY\"] }\n\
            [context_engine.config]\n\"a.x\" = 1\nb = { x = 2 }\n";
        let config = read_table::<ContextEngine>("context_engine", text).unwrap().config;
        assert!(config.allows("a", "KEY") && !config.allows("b", "KEY") && !config.allows("a", "OTHER"));
        assert_eq!((config.value("a", "x"), config.value("b", "x")), (Some(&1.into()), Some(&2.into())));
        assert!(config.value("c", "x").is_none());
        assert!(!serde_json::to_string(&config).unwrap().contains('2'));
    }
}
