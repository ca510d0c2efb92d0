//! The entities of one stored kind: found by their ids and wherever else their domain looks for them, read one by one and
//! page by page, bounded by a [`Quota`](super::quota::Quota).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Bound::{Excluded, Unbounded};
use std::ops::{Deref, DerefMut};

use bevy_ecs::component::Mutable;
use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Component, Entity, Mut, Resource, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::DurableId;
use agentsvc_components::kernel::record::StoredComponent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::check::Faults;
use super::command::{Answer, Command, Place, Room};
use super::outbox::{Emit, Outbox};
use super::page::Page;
use super::quota::Used;
use super::record;

/// A stored kind whose entities are found by their ids.
pub trait Indexed: StoredComponent + Component<Mutability = Mutable> + Clone {
    /// Where else they are found.
    type Places: Places<Self>;
    /// What a refusal calls one.
    const NOUN: &'static str;
    /// Bytes of its texts.
    fn bytes(&self) -> usize;

    /// May whoever acts know of this one?
    fn is_reached(&self, _: &World) -> bool {
        true
    }

    /// Does whoever acts know of some only?
    fn is_narrowed(_: &World) -> bool {
        false
    }

    /// Those that whoever acts may know of, from after an id on, in the order of their ids, and maybe a few others; `None` for
    /// those who know of all. Lists look at these alone, so that nobody makes the world look at what belongs to others.
    fn own(_: &World, _after: Option<Self::Id>) -> Option<Own<'_, Self::Id>> {
        None
    }
}

/// What belongs to whoever acts.
pub(crate) type Own<'w, I> = Box<dyn Iterator<Item = I> + 'w>;

/// Makes a kind [`Indexed`]: where its entities are found, what a refusal calls one, and its own `bytes`; and where some
/// clients know of some only, who does, of which, and by which index lists find those. Only lists that are each of one agent that
/// whoever acts reaches need no such index.
macro_rules! indexed {
    ($kind:ident: $places:ty, $noun:literal $(, $narrowed:path => $reached:path $(, $own:path)?)?) => {
        impl $crate::kernel::entities::Indexed for $kind {
            type Places = $places;
            const NOUN: &'static str = $noun;

            fn bytes(&self) -> usize {
                Self::bytes(self)
            }

            $(
                fn is_reached(&self, world: &bevy_ecs::prelude::World) -> bool {
                    $reached(world, self)
                }

                fn is_narrowed(world: &bevy_ecs::prelude::World) -> bool {
                    $narrowed(world)
                }

                $(
                    fn own(
                        world: &bevy_ecs::prelude::World,
                        after: Option<Self::Id>,
                    ) -> Option<$crate::kernel::entities::Own<'_, Self::Id>> {
                        $own(world, after)
                    }
                )?
            )?
        }
    };
}

pub(crate) use indexed;

/// Where the entities of a kind are found, beside their ids. What `insert` adds, `remove` takes out.
pub trait Places<K: Indexed>: Default + Debug + PartialEq + Send + Sync + 'static {
    /// Takes one in.
    fn insert(&mut self, id: K::Id, entity: &K);
    /// Takes it out.
    fn remove(&mut self, id: K::Id, entity: &K);
}

/// Places of which one function takes one in and out, so that both go together.
pub trait Mirrored<K: Indexed>: Default + Debug + PartialEq + Send + Sync + 'static {
    /// Takes one in, or out.
    fn place(&mut self, id: K::Id, entity: &K, is_in: bool);
}

/// For a kind whose entities are found by their ids alone.
impl<K: Indexed> Mirrored<K> for () {
    fn place(&mut self, _: K::Id, _: &K, _: bool) {}
}

impl<K: Indexed, P: Mirrored<K>> Places<K> for P {
    fn insert(&mut self, id: K::Id, entity: &K) {
        self.place(id, entity, true);
    }

    fn remove(&mut self, id: K::Id, entity: &K) {
        self.place(id, entity, false);
    }
}

