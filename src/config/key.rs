//! What the tables of the file are made of: each key once, with its type, range, default and rules.
//!
//! The reader's checks, the commented file, `config show`, the JSON Schema, the write allowlist of the API, what a
//! reload can put into effect and the table in `docs/configuration.md` all come from these lists.

use std::ops::RangeInclusive;

use super::reader::Reader;

/// One key: the only place where its name, type and rules stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As written in the file.
    pub(crate) name: &'static str,
    /// The default as TOML; an example where [`is_example`](Self::is_example). Empty for a key that holds tables.
    pub(crate) value: &'static str,
    /// What it does: units, range, what leaving it out means. For a table, what the table is for.
    pub(crate) about: &'static str,
    /// What its value must be.
    pub(crate) kind: Kind,
    /// The value is an example: leaving the key out means something of its own.
    pub(crate) is_example: bool,
    /// When a new value takes effect.
    pub(crate) applies: Applies,
    /// Who may write it.
    pub(crate) writes: Writes,
}

/// What the value of a key must be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text; what it must look like is checked by the table that reads it.
    Text,
    /// A text that is never shown.
    Secret,
    /// The name of an environment variable, or nothing.
    Variable,
    /// An http or https URL.
    Url,
    /// One of these words.
    Choice(fn() -> Vec<&'static str>),
    /// A whole number.
    Integer {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
    },
    /// True or false.
    Flag,
    /// A list of texts.
    List,
    /// Whole numbers under free names.
    NamedIntegers {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A table of its own.
    Table(&'static [Key]),
    /// Tables whose names are free; the example is a name as it is written in a header.
    Named(&'static [Key], &'static str),
}

/// When a new value of a key takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applies {
    /// With the reload that reads it.
    Live,
    /// With the next start.
    Restart,
    /// Not in this release.
    Never,
}

impl Applies {
    /// As it stands in the schema and in the documentation.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "reload",
            Self::Restart => "restart",
            Self::Never => "never",
        }
    }
}

/// Who may write a key (spec 2, Configuration, rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Whoever has the key of the API.
    Api,
    /// Who can edit the file: it is part of the daemon's surroundings.
    Infrastructure,
    /// Who can edit the file: it is a secret, or says where one is.
    Credential,
    /// Who can edit the file: it bounds what clients and agents may do.
    Protection,
}

impl Writes {
    /// Why the API does not write it; `None` when it does.
    pub(crate) const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Api => None,
            Self::Infrastructure => Some("is part of the daemon's surroundings"),
            Self::Credential => Some("is a credential, or says where one is"),
            Self::Protection => Some("bounds what clients and agents may do"),
        }
    }
}

/// A value that is one of a few words.
pub(crate) trait Word: Copy + 'static {
    /// The words as written in the file, each with its value.
    const WORDS: &'static [(&'static str, Self)];
}

fn words<T: Word>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

impl Key {
    const fn new(name: &'static str, kind: Kind, value: &'static str, about: &'static str) -> Self {
        let writes = if is_variable(name) { Writes::Credential } else { Writes::Infrastructure };
        Self { name, value, about, kind, is_example: false, applies: Applies::Live, writes }
    }

    /// A text.
    pub(crate) const fn text(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Text, value, about)
    }

    /// A text that is never shown.
    pub(crate) const fn secret(name: &'static str, about: &'static str) -> Self {
        Self { writes: Writes::Credential, ..Self::new(name, Kind::Secret, "\"\"", about) }
    }

    /// The name of an environment variable.
    pub(crate) const fn variable(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { writes: Writes::Credential, ..Self::new(name, Kind::Variable, value, about) }
    }

    /// An http or https URL.
    pub(crate) const fn url(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Url, value, about)
    }

    /// One of the words of `T`.
    pub(crate) const fn choice<T: Word>(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::one_of(name, words::<T>, value, about)
    }

    /// One of the words that `words` gives.
    pub(crate) const fn one_of(
        name: &'static str,
        words: fn() -> Vec<&'static str>,
        value: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice(words), value, about)
    }

    /// A whole number within `range`.
    pub(crate) const fn integer(
        name: &'static str,
        range: RangeInclusive<u64>,
        value: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Kind::Integer { min: *range.start(), max: *range.end() }, value, about)
    }

    /// A number within `range`.
    pub(crate) const fn number(
        name: &'static str,
        range: RangeInclusive<f64>,
        value: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Kind::Number { min: *range.start(), max: *range.end() }, value, about)
    }

    /// True or false.
    pub(crate) const fn flag(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Flag, value, about)
    }

    /// A list of texts.
    pub(crate) const fn list(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::List, value, about)
    }

    /// Whole numbers within `range` under free names.
    pub(crate) const fn named_integers(
        name: &'static str,
        range: RangeInclusive<u64>,
        value: &'static str,
        about: &'static str,
    ) -> Self {
        Self::new(name, Kind::NamedIntegers { min: *range.start(), max: *range.end() }, value, about)
    }

    /// A table.
    pub(crate) const fn table<T: Table>(name: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Table(T::KEYS), "", about)
    }

    /// Tables with free names, such as `example`.
    pub(crate) const fn named<T: Table>(name: &'static str, example: &'static str, about: &'static str) -> Self {
        Self::new(name, Kind::Named(T::KEYS, example), "", about)
    }

    /// The value is an example: leaving the key out means something of its own.
    pub(crate) const fn example(self) -> Self {
        Self { is_example: true, ..self }
    }

    /// May be written over the API.
    pub(crate) const fn writable(self) -> Self {
        Self { writes: Writes::Api, ..self }
    }

    /// Bounds what clients and agents may do, and so is written in the file only.
    pub(crate) const fn protected(self) -> Self {
        Self { writes: Writes::Protection, ..self }
    }

    /// Takes effect with the next start only.
    pub(crate) const fn at_restart(self) -> Self {
        Self { applies: Applies::Restart, ..self }
    }

    /// Has no effect in this release.
    pub(crate) const fn without_effect(self) -> Self {
        Self { applies: Applies::Never, ..self }
    }

    /// True for a key that holds a table or tables of keys.
    pub(crate) const fn is_table(&self) -> bool {
        matches!(self.kind, Kind::Table(_) | Kind::Named(..))
    }
}

/// Names an environment variable: ends with `_env`.
pub(crate) const fn is_variable(name: &str) -> bool {
    matches!(name.as_bytes(), [.., b'_', b'e', b'n', b'v'])
}

/// A table of the file.
pub(crate) trait Table: Default {
    /// Its keys.
    const KEYS: &'static [Key];

    /// Takes the values out of `reader`; what is wrong is noted there and replaced by the default.
    fn read(reader: &mut Reader<'_, '_>) -> Self;
}
