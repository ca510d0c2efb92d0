//! Waiting for the end of a sent task.

use bevy_ecs::prelude::World;

use agentsvc_components::a2a::outbound::A2aSentId;

use super::list::A2aSentView;
use crate::a2a::limits;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;
use crate::kernel::waiters;

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
    let is_open = view.task.state.is_open();
    waiters::wait(world, id, view, is_open, limits::A2A_TASK_WAITERS_MAX)
}
