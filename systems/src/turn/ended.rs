//! The ends of turns that something fired: it hears of them in the same step.

use std::collections::VecDeque;

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{ErrorCode, TurnId};

use crate::budget;
use crate::kernel::reaction::react;
use crate::rehearsal::{self, Note};

/// How a fired turn ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Which.
    pub(crate) turn: TurnId,
    /// How.
    pub(crate) end: TurnEnd,
    /// The answer, or what was said so far; of a failure its sentence.
    pub(crate) text: Box<str>,
    /// Of a failure its code.
    pub(crate) code: Option<ErrorCode>,
    /// Untrusted content behind its answer.
    pub(crate) taint: Taint,
    /// Tokens of the whole turn.
    pub(crate) usage: Usage,
}

impl Ended {
    /// Did it end because a budget was used up?
    pub(crate) fn is_over_budget(&self) -> bool {
        budget::is_exceeded(self.code)
    }
}

/// A turn that was fired has ended; what fired it reacts.
pub(crate) struct FiredTurnEnded {
    /// What fired it.
    pub(crate) origin: Origin,
    /// How it ended.
    pub(crate) ended: Ended,
}

/// Fired turns that ended and whose beginners have not heard of it; emptied in each round.
#[derive(Resource, Default)]
pub(super) struct EndedTurns(VecDeque<FiredTurnEnded>);

impl EndedTurns {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A turn has ended. What fired it, if anything did, hears of it in the next round.
pub(super) fn turn_ended(world: &mut World, origin: Origin, ended: Ended) {
    if origin.is_fired() {
        let (end, over_budget) = (ended.end, ended.is_over_budget());
        rehearsal::note(world, |_| Note::Ended { origin, end, over_budget });
        world.resource_mut::<EndedTurns>().0.push_back(FiredTurnEnded { origin, ended });
    }
}

/// Tells what fired the turns that ended.
// &mut World: reactions of any domain run in it.
pub(crate) fn tell(world: &mut World) {
    while let Some(event) = world.resource_mut::<EndedTurns>().0.pop_front() {
        react(world, &event);
    }
}
