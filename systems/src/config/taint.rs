//! What is done with calls of turns that have read untrusted content.

use serde::{Deserialize, Serialize};

agentsvc_components::enum_words! {
    /// What is done when a tainted turn makes a sensitive call (`[security] taint`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum TaintPolicy [as_str, Word] {
        /// Nothing is tracked.
        Off = "off",
        /// It goes on record.
        #[default]
        Audit = "audit",
        /// It waits for a person.
        Approve = "approve",
        /// It is refused.
        Deny = "deny",
    }
}
