//! Askers that wait for the end of something that is stored, such as a task.

use std::collections::BTreeMap;

use bevy_ecs::prelude::{Resource, World};

use super::command::{Answer, ReplySlot};
use super::entities::{IdOf, View};
use super::outbox::{Exclusive, Outbox};

/// Who waits for which of a kind. An entry lives as long as what it waits for is open.
#[derive(Resource)]
pub(crate) struct Waiters<V: View>(Exclusive<BTreeMap<IdOf<V>, Vec<ReplySlot<V>>>>);

impl<V: View> Default for Waiters<V> {
    fn default() -> Self {
        Self(Exclusive::default())
    }
}

/// Lets the asker wait for the end of what `view` shows. It is answered at once when that is not open, and when `most` wait.
pub(crate) fn wait<V: View>(world: &mut World, id: IdOf<V>, view: V, is_open: bool, most: usize) -> Answer<V> {
    let waiting = world.resource_mut::<Waiters<V>>().0.get().get(&id).map_or(0, Vec::len);
    if !is_open || waiting >= most {
        return Answer::read(view);
    }
    Answer::Later(Box::new(move |world, slot| {
        world.resource_mut::<Waiters<V>>().0.get().entry(id).or_default().push(slot);
    }))
}

/// It has ended: those who wait are answered with what it is then.
pub(crate) fn tell<V: View + Clone>(world: &mut World, id: IdOf<V>) {
    let waiting = world.resource_mut::<Waiters<V>>().0.get().remove(&id).unwrap_or_default();
    if waiting.is_empty() {
        return;
    }
    let view = V::seen(world, id);
    let mut outbox = world.resource_mut::<Outbox>();
    waiting.into_iter().for_each(|slot| outbox.reply(slot, view.clone()));
}
