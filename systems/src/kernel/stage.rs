//! The ordered stages of a step.

use bevy_ecs::prelude::SystemSet;
use bevy_ecs::schedule::ScheduleLabel;

/// The stages of a round, in order. A step runs rounds until nothing more follows, then persists once.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Outcomes of effects enter the world; commands have entered before the round.
    Intake,
    /// What is due is made to happen. Runs on the beat only.
    Time,
    /// Events of this round meet whatever waits for them.
    Match,
    /// Scarce things are given out: slots, budget.
    Decide,
    /// What was decided becomes state and effects.
    Apply,
    /// Dirty entities become records. Runs once, after the last round.
    Persist,
    /// The commit is closed. Runs once, after `Persist`.
    Release,
}

/// `Intake` to `Apply`; repeated until quiet.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Round;

/// `Persist` and `Release`; once at the end of a step.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Close;

/// `Time`; once a beat.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Beat;
