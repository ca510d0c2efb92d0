//! Nothing is without an owner, and nobody is owned twice.

use std::collections::BTreeMap;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::Agent;
use agentsvc_components::approval::{Approval, ApprovalState};
use agentsvc_components::session::Session;
use agentsvc_components::turn::{Origin, PendingState, PendingTool, Turn, TurnState};
use agentsvc_components::{AgentId, ApprovalId, SessionId, TurnId};

use super::reading;
use super::stop::is_going;
use crate::kernel::check::Faults;
use crate::kernel::index;
use crate::session;

/// Says what lacks its owner, and which inbox is not in order.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut agents = world.query::<(&AgentId, &Agent)>();
    let mut sessions = world.query::<(Entity, &SessionId, &Session)>();
    let mut turns = world.query::<(Entity, &TurnId, &Turn)>();
    let world = &*world;
    for (id, agent) in agents.iter(world) {
        let current = world.get::<Session>(agent.current);
        let is_own =
            current.is_some_and(|session| !session.ephemeral && world.get::<AgentId>(session.agent) == Some(id));
        faults.that(is_own, || format!("agent {id}: its current session is not one of its own"));
    }
    let mut queued = 0;
    for (entity, id, session) in sessions.iter(world) {
        faults.that(world.get::<Agent>(session.agent).is_some(), || format!("session {id}: the agent does not exist"));
        let is_used = !session.ephemeral || session.head.is_some() || session::is_leaving(world, entity);
        faults.that(is_used, || format!("session {id}: it was made for one request and outlived its turn"));
        queued += inbox(world, (entity, id, session), faults);
    }
    let all = turns.iter(world).count();
    faults.that(all == queued, || format!("{all} turns are open, and {queued} stand in inboxes"));
    for (entity, id, turn) in turns.iter(world) {
        own(world, entity, id, turn, faults);
    }
}

/// Walks one inbox; says how many turns stand in it.
fn inbox(world: &World, (entity, id, session): (Entity, &SessionId, &Session), faults: &mut Faults) -> usize {
    let (mut at, mut last, mut count, mut ordinal) = (session.head, None, 0_usize, None);
    while let Some(turn) = at {
        let Some(found) = world.get::<Turn>(turn) else {
            faults.that(false, || format!("session {id}: a turn of its queue does not exist"));
            break;
        };
        count += 1;
        faults.that(found.session == entity && found.agent == session.agent, || {
            format!("session {id}: a turn of its inbox belongs to another session or agent")
        });
        let is_first = count == 1;
        faults.that(is_first != (found.state == TurnState::Queued), || {
            format!("session {id}: turn {count} of its inbox is {:?}; only the first one runs", found.state)
        });
        let turn = index::id_of(world, turn);
        let ending = session::ending_of(world, entity, turn);
        let (ends, log) = (ending.is_some(), ending.map_or(session.log, |ending| ending.log_of(turn)));
        let is_next = ordinal.is_none_or(|(before, of)| of != log || before < found.ordinal);
        faults.that(is_next && (ends || found.ordinal < session.next_ordinal), || {
            format!("session {id}: ordinal {} is out of order behind {ordinal:?}", found.ordinal)
        });
        (ordinal, last, at) = (Some((found.ordinal, log)), at, found.next);
        if count > 1_000_000 {
            faults.that(false, || format!("session {id}: its inbox has no end"));
            break;
        }
    }
    faults.that(last == session.tail, || format!("session {id}: its tail is not the last of its inbox"));
    faults
        .that(count == session.queued as usize, || format!("session {id}: {count} turns, counted {}", session.queued));
    count
}

/// What one open turn must have.
fn own(world: &World, entity: Entity, id: &TurnId, turn: &Turn, faults: &mut Faults) {
    let state = turn.state;
    faults.that(state.has_calls() != turn.pending.is_empty(), || {
        format!("turn {id}: it is {state:?} with {} calls without a result", turn.pending.len())
    });
    let gated = |tool: &PendingTool| matches!(tool.state, PendingState::Gated(_));
    let all_gated = !turn.pending.is_empty() && turn.pending.iter().all(gated);
    faults.that(all_gated == (state == TurnState::WaitingForApproval), || {
        format!("turn {id}: it is {state:?}, and its calls are {:?}", turn.pending)
    });
    let mut rows = BTreeMap::new();
    for tool in &turn.pending {
        let twice = rows.insert(tool.index, ()).is_some();
        faults.that(!twice && tool.index < turn.next_index, || format!("turn {id}: row {} is not its own", tool.index));
        match tool.state {
            // Approvals go with their agent.
            PendingState::Gated(_) if is_going(world, entity) => {}
            PendingState::Gated(approval) => {
                let call = index_of(world, approval).and_then(|approval| approval.call);
                let is_its = call.is_some_and(|call| call.turn == *id && call.index == tool.index);
                faults.that(is_its, || {
                    format!("turn {id}: approval {approval} does not exist, is decided or belongs to another turn")
                });
            }
            PendingState::Adopted(by) if reading::is_scan(world, *id, by) => {}
            PendingState::Adopted(child) => {
                let child = index::turn(world, child).and_then(|child| world.get::<Turn>(child));
                let answers = child.and_then(|child| child.link.as_deref());
                let is_its = answers.is_some_and(|link| link.turn == *id && link.index == Some(tool.index));
                faults.that(is_its, || format!("turn {id}: its call at row {} will never be settled", tool.index));
            }
            PendingState::Waiting | PendingState::Out => {}
        }
    }
    if let Origin::Agent { parent } = turn.origin {
        faults.that(turn.link.as_ref().is_some_and(|link| link.turn == parent), || {
            format!("turn {id}: it lacks its link")
        });
    }
    faults.that(world.get::<TurnId>(entity) == Some(id), || format!("turn {id}: it is not what it is found by"));
}

/// A pending approval.
fn index_of(world: &World, id: ApprovalId) -> Option<&Approval> {
    let found = crate::kernel::entities::state::<Approval>(world, id);
    found.filter(|approval| approval.state == ApprovalState::Pending)
}
