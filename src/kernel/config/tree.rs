//! The keys as a tree: where one is found by its path, and the sections of the file.

use super::key::{Key, Kind};
use super::problem::nearest;

/// What stands at a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// A key with a value.
    Leaf(&'static Key),
    /// A table, or a key that holds several values under free names.
    Table,
    /// No key leads there.
    Nothing,
}

/// What stands at `path` of a file with the keys `root`.
pub(crate) fn find<T: AsRef<str>>(root: &'static [Key], path: &[T]) -> Place {
    let mut keys = root;
    let mut segments = path.iter().map(AsRef::as_ref);
    while let Some(segment) = segments.next() {
        let Some(key) = keys.iter().find(|key| key.name == segment) else { return Place::Nothing };
        match key.kind {
            Kind::Table(inner) => keys = inner,
            // The name is free.
            Kind::Named(inner, _) => {
                let Some(_name) = segments.next() else { return Place::Table };
                keys = inner;
            }
            Kind::NamedIntegers { .. } => {
                return match (segments.next(), segments.next()) {
                    (None, _) => Place::Table,
                    (Some(_name), None) => Place::Leaf(key),
                    (Some(_), Some(_)) => Place::Nothing,
                };
            }
            _ if segments.next().is_some() => return Place::Nothing,
            _ => return Place::Leaf(key),
        }
    }
    Place::Table
}

/// The paths of the keys with values in the table at `path`, and in those below it.
pub(crate) fn below(root: &'static [Key], path: &str) -> Vec<String> {
    let start = format!("{path}.");
    paths(root).into_iter().filter(|found| found.starts_with(&start)).collect()
}

/// The path that was most likely meant by one that leads nowhere.
pub(crate) fn near(root: &'static [Key], path: &str) -> Option<String> {
    let all = paths(root);
    let begun = all.iter().find(|found| found.starts_with(path)).cloned();
    begun.or_else(|| nearest(path, all.iter().map(String::as_str)).map(str::to_owned))
}

/// The paths of all keys with values.
fn paths(root: &'static [Key]) -> Vec<String> {
    let path = |section: &Section, key: &Key| match section.pattern.as_str() {
        "" => key.name.to_owned(),
        table => format!("{table}.{}", key.name),
    };
    sections(root).iter().flat_map(|section| section.keys.iter().map(|key| path(section, key))).collect()
}

/// One table as it stands in the file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its path; empty at top level. A free name is the example's.
    pub(crate) name: String,
    /// The same, with `<name>` for a free name.
    pub(crate) pattern: String,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Its keys that have values.
    pub(crate) keys: Vec<&'static Key>,
}

/// The tables that have values, in the order of the file.
pub(crate) fn sections(root: &'static [Key]) -> Vec<Section> {
    let mut found = Vec::new();
    collect(root, &Section { name: String::new(), pattern: String::new(), about: "", keys: Vec::new() }, &mut found);
    found
}

fn collect(keys: &'static [Key], section: &Section, found: &mut Vec<Section>) {
    let own: Vec<_> = keys.iter().filter(|key| !key.is_table()).collect();
    if !own.is_empty() {
        found.push(Section { keys: own, ..section.clone() });
    }
    for key in keys {
        let below = |path: &str| if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        let (name, pattern) = (below(&section.name), below(&section.pattern));
        match key.kind {
            Kind::Table(inner) => {
                collect(inner, &Section { name, pattern, about: key.about, keys: Vec::new() }, found);
            }
            Kind::Named(inner, example) => {
                let (name, pattern) = (format!("{name}.{example}"), format!("{pattern}.<name>"));
                collect(inner, &Section { name, pattern, about: key.about, keys: Vec::new() }, found);
            }
            _ => {}
        }
    }
}

/// Every key that has a value, with its path; `<name>` stands for a free name.
pub(crate) fn leaves(root: &'static [Key]) -> Vec<(String, &'static Key)> {
    let mut leaves = Vec::new();
    for section in sections(root) {
        let path = |key: &Key| match section.pattern.as_str() {
            "" => key.name.to_owned(),
            pattern => format!("{pattern}.{}", key.name),
        };
        leaves.extend(section.keys.iter().map(|key| (path(key), *key)));
    }
    leaves
}
