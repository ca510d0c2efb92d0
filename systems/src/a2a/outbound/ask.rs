//! Those who wait for the end of a sent task.

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::a2a::outbound::A2aSentId;

use super::list::A2aSentView;
use crate::a2a::limits;
use crate::kernel::command::{Answer, ReplySlot, command};
use crate::kernel::entities::View;
use crate::kernel::outbox::{Exclusive, Outbox};

/// Who waits for which task. An entry lives as long as its task is open.
#[derive(Resource, Default)]
pub(super) struct SentWaiters(Exclusive<HashMap<A2aSentId, Vec<ReplySlot<A2aSentView>>>>);

/// Waits for the end of a sent task. Answered at once when it has ended, and when too many wait for it.
#[derive(Clone, Copy, Debug)]
pub struct AwaitA2aSent(pub A2aSentId);

command! {
    read "await_a2a_sent" AwaitA2aSent => A2aSentView, Root, |it, world| wait(world, it.0)
}

fn wait(world: &mut World, id: A2aSentId) -> Answer<A2aSentView> {
    let view = match A2aSentView::seen(world, id) {
        Ok(view) => view,
        Err(refusal) => return Answer::Now(Err(refusal)),
    };
    let waiting = world.resource_mut::<SentWaiters>().0.get().get(&id).map_or(0, Vec::len);
    if !view.task.state.is_open() || waiting >= limits::A2A_TASK_WAITERS_MAX {
        return Answer::read(view);
    }
    Answer::Later(Box::new(move |world, slot| {
        world.resource_mut::<SentWaiters>().0.get().entry(id).or_default().push(slot);
    }))
}

/// The task has ended: those who wait hear it.
pub(super) fn tell(world: &mut World, id: A2aSentId) {
    let waiters = world.resource_mut::<SentWaiters>().0.get().remove(&id).unwrap_or_default();
    if waiters.is_empty() {
        return;
    }
    let Ok(view) = A2aSentView::seen(world, id) else { return };
    for slot in waiters {
        world.resource_mut::<Outbox>().reply(slot, Ok(view.clone()));
    }
}
