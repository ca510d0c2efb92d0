//! The ordered stages of a step.

use bevy_ecs::prelude::SystemSet;
use bevy_ecs::schedule::ScheduleLabel;

/// The stages, in order. A step runs rounds from [`Intake`](Self::Intake) to [`Decide`](Self::Decide) until nothing more
/// follows, then closes once from [`Collect`](Self::Collect) to [`Seal`](Self::Seal).
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// What is due is made to happen. Runs on the beat only.
    Time,
    /// Outcomes of effects enter the world; commands have entered before the round.
    Intake,
    /// Events of this round meet what waits for them.
    Match,
    /// What matched or is due begins.
    Fire,
    /// Scarce things are given out: slots, budget.
    Decide,
    /// What is still to be stored of many things at once is collected.
    Collect,
    /// Dirty entities become records.
    Persist,
    /// Sums and ends over all that the step stored.
    Seal,
}

impl Stage {
    /// The stage under which the API tells a system's time.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Intake => "intake",
            Self::Match | Self::Fire => "match",
            Self::Decide => "decide",
            Self::Collect | Self::Persist | Self::Seal => "persist",
        }
    }
}

/// From `Intake` to `Decide`; repeated until quiet.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Round;

/// From `Collect` to `Seal`; once at the end of a step.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Close;

/// `Time`; once a beat.
#[derive(ScheduleLabel, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Beat;
