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

agentsvc_components::enum_words! { pub TaintPolicy [as_str] {
    Off = "off", Audit = "audit", Approve = "approve", Deny = "deny",
} }
