//! A change of one key, from the path and value that somebody asks for to a text that is a valid configuration.

use std::path::Path;

use serde_json::Value;

use super::edit::{self, SEGMENTS_MAX};
use super::file::FILE_BYTES_MAX;
use super::key::{Applies, Kind, Writes};
use super::tree::{self, Place};
use super::{Error, FileError, Loaded, Problems, parse};

/// Why a key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// It is no path.
    #[error("path: {0}")]
    Path(String),
    /// It may not be written, or there is no such key.
    #[error("{0}")]
    Forbidden(String),
    /// The value is not one that the key may have.
    #[error("{path}: {message}")]
    Value {
        /// The key.
        path: String,
        /// What its value must be.
        message: String,
    },
    /// The file is wrong elsewhere.
    #[error("{0}")]
    Broken(Problems),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Reads a path and checks that it leads to a key with a value.
///
/// # Errors
/// [`ChangeError::Path`] when it is no path, [`ChangeError::Forbidden`] when it leads to a table or to nothing.
pub fn path_of(text: &str) -> Result<Vec<String>, ChangeError> {
    let path = edit::segments(text).map_err(ChangeError::Path)?;
    match tree::find(&path) {
        Place::Leaf(_) => Ok(path),
        Place::Table => Err(ChangeError::Forbidden(format!("{text} is a whole table: set its keys one by one"))),
        Place::Nothing => Err(ChangeError::Forbidden(format!("there is no key {text} in the configuration"))),
    }
}

/// Checks that `path` may be written over the API: it is on the allowlist, which is made of the keys' own rules, and
/// has at most [`SEGMENTS_MAX`] segments (spec 2, Configuration, rule 2).
///
/// # Errors
/// [`ChangeError::Forbidden`] with the reason.
pub fn writable(path: &[String]) -> Result<(), ChangeError> {
    let forbidden = |why: String| Err(ChangeError::Forbidden(why));
    let name = edit::joined(path);
    if path.len() > SEGMENTS_MAX {
        return forbidden(format!("{name} has more than {SEGMENTS_MAX} segments: edit it in config.toml"));
    }
    let writes = match tree::find(path) {
        Place::Leaf(key) => key.writes,
        Place::Table | Place::Nothing => Writes::Infrastructure,
    };
    match writes.refusal() {
        None => Ok(()),
        Some(why) => forbidden(format!("{name} {why}: edit it in config.toml")),
    }
}

/// False for a key that is read and has no effect in this release.
#[must_use]
pub fn has_effect(path: &[String]) -> bool {
    !matches!(tree::find(path), Place::Leaf(key) if key.applies == Applies::Never)
}

/// What somebody who types `text` for the key at `path` means: a text for a key that has texts, else a value of TOML.
#[must_use]
pub fn value_of(path: &[String], text: &str) -> Value {
    let is_text = match tree::find(path) {
        Place::Leaf(key) => {
            matches!(key.kind, Kind::Text | Kind::Secret | Kind::Variable | Kind::Url | Kind::Choice(_))
        }
        Place::Table | Place::Nothing => false,
    };
    let written = format!("value = {text}").parse::<toml::Table>().ok();
    let read = written.and_then(|mut table| serde_json::to_value(table.remove("value")?).ok());
    match read {
        Some(Value::String(quoted)) => Value::String(quoted),
        Some(value) if !is_text => value,
        _ => Value::String(text.to_owned()),
    }
}

/// `text` with `value` at `path`, and the configuration that it then is. `file` only names it in messages.
///
/// # Errors
/// [`ChangeError::Value`] when the key cannot have this value, [`ChangeError::Broken`] when something else is wrong.
pub fn changed(text: &str, path: &[String], value: &Value, file: &Path) -> Result<(String, Loaded), ChangeError> {
    let name = path.join(".");
    let wrong = |message: String| ChangeError::Value { path: edit::joined(path), message };
    let after = match edit::set(text, path, value) {
        Ok(after) => after,
        Err(message) => return Err(broken(text, file).unwrap_or_else(|| wrong(message))),
    };
    if after.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("would make the file larger than {FILE_BYTES_MAX} bytes")));
    }
    match parse(&after, file) {
        Ok(loaded) => Ok((after, loaded)),
        Err(Error::Invalid(problems)) => {
            let ours = problems.list.iter().find(|problem| problem.key == name);
            match ours.map(|problem| problem.message.clone()) {
                Some(message) => Err(wrong(message)),
                // What was fine before is wrong because of this value, whatever key names it.
                None => Err(broken(text, file).unwrap_or_else(|| wrong(in_words(&problems)))),
            }
        }
        Err(other) => Err(wrong(other.to_string())),
    }
}

fn in_words(problems: &Problems) -> String {
    let first = problems.list.first().map(|problem| format!("with it {} {}", problem.key, problem.message));
    first.unwrap_or_else(|| "makes the configuration invalid".to_owned())
}

