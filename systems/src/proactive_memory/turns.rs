//! Entries are made of turns: one that has answered its user leaves a job in the same step, whose performer finds what the user
//! said that is worth keeping and writes it.
//!
//! | turn | why it is left out |
//! |---|---|
//! | of a trigger, a schedule, a workflow, another agent, an A2A task or a node | no user said it |
//! | with the taint of strangers | what they say of themselves is not to be known to others |
//! | of a hidden session | its history goes with it, and the client has its own |
//! | that failed, or was stopped | it may be said again |
//! | whose message no rule fits, where no model extracts | nothing is written for it |

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::{Origin, Turn};
use agentsvc_components::{AgentId, LogId, Refusal, RefusalKind, SessionId, TurnId};

use super::extract::may_state_facts;
use super::write::{EntriesWritten, WriteEntries, write};
use super::{audit_kinds, limits};
use crate::agent::holder_of;
use crate::audit::Audit;
use crate::config::Settings;
use crate::config::memory::MemorySettings;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::proactive_memory::metrics::FactTotals;
use crate::taint;

/// The name of the kind of jobs that find facts by rules.
pub const MEMORIZE: &str = "memorize";
/// The name of the kind of jobs whose facts a model finds. They have a lane of their own: rules take a millisecond, and do not
/// wait for a slow model.
pub const MEMORIZE_BY_MODEL: &str = "memorize_by_model";

/// Of a reason that goes on record, so many bytes.
const REASON_BYTES_MAX: usize = 300;

/// Jobs that make entries of turns. Those of an agent run one after the other: a later turn may correct what an earlier one said.
pub(super) const KIND: JobKind = JobKind {
    name: MEMORIZE,
    repeatable: true,
    tries_max: limits::MEMORIZE_TRIES_MAX,
    backoff_ms: limits::MEMORIZE_BACKOFF_MS,
    backoff_ms_max: limits::MEMORIZE_BACKOFF_MS_MAX,
    deadline_ms: limits::MEMORIZE_DEADLINE_MS,
    timeout_ms: limits::MEMORIZE_TIMEOUT_MS,
    lane: limits::MEMORIZE_OUT_MAX,
    subject_lane: 1,
    is_shared: false,
    is_ordered: true,
    count_max: limits::MEMORIZE_OPEN_MAX,
    subject_count_max: limits::AGENT_MEMORIZE_OPEN_MAX,
    subject_bytes_max: limits::AGENT_MEMORIZE_OPEN_MAX * limits::MEMORIZE_INPUT_BYTES_MAX,
    input_bytes_max: limits::MEMORIZE_INPUT_BYTES_MAX,
    bytes_max: limits::MEMORIZE_OPEN_MAX * limits::MEMORIZE_INPUT_BYTES_MAX,
    settle,
};

/// The same by a model.
pub(super) const KIND_BY_MODEL: JobKind = JobKind { name: MEMORIZE_BY_MODEL, ..KIND };

/// The input of a job, as JSON: where the turn is, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnToMemorize {
    /// In which session.
    pub session: SessionId,
    /// Which.
    pub turn: TurnId,
    /// Where its rows are.
    pub log: LogId,
    /// Their ordinal.
    pub ordinal: u32,
    /// Untrusted content that it has read.
    pub taint: Taint,
    /// The user that it was for, in the words of the client: its entries are about that user alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
    /// What a try wrote: it is not done again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Memorized>,
}

/// What became of the facts of a turn: what a job brings, as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memorized {
    /// New entries.
    pub added: u32,
    /// Entries of which they took the place.
    pub updated: u32,
    /// Entries that they contradict, which were deleted.
    pub deleted: u32,
    /// Facts that an entry says already.
    pub unchanged: u32,
}

/// What `[proactive_memory]` says for an agent.
fn settings_of(world: &World, owner: Entity) -> Option<MemorySettings> {
    let agent = world.get::<Agent>(owner)?;
    Some(world.resource::<Settings>().memory.of(&agent.manifest.manifest))
}

/// Does a message of a user to this agent say something that rules would keep? Asked where the text is at hand, for a turn
/// that is about to begin: its end reads no text.
pub(crate) fn states_facts(world: &World, owner: Entity, origin: Origin, messages: &[ChatMessage]) -> bool {
    if !origin.is_message() || settings_of(world, owner).is_none_or(|settings| !settings.memorizes()) {
        return false;
    }
    let last = messages.iter().rev().find(|message| message.role == Role::User);
    last.is_some_and(|message| {
        message.blocks.iter().any(|block| if let Block::Text { text } = block { may_state_facts(text) } else { false })
    })
}

