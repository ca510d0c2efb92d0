//! What a step leaves behind: records, effects and replies, in the order they came about.

use std::sync::{Mutex, PoisonError};

use bevy_ecs::prelude::{Entity, Resource, World};

use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::record::Op;

use crate::kernel::command::ReplySlot;
use crate::kernel::engine::Release;
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

/// Short ways to the outbox.
pub(crate) trait Emit {
    /// Marks an entity dirty.
    fn mark(&mut self, entity: Entity);
    /// Something is asked of the outside.
    fn effect(&mut self, effect: impl Into<AnyEffect>);
    /// A record that belongs to no entity.
    fn op(&mut self, op: Op);
    /// One that is written on the store's thread.
    fn late(&mut self, late: BoxedRecord);
}

impl Emit for World {
    fn mark(&mut self, entity: Entity) {
        self.resource_mut::<Outbox>().mark(entity);
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
