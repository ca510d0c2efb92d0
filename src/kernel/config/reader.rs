//! Takes typed values out of one table and notes what is wrong instead of stopping at it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::Former;
use super::key::{Key, Word, Words};
use super::problem::{Found, nearest};
use super::table::Table;
use super::{text, tree};

/// The key of an entry of a list that has its name.
const NAME: &str = "name";

/// What takes a value that was read.
pub trait Slot<V> {
    /// Holds `value` from now on.
    fn hold(&mut self, value: V);
}

impl<T> Slot<T> for T {
    fn hold(&mut self, value: T) {
        *self = value;
    }
}

impl<T> Slot<T> for Option<T> {
    fn hold(&mut self, value: T) {
        *self = Some(value);
    }
}

/// Smaller integers: the range of the key keeps its values within them.
macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl Slot<u64> for $integer {
            fn hold(&mut self, value: u64) {
                if let Ok(value) = value.try_into() {
                    *self = value;
                }
            }
        }
    )+};
}

integers!(u8, u16, u32, usize);

impl Slot<u64> for Option<u32> {
    fn hold(&mut self, value: u64) {
        *self = value.try_into().ok();
    }
}

impl Slot<u64> for NonZeroU32 {
    fn hold(&mut self, value: u64) {
        if let Some(value) = value.try_into().ok().and_then(Self::new) {
            *self = value;
        }
    }
}

/// What was found while reading, and what the whole file may hold.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The keys of the top level.
    pub(super) root: &'static [Key],
    /// Tables of later releases.
    pub(super) reserved: &'static [&'static str],
    /// Tables in which others stood that are of no use any more.
    pub(super) former: Former,
    /// What makes the configuration unusable.
    pub(super) problems: Vec<Found>,
    /// What is only worth saying.
    pub(super) warnings: Vec<Found>,
}

/// One table while it is read. Keys that no one knows are noted when it is opened. What is absent or wrong leaves the
/// slot as it is.
#[derive(Debug)]
pub struct Reader<'a, 't> {
    table: &'a DeTable<'t>,
    /// What may stand in it.
    keys: &'static [Key],
    /// The path of the table; empty at top level.
    path: String,
    /// It is an entry of a list, and has its name in it.
    is_entry: bool,
    findings: &'a mut Findings,
}

impl<'a, 't> Reader<'a, 't> {
    /// Opens `table`, which stands at `path` and may hold `keys`.
    pub(super) fn new(table: &'a DeTable<'t>, path: String, keys: &'static [Key], findings: &'a mut Findings) -> Self {
        let mut reader = Self { table, keys, path, is_entry: false, findings };
        reader.note_unknown();
        reader
    }

    /// Opens `table`, all of whose names are free.
    pub(super) fn below(table: &'a DeTable<'t>, path: String, findings: &'a mut Findings) -> Self {
        Self { table, keys: &[], path, is_entry: false, findings }
    }

