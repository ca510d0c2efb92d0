//! Notes for rehearsals: what a world that is run ahead tells about its fires. The live world takes no notes.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::event::EventKind;
use agentsvc_components::schedule::SlotOutcome;
use agentsvc_components::session::message::Usage;
use agentsvc_components::trigger::FireOutcome;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::usage::CallEnd;
use agentsvc_components::{AgentId, ScheduleId, Timestamp, TriggerId};

use crate::kernel::domain::Domain;
use crate::kernel::engine::Engine;

/// What this domain brings.
pub(crate) const DOMAIN: Domain =
    Domain { uses: &["event", "schedule", "session", "trigger", "turn", "usage"], ..Domain::named("rehearsal") };

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
pub(crate) struct Notes(Vec<Note>);

/// Takes a note where a rehearsal reads them; costs one lookup where none does.
pub(crate) fn note(world: &mut World, note: impl FnOnce(&World) -> Note) {
    if world.contains_resource::<Notes>() {
        let note = note(world);
        world.resource_mut::<Notes>().0.push(note);
    }
}

impl Engine {
    /// Lets the world note what fires come to.
    pub fn watch(&mut self) {
        self.world_mut().init_resource::<Notes>();
    }

    /// What was noted since this was last asked; nothing in a world that takes no notes.
    pub fn take_notes(&mut self) -> Vec<Note> {
        let notes = self.world_mut().get_resource_mut::<Notes>();
        notes.map(|mut notes| std::mem::take(&mut notes.0)).unwrap_or_default()
    }
}