/// What takes items in, or out.
pub(crate) trait Put<T> {
    /// Takes the item in, or out.
    fn put(&mut self, item: T, is_in: bool);
}

impl<T: Ord> Put<T> for BTreeSet<T> {
    fn put(&mut self, item: T, is_in: bool) {
        if is_in {
            self.insert(item);
        } else {
            self.remove(&item);
        }
    }
}

impl<K: Ord, V> Put<(K, V)> for BTreeMap<K, V> {
    fn put(&mut self, (key, value): (K, V), is_in: bool) {
        if is_in {
            self.insert(key, value);
        } else {
            self.remove(&key);
        }
    }
}

/// Takes the item in under its key, or out. No set is empty.
pub(crate) fn put_under<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: K, item: T, is_in: bool) {
    if is_in {
        sets.entry(key).or_default().insert(item);
    } else if let Some(set) = sets.get_mut(&key) {
        set.remove(&item);
        if set.is_empty() {
            sets.remove(&key);
        }
    }
}

/// Every entity of a kind. Kept by the hooks of its id and by [`change`].
#[derive(Resource)]
pub struct Entities<K: Indexed> {
    by_id: BTreeMap<K::Id, Entity>,
    /// What they take.
    pub(crate) used: Used,
    places: K::Places,
}

impl<K: Indexed> Default for Entities<K> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), used: Used::default(), places: K::Places::default() }
    }
}

impl<K: Indexed> Deref for Entities<K> {
    type Target = K::Places;

    fn deref(&self) -> &K::Places {
        &self.places
    }
}

impl<K: Indexed> DerefMut for Entities<K> {
    fn deref_mut(&mut self) -> &mut K::Places {
        &mut self.places
    }
}

impl<K: Indexed> Entities<K> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The one called `id`.
    pub(crate) fn get(&self, id: K::Id) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    /// All of them in the order of their ids, from after `after` on.
    pub(crate) fn after(&self, after: Option<K::Id>) -> impl Iterator<Item = (K::Id, Entity)> + '_ {
        self.by_id.range((after.map_or(Unbounded, Excluded), Unbounded)).map(|(id, entity)| (*id, *entity))
    }

    /// All of them from the newest on, or from before `before` on.
    pub(crate) fn before(&self, before: Option<K::Id>) -> impl Iterator<Item = (K::Id, Entity)> + '_ {
        self.by_id.range((Unbounded, before.map_or(Unbounded, Excluded))).rev().map(|(id, entity)| (*id, *entity))
    }

    fn insert(&mut self, id: K::Id, at: Entity, entity: &K) {
        self.by_id.insert(id, at);
        self.used.add(entity.bytes());
        self.places.insert(id, entity);
    }

    fn remove(&mut self, id: K::Id, entity: &K) {
        self.by_id.remove(&id);
        self.used.remove(entity.bytes());
        self.places.remove(id, entity);
    }
}

/// Prepares a new world for a kind.
pub(crate) fn install<K: Indexed>(world: &mut World) {
    world.init_resource::<Entities<K>>();
    world.register_component_hooks::<K::Id>().on_insert(inserted::<K>).on_remove(removed::<K>);
}

fn inserted<K: Indexed>(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some((id, entity)) = found::<K>(&world, at.entity) else { return };
    world.resource_mut::<Entities<K>>().insert(id, at.entity, &entity);
}

/// The entity goes: its record goes with it.
fn removed<K: Indexed>(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some((id, entity)) = found::<K>(&world, at.entity) else { return };
    world.resource_mut::<Entities<K>>().remove(id, &entity);
    world.resource_mut::<Outbox>().ops.push(record::remove_component::<K>(id));
}

fn found<K: Indexed>(world: &DeferredWorld<'_>, at: Entity) -> Option<(K::Id, K)> {
    Some((*world.get::<K::Id>(at)?, world.get::<K>(at)?.clone()))
}

