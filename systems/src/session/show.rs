//! One session is read. Its messages are read from the content store by its log.

use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use agentsvc_components::agent::Agent;
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, LogId, Refusal, SessionId, Timestamp};

use super::{SessionPosition, existing, owned};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index, id_of};
use crate::people;

/// What the world knows of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Whose.
    pub agent: AgentId,
    /// The owner's name.
    pub agent_name: Box<str>,
    /// Where its messages are.
    pub log: LogId,
    /// The user's name for it.
    pub label: Option<Box<str>>,
    /// User messages and answers; a summary counts as one.
    pub message_count: u32,
    /// Turns with a smaller ordinal stand in the summary stored under it; 0 when there is none.
    pub compacted: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Is it the agent's current one?
    pub current: bool,
    /// Turns in its queue, including the running turn.
    pub queued: u32,
    /// How many of its turns have ended: all but those in the queue, which are the last ones.
    pub ended_turns: u32,
    /// Made for one request; no list shows it.
    pub ephemeral: bool,
    /// The owner's place in this process's order.
    pub owner: u64,
}

impl SessionView {
    pub(crate) fn of(world: &World, entity: Entity) -> Option<Self> {
        let session = world.get::<Session>(entity)?;
        let agent = world.get::<Agent>(session.agent)?;
        Some(Self {
            id: id_of(world, entity),
            agent: id_of(world, session.agent),
            agent_name: agent.name.clone(),
            log: session.log,
            label: session.label.as_deref().cloned(),
            message_count: session.message_count,
            compacted: session.compacted,
            created_at: session.created_at,
            updated_at: session.updated_at,
            current: agent.current == entity,
            queued: session.queued,
            ended_turns: session.next_ordinal.saturating_sub(session.queued),
            ephemeral: session.ephemeral,
            owner: session.agent.to_bits(),
        })
    }

    /// Where a list goes on after this session.
    #[must_use]
    pub const fn position(&self) -> SessionPosition {
        SessionPosition { owner: self.owner, session: self.id }
    }
}

/// Reads one session.
#[derive(Clone, Copy, Debug)]
pub enum GetSession {
    /// By its id, whoever owns it.
    ById(SessionId),
    /// The current one of an agent.
    Current(AgentId),
    /// By its id, if it is this agent's.
    Of(AgentId, SessionId),
}

impl GetSession {
    /// Its session, or else its agent.
    const fn place(&self) -> Uuid {
        match self {
            Self::ById(id) => id.0,
            Self::Current(agent) | Self::Of(agent, _) => agent.0,
        }
    }
}

command! {
    quick "get_session" GetSession => SessionView, Id(GetSession::place), |it, world|
        Answer::Now(find(world, it).and_then(|entity| view(world, entity)))
}

fn find(world: &World, which: GetSession) -> Result<Entity, Refusal> {
    match which {
        GetSession::ById(id) => existing(world, id),
        GetSession::Of(agent, id) => owned(world, index::agent(world, agent)?, id),
        GetSession::Current(agent) => {
            let owner = index::agent(world, agent)?;
            world.get::<Agent>(owner).map(|a| a.current).ok_or_else(|| Refusal::not_found("agent", agent))
        }
    }
}

fn view(world: &World, entity: Entity) -> Result<SessionView, Refusal> {
    let is_known = world.get::<Session>(entity).is_some_and(|session| people::reaches(world, session.agent));
    SessionView::of(world, entity)
        .filter(|_| is_known)
        .ok_or_else(|| Refusal::not_found("session", id_of::<SessionId>(world, entity)))
}

/// Reads the session of an agent that bears a label.
#[derive(Clone, Debug)]
pub struct FindByLabel {
    /// Whose.
    pub agent: AgentId,
    /// The label, exactly.
    pub label: String,
}

command! {
    quick "find_by_label" FindByLabel => SessionView, Id(|it| it.agent.0), |it, world| {
        Answer::Now(index::agent(world, it.agent).and_then(|owner| {
            let found = world.resource::<Index>().labelled(owner, &it.label);
            let missing = || Refusal::not_found("session with label", &it.label);
            view(world, found.ok_or_else(missing)?)
        }))
    }
}
