//! What is done with calls of turns that have read untrusted content.

use serde::{Deserialize, Serialize};

/// What is done when a tainted turn makes a sensitive call (`[security] taint`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintPolicy {
    /// Nothing is tracked.
    Off,
    /// It goes on record.
    #[default]
    Audit,
    /// It waits for a person.
    Approve,
    /// It is refused.
    Deny,
}

impl TaintPolicy {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}
