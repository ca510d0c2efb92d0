//! Sessions: conversations of an agent. One file per command.

pub mod audit_kinds;
mod branch;
mod clear;
mod create;
mod ending;
#[cfg(test)]
mod ending_tests;
pub mod error_codes;
pub(crate) mod fast_decode;
mod import;
mod index;
pub mod limits;
mod list;
mod metrics;
mod remove;
mod room;
#[cfg(test)]
mod room_tests;
mod row_template;
mod rows;
mod show;
pub(crate) mod strangers;
pub(crate) mod told;

pub use branch::BranchSession;
pub use clear::{ClearHistory, ResetSession};
pub use create::{CreateSession, SetLabel, SwitchSession};
pub use import::{ImportSession, ImportedMessage, bytes as block_bytes};
pub use list::{ListSessions, SessionPosition};
pub use remove::{CleanupSessions, RemoveSession, RemovedSession};
pub use show::{FindByLabel, GetSession, SessionView};
pub use told::{SessionChange, SessionEvent, changes_of};

pub(crate) use room::{Stored, Taken, enter_family, grow, has_room, leave_kin, put_row, restore_count, restore_stored};
pub(crate) use row_template::{MESSAGE_KEY_BYTES, RowTemplate, SaidRow};

pub(crate) use ending::{any_ends, ending_of, is_leaving};
pub(crate) use remove::{discard, remove, remove_all, remove_some};

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::agent::{Agent, AgentState};
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::Session;
use agentsvc_components::session::sweep::{LogSwept, SweepLog};
use agentsvc_components::{LogId, Refusal, RefusalKind, SessionId, TurnId};

use crate::kernel::arrivals::Settle;
use crate::kernel::clock::Now;
use crate::kernel::domain::{Domain, Ends};
use crate::kernel::footprint::{Measure, entries};
use crate::kernel::id_generator::{IdGenerator, mint_for};
use crate::kernel::index::{Index, session as find};
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::outbox::Emit;
use crate::kernel::quota::{Quota, Used};
use crate::kernel::reaction::react;
use crate::kernel::record::{self, Error, Kind, decode, is_record, is_text, parse_message_key, unknown};
use crate::kernel::restore::Records;
use crate::people;
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::record::Record;
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::session::record::SessionRecord;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "people", "taint", "agent", "compaction", "config", "manifest"],
    content: &[(b'r', is_message), (b'u', is_record::<SummaryRecord>), (b'q', is_text)],
    outcomes: &[OutcomeDef::of::<LogSwept>()],
    kinds: &[Kind::new(SessionRecord::KEY, read).with_entities::<Session>(rows::row)],
    measures: &[Measure::of::<SessionId>("sessions", rows::heap, 12 + entries(24, 1))],
    install: |world| {
        index::install(world);
        ending::install(world);
        room::install(world);
        world.init_resource::<told::Changes>();
        world.init_resource::<clear::Clearings>();
    },
    ends: &[
        Ends { waits: clear::has_work, go_on: clear::go_on },
        Ends { waits: ending::has_work, go_on: ending::go_on },
    ],
    has_work: |world| clear::has_work(world) || ending::has_work(world),
    told: told::take,
    is_quiet,
    check: |world, faults| {
        index::check(world, faults);
        ending::check(world, faults);
        room::check(world, faults);
    },
    commands: &[
        CommandDef::of::<BranchSession>(),
        CommandDef::of::<CleanupSessions>(),
        CommandDef::of::<ClearHistory>(),
        CommandDef::of::<CreateSession>(),
        CommandDef::of::<ImportSession>(),
        CommandDef::of::<RemoveSession>(),
        CommandDef::of::<ResetSession>(),
        CommandDef::of::<SetLabel>(),
        CommandDef::of::<SwitchSession>(),
    ],
    limits: limits::ALL,
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    ..Domain::named("session")
};

/// A session or its history is about to go: its turns end first, from the one that runs on.
pub(crate) struct TurnsEnding {
    /// Which session.
    pub(crate) session: Entity,
    /// Why, for people.
    pub(crate) why: Box<str>,
    /// So many at most.
    pub(crate) most: usize,
    /// The last that ends, where later ones go on.
    pub(crate) upto: Option<TurnId>,
}

