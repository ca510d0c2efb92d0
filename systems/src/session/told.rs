//! What happens to sessions, for those who listen: it is told when the step is on disk.

use agentsvc_components::{AgentId, SessionId, Timestamp};
use bevy_ecs::prelude::{Entity, Resource, World};

use crate::kernel::clock::Now;
use crate::kernel::engine::Told;
use crate::kernel::outbox::take_whole;

/// What happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// It began.
    Started,
    /// It was removed.
    Ended {
        /// Why, for people.
        why: &'static str,
    },
    /// Its history was removed, or another session takes its place.
    Reset {
        /// Why, for people.
        why: &'static str,
    },
}

/// Something that happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionChange {
    /// Whose.
    pub agent: AgentId,
    /// Which.
    pub session: SessionId,
    /// What.
    pub event: SessionEvent,
    /// When.
    pub at: Timestamp,
}

/// What happened in the step.
#[derive(Resource, Default)]
pub(super) struct Changes(Vec<SessionChange>);

/// Something happened to a session of `owner`.
pub(crate) fn note(world: &mut World, owner: Entity, session: SessionId, event: SessionEvent) {
    let Some(agent) = world.get::<AgentId>(owner).copied() else { return };
    let at = world.resource::<Now>().0;
    world.resource_mut::<Changes>().0.push(SessionChange { agent, session, event, at });
}

/// The changes of the step, which ends with them.
pub(super) fn take(world: &mut World) -> Option<Told> {
    let changes = &mut world.resource_mut::<Changes>().0;
    if changes.is_empty() { None } else { Some(Box::new(take_whole(changes))) }
}

/// The changes of sessions in what a step told.
///
/// # Errors
/// What was told, when it is something else.
pub fn changes_of(told: Told) -> Result<Vec<SessionChange>, Told> {
    told.downcast().map(|changes| *changes)
}
