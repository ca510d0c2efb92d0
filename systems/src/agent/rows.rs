//! Rows of agents, of their manifests, and of what is still to be erased.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::agent::{Agent, ImportedFrom, OwnedBy, SpawnedBy};
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::manifest::{Manifest, ManifestHash};
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::{AgentId, LogId, SessionId};

use super::manifests::Manifests;
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, Error, decode, encode, key, op, unknown, uuid_of};
use crate::kernel::restore::Records;
use crate::session::fast_decode;

/// The byte that the keys of manifests begin with.
pub(super) const MANIFESTS: u8 = b'm';
/// The byte that the keys of intents to erase begin with.
pub(super) const SWEEPS: u8 = b'w';

/// A log that waits to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SweptLog(pub LogId);
/// A removed agent whose content waits to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SweptAgent(pub(crate) AgentId);

/// Reads agents straight from their bytes when they have the usual form.
pub(super) fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push::<AgentRecord>(fast_decode::agent(value).map_or_else(|| decode(key, value), Ok)?);
    Ok(())
}

pub(super) fn read_manifest(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let hash = ManifestHash(key[1..].try_into().map_err(|_| unknown(key))?);
    records.push::<(ManifestHash, Manifest)>((hash, decode(key, value)?));
    Ok(())
}

pub(super) fn read_sweep(records: &mut Records, key: &[u8], _: &[u8]) -> Result<(), Error> {
    match <[u8; 8]>::try_from(&key[1..]) {
        Ok(log) => records.push(SweptLog(LogId(u64::from_be_bytes(log)))),
        Err(_) => records.push(SweptAgent(AgentId(uuid_of(key)?))),
    }
    Ok(())
}

pub(crate) fn put_manifest(hash: ManifestHash, manifest: &Manifest) -> Op {
    op(Space::World, key::bytes(MANIFESTS, &hash.0), Some(encode(manifest)))
}

pub(crate) fn remove_manifest(hash: ManifestHash) -> Op {
    op(Space::World, key::bytes(MANIFESTS, &hash.0), None)
}

/// The row of an agent.
pub(super) fn row(world: &World, entity: Entity) -> Option<Op> {
    let agent = world.get::<Agent>(entity)?;
    Some(record::put(&AgentRecord {
        id: id_of(world, entity),
        name: agent.name.clone(),
        manifest: agent.manifest.hash,
        current: id_of::<SessionId>(world, agent.current),
        created_at: agent.created_at,
        updated_at: agent.updated_at,
        input_tokens: agent.input_tokens,
        output_tokens: agent.output_tokens,
        state: agent.state,
        mode: agent.mode,
        parent: world.get::<SpawnedBy>(entity).map(|by| by.0),
        taint: agent.taint,
        imported_from: world.get::<ImportedFrom>(entity).map(|from| Box::new(*from)),
        owner: world.get::<OwnedBy>(entity).map(|by| by.0),
    }))
}

/// The rows of all manifests.
pub(super) fn manifests(world: &mut World, rows: &mut Vec<Op>) {
    rows.extend(world.resource::<Manifests>().all().map(|it| put_manifest(it.hash, &it.manifest)));
}

/// Takes the manifests in, which agents adopt.
pub(super) fn restore_manifests(world: &mut World, records: &mut Records) -> Result<(), Error> {
    for (hash, manifest) in records.take::<(ManifestHash, Manifest)>() {
        world.resource_mut::<Manifests>().load(hash, manifest);
    }
    Ok(())
}

/// Removes manifests that no agent has, and goes on erasing what is gone.
pub(super) fn restore_rest(world: &mut World, records: &mut Records) -> Result<(), Error> {
    for hash in world.resource_mut::<Manifests>().drop_orphans() {
        world.op(remove_manifest(hash));
    }
    for SweptLog(log) in records.take() {
        world.resource_mut::<IdGenerator>().reserve_log(log);
        world.effect(SweepLog(log));
    }
    for SweptAgent(agent) in records.take() {
        world.effect(SweepAgent(agent));
    }
    Ok(())
}
