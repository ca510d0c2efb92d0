//! The bounds on turns that one step may fire, and that it may end because whatever they belong to goes.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::kernel::limit;

/// Do fires of events wait, which what is due by time leaves room for?
pub(crate) fn events_wait(world: &World) -> bool {
    crate::kernel::domain::all().iter().any(|domain| (domain.has_event_fires)(world))
}

/// How many turns may still be fired in this step. What is due by time comes first, so that no storm of events delays it;
/// while events wait too it has a share and no more, so that no crowd of slots delays an event.
#[derive(Resource)]
pub(crate) struct Fires {
    left: usize,
    /// What fires by time may still take while events wait.
    share: usize,
    /// Turns and sessions that may still end in this step because whatever they belong to goes.
    ends: usize,
    /// Nothing fires, in this step and those that follow, because the store is behind.
    held: bool,
}

impl Default for Fires {
    fn default() -> Self {
        Self {
            left: limit::FIRES_PER_STEP_MAX,
            share: limit::SCHEDULES_PER_STEP_MAX,
            ends: limit::TURNS_ENDED_PER_STEP_MAX,
            held: false,
        }
    }
}

impl Fires {
    /// Takes one fire. False when the step has had its share: the rest waits for the next.
    pub(crate) const fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) if !self.held => {
                self.left = left;
                true
            }
            _ => false,
        }
    }

    /// The same for what is due by time. False too when events wait and their share is used up.
    pub(crate) const fn take_timed(&mut self, events_wait: bool) -> bool {
        if self.held || (events_wait && self.share == 0) {
            return false;
        }
        self.share = self.share.saturating_sub(1);
        self.take()
    }

    /// How many turns and sessions may still end in this step.
    pub(crate) const fn ends(&self) -> usize {
        self.ends
    }

    /// So many of them have ended.
    pub(crate) const fn end(&mut self, count: usize) {
        self.ends = self.ends.saturating_sub(count);
    }

    /// Is none left?
    pub(crate) const fn is_spent(&self) -> bool {
        self.left == 0 || self.held
    }

    /// From here on nothing fires, or all may again.
    pub(crate) const fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Does nothing fire until the store has caught up?
    pub(crate) const fn is_held(&self) -> bool {
        self.held
    }

    /// A new step begins.
    pub(crate) fn refill(&mut self) {
        *self = Self { held: self.held, ..Self::default() };
    }
}
