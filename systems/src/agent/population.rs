//! The agents and sessions of a stored world: a million of each, so that nothing here costs more than it must.
//!
//! Both lists are in the order of their ids. Ids are minted in order and a session is mostly made with its agent, so
//! whoever is looked for nearly always stands right behind the one who was looked for before ([`Walk`]). The hash
//! indexes, whose places lie all over the memory, are filled by a second thread meanwhile.

use std::thread::{Scope, ScopedJoinHandle};

use bevy_ecs::prelude::{Entity, Mut, World};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::{Agent, AgentState, ImportedFrom, OwnedBy, SpawnedBy};
use agentsvc_components::kernel::taint::KnownAddresses;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::session::{Ending, Session};
use agentsvc_components::{AgentId, LogId, SessionId};

use super::manifests::Manifests;
use super::{Family, removing};
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::{HashIndex, Index};
use crate::kernel::record::Error;
use crate::kernel::restore::{Chunks, Records, dangling};
use crate::session;

/// Entries of an index from which on a second thread is worth its start.
const ASIDE_MIN: usize = 10_000;

/// Ids and who bears them, in the order of the ids.
type Places<Id> = Vec<(Id, Entity)>;

/// Makes all agents and sessions, and their indexes.
pub(crate) fn restore(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let (mut agents, mut sessions) = (records.take::<AgentRecord>(), records.take::<SessionRecord>());
    agents.sort_by_key(|record| record.id);
    sessions.sort_by_key(|record| record.id);
    world.resource_mut::<Index>().loading = true;
    let (places, names, sessions, stored, kin, gone) = std::thread::scope(|scope| {
        let agents = spawn_agents(world, agents)?;
        let names = Filling::start(scope, agents.names);
        let sessions = spawn_sessions(world, sessions, &agents.places)?;
        let known = Filling::start(scope, sessions.hashes);
        point_at_sessions(world, &agents.places, &agents.currents, &sessions.places)?;
        add_parents(world, &agents.places, &agents.parents);
        let mut kin: Vec<usize> = agents.parents.iter().map(|(at, _)| *at).collect();
        for (at, owner) in agents.owned {
            world.entity_mut(agents.places[at].1).insert(owner);
            kin.push(at);
        }
        kin.sort_unstable();
        kin.dedup();
        let kin: Vec<Entity> = kin.into_iter().map(|at| agents.places[at].1).collect();
        for (at, from) in agents.imported {
            world.entity_mut(agents.places[at].1).insert(*from);
        }
        if let Some(log) = sessions.newest_log {
            world.resource_mut::<IdGenerator>().reserve_log(log);
        }
        let mut index = world.resource_mut::<Index>();
        index.set_owned_sessions(sessions.owned);
        for (agent, id) in sessions.hidden {
            index.hidden.insert((agent, id));
        }
        for (agent, label, at) in sessions.labels {
            index.labels.insert((agent, label), sessions.places[at].1);
        }
        let gone: Vec<Entity> = agents.gone.into_iter().map(|at| agents.places[at].1).collect();
        Ok::<_, Error>((agents.places, names.end(), known.end(), sessions.stored, kin, gone))
    })?;
    world.resource_mut::<Index>().end_load(places, names, sessions);
    // Families are found by the index.
    for (agent, units, is_strangers) in stored {
        session::restore_stored(world, agent, units, is_strangers);
    }
    for agent in kin {
        session::restore_count(world, agent);
    }
    removing::restore(world, gone);
    Ok(())
}

/// An index that is being filled, by another thread when it is large.
enum Filling<'scope> {
    Done(HashIndex),
    Aside(ScopedJoinHandle<'scope, HashIndex>),
}

impl<'scope> Filling<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>, entries: Vec<(u64, Entity)>) -> Self {
        if entries.len() < ASIDE_MIN {
            return Self::Done(HashIndex::filled(&entries));
        }
        Self::Aside(scope.spawn(move || HashIndex::filled(&entries)))
    }

    fn end(self) -> HashIndex {
        match self {
            Self::Done(hash_index) => hash_index,
            Self::Aside(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }
}

/// Finds ids in a list that is in their order, fastest when they are asked for in that order too.
struct Walk<'p, Id> {
    places: &'p [(Id, Entity)],
    next: usize,
}

impl<'p, Id: Ord + Copy> Walk<'p, Id> {
    const fn new(places: &'p [(Id, Entity)]) -> Self {
        Self { places, next: 0 }
    }

