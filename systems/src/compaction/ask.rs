//! A compaction is asked for (spec 1, POST /api/agents/{id}/session/compact).

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::Usage;
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId};

use super::plan::{begin, ended_turns};
use super::{CompactionWaiters, Compactions};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};
use crate::session;

/// Turns that are too few to gain anything.
const TURNS_FEW: u32 = 2;

/// Compacts a session and waits until that is done. The newest third of its turns stays, at least one and at most
/// [`limit::COMPACTION_KEPT_TURNS`]. One that is under way already is joined.
///
/// Refused with `compaction_failed` when no summary comes, with `session_removed` when the history goes meanwhile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompactSession {
    /// Whose.
    pub agent: AgentId,
    /// Which session; `None` is the current one.
    pub session: Option<SessionId>,
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionReply {
    /// Which session.
    pub session: SessionId,
    /// Messages before.
    pub messages_before: u32,
    /// Messages now, the summary included; the same when there was nothing to compact.
    pub messages_after: u32,
    /// Messages replaced by the summary; 0 if there was nothing to compact.
    pub messages_summarised: u32,
    /// Tokens of the calls that wrote the summary.
    pub usage: Usage,
}

impl CompactionReply {
    /// A sentence with the counts.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { messages_before: before, messages_after: after, messages_summarised: summarised, .. } = self;
        if *summarised == 0 {
            return format!("Nothing to compact: all {before} messages of the session are recent.");
        }
        let kept = after.saturating_sub(1);
        format!("Compacted {before} messages to {after}: {summarised} summarized, the {kept} most recent kept.")
    }
}

command! {
    write "compact_session" CompactSession => CompactionReply, Id(|it| it.agent.0), |it, world| {
        let job = match find(world, it).and_then(|session| join_or_begin(world, session)) {
            Ok(Found::Job(job)) => job,
            Ok(Found::Nothing(reply)) => return Answer::Now(Ok(reply)),
            Err(refusal) => return Answer::Now(Err(refusal)),
        };
        Answer::Later(Box::new(move |world, slot| {
            world.resource_mut::<CompactionWaiters>().0.get().entry(job).or_default().push(slot);
        }))
    }
}

/// What there is to wait for.
enum Found {
    Job(Entity),
    Nothing(CompactionReply),
}

fn find(world: &World, command: CompactSession) -> Result<Entity, Refusal> {
    let owner = index::agent(world, command.agent)?;
    match command.session {
        Some(id) => session::owned(world, owner, id),
        None => {
            let current = world.get::<Agent>(owner).map(|agent| agent.current);
            current.ok_or_else(|| Refusal::not_found("agent", command.agent))
        }
    }
}

fn join_or_begin(world: &mut World, session: Entity) -> Result<Found, Refusal> {
    if let Some(job) = world.resource::<Compactions>().of(session) {
        let waiting = world.resource_mut::<CompactionWaiters>().0.get().get(&job).map_or(0, Vec::len);
        if waiting >= limit::COMPACTION_WAITERS_MAX {
            let text = "too many requests are waiting for this session's compaction; try again later";
            return Err(Refusal { retry_after_secs: Some(5), ..Refusal::new(RefusalKind::TooMany, text) });
        }
        return Ok(Found::Job(job));
    }
    let gone = || Refusal::not_found("session", "of this agent");
    let home = world.get::<Session>(session).ok_or_else(gone)?;
    let ended = ended_turns(world, home);
    if ended <= TURNS_FEW {
        let (messages, id) = (home.message_count, id_of(world, session));
        return Ok(Found::Nothing(CompactionReply {
            session: id,
            messages_before: messages,
            messages_after: messages,
            messages_summarised: 0,
            usage: Usage::default(),
        }));
    }
    if world.resource::<Compactions>().len() >= limit::COMPACTIONS_MAX {
        return Err(Refusal::busy("too many compactions are running; try again later", 5));
    }
    let kept = (ended / 3).clamp(1, limit::COMPACTION_KEPT_TURNS);
    begin(world, session, ended - kept).map(Found::Job).ok_or_else(gone)
}
