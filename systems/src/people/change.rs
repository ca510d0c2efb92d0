//! Users and keys are made, change, and go.

use std::collections::BTreeSet;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::{Actor, Refusal, RefusalKind, Timestamp};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::index::{KEYS, Keys, USERS, Users};
use super::list::{KeyView, UserView, is_other};
use super::{GrantUsed, KeyGone, UserGone, audit_kinds, error_codes, limits};
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, Room, command};
use crate::kernel::entities::{Removable, Remove, View, change, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::kernel::text;

/// Makes a key. The key itself stays outside: this is its hash.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateKey {
    /// The name; no other key has it.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// What it may do, where it has no user.
    pub role: Role,
    /// Whose it is.
    pub user: Option<UserId>,
    /// The only scopes that it has; empty for all those of the role.
    pub scopes: Vec<Scope>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

command!(write "create_key" CreateKey => KeyView, Root, |it, world| Answer::stored(create_key(world, it)));

/// Refuses a key that is gone: its request was let in before, and waited.
pub(crate) fn check_acting_key(world: &World) -> Result<(), Refusal> {
    let Actor::Key { key, .. } = world.resource::<Acting>().0 else { return Ok(()) };
    let is_configured = || state::<User>(world, UserId(key.0)).is_some_and(|user| user.key_hash.is_some());
    if state::<ApiKey>(world, key).is_some_and(|key| !key.expired) || is_configured() || is_other(world, key) {
        return Ok(());
    }
    Err(Refusal::new(RefusalKind::Forbidden, "the API key of this request was revoked, or has expired"))
}

/// When the key expires that acts: what it makes lasts no longer. Nothing for a key that does not expire, and for the session of
/// a person, who can sign in again.
fn end_of_acting_key(world: &World) -> Option<Timestamp> {
    let Actor::Key { key, .. } = world.resource::<Acting>().0 else { return None };
    state::<ApiKey>(world, key)?.expires_at
}

/// Makes a key, for whatever has one. It expires with the key that makes it, or earlier.
///
/// # Errors
/// 400 naming the field; 409 when the name is taken; 429 when there is no room.
pub(crate) fn create_key(world: &mut World, command: CreateKey) -> Result<KeyView, Refusal> {
    check_acting_key(world)?;
    let name = checked_name(&command.name)?;
    if world.resource::<Keys>().named(&name).is_some() {
        return Err(name_taken("key", &name));
    }
    if let Some(user) = command.user {
        let is_here = find::<User>(world, user).map(drop);
        is_here.map_err(|_| Refusal::bad_field("user", format!("user: there is no user {user}")))?;
    } else if command.role.is_limited() {
        let text =
            format!("role: a key with the role {} needs a user, whose agents it can reach", command.role.as_str());
        return Err(Refusal::bad_field("role", text));
    }
    let now = world.resource::<Now>().0;
    if command.expires_at.is_some_and(|at| at <= now) {
        return Err(Refusal::bad_field("expires_at", "expires_at: must be in the future"));
    }
    let expires_at = command.expires_at.into_iter().chain(end_of_acting_key(world)).min();
    let scopes: BTreeSet<_> = command.scopes.into_iter().collect();
    let key = ApiKey {
        name,
        hash: command.hash,
        role: command.role,
        user: command.user,
        scopes: scopes.into_iter().collect(),
        created_at: now,
        expires_at,
        expired: false,
        used_at: None,
    };
    KEYS.admit(world.resource::<Keys>().used, 1, key.bytes())?;
    let details = details_of(&key);
    let id: KeyId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, key)).id();
    world.mark(entity);
    note_key(world, id, audit_kinds::KEY_CREATED, details);
    KeyView::seen(world, id)
}

fn details_of(key: &ApiKey) -> Value {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({ "name": key.name, "role": key.role.as_str(), "user": key.user, "scopes": scopes })
}

fn note_key(world: &mut World, id: KeyId, kind: AuditKind, mut details: Value) {
    details["key"] = json!(id);
    world.audit(kind, None, details);
}

impl Removable for ApiKey {
    const REMOVE: &'static str = "revoke_key";
    const ROOM: Room = Room::Last;
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    fn removed(self, world: &mut World, id: KeyId) {
        note_key(world, id, audit_kinds::KEY_REVOKED, details_of(&self));
        react(world, &KeyGone(id));
    }
}

/// Revokes a key with what it belongs to. Nothing happens when there is none.
pub(crate) fn revoke(world: &mut World, id: KeyId) {
    let (Some(key), Ok(entity)) = (state::<ApiKey>(world, id).cloned(), find::<ApiKey>(world, id)) else { return };
    key.removed(world, id);
    world.despawn(entity);
}

/// A key was used. One that is gone meanwhile is no matter.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct NoteKeyUse {
    /// Which.
    pub key: KeyId,
    /// When.
    pub at: Timestamp,
}

command!(write "note_key_use" NoteKeyUse => (), Root, |it, world| {
    note_use(world, it);
    Answer::Stored(())
});

fn note_use(world: &mut World, NoteKeyUse { key, at }: NoteKeyUse) {
    match find::<ApiKey>(world, key) {
        Ok(entity) => change(world, entity, |key: &mut ApiKey| key.used_at = key.used_at.max(Some(at))),
        Err(_) => react(world, &GrantUsed { key, at }),
    }
}

/// What a client says of a user. A field that is left out has its default when the user is added, and stays as it is when
/// the user is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserFields {
    /// The name; a new user needs it.
    pub name: Option<String>,
    /// What they may do. Default: `user`.
    pub role: Option<Role>,
    /// Who they are in chats: the name of a channel or its type, and the id of the sender there.
    pub channel_bindings: Option<Vec<(String, String)>>,
}

