//! What triggers, schedules and workflows share: the fires of a step are bounded, and whatever began a turn hears of its
//! end in the same step.

use std::collections::VecDeque;

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::kernel::limit;
use agentsvc_components::taint::Taint;
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{AgentId, TurnId};

use crate::kernel::outbox;
use crate::kernel::outbox::Outbox;
use crate::kernel::watch;
use crate::kernel::watch::Note;
use crate::{budget, goal, schedule, task, trigger, workflow};

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
    pub(crate) code: Option<&'static str>,
    /// Untrusted content behind its answer.
    pub(crate) taint: Taint,
}

impl Ended {
    /// Did it end because a budget was used up?
    pub(crate) fn is_over_budget(&self) -> bool {
        self.code == Some(budget::EXCEEDED)
    }
}

/// Fired turns that ended and whose beginners have not heard of it; emptied in each round.
#[derive(Resource, Default)]
struct EndedTurns(VecDeque<(Origin, Ended)>);

/// How many turns may still be fired in this step. Schedules come first, so that no storm of events delays a slot; while
/// matches wait too they have a share and no more, so that no crowd of slots delays an event.
#[derive(Resource)]
pub(crate) struct Budget {
    left: usize,
    /// What schedules may still take while matches wait.
    share: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: limit::FIRES_PER_STEP_MAX, share: limit::SCHEDULES_PER_STEP_MAX }
    }
}

impl Budget {
    /// Takes one fire. False when the step has had its share: the rest waits for the next.
    pub(crate) const fn take(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// The same for a schedule. False too when matches wait and schedules have had their share.
    pub(crate) const fn take_for_schedule(&mut self, matches_wait: bool) -> bool {
        if matches_wait && self.share == 0 {
            return false;
        }
        self.share = self.share.saturating_sub(1);
        self.take()
    }

    /// Is there any left?
    pub(crate) const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// A new step begins.
    pub(crate) fn refill(&mut self) {
        *self = Self::default();
    }
}

/// Prepares a new world for automation.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<EndedTurns>();
    world.init_resource::<Budget>();
    trigger::install(world);
    schedule::install(world);
    workflow::install(world);
    goal::install(world);
    task::install(world);
}

/// A turn that was fired has ended.
pub(crate) fn turn_ended(world: &mut World, origin: Origin, ended: Ended) {
    if origin.is_fired() {
        let (end, over_budget) = (ended.end, ended.is_over_budget());
        watch::note(world, |_| Note::Ended { origin, end, over_budget });
        world.resource_mut::<EndedTurns>().0.push_back((origin, ended));
    }
}

/// Tells whatever began the turns that ended.
pub(crate) fn tell(world: &mut World) {
    while let Some((origin, ended)) = world.resource_mut::<EndedTurns>().0.pop_front() {
        match origin {
            Origin::Trigger { trigger } => trigger::turn_ended(world, trigger, ended),
            Origin::Schedule { schedule } => schedule::turn_ended(world, schedule, ended),
            Origin::Workflow { run, step } => workflow::turn_ended(world, run, step, ended),
            Origin::Api | Origin::WebSocket | Origin::OpenAi | Origin::Agent { .. } => {}
        }
    }
}

/// Shows the triggers what happened since they looked last.
pub(crate) fn meet(world: &mut World) {
    if world.resource::<Outbox>().has_unmatched() {
        outbox::unmatched(world, trigger::match_events);
    }
}

/// On the beat: what is due is noticed.
pub(crate) fn beat(world: &mut World) {
    schedule::beat(world);
    workflow::beat(world);
    task::beat(world);
}

/// The clock was set back by more than a little: nothing may last longer for it.
pub(crate) fn clock_set_back(world: &mut World) {
    workflow::clock_set_back(world);
    task::clock_set_back(world);
}

/// Would a further round of this step move anything?
pub(crate) fn has_work(world: &World) -> bool {
    !world.resource::<EndedTurns>().0.is_empty()
        || world.resource::<Outbox>().has_unmatched()
        || workflow::has_work(world)
        || (!world.resource::<Budget>().is_spent() && is_waiting(world))
}

/// Do fires wait, for this step or a later one?
pub(crate) fn is_waiting(world: &World) -> bool {
    trigger::has_waiting(world) || schedule::has_due(world)
}

/// An agent leaves the world, and what depends on it has to know. Its entity is still there.
pub(crate) fn agent_removed(world: &mut World, entity: Entity, agent: AgentId) {
    trigger::agent_removed(world, entity, agent);
    schedule::agent_removed(world, entity, agent);
    workflow::agent_removed(world, entity, agent);
    goal::agent_removed(world, agent);
    task::agent_removed(world, agent);
}
