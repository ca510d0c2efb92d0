//! What a key of the file is: its name, its value, what it does, when it takes effect and who may write it.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

pub use agentsvc_components::kernel::words::{Word, Words};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::edit;
use super::table::Table;

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What it does: units, range, what leaving it out means. For a table, what the table is for.
    pub about: &'static str,
    /// What its value must be.
    pub kind: Kind,
    /// What stands in the first file in place of a default.
    instead: Option<Instead>,
    /// The default as it is shown; null is none.
    default: fn() -> Value,
    /// When a new value takes effect.
    pub applies: Applies,
    /// Who may write it.
    pub writes: Writes,
}

/// What stands in the first file where a key has no default of its own, as TOML.
#[derive(Clone, Copy, Debug)]
enum Instead {
    /// An example: leaving the key out means something of its own.
    Example(&'static str),
    /// What leaving the key out comes to.
    Meaning(&'static str),
}

/// What the value of a key must be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
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
    /// A table that is read as one value: what may stand in it depends on what does.
    Object,
    /// A list of such tables.
    Objects,
    /// Tables whose names are free; the example is a name as it is written in a header.
    Named(&'static [Key], &'static str),
}

impl Kind {
    /// True when the value is written as a text.
    pub const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Secret | Self::Variable | Self::Url | Self::Choice(_))
    }
}

agentsvc_components::enum_words! {
    /// When a new value of a key takes effect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Applies [as_str] {
        /// With the reload that reads it.
        Live = "reload",
        /// With the next start.
        Restart = "restart",
        /// Not in this release.
        Never = "never",
    }
}

/// Who may write a key (spec 2, Configuration, rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// Whoever has the key of the API.
    Api,
    /// Who can edit the file: it belongs to the daemon's environment.
    Infrastructure,
    /// Who can edit the file: it is a secret, or says where one is.
    Credential,
    /// Who can edit the file: it limits what clients and agents can do.
    Protection,
}

impl Writes {
    /// Why the API does not write it; `None` when it does.
    pub const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Api => None,
            Self::Infrastructure => Some("belongs to the daemon's environment"),
            Self::Credential => Some("is a credential or refers to one"),
            Self::Protection => Some("limits what clients and agents can do"),
        }
    }
}

/// Shows a value as its word.
pub fn word<T: Word, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(value.word())
}

fn words<T: Word>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}

/// A key of a table before it is known what its value must be; `T` is what the table holds under it.
#[derive(Debug)]
pub struct Field<T> {
    key: Key,
    of: PhantomData<fn() -> T>,
}

impl<T> Field<T> {
    /// A key without a rule yet.
    pub const fn new(name: &'static str, about: &'static str, default: fn() -> Value) -> Self {
        let (kind, applies, writes) = (Kind::Text, Applies::Live, Writes::Infrastructure);
        Self {
            key: Key { name, about: about.trim_ascii(), kind, instead: None, default, applies, writes },
            of: PhantomData,
        }
    }

    const fn of(&self, kind: Kind) -> Key {
        Key { kind, ..self.key }
    }

    /// A text that `parse` accepts; its error says what the value must be, without showing the value.
    pub const fn text<V>(&self, _parse: fn(&str) -> Result<V, String>) -> Key {
        self.of(Kind::Text)
    }

    /// A text that is never shown.
    pub const fn secret<V>(&self, _parse: fn(&str) -> Result<V, String>) -> Key {
        Key { writes: Writes::Credential, ..self.of(Kind::Secret) }
    }

    /// The name of an environment variable.
    pub const fn variable(&self) -> Key {
        Key { writes: Writes::Credential, ..self.of(Kind::Variable) }
    }

    /// An http or https URL that `parse` accepts.
    pub const fn url<V>(&self, _parse: fn(&str) -> Result<V, String>) -> Key {
        self.of(Kind::Url)
    }

    /// One of the words of `V`.
    pub const fn choice<V: Word>(&self, _words: Words<V>) -> Key {
        self.of(Kind::Choice(words::<V>))
    }

    /// One of the words that `words` gives.
    pub const fn one_of(&self, words: fn() -> Vec<&'static str>) -> Key {
        self.of(Kind::Choice(words))
    }

    /// A whole number within `range`.
    pub const fn integer(&self, range: RangeInclusive<u64>) -> Key {
        self.of(Kind::Integer { min: *range.start(), max: *range.end() })
    }

