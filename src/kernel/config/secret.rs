//! A text that is never printed.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// What a secret that is set is shown as.
pub const MASK: &str = "***";

/// A secret from the configuration; empty means not set. `Debug` and `Serialize` show only whether it is set
/// (`***` or `not set`, spec 2, Configuration, rule 1). Wiped when it goes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<Box<str>>);

// Its only field wipes itself.
impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// True when there is a secret.
    pub fn is_set(&self) -> bool {
        !self.0.is_empty()
    }

    /// The secret itself, for the one place that compares or sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What may be shown.
    pub fn shown(&self) -> &'static str {
        if self.is_set() { MASK } else { "not set" }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

/// Values of settings. They may be secrets: nothing shows them.
#[derive(Clone, Default, PartialEq)]
pub struct HiddenValues(pub(crate) Map<String, Value>);

impl HiddenValues {
    /// Those of a table.
    ///
    /// # Errors
    /// Never: any value is one.
    pub(crate) fn of(table: Map<String, Value>) -> Result<Self, String> {
        Ok(Self(table))
    }
}

impl fmt::Debug for HiddenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Serialize for HiddenValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.keys().map(|key| (key, MASK)))
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn only_expose_shows_it() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(serde_json::to_string(&Secret::default()).unwrap(), "\"not set\"");
        assert_eq!(secret.expose(), "hunter2");
    }
}
