//! Every key in a line: what its value must be, when a new one takes effect, and who may write it.

use super::key::{Applies, Key, Kind, Writes};
use super::tree;

/// One key as the reference shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct KeyLine {
    /// Its path; `<name>` stands for a free name.
    pub key: String,
    /// What its value must be, such as `integer, 1 to 1000`.
    pub value: String,
    /// `reload`, `restart` or `never`.
    pub takes_effect: &'static str,
    /// Written by `POST /api/config/set`, or in the file only.
    pub writable: bool,
}

/// Every key of the file, in its order; what `agentsvc config keys` prints and `docs/configuration.md` holds.
pub(super) fn key_lines(root: &'static [Key]) -> Vec<KeyLine> {
    let lines = tree::leaves(root).into_iter().map(|(path, key)| KeyLine {
        value: value_of(key),
        takes_effect: key.applies.as_str(),
        writable: key.writes == Writes::Api && path.split('.').count() <= super::edit::SEGMENTS_MAX,
        key: path,
    });
    lines.collect()
}

fn value_of(key: &Key) -> String {
    match key.kind {
        Kind::Text => "text".to_owned(),
        Kind::Secret => "text, secret".to_owned(),
        Kind::Variable => "environment variable".to_owned(),
        Kind::Url => "URL".to_owned(),
        Kind::Choice(words) => words().join(", "),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Number { min, max } => format!("number, {min} to {max}"),
        Kind::Flag => "true, false".to_owned(),
        Kind::List => "list of strings".to_owned(),
        Kind::NamedIntegers { min, max } => format!("table of integers, {min} to {max}"),
        Kind::Objects => "list of tables".to_owned(),
        Kind::Table(_) | Kind::Object | Kind::Named(..) => "table".to_owned(),
    }
}

/// The table of `docs/configuration.md`.
pub(super) fn key_table(root: &'static [Key]) -> String {
    let mut table = "| key | value | takes effect | API |\n| --- | --- | --- | --- |\n".to_owned();
    for KeyLine { key, value, takes_effect, writable } in key_lines(root) {
        let effect = match takes_effect {
            word if word == Applies::Live.as_str() => "at once",
            word if word == Applies::Restart.as_str() => "next start",
            _ => "not yet",
        };
        table.push_str(&format!("| `{key}` | {value} | {effect} | {} |\n", if writable { "yes" } else { "" }));
    }
    table
}