    fn string(&mut self, key: &str) -> Option<&'a str> {
        let value = self.table.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a string", value);
        }
        text
    }

    /// A text that `parse` accepts; its error says what the value must be, without showing the value.
    pub fn text<T>(&mut self, key: &str, slot: &mut impl Slot<T>, parse: fn(&str) -> Result<T, String>) {
        match self.string(key).map(parse) {
            Some(Ok(value)) => slot.hold(value),
            Some(Err(message)) => self.problem(key, message),
            None => {}
        }
    }

    /// The same of a text that is never shown.
    pub fn secret<T>(&mut self, key: &str, slot: &mut impl Slot<T>, parse: fn(&str) -> Result<T, String>) {
        self.text(key, slot, parse);
    }

    /// An http or https URL that `parse` accepts.
    pub fn url<T>(&mut self, key: &str, slot: &mut impl Slot<T>, parse: fn(&str) -> Result<T, String>) {
        self.text(key, slot, parse);
    }

    /// The name of an environment variable, or nothing.
    pub fn variable(&mut self, key: &str, slot: &mut impl Slot<Box<str>>) {
        self.text(key, slot, text::variable);
    }

    fn word(&mut self, key: &str, words: &[&'static str]) -> Option<&'static str> {
        let text = self.string(key)?;
        let found = words.iter().copied().find(|word| *word == text);
        if found.is_none() {
            let hint = nearest(text, words.iter().copied()).map(|word| format!("; did you mean `{word}`?"));
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            self.problem(key, format!("must be one of {}{}", words.join(", "), hint.unwrap_or_default()));
        }
        found
    }

    /// One of `words`.
    pub fn one_of(&mut self, key: &str, slot: &mut impl Slot<Box<str>>, words: fn() -> Vec<&'static str>) {
        if let Some(word) = self.word(key, &words()) {
            slot.hold(word.into());
        }
    }

    /// What one of `words` means.
    pub fn choice<T: Word>(&mut self, key: &str, slot: &mut impl Slot<T>, words: Words<T>) {
        let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let word = self.word(key, &names);
        if let Some((_, value)) = words.iter().find(|(known, _)| Some(*known) == word) {
            slot.hold(*value);
        }
    }

    /// A whole number within `range`.
    pub fn integer(&mut self, key: &str, slot: &mut impl Slot<u64>, range: RangeInclusive<u64>) {
        let Some(value) = self.table.get(key) else { return };
        let Some(integer) = value.get_ref().as_integer() else { return self.wrong_type(key, "an integer", value) };
        match u64::from_str_radix(integer.as_str(), integer.radix()).ok().filter(|number| range.contains(number)) {
            Some(number) => slot.hold(number),
            None => self.problem(key, format!("must be {} to {}", range.start(), range.end())),
        }
    }

    /// A number within `range`.
    pub fn number(&mut self, key: &str, slot: &mut impl Slot<f64>, range: RangeInclusive<f64>) {
        let Some(value) = self.table.get(key) else { return };
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).ok().map(|n| n as f64),
            _ => return self.wrong_type(key, "a number", value),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => slot.hold(number),
            None => self.problem(key, format!("must be {} to {}", range.start(), range.end())),
        }
    }

    /// True or false.
    pub fn flag(&mut self, key: &str, slot: &mut bool) {
        let Some(value) = self.table.get(key) else { return };
        match value.get_ref().as_bool() {
            Some(flag) => *slot = flag,
            None => self.wrong_type(key, "true or false", value),
        }
    }

    /// A list of texts that `parse` accepts.
    pub fn list<T>(&mut self, key: &str, slot: &mut Vec<T>, parse: fn(&str) -> Result<T, String>) {
        let Some(value) = self.table.get(key) else { return };
        let Some(items) = value.get_ref().as_array() else {
            return self.wrong_type(key, "a list of strings", value);
        };
        slot.clear();
        for item in items.iter() {
            match item.get_ref().as_str().map(parse) {
                Some(Ok(parsed)) => slot.push(parsed),
                Some(Err(message)) => self.note(item.span().start, key, message),
                None => self.wrong_type(key, "a list of strings", item),
            }
        }
    }

    /// The table under `key`.
    pub fn table<T: Table>(&mut self, key: &str, slot: &mut T) {
        if let Some(value) = self.table.get(key) {
            *slot = self.open(key, value);
        }
    }

    /// Tables whose names are free, such as `[providers.<name>]`.
    pub fn named<T: Table>(&mut self, key: &str, slot: &mut BTreeMap<Box<str>, T>, _example: &str) {
        let Some(value) = self.table.get(key) else { return };
        let Some(table) = value.get_ref().as_table() else { return self.wrong_type(key, "a table", value) };
        let mut inner = Reader::below(table, self.join(key), self.findings);
        let tables = table.iter().map(|(name, value)| (name.get_ref().as_ref(), value));
        *slot = tables.map(|(name, value)| (name.into(), inner.open(name, value))).collect();
    }

    /// The same, or a list of such tables, each with its `name`.
    pub fn named_or_listed<T: Table>(&mut self, key: &str, slot: &mut BTreeMap<Box<str>, T>, example: &str) {
        let Some(items) = self.table.get(key).and_then(|value| value.get_ref().as_array()) else {
            return self.named(key, slot, example);
        };
        slot.clear();
        for item in items.iter() {
            let Some(table) = item.get_ref().as_table() else { return self.wrong_type(key, "a list of tables", item) };
            let name = table.get(NAME).and_then(|name| name.get_ref().as_str());
            let Some(name) = name.filter(|name| !name.is_empty()) else {
                self.note(item.span().start, key, format!("each entry needs `{NAME}`"));
                continue;
            };
            let path = self.join(&format!("{key}.{name}"));
            let mut reader = Reader { table, keys: T::KEYS, path, is_entry: true, findings: self.findings };
            reader.note_unknown();
            if slot.insert(name.into(), T::read(&mut reader)).is_some() {
                self.note(item.span().start, &format!("{key}.{name}"), "duplicate name".to_owned());
            }
        }
    }

    /// A table that `parse` accepts as one value.
    pub fn object<T>(
        &mut self,
        key: &str,
        slot: &mut impl Slot<T>,
        parse: fn(Map<String, Value>) -> Result<T, String>,
    ) {
        let Some(value) = self.table.get(key) else { return };
        let Value::Object(object) = json_of(value.get_ref()) else { return self.wrong_type(key, "a table", value) };
        match parse(object) {
            Ok(value) => slot.hold(value),
            Err(message) => self.note(value.span().start, key, message),
        }
    }

    /// A list of tables, of each of which `parse` makes one value.
    pub fn objects<T>(&mut self, key: &str, slot: &mut Vec<T>, parse: fn(Map<String, Value>) -> Result<T, String>) {
        let Some(value) = self.table.get(key) else { return };
        let Some(items) = value.get_ref().as_array() else { return self.wrong_type(key, "a list of tables", value) };
        slot.clear();
        for item in items {
            let Value::Object(object) = json_of(item.get_ref()) else {
                self.note(item.span().start, key, "must be a list of tables".to_owned());
                continue;
            };
            match parse(object) {
                Ok(value) => slot.push(value),
                Err(message) => self.note(item.span().start, key, message),
            }
        }
    }

    /// Whole numbers under free names, each within `range`.
    pub fn named_integers(&mut self, key: &str, slot: &mut BTreeMap<Box<str>, u64>, range: RangeInclusive<u64>) {
        let Some(value) = self.table.get(key) else { return };
        let Some(table) = value.get_ref().as_table() else { return self.wrong_type(key, "a table", value) };
        slot.clear();
        for (name, value) in table {
            let integer = value.get_ref().as_integer();
            let number = integer.and_then(|integer| u64::from_str_radix(integer.as_str(), integer.radix()).ok());
            match number.filter(|number| range.contains(number)) {
                Some(number) => drop(slot.insert(name.get_ref().as_ref().into(), number)),
                None => {
                    let message = format!("must be an integer from {} to {}", range.start(), range.end());
                    self.note(value.span().start, &format!("{key}.{}", name.get_ref()), message);
                }
            }
        }
    }

    /// Notes that the value of `key` is wrong.
    pub fn problem(&mut self, key: &str, message: String) {
        let at = self.table.get(key).map_or(0, |value| value.span().start);
        self.note(at, key, message);
    }

    /// Notes that the value at `path`, below this table, is wrong; its place is the deepest part that is written.
    pub fn problem_at(&mut self, path: &[&str], message: String) {
        self.note(self.place(path), &path.join("."), message);
    }

    /// Notes that the value at `path`, below this table, has no effect.
    pub fn warning_at(&mut self, path: &[&str], message: String) {
        let (at, key) = (self.place(path), self.join(&path.join(".")));
        self.findings.warnings.push(Found { at, key, message });
    }

    fn place(&self, path: &[&str]) -> usize {
        let (mut table, mut at) = (Some(self.table), 0);
        for key in path {
            let Some(value) = table.and_then(|table| table.get(*key)) else { break };
            at = value.span().start;
            table = value.get_ref().as_table();
        }
        at
    }

    /// Something below `path`, below this table, was found wrong already: what follows from it would mislead.
    pub fn is_wrong_below(&self, path: &[&str]) -> bool {
        let start = format!("{}.", self.join(&path.join(".")));
        self.findings.problems.iter().any(|problem| problem.key.starts_with(&start))
    }

    /// Notes that the value of `key` has no effect.
    pub fn warning(&mut self, key: &str, message: String) {
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
            if self.keys.iter().any(|key| key.name == name_text) || (self.is_entry && name_text == NAME) {
                continue;
            }
            if self.path.is_empty() && self.findings.reserved.contains(&name_text) {
                self.note_reserved(name, value);
            } else if let Some(said) = self.former_at().filter(|_| value.get_ref().is_table()) {
                let key = format!("{}.{name_text}", self.path);
                self.findings.warnings.push(Found { at: name.span().start, key, message: said(name_text) });
            } else {
                self.note(name.span().start, name_text, self.unknown(name_text));
            }
        }
    }

    /// What is said of tables that stood in this one once.
    fn former_at(&self) -> Option<fn(&str) -> String> {
        self.findings.former.iter().find(|(path, _)| *path == self.path).map(|(_, said)| *said)
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
        let reserved = if self.path.is_empty() { self.findings.reserved } else { &[] };
        let here = self.keys.iter().map(|key| key.name).chain(reserved.iter().copied());
        if let Some(near) = nearest(name, here) {
            return format!("unknown key; did you mean `{near}`?");
        }
        let sections = tree::sections(self.findings.root);
        let all =
            || sections.iter().flat_map(|section| section.keys.iter().map(|key| (section.name.as_str(), key.name)));
        let elsewhere = nearest(name, all().map(|(_, key)| key));
        let elsewhere = elsewhere.and_then(|near| all().find(|(_, key)| *key == near));
        match elsewhere {
            Some(("", key)) => format!("unknown key; did you mean the top-level key `{key}`?"),
            Some((table, key)) => format!("unknown key; did you mean `{key}` in `[{table}]`?"),
            None => {
                let names: Vec<_> = self.keys.iter().map(|key| format!("`{}`", key.name)).collect();
                format!("unknown key; expected one of {}", names.join(", "))
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

/// A value as JSON. What JSON has no form of is a text.
fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(whole) => i64::from_str_radix(whole.as_str(), whole.radix()).map_or(Value::Null, Value::from),
        DeValue::Float(float) => float.as_str().replace('_', "").parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(moment) => Value::String(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json_of(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries = table.iter().map(|(name, value)| (name.get_ref().to_string(), json_of(value.get_ref())));
            Value::Object(entries.collect())
        }
    }
}
