//! What the tables of the file are made of.

use super::reader::Reader;

/// One key: the only place where its name stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As written in the file.
    pub(crate) name: &'static str,
    /// The default as TOML, or an example when leaving the key out means something of its own. Empty for a
    /// key that holds a table.
    pub(crate) value: &'static str,
    /// What it does: units, range, what leaving it out means.
    pub(crate) about: &'static str,
}

impl Key {
    /// A key with a default (or example) and its explanation.
    pub(crate) const fn new(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { name, value, about }
    }

    /// A key that holds a table of its own.
    pub(crate) const fn table(name: &'static str) -> Self {
        Self { name, value: "", about: "" }
    }
}

/// A table of the file.
pub(crate) trait Table: Default {
    /// Its keys.
    const KEYS: &'static [Key];

    /// Takes the values out of `reader`; what is wrong is noted there and replaced by the default.
    fn read(reader: &mut Reader<'_, '_>) -> Self;
}