/// The one called `id`, or a refusal that names it; the same for one that whoever acts must not know of.
pub(crate) fn find<K: Indexed>(world: &World, id: K::Id) -> Result<Entity, Refusal> {
    let found = world.resource::<Entities<K>>().get(id);
    found.filter(|at| reached::<K>(world, *at)).ok_or_else(|| Refusal::not_found(K::NOUN, id))
}

fn reached<K: Indexed>(world: &World, at: Entity) -> bool {
    world.get::<K>(at).is_some_and(|it| it.is_reached(world))
}

/// The state of the one called `id`; nothing when there is none.
pub(crate) fn state<K: Indexed>(world: &World, id: K::Id) -> Option<&K> {
    world.get(world.resource::<Entities<K>>().get(id)?)
}

/// Changes one in its component and in every place, and marks it. Nothing happens when there is none.
pub(crate) fn change<K: Indexed>(world: &mut World, at: Entity, change: impl FnOnce(&mut K)) {
    let Some(id) = world.get::<K::Id>(at).copied() else { return };
    world.resource_scope(|world, mut all: Mut<'_, Entities<K>>| {
        let Some(mut entity) = world.get_mut::<K>(at) else { return };
        all.remove(id, &entity);
        change(&mut entity);
        all.insert(id, at, &entity);
    });
    world.mark(at);
}

/// Says which place is wrong, and what `each` finds wrong with each ([`check`](super::check)).
pub(crate) fn check<K: Indexed>(world: &mut World, faults: &mut Faults, each: impl Fn(&World, K::Id, &K, &mut Faults)) {
    let mut found = world.query::<(Entity, &K::Id, &K)>();
    let world = &*world;
    let (mut scan, all) = (Entities::<K>::default(), world.resource::<Entities<K>>());
    for (at, id, entity) in found.iter(world) {
        scan.insert(*id, at, entity);
        each(world, *id, entity, faults);
    }
    faults.same(K::NOUN, &all.by_id, &scan.by_id);
    faults.same(K::NOUN, &all.used, &scan.used);
    faults.same(K::NOUN, &all.places, &scan.places);
}

/// What readers see of an entity.
pub trait View: Send + Sized + 'static {
    /// Its kind.
    type Kind: Indexed;
    /// Which of them a list shows.
    type Filter: Send + 'static;
    /// The names of the commands that read one, and a page of them.
    const NAMES: [&'static str; 2];
    /// Where they are. One is where its id says, unless all are in the root slot.
    const PLACE: Place<List<Self>>;

    /// Of this one; nothing when it is no entity of the kind.
    fn of(world: &World, at: Entity) -> Option<Self>;

    /// Does the filter let it pass?
    fn passes(&self, _filter: &Self::Filter) -> bool {
        true
    }

    /// A page of those that the filter lets pass.
    ///
    /// # Errors
    /// A refusal of the filter.
    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        let all = world.resource::<Entities<Self::Kind>>();
        Ok(list.filled(world, Some(all.len()), all.after(list.after)))
    }

    /// Of the one called `id`.
    ///
    /// # Errors
    /// 404 when there is none.
    fn seen(world: &World, id: <Self::Kind as StoredComponent>::Id) -> Result<Self, Refusal> {
        let at = find::<Self::Kind>(world, id)?;
        Self::of(world, at).ok_or_else(|| Refusal::not_found(Self::Kind::NOUN, id))
    }
}

/// A page of views. The total is left out where counting would cost too much.
pub type ViewPage<V> = Page<V, IdOf<V>, Option<usize>>;

/// The id of what a view shows.
pub type IdOf<V> = <<V as View>::Kind as StoredComponent>::Id;

/// Reads one by its id.
#[derive(Clone, Copy, Debug)]
pub struct Get<V: View>(pub IdOf<V>);

impl<V: View> Command for Get<V> {
    type Reply = V;
    const NAME: &'static str = V::NAMES[0];
    const WRITES: bool = false;
    const PLACE: Place<Self> = match V::PLACE {
        Place::Root => Place::Root,
        _ => Place::Id(|it| it.0.to_uuid()),
    };
    const QUICK: bool = true;

