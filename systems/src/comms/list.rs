//! Comms events are listed.

use agentsvc_components::comms::{CommsEvent, CommsEventId};
use bevy_ecs::prelude::World;

use super::limits::COMMS_EVENTS_LISTED_MAX;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::Entities;

/// Reads comms events.
#[derive(Clone, Copy, Debug)]
pub struct ListCommsEvents {
    /// Only those after this one, oldest first; it need not exist any more. `None` gives the newest ones, newest first.
    pub after: Option<CommsEventId>,
    /// At most this many; cut to [`COMMS_EVENTS_LISTED_MAX`].
    pub limit: usize,
}

/// Comms events, and what is not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommsEventView {
    /// Them.
    pub events: Vec<(CommsEventId, CommsEvent)>,
    /// How many are kept in all.
    pub total: usize,
    /// Events between `after` and the first of these may have been dropped: the oldest that is kept came later.
    pub is_cut: bool,
}

command! {
    read "list_comms_events" ListCommsEvents => CommsEventView, Root, |it, world| Answer::read(list(world, it))
}

fn list(world: &World, ListCommsEvents { after, limit }: ListCommsEvents) -> CommsEventView {
    let all = world.resource::<Entities<CommsEvent>>();
    let limit = limit.min(COMMS_EVENTS_LISTED_MAX);
    let seen = |(id, at)| Some((id, world.get::<CommsEvent>(at)?.clone()));
    let events = match after {
        Some(after) => all.after(Some(after)).filter_map(seen).take(limit).collect(),
        None => {
            let skipped = all.len().saturating_sub(limit);
            let mut newest: Vec<_> = all.after(None).skip(skipped).filter_map(seen).collect();
            newest.reverse();
            newest
        }
    };
    let oldest = all.after(None).next().map(|(id, _)| id);
    let is_cut = after.is_some_and(|after| oldest.is_some_and(|oldest| oldest > after));
    CommsEventView { events, total: all.len(), is_cut }
}
