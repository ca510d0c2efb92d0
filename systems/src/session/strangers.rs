//! Sessions that strangers began in chats. Together they may take a share of what a family, and a user, may store, so that however
//! many strangers write, the rest is left to the owner and to those whom the owner knows.

use agentsvc_components::agent::{Agent, OwnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId};
use bevy_ecs::prelude::{Entity, World};

use super::error_codes::SESSION_STORAGE_FULL;
use super::{limits, remove, room};
use crate::config::Settings;
use crate::kernel::index;
use crate::people::family_of;

/// Seconds after which a message that found no room is worth another try: turns of strangers have ended by then.
const RETRY_SECS: u32 = 5;

/// Whose share it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of the agents of a family.
    Family(AgentId),
    /// That of the agents of a user.
    User(UserId),
}

impl Whose {
    /// Is the agent one of those?
    pub(crate) fn has(self, world: &World, agent: Entity) -> bool {
        match self {
            Self::Family(family) => family_of(world, agent) == family,
            Self::User(user) => world.get::<OwnedBy>(agent) == Some(&OwnedBy(user)),
        }
    }
}

/// Where the sessions that strangers began take as much as they may: whose share that is, and the refusal of a further message.
pub(crate) fn full_share(world: &World, agent: Entity) -> Option<(Whose, Refusal)> {
    let settings = world.resource::<Settings>();
    let is_full = |taken: room::Taken, most: u64| taken.strangers.cast_unsigned() >= most / limits::STRANGERS_SHARES;
    let refusal = |key: &str| {
        let text =
            format!("the sessions of strangers take their share of `[sessions] {key}`, and none of them is idle");
        Refusal { retry_after_secs: Some(RETRY_SECS), ..Refusal::of(SESSION_STORAGE_FULL, text) }
    };
    let family = family_of(world, agent);
    if is_full(room::taken_by_family(world, family), settings.family_sessions_max_bytes) {
        return Some((Whose::Family(family), refusal("family_max_bytes")));
    }
    let user = world.get::<OwnedBy>(agent)?.0;
    is_full(room::taken_by_user(world, user), settings.user_sessions_max_bytes)
        .then(|| (Whose::User(user), refusal("user_max_bytes")))
}

/// The session is one that strangers began from here on, or no longer.
pub(crate) fn set(world: &mut World, id: SessionId, is_strangers: bool) {
    if let Some(entity) = index::session(world, id) {
        room::set_strangers(world, entity, is_strangers);
    }
}

/// Did strangers begin the session, and has it no turn?
pub(crate) fn is_idle(world: &World, id: SessionId) -> bool {
    found(world, id).is_some_and(|(_, session)| session.head.is_none())
}

/// Did strangers begin the session, and has it a turn?
pub(crate) fn is_busy(world: &World, id: SessionId) -> bool {
    found(world, id).is_some_and(|(_, session)| session.head.is_some())
}

fn found(world: &World, id: SessionId) -> Option<(Entity, &Session)> {
    let entity = index::session(world, id)?;
    world.get::<Session>(entity).filter(|session| session.is_strangers).map(|session| (entity, session))
}

/// Nothing leads to the session any more: it goes, if strangers began it. One that the owner made current, or gave a label, is the
/// owner's from here on.
pub(crate) fn forget(world: &mut World, id: SessionId) {
    let Some((entity, session)) = found(world, id) else { return };
    let is_current = world.get::<Agent>(session.agent).is_some_and(|agent| agent.current == entity);
    if is_current || session.label.is_some() {
        room::set_strangers(world, entity, false);
    } else {
        remove(world, entity, "the chat with a stranger has ended");
    }
}
