//! The users whom the configuration names.

use std::collections::BTreeSet;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::people::User;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit_kinds;
use super::change::{binding_taken, checked_bindings, checked_name, name_taken, note_user};
use super::index::{USERS, Users};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{Removable, change, find, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// A user as the configuration says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfiguredUser {
    /// The name.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Who they are in chats: the name of a channel or its type, and the id of the sender there.
    pub channel_bindings: Vec<(String, String)>,
    /// SHA-256 of their key.
    pub key_hash: Option<[u8; 32]>,
}

/// Has these users, and no others, be those of the configuration. One of the same name becomes one of them; those that the
/// configuration names no more go, with their keys.
///
/// Refused where an identity in a chat is that of a user who is not of the configuration, or there is no room.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetConfiguredUsers(pub Vec<ConfiguredUser>);

command! {
    last_write "set_configured_users" SetConfiguredUsers => (), Root, |SetConfiguredUsers(it), world|
        Answer::stored(set(world, it))
}

fn set(world: &mut World, users: Vec<ConfiguredUser>) -> Result<(), Refusal> {
    let planned = plan(world, users)?;
    let kept: BTreeSet<UserId> = planned.iter().filter_map(|(id, _)| *id).collect();
    for (id, user) in configured(world).into_iter().filter(|(id, _)| !kept.contains(id)) {
        let at = find::<User>(world, id)?;
        user.removed(world, id);
        world.despawn(at);
    }
    let is_new = |(id, user): &(Option<UserId>, User)| id.and_then(|id| state::<User>(world, id)) != Some(user);
    let changed: Vec<_> = planned.into_iter().filter(is_new).collect();
    // None has an identity while another gets it.
    for at in changed.iter().filter_map(|(id, _)| find::<User>(world, (*id)?).ok()).collect::<Vec<_>>() {
        change(world, at, |user: &mut User| user.channel_bindings.clear());
    }
    let now = world.resource::<Now>().0;
    for (id, user) in changed {
        let details = json!({ "name": user.name, "role": user.role.as_str(), "configured": true });
        let user = User { updated_at: now, ..user };
        let (id, kind) = match id {
            Some(id) => {
                let at = find::<User>(world, id)?;
                change(world, at, |it: &mut User| *it = user);
                (id, audit_kinds::USER_UPDATED)
            }
            None => {
                let id: UserId = mint(world, Slot::ROOT);
                let at = world.spawn((id, user)).id();
                world.mark(at);
                (id, audit_kinds::USER_CREATED)
            }
        };
        note_user(world, id, kind, details);
    }
    Ok(())
}

/// The users that the configuration named before.
fn configured(world: &World) -> Vec<(UserId, User)> {
    let all = world.resource::<Users>().after(None);
    let users = all.filter_map(|(id, at)| Some((id, world.get::<User>(at)?)));
    users.filter(|(_, user)| user.configured).map(|(id, user)| (id, user.clone())).collect()
}

/// What each is to be, and who that is already.
fn plan(world: &World, users: Vec<ConfiguredUser>) -> Result<Vec<(Option<UserId>, User)>, Refusal> {
    let (all, now) = (world.resource::<Users>(), world.resource::<Now>().0);
    let (mut taken, mut names, mut planned) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let (mut more, mut longer, mut shorter) = (0, 0, 0);
    for ConfiguredUser { name, role, channel_bindings, key_hash } in users {
        let (name, channel_bindings) = (checked_name(&name)?, checked_bindings(&channel_bindings)?);
        let is_free = |binding: &(Box<str>, Box<str>)| {
            let other = all.bound(&binding.0, &binding.1).and_then(|id| state::<User>(world, id));
            other.is_none_or(|other| other.configured || other.name == name)
        };
        if let Some((channel, sender)) = channel_bindings.iter().find(|binding| !is_free(binding)) {
            return Err(binding_taken(channel, sender));
        }
        for (channel, sender) in &channel_bindings {
            if !taken.insert((channel.clone(), sender.clone())) {
                return Err(binding_taken(channel, sender));
            }
        }
        if !names.insert(name.clone()) {
            return Err(name_taken("user", &name));
        }
        let id = all.named(&name);
        let before = id.and_then(|id| state::<User>(world, id));
        more += usize::from(before.is_none());
        shorter += before.map_or(0, User::bytes);
        let of_before = before.cloned().unwrap_or_else(|| User { created_at: now, ..User::default() });
        let user = User { name, role, channel_bindings, configured: true, key_hash, by_sign_in: false, ..of_before };
        longer += user.bytes();
        planned.push((id, user));
    }
    USERS.admit(all.used, more, longer.saturating_sub(shorter))?;
    Ok(planned)
}
