//! The configuration as it is shown, and what differs between two of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::key::{Applies, Key};
use super::tree::{self, Place};
use super::{Config, Provider, edit};
use crate::kernel::home::Home;
use crate::web::search;

impl Config {
    /// The configuration in effect as a nested object that mirrors the file section for section (spec 2, Configuration,
    /// rule 1): secrets as `***` or `not set`, words as the file spells them, every key there. What was left out shows
    /// what it comes to; null is what there is none of.
    #[must_use]
    pub fn shown(&self, home: &Home) -> Value {
        let mut shown = self.clone();
        shown.data_dir = Some(home.data_dir(self.data_dir.as_deref()));
        shown.backup.directory = Some(home.backups_dir(self.backup.directory.as_deref()));
        if let Ok((providers, _)) = self.models() {
            let providers = providers.with_overrides(crate::provider::kept(home, self));
            let model = self.default_of(&providers);
            let provider = providers.get(&model.provider);
            let own_url = provider.map(|provider| provider.base_url.clone()).filter(|url| !url.is_empty());
            let own_key = provider.and_then(|provider| provider.api_key_env.clone());
            shown.default_model.base_url = model.base_url.or(own_url);
            shown.default_model.api_key_env = model.api_key_env.or(own_key);
            shown.default_model.provider = Some(model.provider);
            shown.default_model.model = Some(model.model);
        }
        let searches = &mut shown.web.search;
        searches.provider.get_or_insert_with(|| search::default_name().into());
        serde_json::to_value(&shown).unwrap_or_default()
    }

    /// The value at `path` of what is [`shown`](Self::shown); null where there is none.
    #[must_use]
    pub fn shown_at(&self, home: &Home, path: &[String]) -> Value {
        let shown = self.shown(home);
        path.iter().try_fold(&shown, |value, name| value.get(name)).cloned().unwrap_or_default()
    }

    /// The keys whose values differ between this configuration and `other`, in the order of their names.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (ours, theirs) = (flat(self), flat(other));
        let mut paths: Vec<&Vec<String>> = ours.keys().chain(theirs.keys()).collect();
        paths.sort();
        paths.dedup();
        let differ = |path: &&Vec<String>| ours.get(*path) != theirs.get(*path);
        let secret = vec!["api_key".to_owned()];
        // Both are masked.
        let keys = (self.api_key != other.api_key).then_some(&secret);
        let mut found: Vec<_> = paths.into_iter().filter(differ).chain(keys).map(|path| Difference::at(path)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        found
    }

    /// This configuration with the values of `started` for what only a start can change.
    #[must_use]
    pub fn until_restart(mut self, started: &Self) -> Self {
        self.api_listen = started.api_listen;
        self.data_dir.clone_from(&started.data_dir);
        self.world = started.world.clone();
        self.log = started.log.clone();
        self.catalog = started.catalog.clone();
        self.inputs = started.inputs.clone();
        self.security.prompt_injection = started.security.prompt_injection;
        self.security.manifest_keys.clone_from(&started.security.manifest_keys);
        self.security.require_signed_manifests = started.security.require_signed_manifests;
        for (name, provider) in &mut self.providers {
            provider.sign_in_of(started.providers.get(name));
        }
        self.providers.retain(|name, written| started.providers.contains_key(name) || *written != Provider::default());
        self
    }
}

/// A key whose value differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its path, such as `world.tick_hz`.
    pub path: String,
    /// When a new value takes effect.
    applies: Applies,
}

impl Difference {
    fn at(path: &[String]) -> Self {
        let applies = match tree::find(path) {
            Place::Leaf(Key { applies, .. }) => *applies,
            // A named table that came or went without a key.
            Place::Table | Place::Nothing => Applies::Live,
        };
        Self { path: edit::joined(path), applies }
    }

    /// Takes effect with the next start only.
    #[must_use]
    pub fn needs_restart(&self) -> bool {
        self.applies == Applies::Restart
    }
}

/// Every value under its path. A list is one value.
fn flat(config: &Config) -> BTreeMap<Vec<String>, Value> {
    fn walk(value: Value, path: &mut Vec<String>, out: &mut BTreeMap<Vec<String>, Value>) {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    path.push(name);
                    walk(value, path, out);
                    path.pop();
                }
            }
            value => drop(out.insert(path.clone(), value)),
        }
    }
    let mut out = BTreeMap::new();
    walk(serde_json::to_value(config).unwrap_or_default(), &mut Vec::new(), &mut out);
    // Null is what is not there.
    out.retain(|_, value| !value.is_null());
    out
}