    fn find(&mut self, id: Id) -> Option<Entity> {
        let at = match self.places.get(self.next) {
            Some((found, _)) if *found == id => self.next,
            _ => self.places.binary_search_by_key(&id, |(id, _)| *id).ok()?,
        };
        self.next = at + 1;
        Some(self.places[at].1)
    }
}

/// The agents that were made.
struct Agents {
    places: Places<AgentId>,
    /// For the index.
    names: Vec<(u64, Entity)>,
    /// The current session of each.
    currents: Vec<SessionId>,
    /// Whom other agents spawned: where in `places`, and by whom.
    parents: Vec<(usize, AgentId)>,
    /// Which were taken over from another program: where in `places`, and from where.
    imported: Vec<(usize, Box<ImportedFrom>)>,
    /// Which belong to users: where in `places`, and to whom.
    owned: Vec<(usize, OwnedBy)>,
    /// Which were being removed: where in `places`.
    gone: Vec<usize>,
}

impl Agents {
    fn for_count(count: usize) -> Self {
        let (places, names) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (parents, imported, owned, gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { places, names, currents: Vec::with_capacity(count), parents, imported, owned, gone }
    }
}

fn spawn_agents(world: &mut World, records: Chunks<AgentRecord>) -> Result<Agents, Error> {
    let mut made = Agents::for_count(records.len());
    let keys = world.resource::<Index>().keys();
    let mut missing = None;
    let entities: Vec<Entity> = world.resource_scope(|world, mut manifests: Mut<'_, Manifests>| {
        let bundles = records.into_iter().map_while(|record| {
            let Some(manifest) = manifests.adopt(record.manifest) else {
                missing = Some(dangling(record.id, "manifest"));
                return None;
            };
            made.parents.extend(record.parent.map(|parent| (made.places.len(), parent)));
            made.imported.extend(record.imported_from.map(|from| (made.places.len(), from)));
            made.owned.extend(record.owner.map(|user| (made.places.len(), OwnedBy(user))));
            made.gone.extend((record.state == AgentState::Terminated).then_some(made.places.len()));
            made.places.push((record.id, Entity::PLACEHOLDER));
            made.names.push((keys.name(&record.name), Entity::PLACEHOLDER));
            made.currents.push(record.current);
            let agent = Agent {
                name: record.name,
                manifest,
                current: Entity::PLACEHOLDER,
                created_at: record.created_at,
                updated_at: record.updated_at,
                input_tokens: record.input_tokens,
                output_tokens: record.output_tokens,
                state: record.state,
                mode: record.mode,
                taint: record.taint,
                stored: 0,
            };
            Some((record.id, agent))
        });
        // A batch looks once more behind its end.
        let bundles = bundles.fuse();
        world.spawn_batch(bundles).collect()
    });
    missing.map_or(Ok(()), Err)?;
    set_entities(&mut made.places, &mut made.names, &entities);
    each_once(&made.places, "agent")?;
    Ok(made)
}

/// The sessions that were made.
struct Sessions {
    places: Places<SessionId>,
    /// For the index.
    hashes: Vec<(u64, Entity)>,
    /// Whose they are, in order.
    owned: Vec<(Entity, SessionId)>,
    hidden: Vec<(Entity, SessionId)>,
    /// Whose label, which, and where in `places` the session is.
    labels: Vec<(Entity, Box<str>, usize)>,
    /// Where in `places` the session is that knows them.
    addresses: Vec<(usize, KnownAddresses)>,
    /// Where in `places` the session is whose turns end.
    endings: Vec<(usize, Ending)>,
    /// Whose they are, what they have stored, and whether strangers began them.
    stored: Vec<(Entity, u32, bool)>,
    newest_log: Option<LogId>,
}

impl Sessions {
    fn for_count(count: usize) -> Self {
        let (places, hashes) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (hidden, labels, stored) = (Vec::new(), Vec::new(), Vec::new());
        let (addresses, endings) = (Vec::new(), Vec::new());
        let owned = Vec::with_capacity(count);
        Self { places, hashes, owned, hidden, labels, addresses, endings, stored, newest_log: None }
    }
}

