//! Sessions of people who signed in.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{UserId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "sign_in", uses: &[] };

uuid_id! {
    /// Names one session of a person who signed in.
    SignInId
}

/// A session of a person who signed in. Its token is not known: it was given once.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInSession {
    /// Who signed in.
    pub user: Option<UserId>,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Who vouched for the person.
    pub profile: Profile,
    /// Where the session was begun: the address of the client.
    pub client: Box<str>,
    /// When it began.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Timestamp,
    /// When it was last used, to some minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}

/// What a provider said of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The id of the provider in the configuration; `password` for a password.
    pub provider: Box<str>,
    /// The person at the provider.
    pub subject: Box<str>,
    /// The mail address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub email: Option<Box<str>>,
    /// The name as people write it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub name: Option<Box<str>>,
    /// The URL of a picture.
    #[serde(default, skip_serializing_if = "is_default")]
    pub picture: Option<Box<str>>,
}

impl Profile {
    /// Bytes of the texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let more = [&self.email, &self.name, &self.picture].into_iter().flatten();
        self.provider.len() + self.subject.len() + more.map(|text| text.len()).sum::<usize>()
    }
}

stored!(SignInSession: b'4', SignInId);

impl SignInSession {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.profile.bytes() + self.client.len()
    }
}