fn broken(text: &str, file: &Path) -> Option<ChangeError> {
    match parse(text, file) {
        Err(Error::Invalid(problems)) => Some(ChangeError::Broken(problems)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::{ChangeError, changed, path_of, value_of, writable};
    use crate::config::key::{Kind, Writes};
    use crate::config::tree;

    fn change(text: &str, path: &str, value: Value) -> Result<String, String> {
        let changed = changed(text, &path_of(path).unwrap(), &value, Path::new("c"));
        changed.map(|(text, _)| text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_client_may_write_is_a_short_list() {
        let may = |path: &str| path_of(path).and_then(|path| writable(&path)).map_err(|error| error.to_string());
        for path in [
            "log_level",
            "default_model.model",
            "default_model.provider",
            "exec_policy.timeout_secs",
            "web.fetch.max_chars",
        ] {
            may(path).unwrap();
        }
        for (path, why) in [
            ("default_model", "is a whole table"),
            ("providers", "is a whole table"),
            ("providers.openai", "is a whole table"),
            ("api_key", "is a credential"),
            ("default_model.api_key_env", "is a credential"),
            ("providers.openai.api_key_env", "is a credential"),
            ("web.search.api_key_env", "is a credential"),
            ("api_listen", "surroundings"),
            ("data_dir", "surroundings"),
            ("default_model.base_url", "surroundings"),
            ("exec_policy.mode", "bounds what clients and agents may do"),
            ("approval.second_factor", "bounds what clients and agents may do"),
            ("cors_origin", "bounds what clients and agents may do"),
            ("queue.concurrency.providers.openai", "more than 3 segments"),
            ("network.shared_secret", "there is no key"),
            ("terminal.enabled", "there is no key"),
            ("nothing", "there is no key"),
            ("log_level.x", "there is no key"),
        ] {
            let said = may(path).unwrap_err();
            assert!(said.contains(why), "{path}: {said}");
        }
        assert!(matches!(path_of("a..b"), Err(ChangeError::Path(_))));
    }

    #[test]
    fn no_secret_can_be_written() {
        for (path, key) in tree::leaves() {
            let is_secret = matches!(key.kind, Kind::Secret | Kind::Variable | Kind::Url) || path.ends_with("_env");
            assert!(!is_secret || key.writes != Writes::Api, "{path}");
        }
    }

    #[test]
    fn what_is_typed_is_read_as_the_key_wants_it() {
        let read = |path: &str, text: &str| value_of(&path_of(path).unwrap(), text);
        for (path, text, expected) in [
            ("log_level", "debug", json!("debug")),
            ("log_level", "\"debug\"", json!("debug")),
            ("default_model.model", "5", json!("5")),
            ("world.tick_hz", "30", json!(30)),
            ("world.tick_hz", "many", json!("many")),
            ("budget.daily_limit_usd", "1.5", json!(1.5)),
            ("cors_origin", "[\"https://a\"]", json!(["https://a"])),
            ("exec_policy.require_landlock", "true", json!(true)),
        ] {
            assert_eq!(read(path, text), expected, "{path} {text}");
        }
    }

    #[test]
    fn a_value_that_the_key_cannot_have_is_named() {
        assert_eq!(change("", "world.tick_hz", json!(30)).unwrap(), "[world]\ntick_hz = 30\n");
        for (path, value, expected) in [
            ("world.tick_hz", json!(0), "world.tick_hz: must be 1 to 1000"),
            ("world.tick_hz", json!("x"), "world.tick_hz: must be an integer, not a string"),
            ("world.tick_hz", json!(1.5), "world.tick_hz: must be an integer, not a float"),
            ("log_level", json!("loud"), "log_level: must be one of"),
            ("log_level", json!({}), "log_level: must be a string, a number"),
            ("default_model.provider", json!("opnai"), "did you mean `openai`?"),
            ("default_model.provider", json!("ollama"), "needs `model` beside it"),
            ("prices.gpt.input_per_m", json!(1), "must be named"),
            ("default_model.model", json!("x".repeat(2 << 20)), "would make the file larger than 1048576 bytes"),
        ] {
            let said = change("", path, value).unwrap_err();
            assert!(said.contains(expected), "{path}: {said}");
        }
    }

    #[test]
    fn a_file_that_is_wrong_elsewhere_has_to_be_put_right_first() {
        let text = "log_level = \"loud\"\n[world]\ntick_hz = 0\n";
        let error = changed(text, &path_of("mode").unwrap(), &json!("dev"), Path::new("c")).unwrap_err();
        assert!(matches!(&error, ChangeError::Broken(problems) if problems.list.len() == 2), "{error}");
        let one = "[world]\ntick_hz = 0\n";
        assert_eq!(change(one, "world.tick_hz", json!(5)).unwrap(), "[world]\ntick_hz = 5\n");
        assert!(change("nonsense", "world.tick_hz", json!(5)).unwrap_err().contains("not TOML"));
    }
}
