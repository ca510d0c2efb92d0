//! What a world that is run ahead tells about its fires, and when anything is due in it.
//!
//! The live world has no [`Watch`] and notes nothing. What is due is the least of what the time-driven systems keep in
//! order of time, so that a rehearsal can jump from one such moment to the next: beats in between would find nothing to
//! do.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::event::EventKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::usage::CallEnd;
use agentsvc_components::{AgentId, ScheduleId, Timestamp, TriggerId};

use crate::schedule::SlotOutcome;
use crate::{approval, budget, schedule, task, usage, workflow};

/// Something that a fire came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Slots of a schedule or cron job have their outcome.
    Slot {
        /// Whose.
        schedule: ScheduleId,
        /// Which outcome.
        outcome: SlotOutcome,
        /// The slot, or the last of them.
        last: Timestamp,
        /// How many slots.
        count: u64,
        /// Why there is no turn; empty when there is one.
        why: Box<str>,
    },
    /// A slot waits for the open turn of its schedule; its outcome comes later.
    SlotWaits {
        /// Whose.
        schedule: ScheduleId,
        /// Which.
        slot: Timestamp,
    },
    /// A match of a trigger has its outcome.
    Match {
        /// Whose.
        trigger: TriggerId,
        /// Which outcome.
        outcome: FireOutcome,
        /// When the event happened.
        at: Timestamp,
        /// What kind of event it was.
        on: EventKind,
    },
    /// A turn that was fired has ended.
    Ended {
        /// What fired it.
        origin: Origin,
        /// How it ended.
        end: TurnEnd,
        /// It ended because a budget was used up.
        over_budget: bool,
    },
    /// A model call is over and paid for.
    Call {
        /// Whose.
        agent: AgentId,
        /// Its tokens and its cost.
        usage: Usage,
        /// How it ended.
        end: CallEnd,
        /// The price of its model is known.
        priced: bool,
    },
}

/// The notes of the current step.
#[derive(Resource, Default)]
pub(crate) struct Watch(Vec<Note>);

/// Leaves a note where somebody watches; where nobody does it costs a look.
pub(crate) fn note(world: &mut World, note: impl FnOnce(&World) -> Note) {
    if world.contains_resource::<Watch>() {
        let note = note(world);
        world.resource_mut::<Watch>().0.push(note);
    }
}

/// Takes out what was noted so far.
pub(crate) fn take(world: &mut World) -> Vec<Note> {
    world.get_resource_mut::<Watch>().map(|mut watch| std::mem::take(&mut watch.0)).unwrap_or_default()
}

/// The earliest moment at which a beat would find something to do; it may have passed. `None` when time alone brings
/// nothing about.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    let due = [
        schedule::next_due(world),
        workflow::next_due(world),
        task::next_due(world),
        approval::next_due(world),
        budget::next_due(world),
        Some(usage::next_due(world)),
    ];
    due.into_iter().flatten().min()
}