/// What is shown, as TOML. Null has no form there and is left out.
///
/// # Errors
/// It has no form in TOML.
pub fn toml_of(shown: &Value) -> Result<String, toml::ser::Error> {
    fn without_null(value: &Value) -> Value {
        match value {
            Value::Object(inner) => {
                let kept = inner.iter().filter(|(_, value)| !value.is_null());
                Value::Object(kept.map(|(name, value)| (name.clone(), without_null(value))).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }
    toml::to_string(&without_null(shown))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::config::key::{Applies, Kind};
    use crate::config::{Config, parse, toml_of, tree};
    use crate::kernel::home::Home;

    fn read(text: &str) -> Config {
        parse(text, Path::new("c")).unwrap().config
    }

    #[test]
    fn every_key_is_shown_and_secrets_are_not() {
        let home = Home::new("/h");
        let text = "api_key = \"hunter2\"\n[providers.openai]\ncontext_tokens = 1000\n[prices.\"a/b\"]\n\
                    cached_input_per_m = 1.0\n[queue.concurrency.providers]\nopenai = 3\n";
        let shown = read(text).shown(&home);
        for (path, key) in tree::leaves() {
            let path = path.replace("providers.<name>", "providers.openai").replace("<name>", "a/b");
            let found = path.split('.').try_fold(&shown, |value, name| value.get(name));
            assert!(found.is_some(), "{path} is not shown");
            let is_shown = key.is_example || matches!(key.kind, Kind::Variable | Kind::Url);
            assert!(is_shown || !found.unwrap().is_null(), "{path} is null");
        }
        assert_eq!((&shown["api_key"], &shown["data_dir"]), (&json!("***"), &json!("/h/data")));
        assert_eq!(read("").shown(&home)["api_key"], "not set");
        assert_eq!(read("").shown(&home)["exec_policy"]["mode"], "allowlist");
        let model = &read("[default_model]\nprovider = \"groq\"\n").shown(&home)["default_model"];
        assert_eq!((&model["api_key_env"], &model["provider"]), (&json!("GROQ_API_KEY"), &json!("groq")));
        assert!(model["base_url"].is_string() && model["model"].is_string());
        assert!(!shown.to_string().contains("hunter2"));
    }

    #[test]
    fn differences_are_named_with_what_they_need() {
        let before = read("log_level = \"info\"\n[providers.mine]\nbase_url = \"http://h\"\n");
        let after = read("log_level = \"warn\"\napi_key = \"a\"\n[world]\ntick_hz = 1\n[prices.\"a/b.c\"]\n");
        let found = before.differences(&after);
        let paths: Vec<_> = found.iter().map(|found| (found.path.as_str(), found.needs_restart())).collect();
        let expected = [
            ("api_key", false),
            ("log_level", false),
            ("prices.\"a/b.c\".input_per_m", false),
            ("prices.\"a/b.c\".output_per_m", false),
            ("providers.mine.base_url", false),
            ("world.tick_hz", true),
        ];
        assert_eq!(paths, expected);
        assert!(before.differences(&before.clone()).is_empty());
        let other_key = read("api_key = \"b\"\n").differences(&read("api_key = \"a\"\n"));
        assert_eq!(other_key.len(), 1, "{other_key:?}");
    }

    /// A value that is not the default.
    fn other(path: &str, kind: Kind) -> String {
        match (path, kind) {
            ("api_listen", _) => "\"127.0.0.1:1\"".to_owned(),
            ("data_dir", _) => "\"/other\"".to_owned(),
            ("world.tick_hz", _) => "7".to_owned(),
            ("inputs.enabled", _) => "false".to_owned(),
            ("inputs.keep_hours" | "inputs.max_mb", _) => "77".to_owned(),
            ("log.format", _) => "\"json\"".to_owned(),
            ("security.prompt_injection", _) => "\"block\"".to_owned(),
            ("security.manifest_keys", _) => format!("[\"{}\"]", "ab".repeat(32)),
            ("security.require_signed_manifests", _) => "true".to_owned(),
            ("catalog.public_key" | "catalog.sha256", _) => format!("\"{}\"", "ab".repeat(32)),
            (_, Kind::Url) => "\"https://h/x\"".to_owned(),
            (_, Kind::Text) => "\"other\"".to_owned(),
            other => panic!("{other:?}: say here what another value is"),
        }
    }

    fn kind_of(path: &str) -> Kind {
        let path = path.replace("groq", "<name>");
        tree::leaves().into_iter().find(|(name, _)| *name == path).map(|(_, key)| key.kind).unwrap()
    }

    #[test]
    fn what_needs_a_restart_waits_for_it_and_nothing_else_does() {
        let started = Config::default();
        let mut checked = 0;
        for (path, _) in tree::leaves().into_iter().filter(|(_, key)| key.applies == Applies::Restart) {
            let path = path.replace("<name>", "groq");
            // Some keys mean something beside others only.
            let beside: &[&str] = match &*path {
                "security.require_signed_manifests" => &["security.manifest_keys"],
                path if path.starts_with("providers.groq.") => {
                    &["providers.groq.device_auth_url", "providers.groq.token_url", "providers.groq.client_id"]
                }
                _ => &[],
            };
            let all: BTreeSet<&str> = beside.iter().copied().chain([&*path]).collect();
            let text: String = all.iter().map(|path| format!("{path} = {}\n", other(path, kind_of(path)))).collect();
            let changed = read(&text);
            assert_eq!(changed.differences(&started).len(), all.len(), "{path}");
            assert_eq!(changed.until_restart(&started), started, "{path} would be in force without a restart");
            checked += 1;
        }
        assert_eq!(checked, 18);
        let live = read("log_level = \"warn\"\nrate_limit_per_second = 5\n[budget]\ndaily_limit_usd = 1\n");
        assert_eq!(live.clone().until_restart(&started), live);
    }

    #[test]
    fn the_same_in_toml() {
        let home = Home::new("/h");
        let shown = read("api_key = \"hunter2\"\n[prices.\"a/b\"]\ninput_per_m = 1.5\n").shown(&home);
        let text = toml_of(&shown).unwrap();
        let back: toml::Table = text.parse().unwrap();
        let back = serde_json::to_value(back).unwrap();
        assert_eq!(back["world"], shown["world"]);
        assert_eq!((&back["api_key"], &back["prices"]["a/b"]["input_per_m"]), (&json!("***"), &json!(1.5)));
        assert_eq!(back["web"]["search"].get("base_url"), None);
        assert_ne!(shown["web"]["search"].get("base_url"), Some(&Value::String(String::new())));
    }
}