/// Adds a user.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CreateUser(pub UserFields);

command!(write "create_user" CreateUser => UserView, Root, |it, world| Answer::stored(create_user(world, it.0)));

fn create_user(world: &mut World, mut fields: UserFields) -> Result<UserView, Refusal> {
    check_acting_key(world)?;
    if fields.name.is_none() {
        return Err(Refusal::bad_field("name", "name is missing"));
    }
    fields.role.get_or_insert(Role::User);
    let now = world.resource::<Now>().0;
    let mut user = User { created_at: now, ..User::default() };
    put(world, None, &mut user, fields, now)?;
    USERS.admit(world.resource::<Users>().used, 1, user.bytes())?;
    let details = json!({ "name": user.name, "role": user.role.as_str() });
    let id: UserId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, user)).id();
    world.mark(entity);
    note_user(world, id, audit_kinds::USER_CREATED, details);
    UserView::seen(world, id)
}

/// Changes a user, all fields or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateUser {
    /// Whom.
    pub user: UserId,
    /// What.
    pub fields: UserFields,
}

command!(last_write "update_user" UpdateUser => UserView, Root, |it, world| Answer::stored(update_user(world, it)));

fn update_user(world: &mut World, UpdateUser { user: id, fields }: UpdateUser) -> Result<UserView, Refusal> {
    check_acting_key(world)?;
    let entity = find::<User>(world, id)?;
    let Some(mut user) = state::<User>(world, id).cloned() else { return Err(Refusal::not_found("user", id)) };
    check_editable(&user)?;
    let before = user.bytes();
    let now = world.resource::<Now>().0;
    put(world, Some(id), &mut user, fields, now)?;
    USERS.admit(world.resource::<Users>().used, 0, user.bytes().saturating_sub(before))?;
    let details = json!({ "name": user.name, "role": user.role.as_str() });
    change(world, entity, |it: &mut User| *it = user);
    note_user(world, id, audit_kinds::USER_UPDATED, details);
    UserView::seen(world, id)
}

/// Refuses a user whom the configuration names: what clients change would be undone with the next start.
fn check_editable(user: &User) -> Result<(), Refusal> {
    if !user.configured {
        return Ok(());
    }
    let text = format!("the user {:?} is set in config.toml, so it cannot be changed here", user.name);
    Err(Refusal::of(error_codes::USER_CONFIGURED, text))
}

/// Puts the fields into `user`, which is the one called `id` if there is one already.
fn put(world: &World, id: Option<UserId>, user: &mut User, fields: UserFields, now: Timestamp) -> Result<(), Refusal> {
    let places = world.resource::<Users>();
    let is_other = |found: Option<UserId>| found.is_some() && found != id;
    if let Some(name) = fields.name {
        user.name = checked_name(&name)?;
        if is_other(places.named(&user.name)) {
            return Err(name_taken("user", &user.name));
        }
    }
    if let Some(role) = fields.role {
        user.role = role;
    }
    if let Some(bindings) = fields.channel_bindings {
        user.channel_bindings = checked_bindings(&bindings)?;
        for (channel, sender) in &user.channel_bindings {
            if is_other(places.bound(channel, sender)) {
                return Err(binding_taken(channel, sender));
            }
        }
    }
    user.updated_at = now;
    Ok(())
}

/// Another user has this identity in chats.
pub(super) fn binding_taken(channel: &str, sender: &str) -> Refusal {
    let text = format!("channel_bindings: another user is {sender:?} of {channel:?}");
    let refusal = Refusal::conflict(text).with_code(error_codes::BINDING_TAKEN);
    Refusal { field: Some("channel_bindings".to_owned()), ..refusal }
}

/// Who a user is in chats: channels, and ids of senders there.
pub(super) type Bindings = Vec<(Box<str>, Box<str>)>;

pub(super) fn checked_bindings(bindings: &[(String, String)]) -> Result<Bindings, Refusal> {
    let bad = |text: String| Refusal::bad_field("channel_bindings", format!("channel_bindings: {text}"));
    let (most, most_bytes) = (limits::USER_BINDINGS_MAX, limits::USER_BINDING_BYTES_MAX);
    if bindings.len() > most {
        return Err(bad(format!("more than {most}")));
    }
    let mut checked = Bindings::new();
    for (channel, sender) in bindings {
        for text in [channel, sender] {
            if text.is_empty() || text.len() > most_bytes || text.chars().any(char::is_control) {
                return Err(bad(format!("each must be text of 1 to {most_bytes} bytes without control characters")));
            }
        }
        checked.push((channel.as_str().into(), sender.as_str().into()));
    }
    checked.sort();
    checked.dedup();
    Ok(checked)
}

pub(super) fn note_user(world: &mut World, id: UserId, kind: AuditKind, mut details: Value) {
    details["user"] = json!(id);
    world.audit(kind, None, details);
}

impl Removable for User {
    const REMOVE: &'static str = "remove_user";
    const ROOM: Room = Room::Last;
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    fn removed(self, world: &mut World, id: UserId) {
        for key in world.resource::<Keys>().of(id) {
            revoke(world, key);
        }
        react(world, &UserGone(id));
        note_user(world, id, audit_kinds::USER_DELETED, json!({ "name": self.name, "role": self.role.as_str() }));
    }
}

/// Another one has this name.
pub(super) fn name_taken(what: &str, name: &str) -> Refusal {
    let refusal = Refusal::conflict(format!("name: there is a {what} called {name:?} already"));
    Refusal { field: Some("name".to_owned()), ..refusal.with_code(error_codes::PERSON_NAME_TAKEN) }
}

pub(super) fn checked_name(name: &str) -> Result<Box<str>, Refusal> {
    text::name("name", name, limits::PERSON_NAME_BYTES_MAX)
}
