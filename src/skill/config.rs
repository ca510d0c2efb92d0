//! `[skills]`: what skills get of the daemon's environment, and the values of their settings.

use std::collections::BTreeMap;

use agentsvc_systems::kernel::glob;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::kernel::config::{HiddenValues, Word, table};

/// Variables whose values no skill gets unless `env_passthrough_per_skill` names them.
const DENIED: &[&str] = &[
    "*KEY*",
    "*TOKEN*",
    "*PASS*",
    "*PWD*",
    "*SECRET*",
    "*CREDENTIAL*",
    "*_AUTH",
    "*_AUTH_*",
    "AUTH_*",
    "*DSN*",
    "*DATABASE*",
    "*_URL",
    "*_URI",
    "AWS_*",
    "GITHUB_*",
    "PG*",
];

table! {
    /// `[skills]`.
    pub struct SkillSettings {
        /// Names or globs of environment variables that skills do not get even if they ask for them. The case of letters does not
        /// matter.
        env_passthrough_denied_patterns: Vec<Box<str>> = DENIED.iter().map(|&name| name.into()).collect()
            => list(pattern).protected(),
        /// Environment variables that one skill gets although a denied pattern matches, by skill.
        env_passthrough_per_skill: PerSkill => object(per_skill).example("{ weather = [\"WEATHER_API_KEY\"] }").protected(),
        /// Values of the settings of skills, by key. Values are never shown.
        config: HiddenValues => object(HiddenValues::of).example("{ \"weather.units\" = \"metric\" }").protected(),
        /// Whether agents change skills with the tools `skill_evolve_*`: off, approve or on. With `approve` a change waits until a
        /// person approves it. With `on` only changes wait that run something, take something away, or come from a conversation
        /// that has read untrusted content.
        evolution: Evolution => choice(Evolution::WORDS).protected(),
    }
}

agentsvc_components::enum_words! {
    /// Whether agents change skills.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Evolution [Word] {
        /// They do not.
        Off = "off",
        /// When a person has approved the change.
        #[default]
        Approve = "approve",
        /// At once, where the change can do no harm.
        On = "on",
    }
}

/// Environment variables by skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct PerSkill(BTreeMap<Box<str>, Vec<Box<str>>>);

impl SkillSettings {
    /// The value of a setting that a skill declares. A key that does not begin with the skill's name is looked for behind it: no
    /// skill reads what was set for another one.
    pub fn value_for(&self, skill: &str, key: &str) -> Option<&Value> {
        let is_own = key.strip_prefix(skill).is_some_and(|rest| rest.starts_with('.'));
        if is_own { self.value(key) } else { self.value(&format!("{skill}.{key}")) }
    }

    /// The value of a setting: under its whole key, or table by table where the key has dots.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        let HiddenValues(values) = &self.config;
        values.get(key).or_else(|| {
            let (mut at, mut names) = (values, key.split('.').peekable());
            while let Some(name) = names.next() {
                let value = at.get(name)?;
                if names.peek().is_none() {
                    return Some(value);
                }
                at = value.as_object()?;
            }
            None
        })
    }

    /// Does the operator let the skill have this variable by name?
    pub(super) fn is_reopened(&self, skill: &str, name: &str) -> bool {
        let names = self.env_passthrough_per_skill.0.get(skill);
        names.is_some_and(|names| names.iter().any(|open| **open == *name))
    }

    /// Does a denied pattern match the variable?
    pub(crate) fn is_denied(&self, name: &str) -> bool {
        let upper = name.to_ascii_uppercase();
        let patterns = self.env_passthrough_denied_patterns.iter();
        patterns.map(|pattern| pattern.to_ascii_uppercase()).any(|pattern| glob::matches(&pattern, &upper))
    }
}

fn pattern(text: &str) -> Result<Box<str>, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*' | b'?');
    if text.is_empty() || !text.bytes().all(is_plain) {
        return Err("must be the name of an environment variable or a glob for names".to_owned());
    }
    Ok(text.into())
}

fn per_skill(object: Map<String, Value>) -> Result<PerSkill, String> {
    let names = |(skill, value): (String, Value)| {
        let list = value.as_array().ok_or_else(|| format!("{skill}: must be a list of environment variables"))?;
        let name = |item: &Value| {
            let named = item.as_str().filter(|name| pattern(name).is_ok() && !name.contains(['*', '?']));
            named.map(Into::into).ok_or_else(|| format!("{skill}: must be the names of environment variables"))
        };
        Ok((skill.as_str().into(), list.iter().map(name).collect::<Result<_, String>>()?))
    };
    object.into_iter().map(names).collect::<Result<_, String>>().map(PerSkill)
}

#[cfg(test)]
mod tests {
    use super::SkillSettings;
    use crate::kernel::config::read_table;

    fn parse(text: &str) -> Result<SkillSettings, String> {
        read_table("skills", text).map(|loaded| loaded.config).map_err(|error| error.to_string())
    }

    #[test]
    fn secrets_do_not_pass_unless_they_are_named() {
        let settings = parse("[skills.env_passthrough_per_skill]\nweather = [\"MY_KEY\"]\n").unwrap();
        for name in ["MY_KEY", "my_token", "AWS_REGION", "Github_User", "X_API_KEY"] {
            assert!(settings.is_denied(name) && !settings.is_reopened("other", name), "{name}");
        }
        assert!(settings.is_reopened("weather", "MY_KEY") && !settings.is_reopened("weather", "MY_TOKEN"));
        assert!(!settings.is_denied("GOG_ACCOUNT"));
    }

    #[test]
    fn values_are_found_and_not_shown() {
        let text = "[skills.config]\n\"a.b\" = \"one\"\nc = 2\n[skills.config.d]\ne = \"hidden\"\n";
        let settings = parse(text).unwrap();
        assert_eq!(settings.value("a.b").unwrap(), "one");
        assert_eq!((settings.value("c").unwrap(), settings.value("d.e").unwrap()), (&2.into(), &"hidden".into()));
        assert!(settings.value("d.f").is_none() && settings.value("c.x").is_none());
        assert_eq!(settings.value_for("a", "a.b").unwrap(), "one");
        assert_eq!(settings.value_for("d", "e").unwrap(), "hidden");
        for (thief, key) in [("thief", "a.b"), ("b", "a.b"), ("thief", "c"), ("c.", "c"), ("", "c")] {
            assert!(settings.value_for(thief, key).is_none(), "{thief} {key}");
        }
        let shown = format!("{settings:?}{}", serde_json::to_string(&settings).unwrap());
        assert!(!shown.contains("hidden") && !shown.contains("one"), "{shown}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, message) in [
            ("[skills]\nenv_passthrough_denied_patterns = [\"A=B\"]\n", "environment variable or a glob"),
            ("[skills.env_passthrough_per_skill]\nx = \"A\"\n", "x: must be a list"),
            ("[skills.env_passthrough_per_skill]\nx = [\"A*\"]\n", "x: must be the names"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