    /// A number within `range`.
    pub const fn number(&self, range: RangeInclusive<f64>) -> Key {
        self.of(Kind::Number { min: *range.start(), max: *range.end() })
    }

    /// True or false.
    pub const fn flag(&self) -> Key {
        self.of(Kind::Flag)
    }

    /// A list of texts that `parse` accepts.
    pub const fn list<V>(&self, _parse: fn(&str) -> Result<V, String>) -> Key {
        self.of(Kind::List)
    }

    /// A table that `parse` accepts as one value; its error says what must be otherwise, without showing values.
    pub const fn object<V>(&self, _parse: fn(Map<String, Value>) -> Result<V, String>) -> Key {
        self.of(Kind::Object)
    }

    /// A list of tables, of each of which `parse` makes one value.
    pub const fn objects<V>(&self, _parse: fn(Map<String, Value>) -> Result<V, String>) -> Key {
        self.of(Kind::Objects)
    }

    /// Whole numbers within `range` under free names.
    pub const fn named_integers(&self, range: RangeInclusive<u64>) -> Key {
        self.of(Kind::NamedIntegers { min: *range.start(), max: *range.end() })
    }
}

impl<T: Table> Field<T> {
    /// A table.
    pub const fn table(&self) -> Key {
        self.of(Kind::Table(T::KEYS))
    }
}

impl<T: Table> Field<BTreeMap<Box<str>, T>> {
    /// Tables with free names, such as `example`.
    pub const fn named(&self, example: &'static str) -> Key {
        self.of(Kind::Named(T::KEYS, example))
    }

    /// The same, or a list of such tables, each with its `name`.
    pub const fn named_or_listed(&self, example: &'static str) -> Key {
        self.named(example)
    }
}

impl Key {
    /// Leaving the key out means something of its own; `value` is an example, without the quotes of a text.
    pub const fn example(self, value: &'static str) -> Self {
        Self { instead: Some(Instead::Example(value)), ..self }
    }

    /// Leaving the key out comes to `value`, without the quotes of a text.
    pub const fn meaning(self, value: &'static str) -> Self {
        Self { instead: Some(Instead::Meaning(value)), ..self }
    }

    /// May be written over the API.
    pub const fn writable(self) -> Self {
        Self { writes: Writes::Api, ..self }
    }

    /// Bounds what clients and agents may do, and so is written in the file only.
    pub const fn protected(self) -> Self {
        Self { writes: Writes::Protection, ..self }
    }

    /// Takes effect with the next start only.
    pub const fn at_restart(self) -> Self {
        Self { applies: Applies::Restart, ..self }
    }

    /// Has no effect in this release.
    pub const fn without_effect(self) -> Self {
        Self { applies: Applies::Never, ..self }
    }

    /// True for a key that holds a table or tables of keys.
    pub const fn is_table(&self) -> bool {
        matches!(self.kind, Kind::Table(_) | Kind::Named(..))
    }

    /// True when what the first file holds is an example and not the default.
    pub const fn is_example(&self) -> bool {
        matches!(self.instead, Some(Instead::Example(_)))
    }

    /// The default, or what stands in its place, as the first file writes it.
    pub fn value(&self) -> String {
        let text = |text: &str| toml_edit::Value::from(text).to_string();
        match (self.instead, self.kind) {
            (Some(Instead::Example(value) | Instead::Meaning(value)), kind) if kind.is_text() => text(value),
            (Some(Instead::Example(value) | Instead::Meaning(value)), _) => value.to_owned(),
            // What is shown of it is no value of it.
            (None, Kind::Secret) => text(""),
            (None, _) => edit::toml_of(&(self.default)()).map(|value| value.to_string()).unwrap_or_default(),
        }
    }

    /// The same as JSON; `None` for a key that has no value of its own.
    pub fn json(&self) -> Option<Value> {
        let line: toml::Table = format!("value = {}", self.value()).parse().ok()?;
        serde_json::to_value(line.get("value")?).ok()
    }
}

/// What a table has under `name` when nothing is written.
pub fn default_of<T: Default + Serialize>(name: &str) -> Value {
    let shown = serde_json::to_value(T::default()).unwrap_or_default();
    shown.get(name).cloned().unwrap_or_default()
}
