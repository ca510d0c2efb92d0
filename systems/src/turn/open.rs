//! The open turns of an agent are read: those that run and those that wait.

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::{Origin, Turn, TurnState};
use agentsvc_components::{AgentId, SessionId, Timestamp, TurnId};

use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};

/// An open turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its id.
    pub turn: TurnId,
    /// In which session.
    pub session: SessionId,
    /// Source of the message.
    pub origin: Origin,
    /// When the message was taken.
    pub started_at: Timestamp,
    /// Where it is.
    pub state: TurnState,
    /// Tokens so far.
    pub usage: Usage,
    /// Model calls so far.
    pub iterations: u32,
    /// Tool calls so far.
    pub tool_calls: u32,
}

/// Reads the open turns of an agent, newest first.
#[derive(Clone, Copy, Debug)]
pub struct ListOpenTurns {
    /// Whose.
    pub agent: AgentId,
    /// At most this many; of more, which ones is not said.
    pub limit: usize,
}

command! {
    /// The turns, and how many there are in all.
    read "list_open_turns" ListOpenTurns => (Vec<OpenTurn>, usize), Id(|it| it.agent.0), |it, world| {
        Answer::Now(index::agent(world, it.agent).map(|owner| {
            let index = world.resource::<Index>();
            let total = index.turns_of(owner).count();
            let mut turns: Vec<OpenTurn> = index
                .turns_of(owner)
                .take(it.limit)
                .filter_map(|entity| {
                    let turn = world.get::<Turn>(entity)?;
                    Some(OpenTurn {
                        turn: id_of(world, entity),
                        session: id_of(world, turn.session),
                        origin: turn.origin,
                        started_at: turn.created_at,
                        state: turn.state,
                        usage: turn.usage,
                        iterations: turn.iteration,
                        tool_calls: turn.tool_calls,
                    })
                })
                .collect();
            turns.sort_unstable_by_key(|turn| std::cmp::Reverse(turn.turn));
            (turns, total)
        }))
    }
}
