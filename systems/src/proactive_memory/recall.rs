//! Turns are given entries of their agent: the first model call of a turn searches them, and says what it found before it asks
//! the model. The turn keeps that until it ends, so that its later calls, and those after a restart, show the same.
//!
//! | turn | what it is given |
//! |---|---|
//! | of an agent without entries, or whose settings say so | nothing, and nothing is searched |
//! | with the taint of strangers | nothing: entries are about the users of the agent |
//! | of a known user | entries about that user, and those about no user in particular |
//! | any other | those about no user in particular |
//!
//! An entry that names a session is given in that session only.

use bevy_ecs::prelude::{Entity, World};
use serde_json::Value;

use agentsvc_components::agent::Agent;
use agentsvc_components::proactive_memory::Level;
use agentsvc_components::proactive_memory::recall::{MemoryRecalled, Recall, RecallScope, Recalled, RecalledEntry};
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::turn::{Turn, TurnState};
use agentsvc_components::{AgentId, SessionId, TurnId};

use super::counts::Entries;
use super::limits::RECALLED_EXCERPT_BYTES;
use crate::config::Settings;
use crate::kernel::arrivals::Settle;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::taint;

/// What brought the taint of entries, for people.
const SOURCE: &str = "its memory";

/// What the next model call of a turn shows of its agent's entries. Costs little where there are none.
pub(crate) fn for_call(world: &World, entity: Entity) -> Option<Recall> {
    let turn = world.get::<Turn>(entity)?;
    if let Some(recalled) = turn.journal.as_ref().and_then(|journal| journal.recalled.as_ref()) {
        return (!recalled.memories.is_empty()).then(|| Recall::Stored(recalled.clone()));
    }
    let agent = id_of::<AgentId>(world, turn.agent);
    let known = world.resource::<Entries>().get(agent)?;
    if turn.iteration > 1 || known.counts.entries() == 0 {
        return None;
    }
    let manifest = &world.get::<Agent>(turn.agent)?.manifest.manifest;
    if !world.resource::<Settings>().memory.of(manifest).retrieves()
        || !taint::of(world, entity).of_strangers().is_none()
    {
        return None;
    }
    let user = turn.request.as_ref().and_then(|request| request.user.clone());
    Some(Recall::Search(RecallScope { user, session: id_of(world, turn.session) }))
}

/// May a turn of this scope be given the entry?
#[must_use]
pub fn is_for(scope: &RecallScope, entry: &MemoryEntryRecord) -> bool {
    let is_of_user = entry.user.is_none() || entry.user == scope.user;
    is_of_user && (entry.level != Level::Session || session_of(entry).is_none_or(|session| session == scope.session))
}

/// Did the conversation of this scope bring the entry, or another one of the same user?
#[must_use]
pub fn is_own(scope: &RecallScope, entry: &MemoryEntryRecord) -> bool {
    let is_of_user = entry.user.is_some() && entry.user == scope.user;
    is_of_user || session_of(entry).is_some_and(|session| session == scope.session)
}

/// The session that an entry names as `session_id` of its metadata.
fn session_of(entry: &MemoryEntryRecord) -> Option<SessionId> {
    if entry.metadata.is_empty() {
        return None;
    }
    let metadata: Value = serde_json::from_str(&entry.metadata).ok()?;
    metadata["session_id"].as_str()?.parse().ok().map(SessionId)
}

impl Settle for MemoryRecalled {
    fn settle(self, world: &mut World) {
        let Self(attempt, recalled) = self;
        let found = index::turn(world, TurnId(attempt.job.0));
        let turn = found.and_then(|entity| world.get_mut::<Turn>(entity).map(|turn| (entity, turn)));
        let is_out = |turn: &Turn| matches!(turn.state, TurnState::Calling | TurnState::Stopping);
        let Some((entity, mut turn)) = turn.filter(|(_, turn)| turn.attempt == attempt.number && is_out(turn)) else {
            world.resource_mut::<StaleOutcomes>().0 += 1;
            return;
        };
        let read = recalled.taint();
        turn.journal.get_or_insert_default().recalled = Some(recalled.into());
        world.mark(entity);
        taint::add(world, entity, read, SOURCE);
    }
}

/// What the trace of a turn keeps of what it was given.
pub(crate) fn for_trace(recalled: &Recalled) -> Recalled {
    let cut = |entry: &RecalledEntry| {
        let end = entry.content.floor_char_boundary(RECALLED_EXCERPT_BYTES);
        RecalledEntry { content: entry.content[..end].into(), ..entry.clone() }
    };
    Recalled { memories: recalled.memories.iter().map(cut).collect(), ..recalled.clone() }
}
