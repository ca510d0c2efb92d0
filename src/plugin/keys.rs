//! The keys of a `plugin.toml`: each is taken once, from `[hooks]` or from the top, and what is left is not known.

use serde_json::{Map, Value};

/// Texts of a list.
const TEXTS_MAX: usize = 256;

/// What was not taken yet.
pub(super) struct Keys {
    root: Map<String, Value>,
    hooks: Map<String, Value>,
}

impl Keys {
    pub(super) const fn new(root: Map<String, Value>, hooks: Map<String, Value>) -> Self {
        Self { root, hooks }
    }

    /// A value: that of `[hooks]` before that of the top.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        let (hooks, root) = (self.hooks.remove(key), self.root.remove(key));
        hooks.or(root)
    }

    /// A text of `[hooks]`.
    pub(super) fn of_hooks(&mut self, key: &str) -> Result<Option<String>, String> {
        text(&format!("hooks.{key}"), self.hooks.remove(key))
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        text(key, self.take(key))
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>, String> {
        let value = self.take(key);
        value.map(|value| value.as_bool().ok_or_else(|| format!("{key}: must be true or false"))).transpose()
    }

    pub(super) fn integer(&mut self, key: &str) -> Result<Option<u64>, String> {
        let value = self.take(key);
        value.map(|value| value.as_u64().ok_or_else(|| format!("{key}: must be a whole number"))).transpose()
    }

    pub(super) fn signed(&mut self, key: &str) -> Result<Option<i64>, String> {
        let value = self.take(key);
        value.map(|value| value.as_i64().ok_or_else(|| format!("{key}: must be a whole number"))).transpose()
    }

    pub(super) fn texts(&mut self, key: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        texts_of(&value).ok_or_else(|| format!("{key}: must be a list of at most {TEXTS_MAX} texts"))
    }

    pub(super) fn table(&mut self, key: &str) -> Result<Map<String, Value>, String> {
        match self.take(key) {
            None => Ok(Map::new()),
            Some(Value::Object(table)) => Ok(table),
            Some(_) => Err(format!("{key}: must be a table")),
        }
    }

    /// The keys that nothing took.
    pub(super) fn unknown(self) -> Vec<String> {
        let hooks = self.hooks.keys().map(|key| format!("hooks.{key}"));
        self.root.keys().cloned().chain(hooks).collect()
    }
}

fn text(key: &str, value: Option<Value>) -> Result<Option<String>, String> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{key}: must be a text")),
    }
}

/// A text of a table.
pub(super) fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A list of texts.
fn texts_of(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array().filter(|list| list.len() <= TEXTS_MAX)?;
    list.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A number within its bound.
pub(super) fn at_most(key: &str, value: Option<u64>, max: u64) -> Result<Option<u64>, String> {
    match value {
        Some(value) if value > max => Err(format!("{key}: must be at most {max}")),
        value => Ok(value),
    }
}