/// A session of an agent has started, one that stays.
pub(crate) struct SessionStarted {
    /// Whose.
    pub(crate) agent: Entity,
}

/// The history of a session without turns is about to go: nobody needs it any more.
pub(crate) struct HistoryEnding {
    /// Which session.
    pub(crate) session: Entity,
    /// Why, for people.
    pub(crate) why: &'static str,
}

/// The session `id` if it is `owner`'s, `None` if nobody's. Another agent's, and one made for a single request, is
/// refused in words that tell nothing about it (spec 1, Message routing rules, rule 4).
pub(crate) fn owned_or_absent(world: &World, owner: Entity, id: SessionId) -> Result<Option<Entity>, Refusal> {
    let Some(entity) = find(world, id) else { return Ok(None) };
    let is_own = |session: &&Session| session.agent == owner;
    let own = world.get::<Session>(entity).filter(is_own);
    if own.is_some_and(|session| !session.ephemeral) {
        Ok(Some(entity))
    } else if own.is_some() && is_leaving(world, entity) {
        Err(Refusal::busy("the session was removed and its turns still end; try again later", 5))
    } else {
        let refusal = Refusal::new(RefusalKind::Forbidden, "the session belongs to another agent");
        Err(Refusal { field: Some("session_id".to_owned()), ..refusal })
    }
}

/// Refuses a new session under an id that is made of names (a UUID of version 8), such as that of a user or a chat with an agent:
/// whoever knows the names could take it for another agent before.
pub(crate) fn check_chosen(id: SessionId) -> Result<(), Refusal> {
    if id.0.get_version_num() != 8 {
        return Ok(());
    }
    Err(Refusal { field: Some("session_id".to_owned()), ..Refusal::not_found("session", id) })
}

/// The session `id` of `owner`, or a refusal.
pub(crate) fn owned(world: &World, owner: Entity, id: SessionId) -> Result<Entity, Refusal> {
    let is_gone = find(world, id).is_some_and(|entity| is_leaving(world, entity));
    let found = if is_gone { None } else { owned_or_absent(world, owner, id)? };
    found.ok_or_else(|| Refusal::not_found("session", id))
}

/// The session `id` of any agent that whoever acts may know of, or a refusal.
pub(crate) fn existing(world: &World, id: SessionId) -> Result<Entity, Refusal> {
    let shown =
        |session: &Session| !session.ephemeral && lives(world, session) && people::reaches(world, session.agent);
    find(world, id)
        .filter(|entity| world.get(*entity).is_some_and(shown))
        .ok_or_else(|| Refusal::not_found("session", id))
}

/// Is its agent there? Sessions of one that was removed are there for as long as their turns end.
pub(crate) fn lives(world: &World, session: &Session) -> bool {
    world.get::<Agent>(session.agent).is_some_and(|agent| agent.state != AgentState::Terminated)
}

/// Refuses another session of `owner`, or of an agent that is about to be spawned, where there is no room. Not asked for
/// one that takes the place of another.
pub(crate) fn admit(world: &World, owner: Option<Entity>) -> Result<(), Refusal> {
    let index = world.resource::<Index>();
    let of = |what, count| Quota { count, bytes: usize::MAX, what, code: error_codes::SESSIONS_FULL };
    let used = |count| Used { count, bytes: 0 };
    let own = owner.map_or(0, |owner| index.session_count_of(owner));
    of("sessions of this agent", limits::AGENT_SESSIONS_MAX).admit(used(own), 1, 0)?;
    of("sessions", limits::SESSIONS_MAX).admit(used(index.session_count()), 1, 0)?;
    owner.map_or(Ok(()), |owner| room::admit(world, owner))
}

/// Refuses the first sessions of so many new agents where there is no room for them.
pub(crate) fn admit_first(world: &World, agents: usize) -> Result<(), Refusal> {
    let used = Used { count: world.resource::<Index>().session_count(), bytes: 0 };
    let quota =
        Quota { count: limits::SESSIONS_MAX, bytes: usize::MAX, what: "sessions", code: error_codes::SESSIONS_FULL };
    quota.admit(used, agents, 0)
}

