//! A change of one key, from the path and value that somebody asks for to a text that is a valid configuration.

use std::path::Path;

use serde_json::Value;

use super::document::{Document, Error, Loaded};
use super::edit::{self, SEGMENTS_MAX};
use super::file::{self, FILE_BYTES_MAX};
use super::key::{Applies, Writes};
use super::problem::Problems;
use super::tree::{self, Place};

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
    File(#[from] file::Error),
}

/// A file whose keys can be changed one by one.
pub trait Editable: Document {
    /// Reads a path and checks that it leads to a key with a value.
    ///
    /// # Errors
    /// [`ChangeError::Path`] when it is no path, [`ChangeError::Forbidden`] when it leads to a table or to nothing.
    fn path_of(text: &str) -> Result<Vec<String>, ChangeError> {
        let path = edit::segments(text).map_err(ChangeError::Path)?;
        match tree::find(Self::KEYS, &path) {
            Place::Leaf(_) => Ok(path),
            Place::Table => {
                let below = tree::below(Self::KEYS, text).join(", ");
                Err(ChangeError::Forbidden(format!("{text} is a table; name one of its keys: {below}")))
            }
            Place::Nothing => {
                let near =
                    tree::near(Self::KEYS, text).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                Err(ChangeError::Forbidden(format!("unknown configuration key {text}{near}")))
            }
        }
    }

    /// Reads a path that leads to a key or to a table of keys.
    ///
    /// # Errors
    /// [`ChangeError::Path`] when it is no path, [`ChangeError::Forbidden`] when it leads to nothing.
    fn place_of(text: &str) -> Result<Vec<String>, ChangeError> {
        let path = edit::segments(text).map_err(ChangeError::Path)?;
        match tree::find(Self::KEYS, &path) {
            Place::Table => Ok(path),
            Place::Leaf(_) | Place::Nothing => Self::path_of(text),
        }
    }

    /// Checks that `path` may be written over the API: it is on the allowlist, which is made of the keys' own rules,
    /// and has at most [`SEGMENTS_MAX`] segments (spec 2, Configuration, rule 2).
    fn writable(path: &[String]) -> Result<(), ChangeError> {
        let forbidden = |why: String| Err(ChangeError::Forbidden(why));
        let name = edit::joined(path);
        if path.len() > SEGMENTS_MAX {
            return forbidden(format!("{name} has more than {SEGMENTS_MAX} segments; edit it in config.toml"));
        }
        let writes = match tree::find(Self::KEYS, path) {
            Place::Leaf(key) => key.writes,
            Place::Table | Place::Nothing => Writes::Infrastructure,
        };
        match writes.refusal() {
            None => Ok(()),
            Some(why) => forbidden(format!("{name} {why}; edit it in config.toml")),
        }
    }

    /// False for a key that is read and has no effect in this release.
    fn has_effect(path: &[String]) -> bool {
        !matches!(tree::find(Self::KEYS, path), Place::Leaf(key) if key.applies == Applies::Never)
    }

    /// What somebody who types `text` for the key at `path` means: a text for a key that has texts, else a value of
    /// TOML.
    fn value_of(path: &[String], text: &str) -> Value {
        let is_text = matches!(tree::find(Self::KEYS, path), Place::Leaf(key) if key.kind.is_text());
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
    /// [`ChangeError::Value`] when the key cannot have this value, [`ChangeError::Broken`] when something else is
    /// wrong.
    fn changed(text: &str, path: &[String], value: &Value, file: &Path) -> Result<(String, Loaded<Self>), ChangeError> {
        let name = path.join(".");
        let wrong = |message: String| ChangeError::Value { path: edit::joined(path), message };
        let broken = || match Self::parse(text, file) {
            Err(Error::Invalid(problems)) => Some(ChangeError::Broken(problems)),
            _ => None,
        };
        let after = match edit::set(text, path, value) {
            Ok(after) => after,
            Err(message) => return Err(broken().unwrap_or_else(|| wrong(message))),
        };
        if after.len() as u64 > FILE_BYTES_MAX {
            return Err(wrong(format!("would make the file larger than {FILE_BYTES_MAX} bytes")));
        }
        match Self::parse(&after, file) {
            Ok(loaded) => Ok((after, loaded)),
            Err(Error::Invalid(problems)) => {
                let ours = problems.list.iter().find(|problem| problem.key == name);
                match ours.map(|problem| problem.message.clone()) {
                    Some(message) => Err(wrong(message)),
                    // What was fine before is wrong because of this value, whatever key names it.
                    None => Err(broken().unwrap_or_else(|| wrong(in_words(&problems)))),
                }
            }
            Err(other) => Err(wrong(other.to_string())),
        }
    }
}

impl<D: Document> Editable for D {}

fn in_words(problems: &Problems) -> String {
    let first = problems.list.first().map(|problem| format!("with it {} {}", problem.key, problem.message));
    first.unwrap_or_else(|| "the configuration would become invalid".to_owned())
}
