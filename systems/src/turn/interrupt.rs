//! Interrupt: a running turn ends at its next boundary between tool calls (spec 1, Interrupting a turn).
//!
//! | situation                   | result                                                                  |
//! |-----------------------------|-------------------------------------------------------------------------|
//! | between tool calls          | the turn ends at once; what the model said so far is stored             |
//! | model call in progress      | the call completes; with tool calls in its answer the turn ends then    |
//! | tool executing              | it runs to its end, others that have not begun do not, then the turn ends |
//! | already finished            | nothing                                                                 |
//! | no active turn              | the flag stays; it ends the next turn that starts without a new message |
//!
//! The flag of the session goes when a turn that a new message began starts, or with the session. The running turn
//! carries its own mark, and so does every turn that it began through `agent_send`, recursively.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::session::Session;
use agentsvc_components::turn::{PendingState, Turn, TurnState};
use agentsvc_components::{AgentId, Refusal, SessionId};

use super::delegate::children;
use super::finish::{End, finish, gated};
use super::tools;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::{approval, session};

/// Sets a session's interrupt flag. Accepted at any time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct InterruptSession {
    /// Whose.
    pub agent: AgentId,
    /// Which of its sessions.
    pub session: SessionId,
}

command! {
    write "interrupt_session" InterruptSession => (), Id(|it| it.agent.0), |it, world|
        Answer::stored(set_flag(world, it))
}

fn set_flag(world: &mut World, command: InterruptSession) -> Result<(), Refusal> {
    let owner = index::agent(world, command.agent)?;
    let entity = session::owned(world, owner, command.session)?;
    let Some(mut session) = world.get_mut::<Session>(entity) else { return Ok(()) };
    session.interrupted = true;
    let head = session.head;
    world.mark(entity);
    if let Some(head) = head {
        interrupt(world, head);
    }
    cascade(world, command.agent, Some(command.session));
    Ok(())
}

/// Interrupts the turns that an agent began in others through `agent_send`, and theirs.
fn cascade(world: &mut World, agent: AgentId, session: Option<SessionId>) {
    for child in children(world, agent, session) {
        let Some(turn) = world.get::<Turn>(child) else { continue };
        let (agent, session) = (id_of(world, turn.agent), id_of(world, turn.session));
        if turn.cancelled {
            continue;
        }
        interrupt(world, child);
        cascade(world, agent, Some(session));
    }
}

/// Ends a turn at its next boundary.
fn interrupt(world: &mut World, entity: Entity) {
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    match turn.state {
        TurnState::Reserving => return finish(world, entity, End::Interrupted),
        TurnState::Stopping => return,
        TurnState::Queued | TurnState::Calling | TurnState::WaitingForTools | TurnState::WaitingForApproval => {
            turn.cancelled = true;
        }
    }
    let gated = gated(&turn);
    let waiting = turn.pending.iter().filter(|pending| pending.state == PendingState::Waiting);
    let waiting: Vec<u32> = waiting.map(|pending| pending.index).collect();
    turn.pending.retain(|pending| !matches!(pending.state, PendingState::Waiting | PendingState::Gated(_)));
    world.mark(entity);
    tools::leave_line(world, entity, waiting);
    for approval in gated {
        approval::withdraw(world, approval, "its turn was interrupted");
    }
    tools::proceed(world, entity);
}
