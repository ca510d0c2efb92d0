//! A session's inbox: a linked list of turns through their own components, so that queueing costs the same
//! however long it is and an idle session costs nothing.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::session::Session;
use agentsvc_components::turn::Turn;

/// Appends `turn`. True when it is the first and may run at once.
pub(super) fn push(world: &mut World, session: Entity, turn: Entity) -> bool {
    let Some(mut component) = world.get_mut::<Session>(session) else { return false };
    component.queued += 1;
    let last = component.tail.replace(turn);
    if let Some(last) = last {
        if let Some(mut before) = world.get_mut::<Turn>(last) {
            before.next = Some(turn);
        }
        false
    } else {
        component.head = Some(turn);
        true
    }
}

/// Takes the first turn out and returns the one that follows it.
pub(super) fn pop(world: &mut World, session: Entity) -> Option<Entity> {
    let head = world.get::<Session>(session)?.head?;
    let next = world.get::<Turn>(head).and_then(|turn| turn.next);
    let mut component = world.get_mut::<Session>(session)?;
    component.head = next;
    component.queued -= 1;
    if next.is_none() {
        component.tail = None;
    }
    next
}
