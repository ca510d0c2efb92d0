//! The bodies of users and keys.

use std::collections::BTreeMap;

use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_systems::people::{KeyView, UserFields, UserView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::crud::shown;
use crate::http::shape::{shape, words};
use crate::http::timestamp::Moment;

words! {
    /// What a user or a key may do.
    #[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum RoleWord for Role {
        /// Reads what belongs to the user, and what is shared.
        #[serde(alias = "guest")]
        Viewer,
        /// Has agents and works with them.
        User,
        /// Everything but owners.
        Admin,
        /// Everything.
        Owner,
    }
}

words! {
    /// A kind of action.
    #[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum ScopeWord for Scope {
        /// Looks.
        Read,
        /// Talks to agents.
        Chat,
        /// Makes, changes and removes what belongs to agents.
        Write,
        /// Changes the installation.
        Admin,
    }
}

shape! {
    /// A key. The key itself is never shown again.
    pub(crate) struct KeyItem from view: KeyView {
        id: Uuid = view.id.0,
        name: Box<str> = view.key.name,
        role: RoleWord = view.role.into(),
        /// The user; null if it has none.
        user_id: Option<Uuid> = view.key.user.map(|user| user.0),
        /// The only scopes that it has; empty for all those of the role.
        scopes: Vec<ScopeWord> = view.key.scopes.into_iter().map(ScopeWord::from).collect(),
        created_at: Moment = Moment(view.key.created_at),
        expires_at: Option<Moment> = view.key.expires_at.map(Moment),
        /// When it was last used, to 10 minutes.
        last_used_at: Option<Moment> = view.key.used_at.map(Moment),
    }
}

shown!(KeyItem: KeyView, "the key"; "keys", |_| Ok(None));

/// A new key.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeyMade {
    /// The key, for `Authorization: Bearer`. It is shown this once.
    pub(crate) key: String,
    #[serde(flatten)]
    pub(crate) item: KeyItem,
}

/// A key to be made.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct KeyBody {
    /// Name: one line of at most 128 bytes; no other key has it.
    pub(crate) name: String,
    /// Whose key it is; it then has the role of the user.
    #[serde(default)]
    pub(crate) user_id: Option<Uuid>,
    /// `admin` or `owner`, for a key without a user. Default: `admin`.
    #[serde(default)]
    pub(crate) role: Option<RoleWord>,
    /// The only scopes that it has. Default: all those of the role.
    #[serde(default)]
    pub(crate) scopes: Vec<ScopeWord>,
    /// Seconds until it is refused. Default: the expiry of the key that creates it, or never. A later time is refused (400).
    #[serde(default)]
    pub(crate) expires_in_secs: Option<u32>,
}

shape! {
    /// A user.
    pub(crate) struct UserItem from view: UserView {
        id: Uuid = view.id.0,
        name: Box<str> = view.user.name,
        role: RoleWord = view.user.role.into(),
        /// Who they are in chats: the id of the sender, by the name of a channel or its type.
        channel_bindings: BTreeMap<Box<str>, Box<str>> = view.user.channel_bindings.into_iter().collect(),
        /// How many keys they have.
        keys: usize = view.keys,
        /// Providers at which the user signs in.
        identities: Vec<Box<str>> = view.user.identities.into_iter().map(|(issuer, _)| issuer).collect(),
        /// Set in `[[users]]` of config.toml, and changed there only.
        configured: bool = view.user.configured,
        created_at: Moment = Moment(view.user.created_at),
        updated_at: Moment = Moment(view.user.updated_at),
    }
}

shown!(UserItem: UserView, "the user"; "users", |_| Ok(()));

/// Fields of a user. Omitted fields have their defaults when the user is added, and stay unchanged when the user is updated.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct UserBody {
    /// Name: one line of at most 128 bytes; required for a new user.
    name: Option<String>,
    /// Default: `user`.
    pub(crate) role: Option<RoleWord>,
    /// Who they are in chats, such as `{"telegram": "123"}`: the id of the sender, by the name of a channel or its type.
    channel_bindings: Option<BTreeMap<String, String>>,
}

impl UserBody {
    /// Does it say who the user is, by which people sign in and are known in chats?
    pub(crate) const fn names_someone(&self) -> bool {
        self.name.is_some() || self.channel_bindings.is_some()
    }

    /// The same for the world.
    pub(crate) fn fields(self) -> UserFields {
        UserFields {
            name: self.name,
            role: self.role.map(Role::from),
            channel_bindings: self.channel_bindings.map(|bindings| bindings.into_iter().collect()),
        }
    }
}

/// The user whom an agent belongs to.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct OwnerBody {
    /// The user; null for the installation.
    pub(crate) user_id: Option<Uuid>,
}

/// Who asks.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Whoami {
    /// `owner` for the key of the configuration and for clients of an open API, `key` for a named key, `session` for a person who
    /// signed in.
    pub(crate) kind: &'static str,
    /// Name of the user, or of a key without a user.
    pub(crate) name: Option<Box<str>>,
    pub(crate) role: RoleWord,
    pub(crate) user_id: Option<Uuid>,
    /// The key, or the session.
    pub(crate) key_id: Option<Uuid>,
    /// What may be done.
    pub(crate) scopes: Vec<ScopeWord>,
}