    fn run(self, world: &mut World) -> Answer<V> {
        Answer::Now(V::seen(world, self.0))
    }
}

/// Reads a page, in the order of creation.
#[derive(Clone, Debug)]
pub struct List<V: View> {
    /// Which.
    pub filter: V::Filter,
    /// Go on after this one; it need not exist any more.
    pub after: Option<IdOf<V>>,
    /// At most this many; cut to [`PAGE_ITEMS_MAX`](agentsvc_components::kernel::limit::PAGE_ITEMS_MAX).
    pub limit: usize,
}

impl<V: View> List<V> {
    /// The page of these, as far as the filter lets them pass. For those who know of some only it is a page of their own: the filter
    /// chooses among all of them, in the order of their ids, and how many others there are is not for them.
    pub(crate) fn filled(
        &self,
        world: &World,
        total: Option<usize>,
        found: impl Iterator<Item = (IdOf<V>, Entity)>,
    ) -> ViewPage<V> {
        let total = total.filter(|_| !V::Kind::is_narrowed(world));
        let known = |at: Entity| reached::<V::Kind>(world, at).then_some(at);
        let shown = |at| V::of(world, known(at)?).filter(|view| view.passes(&self.filter));
        let Some(own) = V::Kind::own(world, self.after) else { return Page::of(found, self.limit, total, shown) };
        let all = world.resource::<Entities<V::Kind>>();
        Page::of(own.filter_map(|id| Some((id, all.get(id)?))), self.limit, total, shown)
    }

    /// The page of those that `found` finds from after an id on. They are counted on the first page alone.
    pub(crate) fn counted<I: Iterator<Item = IdOf<V>>>(
        &self,
        world: &World,
        found: impl Fn(Option<IdOf<V>>) -> I,
    ) -> ViewPage<V> {
        let all = world.resource::<Entities<V::Kind>>();
        let total = self.after.is_none().then(|| found(None).count());
        self.filled(world, total, found(self.after).filter_map(|id| Some((id, all.get(id)?))))
    }
}

impl<V: View<Filter: Default>> Default for List<V> {
    fn default() -> Self {
        Self { filter: V::Filter::default(), after: None, limit: 0 }
    }
}

impl<V: View> Command for List<V> {
    type Reply = ViewPage<V>;
    const NAME: &'static str = V::NAMES[1];
    const WRITES: bool = false;
    const PLACE: Place<Self> = V::PLACE;

    fn run(self, world: &mut World) -> Answer<ViewPage<V>> {
        Answer::Now(V::page(world, &self))
    }
}

/// A kind that clients remove by its id.
pub trait Removable: Indexed<Id: Serialize + DeserializeOwned> {
    /// The name of the command.
    const REMOVE: &'static str;
    /// Where one is.
    const PLACE: Place<Remove<Self>>;
    /// The room on the disk without which it is refused.
    const ROOM: Room = Room::Changes;
    /// What clients are told of its removal.
    type Reply: Send + 'static;

    /// It is about to go: puts that on the audit trail, and takes with it what belongs to it.
    fn removed(self, world: &mut World, id: Self::Id) -> Self::Reply;
}

/// Removes one by its id.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Remove<K: Removable>(pub K::Id);

impl<K: Removable> Command for Remove<K> {
    type Reply = K::Reply;
    const NAME: &'static str = K::REMOVE;
    const WRITES: bool = true;
    const PLACE: Place<Self> = K::PLACE;
    const ROOM: Room = K::ROOM;

    fn run(self, world: &mut World) -> Answer<K::Reply> {
        Answer::stored(remove::<K>(world, self.0))
    }
}

fn remove<K: Removable>(world: &mut World, id: K::Id) -> Result<K::Reply, Refusal> {
    let entity = find::<K>(world, id)?;
    let it = world.get::<K>(entity).cloned().ok_or_else(|| Refusal::not_found(K::NOUN, id))?;
    let reply = it.removed(world, id);
    world.despawn(entity);
    Ok(reply)
}
