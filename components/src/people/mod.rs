//! Users and API keys.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{KeyId, UserId};
use crate::kernel::record::stored;
use crate::kernel::scope::{Role, Scope};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "people", uses: &[] };

/// A person who uses this installation.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name, on one line; no two users have the same.
    pub name: Box<str>,
    /// What they may do.
    pub role: Role,
    /// Who they are in chats: the name of a channel or its type, and the id of the sender there.
    #[serde(default)]
    pub channel_bindings: Vec<(Box<str>, Box<str>)>,
    /// When they were added.
    pub created_at: Timestamp,
    /// When they were last changed.
    pub updated_at: Timestamp,
    /// The configuration names them: it alone changes them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub configured: bool,
    /// SHA-256 of the key that the configuration gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_hash: Option<[u8; 32]>,
    /// Who they are at identity providers: the issuer, and the subject there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<(Box<str>, Box<str>)>,
    /// Added when they first signed in, not by an administrator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_sign_in: bool,
}

stored!(User: b'1', UserId);

impl User {
    /// Bytes of the texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pairs = self.channel_bindings.iter().chain(&self.identities);
        let bindings = pairs.map(|(channel, id)| channel.len() + id.len());
        self.name.len() + bindings.sum::<usize>()
    }
}

/// A named key of the API. The key itself is not known: it was shown once.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// The name, on one line; no two keys have the same.
    pub name: Box<str>,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// What it may do; that of its user where it has one.
    pub role: Role,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// The only scopes that it has; empty for all those of the role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Its time was over once: it stays so, however the clock is set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// When it was last used, to some minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

stored!(ApiKey: b'2', KeyId);

impl ApiKey {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.len()
    }
}
