//! The bounds on turns that one step may fire, and that it may end because whatever they belong to goes.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::kernel::limit;
use serde::{Deserialize, Serialize};

use crate::kernel::command::{Answer, Command, Place, Room};

use super::domain::Ends;

/// Do fires of events wait, which what is due by time leaves room for?
pub(crate) fn events_wait(world: &World) -> bool {
    crate::kernel::domain::all().iter().any(|domain| (domain.has_event_fires)(world))
}

/// How many turns and sessions a command may end at once. Half of a step's share stays for those that wait to be ended.
pub(crate) fn ends_at_once(world: &World) -> usize {
    let left = world.resource::<Fires>().ends;
    let others_wait = ends().any(|it| (it.waits)(world));
    if others_wait { left.saturating_sub(limit::TURNS_ENDED_PER_STEP_MAX / 2) } else { left }
}

/// Ends turns and sessions that wait for it, as many as a step may. All who have such share that evenly.
// &mut World: turns and sessions end with all that reacts to it.
pub(crate) fn end_waiting(world: &mut World) {
    loop {
        let waiting: Vec<Ends> = ends().filter(|it| (it.waits)(world)).copied().collect();
        let share = (world.resource::<Fires>().ends / waiting.len().max(1)).max(1);
        for it in &waiting {
            let left = world.resource::<Fires>().ends;
            if left == 0 {
                break;
            }
            let most = share.min(left);
            world.resource_mut::<Fires>().ends = most;
            (it.go_on)(world);
            let mut fires = world.resource_mut::<Fires>();
            fires.ends += left - most;
        }
        if waiting.is_empty() || world.resource::<Fires>().ends == 0 {
            return;
        }
    }
}

fn ends() -> impl Iterator<Item = &'static Ends> {
    crate::kernel::domain::all().iter().flat_map(|domain| domain.ends)
}

/// What begins of itself waits while the store is behind, until it has caught up. Not stored: every start begins without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldWork {
    /// Triggers, schedules and workflows begin no turns.
    pub fires: bool,
    /// No model calls and no tool calls go out.
    pub calls: bool,
}

impl Command for HoldWork {
    type Reply = ();
    const NAME: &'static str = "hold_work";
    const WRITES: bool = true;
    const PLACE: Place<Self> = Place::All;
    const ROOM: Room = Room::None;

    fn run(self, world: &mut World) -> Answer<()> {
        world.resource_mut::<Fires>().held = self;
        Answer::Now(Ok(()))
    }
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
    /// Bytes that messages of turns may still have in this step: of those that fire, and of those that workflows begin.
    bytes: usize,
    workflow_bytes: usize,
    /// What waits, in this step and those that follow, because the store is behind.
    held: HoldWork,
}

impl Default for Fires {
    fn default() -> Self {
        Self {
            left: limit::FIRES_PER_STEP_MAX,
            share: limit::SCHEDULES_PER_STEP_MAX,
            ends: limit::TURNS_ENDED_PER_STEP_MAX,
            bytes: limit::FIRED_BYTES_PER_STEP_MAX,
            workflow_bytes: limit::FIRED_BYTES_PER_STEP_MAX,
            held: HoldWork::default(),
        }
    }
}

impl Fires {
    /// Takes one fire. False when the step has had its share: the rest waits for the next.
    pub(crate) const fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) if !self.is_spent() => {
                self.left = left;
                true
            }
            _ => false,
        }
    }

    /// The same for what is due by time. False too when events wait and their share is used up.
    pub(crate) const fn take_timed(&mut self, events_wait: bool) -> bool {
        if self.is_spent() || (events_wait && self.share == 0) {
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
        self.left == 0 || self.bytes == 0 || self.held.fires
    }

    /// May workflows begin turns in this step?
    pub(crate) const fn workflows_may(&self) -> bool {
        self.workflow_bytes > 0 && !self.held.fires
    }

    /// A turn has begun whose message has so many bytes.
    pub(crate) const fn begun(&mut self, bytes: usize, by_workflow: bool) {
        let left = if by_workflow { &mut self.workflow_bytes } else { &mut self.bytes };
        *left = left.saturating_sub(bytes);
    }

    /// What waits because the store is behind.
    pub(crate) const fn held(&self) -> HoldWork {
        self.held
    }

    /// Does nothing fire until the store has caught up?
    pub(crate) const fn is_held(&self) -> bool {
        self.held.fires
    }

    /// May model calls and tool calls go out, as far as the store is concerned?
    pub(crate) const fn calls_may(&self) -> bool {
        !self.held.calls
    }

    /// A new step begins.
    pub(crate) fn refill(&mut self) {
        *self = Self { held: self.held, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_fires_until_its_messages_are_long_enough() {
        let mut fires = Fires::default();
        let half = limit::FIRED_BYTES_PER_STEP_MAX / 2;
        fires.begun(half, false);
        assert!(fires.take() && !fires.is_spent());
        // The one that passes the bound is the last; workflows have their own.
        fires.begun(half + 1, false);
        assert!(fires.is_spent() && !fires.take() && !fires.take_timed(false) && fires.workflows_may());
        fires.begun(2 * half, true);
        assert!(!fires.workflows_may());
        fires.held.fires = true;
        fires.refill();
        assert!(fires.is_held() && fires.is_spent() && !fires.take() && !fires.workflows_may());
        fires.held = HoldWork::default();
        assert!(fires.take() && fires.workflows_may());
    }
}
