//! A configuration that comes from elsewhere, such as a backup, where clients ask for it: what they may write is taken from it,
//! and the rest stays as this home has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value as Json;
use toml::Value as Toml;
use toml_edit::DocumentMut;

use super::change::Editable;
use super::edit;
use super::key::Kind;

/// What comes of two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The text.
    pub text: String,
    /// The keys that stay as they are here although the other text has other values for them, in order.
    pub kept: Vec<String>,
}

type Leaves = BTreeMap<Vec<String>, Toml>;

/// The text `other` when it has no other value than `present` for any key that clients may not write; else `present` with
/// those values of `other` that they may. A table under a free name, such as `[providers.<name>]`, stays whole where one of
/// its keys does. `file` only names the file in messages.
///
/// # Errors
/// A sentence: one of the texts is not valid, or what comes of both is not.
pub fn merged<D: Editable>(other: &str, present: &str, file: &Path) -> Result<Merged, String> {
    let read = |text: &str| D::parse(text, file).map(drop).map_err(|error| error.to_string());
    read(other)?;
    let table = |text: &str| text.parse::<toml::Table>().map_err(|error| error.to_string());
    let (theirs, ours) = (leaves(&table(other)?), leaves(&table(present)?));
    let differing: BTreeSet<&Vec<String>> =
        theirs.keys().chain(ours.keys()).filter(|path| theirs.get(*path) != ours.get(*path)).collect();
    let held: Vec<&Vec<String>> = differing.iter().copied().filter(|path| D::writable(path).is_err()).collect();
    if held.is_empty() {
        return Ok(Merged { text: other.to_owned(), kept: Vec::new() });
    }
    let held_tables: BTreeSet<&[String]> = held.iter().filter_map(|path| named::<D>(path)).collect();
    let is_held = |path: &[String]| {
        D::writable(path).is_err() || named::<D>(path).is_some_and(|table| held_tables.contains(table))
    };
    let mut text = if present.is_empty() { D::template() } else { present.to_owned() };
    for path in differing.iter().filter(|path| !is_held(path)) {
        let value = theirs.get(*path).map(serde_json::to_value).transpose().map_err(|error| error.to_string())?;
        let unwritten = |why: String| format!("{}: {why}", edit::joined(path));
        text = edit::set(&text, path, &value.unwrap_or(Json::Null)).map_err(unwritten)?;
    }
    let text = without_emptied::<D>(&text, &theirs, &ours)?;
    read(&text)?;
    let kept = differing.iter().filter(|path| is_held(path)).map(|path| edit::joined(path)).collect();
    Ok(Merged { text, kept })
}

/// Every value under its path. A list is one value.
fn leaves(table: &toml::Table) -> Leaves {
    fn walk(value: &Toml, path: &mut Vec<String>, found: &mut Leaves) {
        let Toml::Table(inner) = value else { return drop(found.insert(path.clone(), value.clone())) };
        for (name, value) in inner {
            path.push(name.clone());
            walk(value, path, found);
            path.pop();
        }
    }
    let mut found = Leaves::new();
    for (name, value) in table {
        walk(value, &mut vec![name.clone()], &mut found);
    }
    found
}

/// The table under a free name that the path leads into.
fn named<D: Editable>(path: &[String]) -> Option<&[String]> {
    let key = D::KEYS.iter().find(|key| Some(key.name) == path.first().map(String::as_str))?;
    matches!(key.kind, Kind::Named(..)).then(|| path.get(..2)).flatten()
}

/// The text without tables under free names that only `ours` had: one without keys would still be one, such as a price of 0.
fn without_emptied<D: Editable>(text: &str, theirs: &Leaves, ours: &Leaves) -> Result<String, String> {
    let names = |leaves: &Leaves| -> BTreeSet<Vec<String>> {
        leaves.keys().filter_map(|path| named::<D>(path)).map(<[String]>::to_vec).collect()
    };
    let left = names(&leaves(&text.parse().map_err(|_| "config.toml is not valid TOML".to_owned())?));
    let (ours, theirs) = (names(ours), names(theirs));
    let gone: Vec<&Vec<String>> = ours.iter().filter(|name| !theirs.contains(*name) && !left.contains(*name)).collect();
    if gone.is_empty() {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().map_err(|_| "config.toml is not valid TOML".to_owned())?;
    for name in gone {
        let tables = name.first().and_then(|root| document.get_mut(root)).and_then(|item| item.as_table_like_mut());
        if let (Some(tables), Some(leaf)) = (tables, name.last()) {
            tables.remove(leaf);
        }
    }
    Ok(document.to_string())
}
