//! Rows of open turns, and how turns are made of them.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::turn::Turn;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{AgentId, SessionId, TurnId};

use super::{conversation, resume};
use crate::agent::holder_of;
use crate::kernel::index::{self, id_of};
use crate::kernel::record::{self, Error};
use crate::kernel::restore::{Records, dangling};
use crate::session;

/// The row of a turn.
pub(super) fn row(world: &World, entity: Entity) -> Option<Op> {
    turn_record(world, entity).map(|turn| record::put(&turn))
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
        burst: None,
    })
}

/// Brings the turns back that were open.
pub(super) fn restore(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut records = records.take::<TurnRecord>();
    // Ordinals grow within a session, so this rebuilds every inbox in the order in which it was filled. Those of a history that was
    // cleared begin anew behind the turns that still end; these may be of several histories, and stand in the order of their ids.
    let none_ends = !session::any_ends(world);
    let place = |turn: &TurnRecord| {
        let session = if none_ends { None } else { index::session(world, turn.session) };
        let ends = session.is_some_and(|session| session::ending_of(world, session, turn.id).is_some());
        if ends { (turn.session, Some(turn.id), 0) } else { (turn.session, None, turn.ordinal) }
    };
    records.sort_by_key(|record| {
        let (session, id, ordinal) = place(record);
        (session, id.is_none(), id, ordinal)
    });
    let mut waiting = Vec::new();
    for record in records {
        let agent = index::agent(world, record.agent).map_err(|_| dangling(record.id, "agent"))?;
        let session = index::session(world, record.session).ok_or_else(|| dangling(record.id, "session"))?;
        if record.state.has_calls() {
            waiting.push(record.id);
        }
        resume::resume(world, record.id, component(agent, session, holder_of(world, agent), record));
    }
    conversation::sweep_hidden(world);
    resume::reconcile(world, &waiting);
    Ok(())
}

fn component(agent: Entity, session: Entity, holder: Holder, record: TurnRecord) -> Turn {
    Turn {
        agent,
        session,
        holder,
        next: None,
        created_at: record.created_at,
        called_at: record.created_at,
        usage: record.usage,
        request: record.request,
        link: record.link,
        journal: record.journal,
        burst: record.burst,
        ordinal: record.ordinal,
        next_index: record.next_index,
        attempt: record.attempt,
        iteration: record.iteration,
        tool_calls: record.tool_calls,
        state: record.state,
        origin: record.origin,
        depth: record.depth,
        taint: record.taint,
        streaming: false,
        cancelled: record.cancelled,
        pending: record.pending,
    }
}
