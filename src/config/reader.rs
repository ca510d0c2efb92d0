//! Takes typed values out of one table and notes what is wrong instead of stopping at it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{Key, Table};
use super::problem::{Found, nearest};
use super::reserved;

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
    /// The path of the table; empty at top level.
    path: String,
    findings: &'a mut Findings,
}

impl<'a, 't> Reader<'a, 't> {
    /// Opens `table`, which stands at `path` and may hold `keys`.
    pub(crate) fn new(table: &'a DeTable<'t>, path: String, keys: &'static [Key], findings: &'a mut Findings) -> Self {
        let mut reader = Self { table, path, findings };
        reader.note_unknown(keys);
        reader
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

    /// One word of `choices`.
    pub(crate) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        self.parsed(key, |text| {
            let chosen = choices.iter().find(|(word, _)| *word == text);
            chosen.map(|(_, value)| *value).ok_or_else(|| {
                let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
                let hint = nearest(text, choices.iter().map(|(word, _)| *word));
                let hint = hint.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
                format!("must be one of {}{hint}", words.join(", "))
            })
        })
    }

    /// A whole number within `range`.
    pub(crate) fn integer(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.table.get(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_type(key, "an integer", value);
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|n| range.contains(n));
        if number.is_none() {
            self.problem(key, format!("must be {} to {}", range.start(), range.end()));
        }
        number
    }

    /// A number within `range`.
    pub(crate) fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.table.get(key)?;
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(|n| n as f64),
            _ => {
                self.wrong_type(key, "a number", value);
                return None;
            }
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.problem(key, format!("must be {} to {}", range.start(), range.end()));
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
        let mut inner = Reader { table, path: outer, findings: self.findings };
        table.iter().map(|(name, value)| (name.get_ref().as_ref().into(), inner.open(name.get_ref(), value))).collect()
    }

    /// Whole numbers under free names, each within `range`.
    pub(crate) fn named_integers(&mut self, key: &'static str, range: &RangeInclusive<u64>) -> BTreeMap<Box<str>, u64> {
        let Some(value) = self.table.get(key) else { return BTreeMap::new() };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type(key, "a table", value);
            return BTreeMap::new();
        };
        let mut numbers = BTreeMap::new();
        for (name, value) in table {
            let integer = value.get_ref().as_integer();
            let number = integer.and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok());
            match number.filter(|number| range.contains(number)) {
                Some(number) => drop(numbers.insert(name.get_ref().as_ref().into(), number)),
                None => {
                    let message = format!("must be an integer, {} to {}", range.start(), range.end());
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

    fn note_unknown(&mut self, keys: &'static [Key]) {
        for (name, value) in self.table {
            let name_text = name.get_ref().as_ref();
            if keys.iter().any(|key| key.name == name_text) {
                continue;
            }
            if self.path.is_empty() && reserved::TABLES.contains(&name_text) {
                self.note_reserved(name, value);
            } else {
                self.note(name.span().start, name_text, self.unknown(name_text, keys));
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
    fn unknown(&self, name: &str, keys: &'static [Key]) -> String {
        let reserved = if self.path.is_empty() { reserved::TABLES } else { &[] };
        let here = keys.iter().map(|key| key.name).chain(reserved.iter().copied());
        if let Some(near) = nearest(name, here) {
            return format!("unknown key; did you mean `{near}`?");
        }
        let elsewhere = nearest(name, super::all_keys().map(|(_, key)| key));
        let elsewhere = elsewhere.and_then(|near| super::all_keys().find(|(_, key)| *key == near));
        match elsewhere {
            Some(("", key)) => format!("unknown key; did you mean `{key}` at top level?"),
            Some((table, key)) => format!("unknown key; did you mean `{key}` in `[{table}]`?"),
            None => {
                let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
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
