//! Commands that a tool call carries out: the change and the call's result are one step.
//!
//! So a call without a result has changed nothing, and may run again after a crash; and one with a result never does
//! (see [`tools`](super::tools)). A refusal is not settled here: it changed nothing, and the tool tells it as any error.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::taint::Taint;
use agentsvc_components::turn::outcome::ToolStatus;
use agentsvc_components::{Refusal, RefusalKind};

use super::{delegate, tools};
use crate::kernel::command::{Answer, Command};
use crate::replay::recorder;
use crate::taint;

/// Carries out a command for a tool call, which gets its result in the same step. Refused when the turn no longer waits
/// for the call (409, code `turn_ended`), and when the command is. Not for commands that answer later.
pub struct ForCall<C: Command> {
    /// The attempt of the turn that calls.
    pub attempt: Attempt,
    /// The log row of the call.
    pub index: u32,
    /// What to do.
    pub command: C,
    /// The result of the call: the reply, told to the model.
    pub told: Telling<C::Reply>,
}

/// What tells a tool's model of a reply. The words come from outside the world, and so they are an input.
#[derive(Clone, Debug)]
pub enum Telling<R> {
    /// Makes the words of the reply.
    By(fn(&R) -> String),
    /// The words as they were (replay).
    As(String),
}

impl<R> Telling<R> {
    fn words(self, reply: &R) -> String {
        match self {
            Self::By(tell) => tell(reply),
            Self::As(words) => words,
        }
    }
}

impl<C: Command> Command for ForCall<C> {
    type Reply = ();
    const NAME: &'static str = C::NAME;
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<()> {
        let Self { attempt, index, command, told } = self;
        let turn = match delegate::waiting_parent(world, attempt, index) {
            Ok(parent) => parent.entity,
            Err(refusal) => return Answer::Now(Err(refusal)),
        };
        taint::take_carried(world);
        let text = match command.run(world) {
            Answer::Stored(reply) | Answer::Now(Ok(reply)) => told.words(&reply),
            Answer::Now(Err(refusal)) => return Answer::Now(Err(refusal)),
            Answer::Later(_) => {
                let text = "the command answers too late for a tool call";
                return Answer::Now(Err(Refusal::new(RefusalKind::Failed, text)));
            }
        };
        recorder(world).told(&text);
        tools::no_longer_out(world, attempt, index);
        match taint::take_carried(world) {
            Taint::NONE => delegate::settle(world, turn, index, text, ToolStatus::Ok),
            read => delegate::settle_read(world, turn, index, text, ToolStatus::Ok, read, C::NAME),
        }
        Answer::Stored(())
    }
}