/// A turn has answered its user: it leaves a job, if entries are to be made of it.
pub(crate) fn answered(world: &mut World, entity: Entity) {
    let Some(turn) = world.get::<Turn>(entity).filter(|turn| turn.origin.is_message()) else { return };
    let (owner, ordinal) = (turn.agent, turn.ordinal);
    let user = turn.request.as_ref().and_then(|request| request.user.clone());
    let states_facts = turn.journal.as_ref().is_some_and(|journal| journal.states_facts);
    let Some(session) = world.get::<Session>(turn.session).filter(|session| !session.ephemeral) else { return };
    let (log, session, turn) = (session.log, id_of::<SessionId>(world, turn.session), id_of::<TurnId>(world, entity));
    let taint = taint::of(world, entity);
    let Some(settings) = settings_of(world, owner) else { return };
    let is_wanted = settings.memorizes() && (states_facts || settings.extraction_model.is_some());
    if !is_wanted || !taint.of_strangers().is_none() {
        return;
    }
    let agent = id_of::<AgentId>(world, owner);
    let input = TurnToMemorize { session, turn, log, ordinal, taint, user, written: None };
    // A refusal is counted by the kind of jobs; the turn itself has ended well.
    if let Ok(input) = serde_json::to_string(&input) {
        let kind = if settings.extraction_model.is_some() { MEMORIZE_BY_MODEL } else { MEMORIZE };
        let holder = Some(holder_of(world, owner));
        let _full = job::add(world, kind, NewJob { subject: agent.0, owner: Some(agent), holder, input: input.into() });
    }
}

/// Writes what a try of a job found, all or none, and notes with the job that it did: one that is repeated after a crash writes
/// nothing again. Refused when the job is over, or has another try out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memorize {
    /// The try.
    pub attempt: Attempt,
    /// What to write.
    pub write: WriteEntries,
    /// What it comes to.
    pub memorized: Memorized,
}

command! {
    write "memorize" Memorize => EntriesWritten, Id(|it| it.write.agent.0), |it, world|
        Answer::stored(memorize(world, it))
}

fn memorize(world: &mut World, command: Memorize) -> Result<EntriesWritten, Refusal> {
    let Memorize { attempt, write: entries, memorized } = command;
    let over = || Refusal::new(RefusalKind::Conflict, "the turn is no longer being memorised");
    let is_own = |job: &&Job| [MEMORIZE, MEMORIZE_BY_MODEL].contains(&&*job.kind) && job.owner == Some(entries.agent);
    let job = job::out(world, attempt).filter(is_own);
    let input: TurnToMemorize = job.and_then(|job| serde_json::from_str(&job.input).ok()).ok_or_else(over)?;
    let noted = serde_json::to_string(&TurnToMemorize { written: Some(memorized), ..input }).map_err(|_| over())?;
    let written = write(world, entries)?;
    job::replace_input(world, attempt, noted.into());
    Ok(written)
}

/// Hears of the end of a job.
fn settle(world: &mut World, _: JobId, of: &Job, event: JobEvent) {
    match event {
        JobEvent::Done(text) => count(world, serde_json::from_str(&text).unwrap_or_default()),
        JobEvent::Failed(reason) => given_up(world, of, &reason),
        JobEvent::Unknown => given_up(world, of, "the outcome is unknown"),
        JobEvent::Retried(_) => {}
    }
}

fn count(world: &mut World, of: Memorized) {
    let mut counters = world.resource_mut::<FactTotals>();
    counters.added += u64::from(of.added);
    counters.updated += u64::from(of.updated);
    counters.deleted += u64::from(of.deleted);
    counters.unchanged += u64::from(of.unchanged);
}

/// No entries are made of a turn: that goes on record, unless the last try wrote them and only its end was lost.
fn given_up(world: &mut World, of: &Job, reason: &str) {
    let Some(agent) = of.owner else { return };
    let input = serde_json::from_str::<TurnToMemorize>(&of.input).ok();
    if let Some(written) = input.as_ref().and_then(|input| input.written) {
        return count(world, written);
    }
    let turn = input.map(|input| input.turn);
    let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
    let details = json!({ "turn_id": turn, "tries": of.tries, "reason": reason });
    world.audit(audit_kinds::MEMORY_TURN_NOT_MEMORIZED, agent, details);
}
