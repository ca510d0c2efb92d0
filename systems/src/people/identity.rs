//! Who signs in: the user whom an identity provider vouches for.
//!
//! | of an account | who it is |
//! |---|---|
//! | known by issuer and subject | the user whom it was before |
//! | with the mail address of a user, as the name or as the binding `email` | that user, from now on by issuer and subject |
//! | of an allowed domain | a new user, called as the mail address |
//! | any other | refused |

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::people::User;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::change::{checked_name, note_user};
use super::index::{USERS, Users};
use super::{audit_kinds, error_codes, limits};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;

/// The channel of `channel_bindings` that names mail addresses.
const MAIL: &str = "email";

/// An account at an identity provider that has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The provider.
    pub issuer: String,
    /// The account there.
    pub subject: String,
    /// Its mail address in lower case, where that may be relied upon.
    pub email: Option<String>,
    /// The role of a user who is added for it; `None` where its domain is not allowed.
    pub may_join: Option<Role>,
}

/// The user whose account this is. One who is new is added, if the account may join.
///
/// # Errors
/// 403: no user is named for it, and it may not join; 429: there is no room.
pub(crate) fn user_of(world: &mut World, it: &Identity) -> Result<UserId, Refusal> {
    for (field, text) in [("issuer", &it.issuer), ("subject", &it.subject)] {
        let most = limits::USER_IDENTITY_BYTES_MAX;
        if text.is_empty() || text.len() > most || text.chars().any(char::is_control) {
            let text = format!("{field} must have 1 to {most} bytes without control characters");
            return Err(Refusal::bad_field(field, text));
        }
    }
    let users = world.resource::<Users>();
    if let Some(known) = users.identified(&it.issuer, &it.subject) {
        return admitted(world, known, it).map(|_| known);
    }
    let email = it.email.as_deref().unwrap_or_default();
    let named = users.named(email).or_else(|| users.bound(MAIL, email)).filter(|_| !email.is_empty());
    match named {
        Some(user) => bind(world, user, it),
        None => join(world, it, email),
    }
}

/// The user of the configuration who has this name.
pub(crate) fn configured_user(world: &World, name: &str) -> Option<UserId> {
    let user = world.resource::<Users>().named(name)?;
    state::<User>(world, user)?.configured.then_some(user)
}

fn not_allowed() -> Refusal {
    let text = "this account may not sign in here; ask an administrator to add it as a user, or to allow its domain";
    Refusal::of(error_codes::SIGN_IN_NOT_ALLOWED, text)
}

/// Users who were added when they signed in are let in while their domain is allowed.
fn admitted<'w>(world: &'w World, user: UserId, it: &Identity) -> Result<&'w User, Refusal> {
    let found = state::<User>(world, user).ok_or_else(not_allowed)?;
    if found.by_sign_in && it.may_join.is_none() { Err(not_allowed()) } else { Ok(found) }
}

/// From now on the user is known by the account.
fn bind(world: &mut World, user: UserId, it: &Identity) -> Result<UserId, Refusal> {
    let found = admitted(world, user, it)?;
    // A mail address that was given to someone else is another account.
    if found.identities.iter().any(|(issuer, _)| **issuer == *it.issuer) {
        let text = "another account of this provider is already the user of this mail address";
        return Err(Refusal::of(error_codes::IDENTITY_TAKEN, text));
    }
    if found.identities.len() >= limits::USER_IDENTITIES_MAX {
        let text = format!("the user has {} accounts at identity providers already", limits::USER_IDENTITIES_MAX);
        return Err(Refusal::full(text, error_codes::USERS_FULL));
    }
    let details = json!({ "name": found.name, "role": found.role.as_str(), "issuer": it.issuer });
    let users = world.resource::<Users>();
    USERS.admit(users.used, 0, it.issuer.len() + it.subject.len())?;
    let Some(at) = users.get(user) else { return Err(not_allowed()) };
    let pair = (it.issuer.as_str().into(), it.subject.as_str().into());
    change(world, at, |user: &mut User| user.identities.push(pair));
    note_user(world, user, audit_kinds::USER_UPDATED, details);
    Ok(user)
}

/// Adds a user for the account.
fn join(world: &mut World, it: &Identity, email: &str) -> Result<UserId, Refusal> {
    let Some(role) = it.may_join.filter(|_| !email.is_empty()) else { return Err(not_allowed()) };
    let now = world.resource::<Now>().0;
    let user = User {
        name: checked_name(email)?,
        role,
        created_at: now,
        updated_at: now,
        identities: vec![(it.issuer.as_str().into(), it.subject.as_str().into())],
        by_sign_in: true,
        ..User::default()
    };
    USERS.admit(world.resource::<Users>().used, 1, user.bytes())?;
    let details = json!({ "name": user.name, "role": user.role.as_str(), "issuer": it.issuer });
    let id: UserId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, user)).id();
    world.mark(entity);
    note_user(world, id, audit_kinds::USER_CREATED, details);
    Ok(id)
}
