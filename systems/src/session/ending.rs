//! Turns of sessions that were removed or cleared: so many end in each step, however many there are, so that no session holds up
//! the others when it goes.
//!
//! A removed session is hidden until the last of its turns has ended: nobody finds it, and nothing new begins in it. A cleared one
//! has a fresh log at once, and what comes in waits behind the turns that end. Both are stored, so that a start goes on with them.

use std::collections::BTreeSet;

use agentsvc_components::TurnId;
use agentsvc_components::session::{Ending, Session};
use bevy_ecs::prelude::{Entity, Resource, World};

use super::{HistoryEnding, TurnsEnding, remove};
use crate::kernel::check::Faults;
use crate::kernel::fires::{Fires, ends_at_once};
use crate::kernel::index::{Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;

/// Why the last thing of such a session goes, for people.
const REMOVED: &str = "the session was removed";

/// Those sessions.
#[derive(Resource, Default)]
pub(super) struct Endings(BTreeSet<Entity>);

/// Registers the hooks that keep them.
pub(super) fn install(world: &mut World) {
    world.init_resource::<Endings>();
    world
        .register_component_hooks::<Ending>()
        .on_insert(|mut world, at| {
            world.resource_mut::<Endings>().0.insert(at.entity);
        })
        .on_remove(|mut world, at| {
            world.resource_mut::<Endings>().0.remove(&at.entity);
        });
}

/// Why this turn of a session ends, if it does as its session was removed or cleared.
pub(crate) fn ending_of(world: &World, session: Entity, turn: TurnId) -> Option<&Ending> {
    if world.resource::<Endings>().0.is_empty() {
        return None;
    }
    world.get::<Ending>(session).filter(|ending| turn <= ending.upto)
}

/// Do turns of any session still end because their history goes?
pub(crate) fn any_ends(world: &World) -> bool {
    !world.resource::<Endings>().0.is_empty()
}

/// Was this session removed, and its turns still end?
pub(crate) fn is_leaving(world: &World, session: Entity) -> bool {
    world.get::<Ending>(session).is_some() && world.get::<Session>(session).is_some_and(|session| session.ephemeral)
}

/// Can all turns of a session end in this step? Then they are counted in it.
pub(super) fn fits(world: &mut World, session: Entity) -> bool {
    let turns = world.get::<Session>(session).map_or(0, |session| session.queued as usize);
    let fits = turns == 0 || turns <= ends_at_once(world);
    if fits {
        world.resource_mut::<Fires>().end(turns);
    }
    fits
}

/// The turns of a session end in this step and those that follow. Where all of them end already, they go on doing so.
pub(super) fn begin(world: &mut World, entity: Entity, why: &'static str) {
    react(world, &HistoryEnding { session: entity, why });
    let Some(session) = world.get::<Session>(entity) else { return };
    let (log, head, last) = (session.log, session.head, session.tail);
    let Some((head, last)) = head.zip(last) else { return };
    let (first, upto) = (id_of::<TurnId>(world, head), id_of(world, last));
    let mut earlier = Vec::new();
    if let Some(before) = world.get::<Ending>(entity) {
        if before.upto == upto {
            return;
        }
        // Those of which no turn is left have come to their end.
        let all = before.earlier.iter().copied().chain([(before.upto, before.log)]);
        earlier.extend(all.filter(|(upto, _)| *upto >= first));
    }
    world.entity_mut(entity).insert(Ending { upto, log, why: why.into(), earlier });
    world.mark(entity);
}

/// Takes such a session out of all lists.
pub(super) fn hide(world: &mut World, entity: Entity, why: &'static str) {
    let Some(session) = world.get::<Session>(entity).filter(|session| !session.ephemeral) else { return };
    let (owner, id) = (session.agent, id_of(world, entity));
    remove::leave_lists(world, entity, why);
    let mut index = world.resource_mut::<Index>();
    index.remove_owned_session(owner, id);
    index.hidden.insert((owner, id));
    if let Some(mut session) = world.get_mut::<Session>(entity) {
        (session.ephemeral, session.label) = (true, None);
    }
    world.mark(entity);
}

/// Ends turns of such sessions, as many as a step may.
// &mut World: turns end with all that reacts to it.
pub(super) fn go_on(world: &mut World) {
    while has_work(world)
        && let Some(session) = world.resource::<Endings>().0.first().copied()
    {
        end_some(world, session);
    }
}

fn end_some(world: &mut World, session: Entity) {
    let Some(Ending { upto, why, .. }) = world.get::<Ending>(session).cloned() else { return };
    let waiting = |world: &World| world.get::<Session>(session).map_or(0, |session| session.queued as usize);
    let (before, most) = (waiting(world), world.resource::<Fires>().ends());
    react(world, &TurnsEnding { session, why, most, upto: Some(upto) });
    let ended = before.saturating_sub(waiting(world));
    world.resource_mut::<Fires>().end(ended.max(1));
    let Some(home) = world.get::<Session>(session) else { return };
    let (is_gone, head) = (home.ephemeral, home.head);
    if head.is_some_and(|head| id_of::<TurnId>(world, head) <= upto) {
        return;
    }
    if is_gone {
        return remove::discard(world, session, REMOVED);
    }
    world.entity_mut(session).remove::<Ending>();
    world.mark(session);
}

/// Would a further round of this step end any?
pub(super) fn has_work(world: &World) -> bool {
    !world.resource::<Endings>().0.is_empty() && world.resource::<Fires>().ends() > 0
}

/// Do none end?
pub(super) fn is_quiet(world: &World) -> bool {
    world.resource::<Endings>().0.is_empty()
}

/// Says which session should end turns and does not.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut endings = world.query::<(Entity, &Ending)>();
    let all: BTreeSet<Entity> = endings.iter(world).map(|(entity, _)| entity).collect();
    faults.same("sessions whose turns end", &world.resource::<Endings>().0, &all);
}
