//! Commands that a tool call carries out: the change and the call's result are one step.
//!
//! A call without a result has changed nothing and may run again after a crash; a call with a result never does. A
//! refusal is not settled here: it changed nothing, and the tool reports it like any error.

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::{Refusal, RefusalKind};

use super::command::{Answer, Command, Place};
use super::inputs::recorder::recorder;

/// Carries out a command for a tool call, which gets its result in the same step. Refused when the turn no longer waits
/// for the call (409, code `turn_ended`), and when the command is. Not for commands that answer later.
pub struct ForCall<C: Command> {
    /// The attempt of the turn that calls.
    pub attempt: Attempt,
    /// The log row of the call.
    pub index: u32,
    /// What to do.
    pub command: C,
    /// Writes the result of the call for the model.
    pub told: Formatter<C::Reply>,
}

/// Writes a reply as text for the model. The text comes from outside the world, and so it is an input.
#[derive(Clone, Debug)]
pub enum Formatter<R> {
    /// Formats the reply.
    By(fn(&R) -> String),
    /// The text as it was (replay).
    As(String),
}

impl<R> Formatter<R> {
    fn text(self, reply: &R) -> String {
        match self {
            Self::By(format) => format(reply),
            Self::As(text) => text,
        }
    }
}

/// How the result of a call is stored; installed by the domain that calls belong to.
#[derive(Resource, Clone, Copy)]
pub(crate) struct CallSettlement {
    /// The turn that waits for the call; refused when it no longer does.
    pub(crate) open: fn(&mut World, Attempt, u32) -> Result<Entity, Refusal>,
    /// Stores `text` as the result of the call that the command of this name was carried out for.
    pub(crate) settle: fn(&mut World, Entity, (Attempt, u32), text: String, name: &'static str),
}

impl<C: Command> Command for ForCall<C> {
    type Reply = ();
    const NAME: &'static str = C::NAME;
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::Id(|it| it.attempt.job.0);

    fn run(self, world: &mut World) -> Answer<()> {
        let Self { attempt, index, command, told } = self;
        let CallSettlement { open, settle } = *world.resource::<CallSettlement>();
        let turn = match open(world, attempt, index) {
            Ok(turn) => turn,
            Err(refusal) => return Answer::Now(Err(refusal)),
        };
        let text = match command.run(world) {
            Answer::Stored(reply) | Answer::Now(Ok(reply)) => told.text(&reply),
            Answer::Now(Err(refusal)) => return Answer::Now(Err(refusal)),
            Answer::Later(_) => {
                let text = "the command answers too late for a tool call";
                return Answer::Now(Err(Refusal::new(RefusalKind::Failed, text)));
            }
        };
        recorder(world).told(&text);
        settle(world, turn, (attempt, index), text, C::NAME);
        Answer::Stored(())
    }
}
