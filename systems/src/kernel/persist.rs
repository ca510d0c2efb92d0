//! Dirty entities become records, once per step.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::{Agent, ImportedFrom, SpawnedBy};
use agentsvc_components::approval::Approval;
use agentsvc_components::approval::record::ApprovalRecord;
use agentsvc_components::compaction::Compaction;
use agentsvc_components::compaction::record::CompactionRecord;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::session::Session;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::trigger::TriggerState;
use agentsvc_components::trigger::record::TriggerStateRecord;
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::workflow::record::{RunRecord, WorkflowRecord};
use agentsvc_components::workflow::{Workflow, WorkflowRun};
use agentsvc_components::{AgentId, SessionId, TurnId};

use crate::kernel::index::id_of;
use crate::kernel::outbox::Outbox;
use crate::kernel::record;
use crate::schedule::state as schedule_state;
use crate::{goal, task, trigger};

/// How each kind of entity becomes its record; `None` when the entity is of another kind. One line per kind.
const KINDS: &[fn(&World, Entity) -> Option<Op>] =
    &[turn, session, agent, compaction, approval, goal, task, run, workflow, trigger_state, schedule];

/// Writes the record of every dirty entity that still lives. Tombstones of the others are there already: the
/// remove hooks wrote them.
pub(crate) fn record_dirty(world: &mut World) {
    let dirty = world.resource_mut::<Outbox>().take_dirty();
    if dirty.is_empty() {
        return;
    }
    let own = dirty.iter().filter(|entity| !trigger::is_in_burst(world, **entity));
    let ops: Vec<Op> = own.filter_map(|entity| record_of(world, *entity)).collect();
    world.resource_mut::<Outbox>().ops.extend(ops);
}

/// The record of an entity; `None` of one that has none.
pub(crate) fn record_of(world: &World, entity: Entity) -> Option<Op> {
    KINDS.iter().find_map(|kind| kind(world, entity))
}

fn agent(world: &World, entity: Entity) -> Option<Op> {
    let agent = world.get::<Agent>(entity)?;
    Some(record::put_agent(&AgentRecord {
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
    }))
}

fn session(world: &World, entity: Entity) -> Option<Op> {
    let session = world.get::<Session>(entity)?;
    Some(record::put_session(&SessionRecord {
        id: id_of(world, entity),
        agent: id_of::<AgentId>(world, session.agent),
        log: session.log,
        created_at: session.created_at,
        updated_at: session.updated_at,
        label: session.label.as_deref().cloned(),
        message_count: session.message_count,
        next_ordinal: session.next_ordinal,
        interrupted: session.interrupted,
        ephemeral: session.ephemeral,
        compacted: session.compacted,
        taint: session.taint,
    }))
}

fn turn(world: &World, entity: Entity) -> Option<Op> {
    turn_record(world, entity).map(|turn| record::put_turn(&turn))
}

/// The record of a turn.
pub(crate) fn turn_record(world: &World, entity: Entity) -> Option<TurnRecord> {
    let turn = world.get::<Turn>(entity)?;
    Some(TurnRecord {
        id: id_of::<TurnId>(world, entity),
        agent: id_of::<AgentId>(world, turn.agent),
        session: id_of::<SessionId>(world, turn.session),
        created_at: turn.created_at,
        usage: turn.usage,
        ordinal: turn.ordinal,
        next_index: turn.next_index,
        attempt: turn.attempt,
        iteration: turn.iteration,
        tool_calls: turn.tool_calls,
        pending: turn.pending.clone(),
        state: turn.state,
        origin: turn.origin,
        request: turn.request.clone(),
        link: turn.link.clone(),
        depth: turn.depth,
        taint: turn.taint,
        cancelled: turn.cancelled,
        journal: turn.journal.clone(),
    })
}

fn compaction(world: &World, entity: Entity) -> Option<Op> {
    let job = world.get::<Compaction>(entity)?;
    Some(record::put_compaction(&CompactionRecord {
        id: id_of(world, entity),
        session: id_of::<SessionId>(world, job.session),
        log: job.log,
        from: job.from,
        upto: job.upto,
        attempt: job.attempt,
    }))
}

fn goal(world: &World, entity: Entity) -> Option<Op> {
    goal::record_of(world, entity).map(|goal| record::put_goal(&goal))
}

fn task(world: &World, entity: Entity) -> Option<Op> {
    task::record_of(world, entity).map(|task| record::put_task(&task))
}

fn workflow(world: &World, entity: Entity) -> Option<Op> {
    let workflow = world.get::<Workflow>(entity)?;
    Some(record::put_workflow(&WorkflowRecord {
        id: id_of(world, entity),
        name: workflow.name.clone(),
        description: workflow.description.clone(),
        steps: workflow.steps.clone(),
        created_at: workflow.created_at,
        updated_at: workflow.updated_at,
    }))
}

/// A run without its texts, which are written when they come.
fn run(world: &World, entity: Entity) -> Option<Op> {
    let run = world.get::<WorkflowRun>(entity)?;
    Some(record::put_run(&RunRecord {
        id: id_of(world, entity),
        workflow: run.workflow,
        name: run.name.clone(),
        caller: run.caller,
        above: run.above.clone(),
        depth: run.depth,
        state: run.state,
        at: run.at,
        started_at: run.started_at,
        ended_at: run.ended_at,
        error: run.error.clone(),
        progress: run.progress.clone(),
        taint: run.taint,
    }))
}

/// What a trigger is, its commands write; one that has done nothing yet has no record of what it did.
fn trigger_state(world: &World, entity: Entity) -> Option<Op> {
    let log = world.get::<TriggerState>(entity)?.0.as_deref()?.clone();
    let (id, bursts) = (id_of(world, entity), trigger::bursts_so_far(world));
    Some(record::put_trigger_state(&TriggerStateRecord { id, log, bursts }))
}

fn schedule(world: &World, entity: Entity) -> Option<Op> {
    schedule_state(world, entity).map(|record| record::put_schedule_state(&record))
}

fn approval(world: &World, entity: Entity) -> Option<Op> {
    let approval = world.get::<Approval>(entity)?.clone();
    Some(record::put_approval(&ApprovalRecord {
        id: id_of(world, entity),
        agent: approval.agent,
        action: approval.action,
        description: approval.description,
        payload: approval.payload,
        state: approval.state,
        created_at: approval.created_at,
        deadline: approval.deadline,
        decided_at: approval.decided_at,
        reason: approval.reason,
        call: approval.call,
    }))
}

/// The entities that changed in this step.
#[cfg(test)]
pub(crate) fn changed(world: &mut World) -> Vec<Entity> {
    use agentsvc_components::goal::Goal;
    use agentsvc_components::schedule::Schedule;
    use agentsvc_components::task::Task;
    use bevy_ecs::prelude::{Changed, Or};
    type Work = Or<(Changed<Workflow>, Changed<WorkflowRun>, Changed<Goal>, Changed<Task>)>;
    type Automation = Or<(Work, Changed<TriggerState>, Changed<Schedule>, Changed<Approval>)>;
    type Touched = Or<(Changed<Agent>, Changed<Session>, Changed<Turn>, Changed<Compaction>, Automation)>;
    let mut query = world.query_filtered::<Entity, Touched>();
    query.iter(world).collect()
}

/// What the records of these entities must be once the step is stored, be it in bursts.
#[cfg(test)]
pub(crate) fn expected(world: &World, entities: &[Entity]) -> Vec<Op> {
    entities.iter().filter_map(|entity| record_of(world, *entity)).collect()
}
