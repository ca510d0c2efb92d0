//! A person signs in, and a session ends.

use agentsvc_components::Refusal;
use agentsvc_components::kernel::scope::Role;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::sign_in::{Profile, SignInId, SignInSession};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::index::{SIGN_INS, SignIns};
use super::list::SignInView;
use super::{audit_kinds, limits};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Place, Room, command};
use crate::kernel::entities::{Removable, Remove, View};
use crate::kernel::id_generator::mint;
use crate::kernel::outbox::Emit;
use crate::people::{self, Identity};

/// Who signs in. It was checked outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Who {
    /// An account at an identity provider.
    Identity(Identity),
    /// The user of the configuration who has this name.
    Configured(String),
}

/// Begins a session of a person. The token itself stays outside: this is its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignIn {
    /// Who.
    pub who: Who,
    /// What the provider said of them.
    pub profile: Profile,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// The address of the client.
    pub client: String,
    /// Milliseconds that the session lasts.
    pub lasts_ms: i64,
}

/// A person has signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// The session.
    pub session: SignInView,
    /// What the person may do.
    pub role: Role,
}

command!(write "sign_in" SignIn => SignedIn, Root, |it, world| Answer::stored(sign_in(world, it)));

fn sign_in(world: &mut World, it: SignIn) -> Result<SignedIn, Refusal> {
    if it.lasts_ms <= 0 {
        return Err(Refusal::bad_field("lasts_ms", "lasts_ms: must be positive"));
    }
    let now = world.resource::<Now>().0;
    let mut session = SignInSession {
        user: None,
        hash: it.hash,
        profile: shortened(it.profile),
        client: it.client.into(),
        created_at: now,
        expires_at: now.plus_ms(it.lasts_ms),
        used_at: None,
    };
    // Before a user is added for it: what is refused changes nothing.
    SIGN_INS.admit(world.resource::<SignIns>().used, 1, session.bytes())?;
    let user = match it.who {
        Who::Identity(identity) => people::user_of(world, &identity)?,
        Who::Configured(name) => {
            people::configured_user(world, &name).ok_or_else(|| Refusal::not_found("user", name))?
        }
    };
    session.user = Some(user);
    let before = world.resource::<SignIns>().of(user);
    for old in before.iter().take((before.len() + 1).saturating_sub(limits::USER_SIGN_INS_MAX)) {
        end(world, *old);
    }
    let details = details_of(&session);
    let id: SignInId = mint(world, Slot::ROOT);
    let entity = world.spawn((id, session)).id();
    world.mark(entity);
    note(world, id, audit_kinds::SIGNED_IN, details);
    let role = people::seen_user(world, user).map_or(Role::Viewer, |user| user.role);
    // Whoever signs in may be known to act as someone else until now.
    let session = SignInView::of(world, entity).ok_or_else(|| Refusal::not_found("sign-in session", id))?;
    Ok(SignedIn { session, role })
}

/// Without the texts that are too long.
fn shortened(profile: Profile) -> Profile {
    let short = |text: Option<Box<str>>| text.filter(|text| text.len() <= limits::PROFILE_TEXT_BYTES_MAX);
    let Profile { provider, subject, email, name, picture } = profile;
    Profile { provider, subject, email: short(email), name: short(name), picture: short(picture) }
}

fn details_of(it: &SignInSession) -> serde_json::Value {
    json!({ "user": it.user, "provider": it.profile.provider, "client": it.client })
}

fn note(
    world: &mut World,
    id: SignInId,
    kind: agentsvc_components::kernel::audit_kind::AuditKind,
    mut details: serde_json::Value,
) {
    details["session"] = json!(id);
    world.audit(kind, None, details);
}

/// Ends a session, whoever asks for it.
pub(super) fn end(world: &mut World, id: SignInId) {
    let Some(entity) = world.resource::<SignIns>().get(id) else { return };
    if let Some(it) = world.get::<SignInSession>(entity) {
        let details = details_of(it);
        note(world, id, audit_kinds::SIGN_IN_ENDED, details);
    }
    world.despawn(entity);
}

impl Removable for SignInSession {
    const REMOVE: &'static str = "end_sign_in";
    const ROOM: Room = Room::Last;
    const PLACE: Place<Remove<Self>> = Place::Root;
    type Reply = ();

    fn removed(self, world: &mut World, id: SignInId) {
        note(world, id, audit_kinds::SIGN_IN_ENDED, details_of(&self));
    }
}
