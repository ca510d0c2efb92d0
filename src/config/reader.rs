//! Takes typed values out of one table and notes what is wrong instead of stopping at it.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{Key, Kind, Table, Word};
use super::problem::{Found, nearest};
use super::{reserved, tree};

/// Bytes of one pattern of tools; a longer one is a mistake.
const PATTERN_BYTES_MAX: usize = 128;

/// What was found while reading.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What makes the configuration unusable.
    pub(crate) problems: Vec<Found>,
    /// What is only worth saying.
    pub(crate) warnings: Vec<Found>,
}

/// One table while it is read. Keys that no one knows are noted when it is opened.
pub(crate) struct Reader<'a, 't> {
    table: &'a DeTable<'t>,
    /// What may stand in it.
    keys: &'static [Key],
    /// The path of the table; empty at top level.
    path: String,
    findings: &'a mut Findings,
}

impl<'a, 't> Reader<'a, 't> {
    /// Opens `table`, which stands at `path` and may hold `keys`.
    pub(crate) fn new(table: &'a DeTable<'t>, path: String, keys: &'static [Key], findings: &'a mut Findings) -> Self {
        let mut reader = Self { table, keys, path, findings };
        reader.note_unknown();
        reader
    }

    /// What the value of `key` must be.
    fn kind(&self, key: &str) -> Kind {
        let found = self.keys.iter().find(|known| known.name == key);
        debug_assert!(found.is_some(), "[{}] has no key {key}", self.path);
        found.map_or(Kind::Text, |known| known.kind)
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.table.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a string", value);
        }
        text
    }

    /// A text that `parse` accepts; its error says what the value must be, without showing the value.
    pub(crate) fn parsed<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let parsed = parse(self.text(key)?);
        parsed.map_err(|message| self.problem(key, message)).ok()
    }

    /// One of the words of the key.
    pub(crate) fn word(&mut self, key: &'static str) -> Option<&'a str> {
        let Kind::Choice(words) = self.kind(key) else { return self.text(key) };
        let (text, words) = (self.text(key)?, words());
        if words.contains(&text) {
            return Some(text);
        }
        let hint = nearest(text, words.iter().copied()).map(|word| format!("; did you mean `{word}`?"));
        let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        self.problem(key, format!("must be one of {}{}", words.join(", "), hint.unwrap_or_default()));
        None
    }

    /// What one of the words of `T` means.
    pub(crate) fn choice<T: Word>(&mut self, key: &'static str) -> Option<T> {
        let word = self.word(key)?;
        T::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// A whole number within the key's range, which must fit into `T`.
    pub(crate) fn integer<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        let value = self.table.get(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(key, "an integer", value);
            return None;
        };
        let (min, max) = match self.kind(key) {
            Kind::Integer { min, max } => (min, max),
            _ => (0, u64::MAX),
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|n| (min..=max).contains(n));
        if number.is_none() {
            self.problem(key, format!("must be {min} to {max}"));
        }
        number.and_then(|number| number.try_into().ok())
    }

    /// A number within the key's range.
    pub(crate) fn number(&mut self, key: &'static str) -> Option<f64> {
        let value = self.table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(|n| n as f64),
            _ => {
                self.wrong_type(key, "a number", value);
                return None;
            }
        };
        let (min, max) = match self.kind(key) {
            Kind::Number { min, max } => (min, max),
            _ => (f64::MIN, f64::MAX),
        };
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.problem(key, format!("must be {min} to {max}"));
        }
        number
    }

    /// True or false.
    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.table.get(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        flag
    }

    /// A list of texts that `parse` accepts.
    pub(crate) fn list<T>(&mut self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Option<Vec<T>> {
        let value = self.table.get(key)?;
        let Some(items) = value.get_ref().as_array() else {
            self.wrong_type(key, "a list of strings", value);
            return None;
        };
        let mut list = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_str().map(&parse) {
                Some(Ok(parsed)) => list.push(parsed),
                Some(Err(message)) => self.note(item.span().start, key, message),
                None => self.wrong_type(key, "a list of strings", item),
            }
        }
        Some(list)
    }

    /// The table under `key`; the default when it is absent.
    pub(crate) fn table<T: Table>(&mut self, key: &'static str) -> T {
        let Some(value) = self.table.get(key) else { return T::default() };
        self.open(key, value)
    }

    /// Tables whose names are free, such as `[providers.<name>]`.
    pub(crate) fn named<T: Table>(&mut self, key: &'static str) -> BTreeMap<Box<str>, T> {
        let Some(value) = self.table.get(key) else { return BTreeMap::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return BTreeMap::new();
        };
        let outer = self.join(key);
        let mut inner = Reader { table, keys: &[], path: outer, findings: self.findings };
        table.iter().map(|(name, value)| (name.get_ref().as_ref().into(), inner.open(name.get_ref(), value))).collect()
    }

    /// Whole numbers under free names, each within the key's range.
    pub(crate) fn named_integers(&mut self, key: &'static str) -> BTreeMap<Box<str>, u64> {
        let Some(value) = self.table.get(key) else { return BTreeMap::new() };
        let (min, max) = match self.kind(key) {
            Kind::NamedIntegers { min, max } => (min, max),
            _ => (0, u64::MAX),
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return BTreeMap::new();
        };
        let mut numbers = BTreeMap::new();
        for (name, value) in table {
            let integer = value.get_ref().as_integer();
            let number = integer.and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok());
            match number.filter(|number| (min..=max).contains(number)) {
                Some(number) => drop(numbers.insert(name.get_ref().as_ref().into(), number)),
                None => {
                    let message = format!("must be an integer, {min} to {max}");
                    self.note(value.span().start, &format!("{key}.{}", name.get_ref()), message);
                }
            }
        }
        numbers
    }

    /// Notes that the value of `key` is wrong.
    pub(crate) fn problem(&mut self, key: &str, message: String) {
        let at = self.table.get(key).map_or(0, |value| value.span().start);
        self.note(at, key, message);
    }

    /// Notes that the value at `path`, below this table, is wrong; its place is the deepest part that is written.
    pub(crate) fn problem_at(&mut self, path: &[&str], message: String) {
        let (mut table, mut at) = (Some(self.table), 0);
        for key in path {
            let Some(value) = table.and_then(|table| table.get(*key)) else { break };
            at = value.span().start;
            table = value.get_ref().as_table();
        }
        self.note(at, &path.join("."), message);
    }

    /// Something below `path`, below this table, was found wrong already: what follows from it would mislead.
    pub(crate) fn is_wrong_below(&self, path: &[&str]) -> bool {
        let start = format!("{}.", self.join(&path.join(".")));
        self.findings.problems.iter().any(|problem| problem.key.starts_with(&start))
    }

    /// Notes that the value of `key` has no effect.
    pub(crate) fn warning(&mut self, key: &str, message: String) {
        let at = self.table.get(key).map_or(0, |value| value.span().start);
        let key = self.join(key);
        self.findings.warnings.push(Found { at, key, message });
    }

    fn open<T: Table>(&mut self, key: &str, value: &'a Spanned<DeValue<'t>>) -> T {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return T::default();
        };
        let path = self.join(key);
        T::read(&mut Reader::new(table, path, T::KEYS, self.findings))
    }

    fn note_unknown(&mut self) {
        for (name, value) in self.table {
            let name_text = name.get_ref().as_ref();
            if self.keys.iter().any(|key| key.name == name_text) {
                continue;
            }
            if self.path.is_empty() && reserved::TABLES.contains(&name_text) {
                self.note_reserved(name, value);
            } else {
                self.note(name.span().start, name_text, self.unknown(name_text));
            }
        }
    }

    fn note_reserved(&mut self, name: &Spanned<toml::de::DeString<'t>>, value: &Spanned<DeValue<'t>>) {
        let key = name.get_ref().as_ref();
        let tables =
            |value: &DeValue<'_>| value.as_array().is_some_and(|items| items.iter().all(|i| i.get_ref().is_table()));
        if value.get_ref().is_table() || tables(value.get_ref()) {
            let message = format!("table [{key}] has no effect in this release");
            self.findings.warnings.push(Found { at: name.span().start, key: key.to_owned(), message });
        } else {
            self.wrong_type(key, "a table", value);
        }
    }

    /// The message for a key that no one knows: the nearest of this table, else the same key elsewhere.
    fn unknown(&self, name: &str) -> String {
        let reserved = if self.path.is_empty() { reserved::TABLES } else { &[] };
        let here = self.keys.iter().map(|key| key.name).chain(reserved.iter().copied());
        if let Some(near) = nearest(name, here) {
            return format!("unknown key; did you mean `{near}`?");
        }
        let sections = tree::sections();
        let all =
            || sections.iter().flat_map(|section| section.keys.iter().map(|key| (section.name.as_str(), key.name)));
        let elsewhere = nearest(name, all().map(|(_, key)| key));
        let elsewhere = elsewhere.and_then(|near| all().find(|(_, key)| *key == near));
        match elsewhere {
            Some(("", key)) => format!("unknown key; did you mean `{key}` at top level?"),
            Some((table, key)) => format!("unknown key; did you mean `{key}` in `[{table}]`?"),
            None => {
                let names: Vec<_> = self.keys.iter().map(|key| format!("`{}`", key.name)).collect();
                format!("unknown key; the keys here are {}", names.join(", "))
            }
        }
    }

    fn wrong_type(&mut self, key: &str, wanted: &str, value: &Spanned<DeValue<'t>>) {
        let article = |kind: &str| if kind.starts_with(['a', 'i']) { "an" } else { "a" };
        let found = value.get_ref().type_str();
        self.note(value.span().start, key, format!("must be {wanted}, not {} {found}", article(found)));
    }

    fn note(&mut self, at: usize, key: &str, message: String) {
        let key = self.join(key);
        self.findings.problems.push(Found { at, key, message });
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A name or glob of tools.
pub(crate) fn tool_pattern(text: &str) -> Result<Box<str>, String> {
    if text.trim().is_empty() {
        return Err("must name a tool or be a glob such as \"shell_*\"".to_owned());
    }
    if text.len() > PATTERN_BYTES_MAX {
        return Err(format!("must not be longer than {PATTERN_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}
