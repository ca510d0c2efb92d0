//! The keys as a tree: where one is found by its path, and the sections of the file.

use super::key::{Key, Kind};
use super::top;

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

/// What stands at `path`.
pub(crate) fn find<T: AsRef<str>>(path: &[T]) -> Place {
    let mut keys = top::KEYS;
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
pub(crate) fn sections() -> Vec<Section> {
    let mut found = Vec::new();
    collect(
        top::KEYS,
        &Section { name: String::new(), pattern: String::new(), about: "", keys: Vec::new() },
        &mut found,
    );
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
pub(crate) fn leaves() -> Vec<(String, &'static Key)> {
    let mut leaves = Vec::new();
    for section in sections() {
        let path = |key: &Key| match section.pattern.as_str() {
            "" => key.name.to_owned(),
            pattern => format!("{pattern}.{}", key.name),
        };
        leaves.extend(section.keys.iter().map(|key| (path(key), *key)));
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::{Place, find, leaves, sections};

    #[test]
    fn paths_lead_to_keys_tables_or_nothing() {
        let at = |path: &str| match find(&path.split('.').collect::<Vec<_>>()) {
            Place::Leaf(key) => key.name,
            Place::Table => "a table",
            Place::Nothing => "nothing",
        };
        for (path, expected) in [
            ("log_level", "log_level"),
            ("log_level.x", "nothing"),
            ("default_model", "a table"),
            ("default_model.model", "model"),
            ("default_model.modle", "nothing"),
            ("providers", "a table"),
            ("providers.mine", "a table"),
            ("providers.mine.base_url", "base_url"),
            ("queue.concurrency", "a table"),
            ("queue.concurrency.providers", "a table"),
            ("queue.concurrency.providers.openai", "providers"),
            ("queue.concurrency.providers.openai.x", "nothing"),
            ("memory", "nothing"),
            ("", "nothing"),
        ] {
            assert_eq!(at(path), expected, "{path}");
        }
        assert!(leaves().iter().any(|(path, _)| path == "providers.<name>.base_url"));
    }

    #[test]
    fn sections_stand_in_the_order_of_the_file() {
        let names: Vec<_> = sections().into_iter().map(|section| section.name).collect();
        assert_eq!(names[..3], ["", "default_model", "providers.openai"]);
        assert!(names.iter().any(|name| name == "queue.concurrency") && !names.iter().any(|name| name == "web"));
    }
}
