//! What clients of the API may do: roles, and the scopes that narrow them.

use serde::{Deserialize, Serialize};

use crate::kernel::words::{Word, Words, enum_words};

enum_words! {
    /// What a person, or a key, may do.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role [ALL, as_str, parse] {
        /// Reads what is their own and what is shared.
        #[default]
        Viewer = "viewer",
        /// Has agents of their own and works with them.
        User = "user",
        /// Everything, except what concerns owners.
        Admin = "admin",
        /// Everything.
        Owner = "owner",
    }
}

enum_words! {
    /// A kind of action. Each route needs one.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Scope [ALL, as_str, parse] {
        /// Looks.
        #[default]
        Read = "read",
        /// Talks to agents.
        Chat = "chat",
        /// Makes, changes and removes agents and what belongs to them.
        Write = "write",
        /// Changes the installation: its configuration, its programs, its keys and its users.
        Admin = "admin",
    }
}

impl Word for Role {
    const WORDS: Words<Self> = &[
        ("owner", Self::Owner),
        ("admin", Self::Admin),
        ("user", Self::User),
        ("viewer", Self::Viewer),
        ("guest", Self::Viewer),
    ];
}

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
