//! How much knowledge an agent has, and how often it was changed.

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::knowledge::record::KnowledgeUseRecord;
use agentsvc_components::{AgentId, Refusal};

use super::error_codes;
use super::limits::{KNOWLEDGE_BYTES_MAX, KNOWLEDGE_ENTITIES_MAX, KNOWLEDGE_RELATIONS_MAX};
use crate::kernel::check::Faults;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, Error};
use crate::kernel::restore::Records;
use crate::memory;

/// How much every agent has that has any, or had some.
#[derive(Resource, Default)]
pub(crate) struct Graphs(HashMap<AgentId, KnowledgeUseRecord>);

impl Graphs {
    /// The records of all.
    pub(super) fn records(&self) -> impl Iterator<Item = &KnowledgeUseRecord> {
        self.0.values()
    }

    fn of(&self, agent: AgentId) -> KnowledgeUseRecord {
        let none = KnowledgeUseRecord { agent, entities: 0, relations: 0, bytes: 0, revision: 0 };
        self.0.get(&agent).copied().unwrap_or(none)
    }
}

/// A change of how much there is.
#[derive(Default)]
pub(super) struct Change {
    /// Entities more, or fewer.
    pub(super) entities: i64,
    /// Relations more, or fewer.
    pub(super) relations: i64,
    /// Bytes more, or fewer.
    pub(super) bytes: i64,
}

impl Change {
    /// A row is stored in the place of one of so many bytes. Is the row new?
    pub(super) fn put(&mut self, bytes: u64, replaces: Option<u64>) -> i64 {
        self.bytes += bytes.cast_signed() - replaces.unwrap_or(0).cast_signed();
        i64::from(replaces.is_none())
    }
}

/// Checks that `agent` lives and that its knowledge was not changed since the revision `seen`, and changes the numbers.
/// Refuses, and changes nothing, when there would be too much.
pub(super) fn change(
    world: &mut World,
    agent: AgentId,
    seen: u64,
    change: &Change,
) -> Result<KnowledgeUseRecord, Refusal> {
    index::agent(world, agent)?;
    let was = world.resource::<Graphs>().of(agent);
    if was.revision != seen {
        let refusal = Refusal::conflict("the knowledge has changed in the meantime; try again");
        return Err(refusal.with_code(error_codes::KNOWLEDGE_CHANGED));
    }
    let sum = |count: u32, more: i64| u32::try_from((i64::from(count) + more).max(0)).unwrap_or(u32::MAX);
    let now = KnowledgeUseRecord {
        agent,
        entities: sum(was.entities, change.entities),
        relations: sum(was.relations, change.relations),
        bytes: was.bytes.saturating_add_signed(change.bytes),
        revision: was.revision + 1,
    };
    let full = |most: u64, what: &str| {
        Refusal::of(error_codes::KNOWLEDGE_FULL, format!("the agent's knowledge is full: the limit is {most} {what}"))
    };
    if change.entities > 0 && now.entities > KNOWLEDGE_ENTITIES_MAX {
        return Err(full(KNOWLEDGE_ENTITIES_MAX.into(), "entities"));
    }
    if change.relations > 0 && now.relations > KNOWLEDGE_RELATIONS_MAX {
        return Err(full(KNOWLEDGE_RELATIONS_MAX.into(), "relations"));
    }
    if change.bytes > 0 && now.bytes > KNOWLEDGE_BYTES_MAX {
        return Err(full(KNOWLEDGE_BYTES_MAX, "bytes"));
    }
    let more = now.bytes.cast_signed() - was.bytes.cast_signed();
    memory::admit(world, agent, more, error_codes::KNOWLEDGE_FULL)?;
    memory::count(world, agent, more);
    world.resource_mut::<Graphs>().0.insert(agent, now);
    world.op(record::put(&now));
    Ok(now)
}

/// Takes in what is stored (restore).
pub(super) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    for record in records.take::<KnowledgeUseRecord>() {
        memory::count(world, record.agent, record.bytes.cast_signed());
        let mut graphs = world.resource_mut::<Graphs>();
        graphs.0.insert(record.agent, record);
    }
    Ok(())
}

/// Forgets the knowledge of an agent that is removed; its rows are swept with the rest of its content.
pub(super) fn erase(world: &mut World, agent: AgentId) {
    if world.resource_mut::<Graphs>().0.remove(&agent).is_some() {
        world.op(record::remove::<KnowledgeUseRecord>(agent));
    }
}

/// Knowledge stays within its bounds, and is that of agents that live.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    for used in world.resource::<Graphs>().records() {
        let KnowledgeUseRecord { agent, entities, relations, bytes, .. } = *used;
        let holds = entities <= KNOWLEDGE_ENTITIES_MAX
            && relations <= KNOWLEDGE_RELATIONS_MAX
            && bytes <= KNOWLEDGE_BYTES_MAX
            && index::agent(world, agent).is_ok();
        faults.that(holds, || format!("agent {agent}: {entities} entities, {relations} relations of {bytes} bytes"));
    }
}

/// Reads how much knowledge an agent has, once everything before is on disk: the rows read after the answer are at
/// least as new as its revision.
#[derive(Clone, Copy, Debug)]
pub struct GetKnowledgeUse(pub AgentId);

command! {
    read "get_knowledge_use" GetKnowledgeUse => KnowledgeUseRecord, Id(|it| it.0.0), |it, world|
        Answer::stored(index::agent(world, it.0).map(|_| world.resource::<Graphs>().of(it.0)))
}