fn spawn_sessions(
    world: &mut World,
    records: Chunks<SessionRecord>,
    agents: &[(AgentId, Entity)],
) -> Result<Sessions, Error> {
    let mut made = Sessions::for_count(records.len());
    let keys = world.resource::<Index>().keys();
    let (mut agents, mut missing) = (Walk::new(agents), None);
    let bundles = records.into_iter().map_while(|record| {
        let Some(agent) = agents.find(record.agent) else {
            missing = Some(dangling(record.id, "agent"));
            return None;
        };
        made.newest_log = made.newest_log.max(Some(record.log));
        let list = if record.ephemeral { &mut made.hidden } else { &mut made.owned };
        list.push((agent, record.id));
        made.stored.extend((record.stored > 0).then_some((agent, record.stored, record.is_strangers)));
        made.labels.extend(record.label.clone().map(|label| (agent, label, made.places.len())));
        made.places.push((record.id, Entity::PLACEHOLDER));
        made.hashes.push((keys.session(record.id), Entity::PLACEHOLDER));
        let session = Session {
            agent,
            log: record.log,
            created_at: record.created_at,
            updated_at: record.updated_at,
            head: None,
            tail: None,
            label: record.label.map(Box::new),
            message_count: record.message_count,
            next_ordinal: record.next_ordinal,
            queued: 0,
            interrupted: record.interrupted,
            ephemeral: record.ephemeral,
            is_strangers: record.is_strangers,
            compacted: record.compacted,
            stored: record.stored,
            taint: record.taint,
        };
        made.endings.extend(record.ending.map(|ending| (made.places.len() - 1, ending)));
        if !record.addresses.is_empty() {
            made.addresses.push((made.places.len() - 1, KnownAddresses(record.addresses)));
        }
        Some((record.id, session))
    });
    // A batch looks once more behind its end.
    let bundles = bundles.fuse();
    let entities: Vec<Entity> = world.spawn_batch(bundles).collect();
    missing.map_or(Ok(()), Err)?;
    set_entities(&mut made.places, &mut made.hashes, &entities);
    each_once(&made.places, "session")?;
    for (at, known) in made.addresses.drain(..) {
        world.entity_mut(entities[at]).insert(known);
    }
    for (at, ending) in made.endings.drain(..) {
        world.entity_mut(entities[at]).insert(ending);
    }
    Ok(made)
}

/// Fills in who was made, in both lists.
fn set_entities<Id>(places: &mut [(Id, Entity)], hashes: &mut [(u64, Entity)], entities: &[Entity]) {
    for ((place, hash), entity) in places.iter_mut().zip(hashes).zip(entities) {
        (place.1, hash.1) = (*entity, *entity);
    }
}

/// Refuses a list in which an id stands twice.
fn each_once<Id: Ord + Copy + ToString>(places: &[(Id, Entity)], what: &str) -> Result<(), Error> {
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let reason = format!("another {what} has the same id");
            Err(Error::Corrupt { key: pair[1].0.to_string(), reason })
        }
        None => Ok(()),
    }
}

fn point_at_sessions(
    world: &mut World,
    agents: &[(AgentId, Entity)],
    currents: &[SessionId],
    sessions: &[(SessionId, Entity)],
) -> Result<(), Error> {
    let mut sessions = Walk::new(sessions);
    for ((id, entity), current) in agents.iter().zip(currents) {
        let current = sessions.find(*current).ok_or_else(|| dangling(*id, "current session"))?;
        if let Some(mut agent) = world.get_mut::<Agent>(*entity) {
            agent.current = current;
        }
    }
    Ok(())
}

fn add_parents(world: &mut World, agents: &[(AgentId, Entity)], parents: &[(usize, AgentId)]) {
    for (at, parent) in parents {
        let (id, entity) = agents[*at];
        world.entity_mut(entity).insert(SpawnedBy(*parent));
        world.resource_mut::<Family>().insert(*parent, id);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_walk_finds_everything_in_any_order() {
        let entity = |n: u32| Entity::from_raw_u32(n).unwrap();
        let places: Vec<(u32, Entity)> = (0..100).map(|n| (n * 2, entity(n))).collect();
        for step in [1, 7, 99] {
            let mut walk = Walk::new(&places);
            for n in (0..300).map(|n| n * step % 100) {
                assert_eq!(walk.find(n * 2), Some(entity(n)));
                assert_eq!(walk.find(n * 2 + 1), None);
            }
        }
        assert_eq!(Walk::<u32>::new(&[]).find(0), None);
    }

    #[test]
    fn an_id_that_two_records_have_is_an_error_that_names_it() {
        let id = |n| AgentId(Uuid::from_u128(n));
        let place = |n| (id(n), Entity::PLACEHOLDER);
        assert!(each_once(&[place(1), place(2)], "agent").is_ok());
        let error = each_once(&[place(1), place(2), place(2)], "agent").unwrap_err();
        assert_eq!(error.to_string(), format!("record {} cannot be read: another agent has the same id", id(2)));
    }
}
