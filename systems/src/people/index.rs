//! Where users and keys are found: by name, users also by their identities in chats.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::people::{ApiKey, User};
use bevy_ecs::prelude::World;

use super::{error_codes, limits};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Put, indexed, state};
use crate::kernel::quota::Quota;

/// Every user.
pub(super) type Users = Entities<User>;
/// Every key.
pub(super) type Keys = Entities<ApiKey>;

/// What users may take.
pub(super) const USERS: Quota =
    Quota { count: limits::USERS_MAX, bytes: limits::USERS_BYTES_MAX, what: "users", code: error_codes::USERS_FULL };

/// What keys may take.
pub(super) const KEYS: Quota =
    Quota { count: limits::KEYS_MAX, bytes: limits::KEYS_BYTES_MAX, what: "API keys", code: error_codes::KEYS_FULL };

indexed!(User: UserPlaces, "user");

indexed!(ApiKey: KeyPlaces, "key");

/// Users by their names, and by their identities in chats.
#[derive(Debug, Default, PartialEq)]
pub struct UserPlaces {
    named: BTreeMap<Box<str>, UserId>,
    bound: BTreeMap<(Box<str>, Box<str>), UserId>,
    /// By issuer and subject.
    identified: BTreeMap<(Box<str>, Box<str>), UserId>,
}

impl UserPlaces {
    /// The user of this name.
    pub(super) fn named(&self, name: &str) -> Option<UserId> {
        self.named.get(name).copied()
    }

    /// The user whom an identity provider knows so.
    pub(super) fn identified(&self, issuer: &str, subject: &str) -> Option<UserId> {
        self.identified.get(&(Box::from(issuer), Box::from(subject))).copied()
    }

    /// The user whom a chat knows so.
    pub(super) fn bound(&self, channel: &str, sender: &str) -> Option<UserId> {
        self.bound.get(&(Box::from(channel), Box::from(sender))).copied()
    }
}

impl UserPlaces {
    /// The users whom chats of this channel know, by the ids of senders.
    pub(super) fn bound_to(&self, channel: &str) -> impl Iterator<Item = (&str, UserId)> {
        let from = (Box::from(channel), Box::from(""));
        let of_channel = self.bound.range(from..).take_while(move |((of, _), _)| **of == *channel);
        of_channel.map(|((_, sender), user)| (&**sender, *user))
    }
}

impl Mirrored<User> for UserPlaces {
    fn place(&mut self, id: UserId, user: &User, is_in: bool) {
        self.named.put((user.name.clone(), id), is_in);
        user.channel_bindings.iter().for_each(|binding| self.bound.put((binding.clone(), id), is_in));
        user.identities.iter().for_each(|identity| self.identified.put((identity.clone(), id), is_in));
    }
}

/// Keys by their names, and by their users.
#[derive(Debug, Default, PartialEq)]
pub struct KeyPlaces {
    named: BTreeMap<Box<str>, KeyId>,
    of: BTreeSet<(UserId, KeyId)>,
    /// Those that will expire, by when.
    ends: BTreeSet<(Timestamp, KeyId)>,
}

impl KeyPlaces {
    /// The key of this name.
    pub(super) fn named(&self, name: &str) -> Option<KeyId> {
        self.named.get(name).copied()
    }

    /// The one that expires next, and when.
    pub(super) fn first_end(&self) -> Option<(Timestamp, KeyId)> {
        self.ends.first().copied()
    }

    /// The keys of a user.
    pub(super) fn of(&self, user: UserId) -> Vec<KeyId> {
        self.of.iter().filter(|(of, _)| *of == user).map(|(_, key)| *key).collect()
    }
}

impl Mirrored<ApiKey> for KeyPlaces {
    fn place(&mut self, id: KeyId, key: &ApiKey, is_in: bool) {
        self.named.put((key.name.clone(), id), is_in);
        if let Some(user) = key.user {
            self.of.put((user, id), is_in);
        }
        if let Some(at) = key.expires_at.filter(|_| !key.expired) {
            self.ends.put((at, id), is_in);
        }
    }
}

/// Says which index is wrong, and which key lacks its user ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<User>(world, faults, |_, _, _, _| {});
    USERS.check(world.resource::<Users>().used, faults);
    entities::check::<ApiKey>(world, faults, |world, id, key, faults| {
        let has_user = key.user.is_none_or(|user| state::<User>(world, user).is_some());
        faults.that(has_user, || format!("key {id}: its user does not exist"));
    });
    KEYS.check(world.resource::<Keys>().used, faults);
}