/// A new, empty session of `owner`, under `id` where the client brought one.
pub(crate) fn spawn(world: &mut World, owner: Entity, id: Option<SessionId>, label: Option<Box<str>>) -> Entity {
    let (id, entity) = make(world, owner, id, label.clone(), false);
    let mut index = world.resource_mut::<Index>();
    index.insert_owned_session(owner, id);
    room::change(world, owner, room::Taken::ONE);
    let mut index = world.resource_mut::<Index>();
    if let Some(label) = label {
        index.labels.insert((owner, label), entity);
    }
    told::note(world, owner, id, SessionEvent::Started);
    react(world, &SessionStarted { agent: owner });
    entity
}

/// A new session of `owner` that no list, count or lookup shows; it goes with its turn.
pub(crate) fn spawn_hidden(world: &mut World, owner: Entity, id: SessionId) -> Entity {
    let (id, entity) = make(world, owner, Some(id), None, true);
    world.resource_mut::<Index>().hidden.insert((owner, id));
    entity
}

fn make(
    world: &mut World,
    owner: Entity,
    id: Option<SessionId>,
    label: Option<Box<str>>,
    ephemeral: bool,
) -> (SessionId, Entity) {
    let now = world.resource::<Now>().0;
    let id = id.unwrap_or_else(|| mint_for(world, owner));
    let log = world.resource_mut::<IdGenerator>().log();
    let component = Session {
        agent: owner,
        log,
        created_at: now,
        updated_at: now,
        head: None,
        tail: None,
        label: label.map(Box::new),
        message_count: 0,
        next_ordinal: 0,
        queued: 0,
        interrupted: false,
        ephemeral,
        is_strangers: false,
        compacted: 0,
        stored: 0,
        taint: Taint::NONE,
    };
    let entity = world.spawn((id, component)).id();
    world.mark(entity);
    (id, entity)
}

/// Gives the rows of `log` to the sweeper. The sweep survives a crash: its record goes when it is done.
pub(crate) fn sweep(world: &mut World, log: LogId) {
    world.op(record::put_sweep(log));
    world.effect(SweepLog(log));
}

impl Settle for LogSwept {
    fn settle(self, world: &mut World) {
        world.op(record::remove_sweep(self.0));
    }
}

/// A label as the world keeps it: trimmed; `None` for an empty one, which takes the label away.
pub(crate) fn clean_label(label: &str) -> Result<Option<Box<str>>, Refusal> {
    let label = label.trim();
    if label.len() > limit::LABEL_BYTES_MAX {
        let most = limit::LABEL_BYTES_MAX;
        return Err(Refusal::bad_field("label", format!("label is longer than {most} bytes")));
    }
    if label.chars().any(char::is_control) {
        return Err(Refusal::bad_field("label", "label must not contain control characters"));
    }
    Ok((!label.is_empty()).then(|| label.into()))
}

/// Refuses a label that another session of the agent bears.
pub(crate) fn label_free(world: &World, owner: Entity, label: &str, except: Option<Entity>) -> Result<(), Refusal> {
    match world.resource::<Index>().labelled(owner, label) {
        Some(other) if Some(other) != except => {
            let text = format!("this agent already has a session labeled {label:?}");
            Err(Refusal { field: Some("label".to_owned()), ..Refusal::conflict(text) }
                .with_code(error_codes::LABEL_TAKEN))
        }
        _ => Ok(()),
    }
}

/// Reads sessions straight from their bytes when they have the usual form.
fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push::<SessionRecord>(fast_decode::session(value).map_or_else(|| decode(key, value), Ok)?);
    Ok(())
}

fn is_message(key: &[u8], value: &[u8]) -> Result<(), Error> {
    parse_message_key(key).ok_or_else(|| unknown(key))?;
    is_record::<MessageRecord>(key, value)
}

/// Is no session there that was made for one request?
fn is_quiet(world: &mut World) -> bool {
    world.resource::<Index>().hidden_count() == 0 && clear::is_quiet(world) && ending::is_quiet(world)
}
