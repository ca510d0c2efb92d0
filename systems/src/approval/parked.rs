//! What waits outside the world for the end of an approval: in memory only. When the daemon dies nothing waits any more, and
//! the approval expires with the restart. So a decision takes effect once, for exactly what asked.

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use agentsvc_components::ApprovalId;
use agentsvc_components::approval::ApprovalState;

use super::decide::withdraw;
use super::invoke::{self, InvokeTool, Invoker};
use super::question::{self, PersonAnswer};
use crate::kernel::command::{Answer, Command, Place, ReplySlot};
use crate::kernel::outbox::Exclusive;

/// Who waits for a person, by the approval. An entry lives as long as its approval is pending.
#[derive(Resource, Default)]
pub(super) struct Parked(Exclusive<HashMap<ApprovalId, (Uuid, Waiting)>>);

/// What waits.
pub(super) enum Waiting {
    /// A call of a tool.
    Call(InvokeTool, ReplySlot<Option<Invoker>>),
    /// A question.
    Question(ReplySlot<PersonAnswer>),
}

/// How an approval ended.
pub(super) struct Ended<'a> {
    pub(super) state: ApprovalState,
    pub(super) reason: Option<&'a str>,
    /// What the person filled in.
    pub(super) answer: Option<Box<str>>,
}

/// Keeps what waits for the approval; `wait` is its own id, by which it can be withdrawn.
pub(super) fn wait(world: &mut World, id: ApprovalId, wait: Uuid, waiting: Waiting) {
    world.resource_mut::<Parked>().0.get().insert(id, (wait, waiting));
}

/// The approval has ended: so has the wait.
pub(super) fn ended(world: &mut World, id: ApprovalId, ended: Ended<'_>) {
    match world.resource_mut::<Parked>().0.get().remove(&id) {
        Some((_, Waiting::Call(command, slot))) => invoke::ended(world, &command, slot, &ended),
        Some((_, Waiting::Question(slot))) => question::ended(world, slot, ended),
        None => {}
    }
}

/// Does nothing wait for a person?
pub(crate) fn nobody_waits(world: &mut World) -> bool {
    world.resource_mut::<Parked>().0.get().is_empty()
}

/// Nobody waits for a call or a question any more: its approval expires. Not an error when there is none.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WithdrawInvocation {
    /// The call's or question's own id.
    pub id: Uuid,
}

impl Command for WithdrawInvocation {
    type Reply = ();
    const NAME: &'static str = "withdraw_invocation";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::All;

    fn run(self, world: &mut World) -> Answer<()> {
        let mut parked = world.resource_mut::<Parked>();
        let found = parked.0.get().iter().find(|(_, (wait, _))| *wait == self.id);
        let found = found.map(|(id, (_, waiting))| (*id, matches!(waiting, Waiting::Question(_))));
        if let Some((approval, is_question)) = found {
            let why = match is_question {
                true => "what asked for it has ended",
                false => "the client that waited for it has disconnected",
            };
            withdraw(world, approval, why);
        }
        Answer::Stored(())
    }
}
