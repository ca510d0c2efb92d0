//! A key while it is in memory.

use zeroize::Zeroizing;

/// A key. Never shown, and wiped behind its last use.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Box<str>>);

impl Secret {
    /// A key.
    pub fn new(key: &str) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    /// The key itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
