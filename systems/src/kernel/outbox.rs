//! What a step leaves behind: records, effects, events and replies, in the order they came about.

use std::sync::{Mutex, PoisonError};

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::taint::Taint;

use crate::kernel::clock::Now;
use crate::kernel::command::ReplySlot;
use crate::kernel::engine::Release;
use crate::kernel::reaction;
use crate::kernel::record::BoxedRecord;

/// Something that only one thread ever touches, in a world whose resources must be `Sync`. Access needs
/// `&mut`, so the lock is never taken.
#[derive(Default)]
pub(crate) struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    /// The thing itself.
    pub(crate) fn get(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects what the current step leaves behind.
#[derive(Resource, Default)]
pub(crate) struct Outbox {
    pub(crate) ops: Vec<Op>,
    pub(crate) late: Vec<BoxedRecord>,
    pub(crate) effects: Vec<AnyEffect>,
    pub(crate) events: Vec<EventEnvelope>,
    /// How many of `events` the triggers have seen.
    matched: usize,
    /// How many of `events` the reactions to events have seen.
    told: usize,
    pub(crate) releases: Exclusive<Vec<Release>>,
    dirty: Vec<Entity>,
}

impl Outbox {
    /// Marks an entity whose stored component changed; its record is written at the end of the step.
    pub(crate) fn mark(&mut self, entity: Entity) {
        if self.dirty.last() != Some(&entity) {
            self.dirty.push(entity);
        }
    }

    /// The marked entities so far.
    pub(crate) fn dirty(&self) -> &[Entity] {
        &self.dirty
    }

    /// The marked entities, each once, in a stable order.
    pub(crate) fn take_dirty(&mut self) -> Vec<Entity> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        dirty
    }

    /// Is there an event that the triggers have not seen?
    pub(crate) fn has_unmatched(&self) -> bool {
        self.matched < self.events.len()
    }

    /// The events of the step, which ends with them.
    pub(crate) fn take_events(&mut self) -> Vec<EventEnvelope> {
        (self.matched, self.told) = (0, 0);
        take_whole(&mut self.events)
    }

    /// Answers `slot` when this step is on disk.
    pub(crate) fn reply<R: Send + 'static>(
        &mut self,
        slot: ReplySlot<R>,
        reply: Result<R, agentsvc_components::Refusal>,
    ) {
        self.releases.get().push(Box::new(move || slot.send(reply)));
    }
}

/// Takes a list of the step out, and makes room for as many in the next one: of a crowd there follow more.
pub(crate) fn take_whole<T>(list: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(list.len());
    std::mem::replace(list, room)
}

/// Shows `look` the events that the triggers have not seen, and which of [`Outbox::events`] the first of them is; from
/// here on they have.
pub(crate) fn unmatched(world: &mut World, look: impl FnOnce(&mut World, &[EventEnvelope], usize)) {
    let mut outbox = world.resource_mut::<Outbox>();
    let events = std::mem::take(&mut outbox.events);
    let from = std::mem::replace(&mut outbox.matched, events.len());
    look(world, &events[from..], from);
    put_back(world, events);
}

/// Puts the events of the step back before those that have happened meanwhile.
fn put_back(world: &mut World, events: Vec<EventEnvelope>) {
    let mut outbox = world.resource_mut::<Outbox>();
    let more = std::mem::replace(&mut outbox.events, events);
    outbox.events.extend(more);
}

/// Runs the [reactions](super::reaction) to each event that they have not seen, as the step comes to an end. Events that
/// happen meanwhile are seen too.
pub(crate) fn tell_events(world: &mut World) {
    loop {
        let mut outbox = world.resource_mut::<Outbox>();
        if outbox.told == outbox.events.len() {
            return;
        }
        let events = std::mem::take(&mut outbox.events);
        let from = std::mem::replace(&mut outbox.told, events.len());
        events[from..].iter().for_each(|event| reaction::react(world, event));
        put_back(world, events);
    }
}

/// Short ways to the outbox.
pub(crate) trait Emit {
    /// Marks an entity dirty.
    fn mark(&mut self, entity: Entity);
    /// Something happened.
    fn event(&mut self, event: Event);
    /// Something is asked of the outside.
    fn effect(&mut self, effect: impl Into<AnyEffect>);
    /// A record that belongs to no entity.
    fn op(&mut self, op: Op);
    /// One that is written on the store's thread.
    fn late(&mut self, late: BoxedRecord);
}

/// What an event inherits from what caused it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inherited {
    /// How deep it lies in a chain of fires.
    pub(crate) depth: u8,
    /// Untrusted content behind it.
    pub(crate) taint: Taint,
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
    EventEnvelope { event, at: world.resource::<Now>().0, depth: inherited.depth, taint: inherited.taint }
}

/// Something that happened to this turn, for whoever has more to put into the outbox with it.
pub(crate) fn of_turn(world: &World, turn: Entity, event: Event) -> EventEnvelope {
    happened(world, Some(turn), event)
}

impl Emit for World {
    fn mark(&mut self, entity: Entity) {
        self.resource_mut::<Outbox>().mark(entity);
    }

    fn event(&mut self, event: Event) {
        let happened = happened(self, None, event);
        self.resource_mut::<Outbox>().events.push(happened);
    }

    fn effect(&mut self, effect: impl Into<AnyEffect>) {
        self.resource_mut::<Outbox>().effects.push(effect.into());
    }

    fn op(&mut self, op: Op) {
        self.resource_mut::<Outbox>().ops.push(op);
    }

    fn late(&mut self, late: BoxedRecord) {
        self.resource_mut::<Outbox>().late.push(late);
    }
}
