//! Users and keys are read and listed.

use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::{Refusal, Timestamp};
use bevy_ecs::prelude::{Entity, Resource, World};

use super::index::{Keys, Users};
use crate::kernel::command::{Answer, Place, command};
use crate::kernel::entities::{List, View, ViewPage, state};
use crate::kernel::index::id_of;

/// A user as readers see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserView {
    /// The id.
    pub id: UserId,
    /// The state.
    pub user: User,
    /// How many keys they have.
    pub keys: usize,
}

impl View for UserView {
    type Kind = User;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_user", "list_users"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let id: UserId = id_of(world, at);
        let user = world.get::<User>(at)?.clone();
        let keys = world.resource::<Keys>().of(id).len() + usize::from(user.key_hash.is_some());
        Some(Self { id, user, keys })
    }
}

/// A key as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    /// Its id.
    pub id: KeyId,
    /// Its state.
    pub key: ApiKey,
    /// What it may do: its own role, or that of its user.
    pub role: Role,
}

impl View for KeyView {
    type Kind = ApiKey;
    /// Those of this user; `None` lists all.
    type Filter = Option<UserId>;
    const NAMES: [&'static str; 2] = ["get_key", "list_keys"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        let key = world.get::<ApiKey>(at)?.clone();
        Some(Self { id: id_of(world, at), role: role_of(world, &key), key })
    }

    fn passes(&self, filter: &Option<UserId>) -> bool {
        filter.is_none() || self.key.user == *filter
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Keys>();
        let total = list.filter.map_or_else(|| all.len(), |user| all.of(user).len());
        Ok(list.filled(world, Some(total), all.after(list.after)))
    }
}

/// What a key may do. One whose user is gone may do as little as there is.
fn role_of(world: &World, key: &ApiKey) -> Role {
    let of_user = |user| state::<User>(world, user).map_or(Role::Viewer, |user| user.role);
    key.user.map_or(key.role, of_user)
}

/// A key as far as the door of the API needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGrant {
    /// Which key.
    pub key: KeyId,
    /// SHA-256 of it.
    pub hash: [u8; 32],
    /// Whose it is.
    pub user: Option<UserId>,
    /// The name of its user, or its own where it has none.
    pub name: Box<str>,
    /// What it may do.
    pub role: Role,
    /// The only scopes that it has; empty for all those of the role.
    pub scopes: Vec<Scope>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as far as that is stored.
    pub used_at: Option<Timestamp>,
    /// It is no key but a session of a person who signed in.
    pub is_session: bool,
}

/// What other domains let people in with, beside keys.
#[derive(Resource, Default)]
struct OtherGrants(Vec<fn(&World) -> Vec<KeyGrant>>);

/// From now on `grants` counts as keys do. For `install` functions.
pub(crate) fn grant_also(world: &mut World, grants: fn(&World) -> Vec<KeyGrant>) {
    world.get_resource_or_insert_with(OtherGrants::default).0.push(grants);
}

/// Is it the key of something else than a key or a user, such as a session of a person?
pub(super) fn is_other(world: &World, key: KeyId) -> bool {
    let others = world.get_resource::<OtherGrants>().map_or(&[][..], |others| &others.0);
    others.iter().any(|grants| grants(world).iter().any(|grant| grant.key == key))
}

/// Reads what every key may do.
#[derive(Clone, Copy, Debug)]
pub struct ListGrants;

command!(read "list_grants" ListGrants => Vec<KeyGrant>, Root, |_, world| Answer::read(grants(world)));

fn grants(world: &World) -> Vec<KeyGrant> {
    let all = world.resource::<Keys>();
    let keys = all.after(None).filter_map(|(id, at)| Some((id, world.get::<ApiKey>(at)?)));
    let keys = keys.filter(|(_, key)| !key.expired);
    let name = |key: &ApiKey| key.user.and_then(|user| state::<User>(world, user)).map(|user| user.name.clone());
    let grant = |(id, key): (KeyId, &ApiKey)| KeyGrant {
        key: id,
        hash: key.hash,
        user: key.user,
        name: name(key).unwrap_or_else(|| key.name.clone()),
        role: role_of(world, key),
        scopes: key.scopes.clone(),
        expires_at: key.expires_at,
        used_at: key.used_at,
        is_session: false,
    };
    let users = world.resource::<Users>().after(None).filter_map(|(id, at)| Some((id, world.get::<User>(at)?)));
    let others = world.get_resource::<OtherGrants>().map_or(&[][..], |others| &others.0);
    let others = others.iter().flat_map(|grants| grants(world));
    keys.map(grant).chain(users.filter_map(of_configuration)).chain(others).collect()
}

/// The key that the configuration gives a user. Its id is that of the user.
fn of_configuration((id, user): (UserId, &User)) -> Option<KeyGrant> {
    Some(KeyGrant {
        key: KeyId(id.0),
        hash: user.key_hash?,
        user: Some(id),
        name: user.name.clone(),
        role: user.role,
        scopes: Vec::new(),
        expires_at: None,
        used_at: None,
        is_session: false,
    })
}

/// A user by the id; nothing for one who is gone.
pub(crate) fn seen_user(world: &World, user: UserId) -> Option<&User> {
    state::<User>(world, user)
}

/// A key by its id; nothing for one that is gone.
pub(crate) fn seen_key(world: &World, key: KeyId) -> Option<&ApiKey> {
    state::<ApiKey>(world, key)
}

/// `name`, or the first of `name 2`, `name 3` and so on that no key has.
pub(crate) fn free_key_name(world: &World, name: &str) -> String {
    let keys = world.resource::<Keys>();
    let names = std::iter::once(name.to_owned()).chain((2..=keys.len() + 2).map(|at| format!("{name} {at}")));
    names.into_iter().find(|name| keys.named(name).is_none()).unwrap_or_default()
}

/// The users whom chats of a channel know: the ids of senders, and what each may do.
pub(crate) fn bound_to(world: &World, channel: &str) -> Vec<(Box<str>, Role)> {
    let Some(users) = world.get_resource::<Users>() else { return Vec::new() };
    let role = |user| state::<User>(world, user).map(|user| user.role);
    users.bound_to(channel).filter_map(|(sender, user)| Some((sender.into(), role(user)?))).collect()
}
