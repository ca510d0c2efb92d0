//! The events of a step: kept in the order in which they came about, shown to triggers and reactions, and told when the step
//! is on disk.

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::SessionId;
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::taint::Taint;

use crate::kernel::clock::Now;
use crate::kernel::engine::{Commit, Told};
use crate::kernel::outbox::take_whole;
use crate::kernel::reaction;

/// The events of the current step.
#[derive(Resource, Default)]
pub(crate) struct Events {
    all: Vec<EventEnvelope>,
    /// How many of them the triggers have seen.
    matched: usize,
    /// How many of them the reactions to events have seen.
    told: usize,
}

impl Events {
    /// Is there an event that the triggers have not seen?
    pub(crate) fn has_unmatched(&self) -> bool {
        self.matched < self.all.len()
    }

    /// The event at a place in the step.
    pub(crate) fn get(&self, place: usize) -> Option<&EventEnvelope> {
        self.all.get(place)
    }

    /// Adds one.
    pub(crate) fn push(&mut self, happened: EventEnvelope) {
        self.all.push(happened);
    }
}

/// The events of the step, which ends with them.
pub(super) fn take(world: &mut World) -> Option<Told> {
    let mut step = world.resource_mut::<Events>();
    (step.matched, step.told) = (0, 0);
    if step.all.is_empty() { None } else { Some(Box::new(take_whole(&mut step.all))) }
}

/// The events of a step.
pub fn events(commit: &Commit) -> impl Iterator<Item = &EventEnvelope> {
    commit.told.iter().filter_map(|told| told.downcast_ref::<Vec<EventEnvelope>>()).flatten()
}

/// The events of what a step told, in their order; none when it is something else.
pub fn events_of(told: Told) -> Vec<EventEnvelope> {
    told.downcast().map_or_else(|_| Vec::new(), |events| *events)
}

/// Shows `look` the events that the triggers have not seen, and which of the step's events the first of them is; from
/// here on they have.
pub(crate) fn unmatched(world: &mut World, look: impl FnOnce(&mut World, &[EventEnvelope], usize)) {
    let mut step = world.resource_mut::<Events>();
    let events = std::mem::take(&mut step.all);
    let from = std::mem::replace(&mut step.matched, events.len());
    look(world, &events[from..], from);
    put_back(world, events);
}

/// Puts the events of the step back before those that have happened meanwhile.
fn put_back(world: &mut World, events: Vec<EventEnvelope>) {
    let mut step = world.resource_mut::<Events>();
    let more = std::mem::replace(&mut step.all, events);
    step.all.extend(more);
}

/// Runs the [reactions](crate::kernel::reaction) to each event that they have not seen, as the step comes to an end. Events that
/// happen meanwhile are seen too.
// &mut World: reactions of any domain run in it.
pub(crate) fn tell_events(world: &mut World) {
    loop {
        let mut step = world.resource_mut::<Events>();
        if step.told == step.all.len() {
            return;
        }
        let events = std::mem::take(&mut step.all);
        let from = std::mem::replace(&mut step.told, events.len());
        events[from..].iter().for_each(|event| reaction::react(world, event));
        put_back(world, events);
    }
}

/// What an event inherits from what caused it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inherited {
    /// How deep it lies in a chain of fires.
    pub(crate) depth: u8,
    /// Untrusted content behind it.
    pub(crate) taint: Taint,
    /// The session in which strangers began what it comes from.
    pub(crate) began_in: Option<SessionId>,
    /// Whose share it takes.
    pub(crate) holder: Option<Holder>,
}

/// Adds what a domain knows of an event to what it inherits. `turn` is the turn that it happened to, if that is given.
pub(crate) type Inherit = fn(&World, &Event, Option<Entity>, &mut Inherited);

/// The domains that know what events inherit.
#[derive(Resource, Default)]
pub(crate) struct Inheritance(Vec<Inherit>);

/// From now on `inherit` says what it knows of each event. For `install` functions.
pub(crate) fn inherits(world: &mut World, inherit: Inherit) {
    world.get_resource_or_init::<Inheritance>().0.push(inherit);
}

fn happened(world: &World, turn: Option<Entity>, event: Event) -> EventEnvelope {
    let mut inherited = Inherited::default();
    if let Some(known) = world.get_resource::<Inheritance>() {
        known.0.iter().for_each(|inherit| inherit(world, &event, turn, &mut inherited));
    }
    let Inherited { depth, taint, began_in, holder } = inherited;
    EventEnvelope { event, at: world.resource::<Now>().0, depth, taint, began_in, holder }
}

/// Something that happened to this turn, for whoever has more to put into the outbox with it.
pub(crate) fn of_turn(world: &World, turn: Entity, event: Event) -> EventEnvelope {
    happened(world, Some(turn), event)
}

/// Tells what happened.
pub(crate) trait Tell {
    /// Something happened.
    fn event(&mut self, event: Event);
}

impl Tell for World {
    fn event(&mut self, event: Event) {
        let happened = happened(self, None, event);
        self.resource_mut::<Events>().push(happened);
    }
}
