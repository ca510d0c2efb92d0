//! What clients of the API may do: roles, and the scopes that narrow them.

use serde::{Deserialize, Serialize};

use crate::kernel::words::enum_words;

/// What a person, or a key, may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads what is their own and what is shared.
    #[default]
    Viewer,
    /// Has agents of their own and works with them.
    User,
    /// Everything, except what concerns owners.
    Admin,
    /// Everything.
    Owner,
}

enum_words! { pub Role [ALL, as_str, parse] {
    Viewer = "viewer", User = "user", Admin = "admin", Owner = "owner",
} }

/// A kind of action. Each route needs one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Looks.
    #[default]
    Read,
    /// Talks to agents.
    Chat,
    /// Makes, changes and removes agents and what belongs to them.
    Write,
    /// Changes the installation: its configuration, its programs, its keys and its users.
    Admin,
}

enum_words! { pub Scope [ALL, as_str, parse] {
    Read = "read", Chat = "chat", Write = "write", Admin = "admin",
} }

impl Role {
    /// May this role act in this scope at all?
    #[must_use]
    pub const fn has(self, scope: Scope) -> bool {
        match self {
            Self::Viewer => matches!(scope, Scope::Read),
            Self::User => !matches!(scope, Scope::Admin),
            Self::Admin | Self::Owner => true,
        }
    }

    /// Does this role see and change only what is its own?
    #[must_use]
    pub const fn is_limited(self) -> bool {
        matches!(self, Self::Viewer | Self::User)
    }
}
