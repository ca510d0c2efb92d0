//! The rows of a damaged world become rows of a world that restores: what cannot be read goes, and what cannot be without
//! it is mended where that is possible and goes where it is not.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::audit::record::{AuditEntry, AuditHead};
use agentsvc_components::kernel::record::{Space, StoredComponent};
use agentsvc_components::manifest::Manifest;
use agentsvc_components::people::{ApiKey, User};
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::sign_in::SignInSession;
use agentsvc_components::trigger::record::TriggerRecord;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{LogId, SessionId, Timestamp};
use agentsvc_systems::audit::decode;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::{AUDIT_HEAD_KEY, AuditKey, read_as};
use agentsvc_systems::people::audit_kinds::{KEY_REVOKED, USER_DELETED};
use agentsvc_systems::{Engine, Records, Settings};
use uuid::Uuid;

use crate::kernel::store::repair::Pair;

/// Rows that may be taken out because something they point at is gone. More is no world any more.
const DANGLING_MAX: usize = 10_000;

/// The largest log that can have been given out: they are counted from 1. A larger one is damage, and to count on from it
/// would leave no log for the sessions to come.
const LOG_MAX: u64 = 1 << 56;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Gives the rows that make a world. `content` gives the content rows, which are only looked at.
pub(super) fn mend(
    world: Vec<Pair>,
    content: &mut dyn Iterator<Item = Pair>,
    lost: &mut Vec<String>,
) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for (key, value) in world {
        match Records::check(Space::World, &key, &value) {
            Ok(()) if log_of(&key, &value).is_some_and(|log| log.0 > LOG_MAX) => {
                lost.push(format!("record {}: it refers to a log that never existed", record::hex(&key)));
            }
            Ok(()) => drop(rows.insert(key, value)),
            Err(error) => lost.push(error.to_string()),
        }
    }
    let Content { logs, audit, gone } = Content::of(content);
    audit_head(&mut rows, audit, lost);
    revoked(&mut rows, &gone, lost);
    agents(&mut rows, &logs, lost);
    pointers(&mut rows, lost)?;
    // Behind that: the messages of a session that went are swept, too.
    orphans(&mut rows, &logs);
    for _ in 0..DANGLING_MAX {
        match restored(&rows) {
            Ok(()) => return Ok(rows),
            Err(record::Error::Dangling { key, what }) => {
                lost.push(without(&key, what));
                if !take_out(&mut rows, &key) {
                    return Err(format!("record {key} refers to a lost {what}"));
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(too_many())
}

/// Does a world come to life from these?
fn restored(rows: &Rows) -> Result<(), record::Error> {
    let mut records = Records::default();
    for (key, value) in rows {
        records.read(key, value)?;
    }
    Engine::new(Settings::default(), [0; 32]).restore(records, Timestamp(0))
}

/// The log that a row says is taken.
fn log_of(key: &[u8], value: &[u8]) -> Option<LogId> {
    let session = || read_as::<SessionRecord>(key, value).map(|session| session.log);
    record::parse_sweep_key(key).or_else(session)
}

/// What the world needs to know of the content rows.
#[derive(Default)]
struct Content {
    /// The logs that have messages.
    logs: BTreeSet<LogId>,
    /// The first and the last entry of the audit log.
    audit: Option<(AuditEntry, AuditEntry)>,
    /// Keys that were revoked and users that were deleted, as the audit log says.
    gone: BTreeSet<Uuid>,
}

impl Content {
    fn of(rows: &mut dyn Iterator<Item = Pair>) -> Self {
        let mut seen = Self::default();
        for (key, value) in rows {
            seen.logs.extend(record::parse_message_key(&key).map(|at| at.log).filter(|log| log.0 <= LOG_MAX));
            let is_entry = matches!(record::parse_audit_key(&key), Some(AuditKey::Entry(_)));
            if let Some(entry) = is_entry.then(|| decode(&value)).flatten() {
                seen.gone.extend(gone_in(&entry));
                let first = seen.audit.take().map_or_else(|| entry.clone(), |(first, _)| first);
                seen.audit = Some((first, entry));
            }
        }
        seen
    }
}

/// The key or the user that is gone since this entry.
fn gone_in(entry: &AuditEntry) -> Option<Uuid> {
    let field = [(KEY_REVOKED, "key"), (USER_DELETED, "user")]
        .into_iter()
        .find(|(kind, _)| kind.as_str() == &*entry.event_type)?
        .1;
    let details: serde_json::Value = serde_json::from_str(&entry.details).ok()?;
    details[field].as_str().and_then(|id| Uuid::try_parse(id).ok())
}

/// Takes out keys and users that an older part of the store still has, though the audit log says that they are gone: none lets
/// anyone in again.
fn revoked(rows: &mut Rows, gone: &BTreeSet<Uuid>, lost: &mut Vec<String>) {
    rows.retain(|key, value| {
        let id = key.get(1..17).and_then(|id| Uuid::from_slice(id).ok()).filter(|_| key.len() == 17);
        let of = read_as_of_user(key, value);
        let is_gone =
            is_person(key) && (id.is_some_and(|id| gone.contains(&id)) || of.is_some_and(|of| gone.contains(&of)));
        if is_gone {
            lost.push(format!("record {}: it was revoked or deleted before", record::hex(key)));
        }
        !is_gone
    });
}

/// Is it the key of a user, of an API key, or of a session of someone who signed in?
fn is_person(key: &[u8]) -> bool {
    key.first().is_some_and(|kind| [User::KEY, ApiKey::KEY, SignInSession::KEY].contains(kind))
}

/// The user whom an API key or a session belongs to.
fn read_as_of_user(key: &[u8], value: &[u8]) -> Option<Uuid> {
    let user = match *key.first()? {
        ApiKey::KEY => record::decode::<ApiKey>(key, value).ok()?.user,
        SignInSession::KEY => record::decode::<SignInSession>(key, value).ok()?.user,
        _ => None,
    };
    user.map(|user| user.0)
}

/// The audit log ends with its newest entry, so that no later one takes the place of one that is stored.
fn audit_head(rows: &mut Rows, audit: Option<(AuditEntry, AuditEntry)>, lost: &mut Vec<String>) {
    let Some((first, last)) = audit else { return };
    let stored = rows.get(AUDIT_HEAD_KEY.as_slice());
    let stored = stored.and_then(|row| record::decode::<AuditHead>(&AUDIT_HEAD_KEY, row).ok());
    if stored.is_some_and(|head| head.last >= last.id) {
        return;
    }
    lost.push("the end of the audit log as the world knew it; restored from the newest entry".to_owned());
    let begins = AuditHead { first: first.id, anchor: first.prev_hash, ..AuditHead::default() };
    let head = AuditHead { last: last.id, hash: last.hash, ..stored.unwrap_or(begins) };
    rows.insert(AUDIT_HEAD_KEY.to_vec(), record::encode(&head));
}

fn uuid_key(kind: u8, id: Uuid) -> Vec<u8> {
    [&[kind][..], id.as_bytes()].concat()
}

/// An agent whose manifest is lost gets an empty one, and one whose current session is lost another or a new one.
fn agents(rows: &mut Rows, logs: &BTreeSet<LogId>, lost: &mut Vec<String>) {
    let mut sessions: BTreeMap<_, Vec<SessionRecord>> = BTreeMap::new();
    let (mut agents, mut last) = (Vec::new(), logs.last().map_or(0, |log| log.0));
    for (key, value) in &*rows {
        last = last.max(log_of(key, value).map_or(0, |log| log.0));
        agents.extend(read_as::<AgentRecord>(key, value));
        if let Some(session) = read_as::<SessionRecord>(key, value) {
            sessions.entry(session.agent).or_default().push(session);
        }
    }
    for agent in agents {
        let manifest = [&b"m"[..], &agent.manifest.0].concat();
        rows.entry(manifest).or_insert_with(|| {
            lost.push(format!("the manifest of agent {:?} was lost; replaced by an empty one", agent.name));
            record::encode(&Manifest::default())
        });
        let own = sessions.get(&agent.id).map(Vec::as_slice).unwrap_or_default();
        if own.iter().any(|session| session.id == agent.current && !session.ephemeral) {
            continue;
        }
        lost.push(format!("the current session of agent {:?}", agent.name));
        let other = own.iter().filter(|session| !session.ephemeral).max_by_key(|session| session.updated_at);
        let current = other.map_or_else(
            || {
                last += 1;
                let session = empty_session(&agent, LogId(last));
                rows.insert(uuid_key(b's', session.id.0), record::encode(&session));
                session.id
            },
            |session| session.id,
        );
        rows.insert(uuid_key(b'a', agent.id.0), record::encode(&AgentRecord { current, ..agent }));
    }
}

/// A session for an agent that has none. Its id is made of the agent's, which no session has.
fn empty_session(agent: &AgentRecord, log: LogId) -> SessionRecord {
    SessionRecord {
        id: SessionId(Uuid::from_u128(agent.id.0.as_u128() ^ 1)),
        agent: agent.id,
        log,
        created_at: agent.created_at,
        updated_at: agent.updated_at,
        label: None,
        message_count: 0,
        next_ordinal: 0,
        interrupted: false,
        ephemeral: false,
        compacted: 0,
        stored: 0,
        taint: agentsvc_components::kernel::taint::Taint::NONE,
        addresses: Vec::new(),
        ending: None,
        is_strangers: false,
    }
}

/// Takes out all at once what points at an agent, a session or a state that is lost. Those that are found by trying cost a
/// whole world each.
fn pointers(rows: &mut Rows, lost: &mut Vec<String>) -> Result<(), String> {
    let (mut agents, mut sessions, mut states) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut owned, mut gone) = (Vec::new(), BTreeMap::new());
    for (key, value) in &*rows {
        agents.extend(read_as::<AgentRecord>(key, value).map(|agent| agent.id));
        owned.extend(read_as::<SessionRecord>(key, value).map(|session| (session.id, session.agent)));
        states.extend(read_as::<ScheduleStateRecord>(key, value).map(|state| state.id));
    }
    for (session, agent) in owned {
        if agents.contains(&agent) {
            sessions.insert(session);
        } else {
            gone.insert(session.0, "agent");
        }
    }
    for (key, value) in &*rows {
        let (id, agent, other) = if let Some(turn) = read_as::<TurnRecord>(key, value) {
            (turn.id.0, turn.agent, (sessions.contains(&turn.session), "session"))
        } else if let Some(trigger) = read_as::<TriggerRecord>(key, value) {
            let target = trigger.target.is_none_or(|target| agents.contains(&target));
            (trigger.id.0, trigger.agent, (target, "target agent"))
        } else if let Some(schedule) = read_as::<ScheduleRecord>(key, value) {
            (schedule.id.0, schedule.agent, (states.contains(&schedule.id), "state"))
        } else {
            continue;
        };
        let (is_there, what) = if agents.contains(&agent) { other } else { (false, "agent") };
        if !is_there {
            gone.insert(id, what);
        }
    }
    if gone.len() > DANGLING_MAX {
        return Err(too_many());
    }
    lost.extend(gone.iter().map(|(id, what)| without(id, what)));
    let id_of = |key: &[u8]| key.get(1..17).and_then(|id| Uuid::from_slice(id).ok());
    rows.retain(|key, _| id_of(key).is_none_or(|id| !gone.contains_key(&id)));
    Ok(())
}

/// What is told of a record that goes.
fn without(id: impl std::fmt::Display, what: &str) -> String {
    format!("record {id}: its {what} is lost")
}

fn too_many() -> String {
    format!("more than {DANGLING_MAX} records refer to lost data")
}

/// Messages whose session is lost are swept by the next start, so that no new session gets their log. The old store has
/// them still.
fn orphans(rows: &mut Rows, logs: &BTreeSet<LogId>) {
    let mut orphans = logs.clone();
    for (key, value) in &*rows {
        if let Some(session) = read_as::<SessionRecord>(key, value) {
            orphans.remove(&session.log);
        }
    }
    for log in orphans {
        rows.entry([&b"w"[..], &log.0.to_be_bytes()].concat()).or_insert_with(|| vec![record::VERSION]);
    }
}

/// Takes the rows out that are called by this id; false when there is none.
fn take_out(rows: &mut Rows, id: &str) -> bool {
    let Ok(id) = Uuid::parse_str(id) else { return false };
    let before = rows.len();
    rows.retain(|key, _| key.get(1..17) != Some(id.as_bytes().as_slice()));
    rows.len() < before
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use agentsvc_components::kernel::id::UserId;
    use agentsvc_systems::kernel::record::MessageKey;

    use super::*;

    /// The row that says that a log is to be swept.
    fn sweep(log: u64) -> Pair {
        ([&b"w"[..], &log.to_be_bytes()].concat(), vec![record::VERSION])
    }

    #[test]
    fn a_log_that_was_never_given_out_is_damage() {
        let mut lost = Vec::new();
        let content = &mut std::iter::empty();
        let rows = mend(vec![sweep(7), sweep(LOG_MAX), sweep(u64::MAX)], content, &mut lost).unwrap();
        // The next session gets a log behind those of the rows that stay.
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [sweep(7), sweep(LOG_MAX)]);
        assert_eq!(lost, ["record 77ffffffffffffffff: it refers to a log that never existed"]);
    }

    #[test]
    fn a_session_whose_agent_is_lost_goes_with_its_messages() {
        let id = |n: u64| Uuid::from_u128(n.into());
        let session = |n: u64| SessionRecord {
            id: SessionId(id(n)),
            agent: AgentId(id(1_000 + n)),
            log: LogId(n),
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
            label: None,
            message_count: 1,
            next_ordinal: 1,
            interrupted: false,
            ephemeral: false,
            compacted: 0,
            stored: 0,
            taint: agentsvc_components::kernel::taint::Taint::NONE,
            addresses: Vec::new(),
            ending: None,
            is_strangers: false,
        };
        let row = |n: u64| (uuid_key(b's', id(n)), record::encode(&session(n)));
        // No session to come may get their logs: they are swept.
        let message = |log: u64| -> Pair {
            (record::message_key(MessageKey { log: LogId(log), ordinal: 0, index: 0 }), Vec::new())
        };
        let content = &mut [message(1), message(2)].into_iter();
        let mut lost = Vec::new();
        let rows = mend(vec![row(1), row(2)], content, &mut lost).unwrap();
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [1, 2].map(sweep));
        assert_eq!(lost.len(), 2);
        assert_eq!(lost[0], format!("record {}: its agent is lost", id(1)));
    }
    #[test]
    fn the_audit_log_ends_with_its_newest_entry() {
        let mut rows = Vec::new();
        let (mut hash, mut lost) = ([0; 32], Vec::new());
        for id in 1..=3 {
            let mut entry = AuditEntry {
                id,
                at: Timestamp(1),
                event_type: "config_set".into(),
                agent: None,
                actor: "api".into(),
                details: "{}".into(),
                prev_hash: hash,
                hash: [0; 32],
            };
            rows.push((record::audit_entry_key(id), agentsvc_systems::audit::encode(&mut entry)));
            hash = entry.hash;
        }
        let head = AuditHead { first: 1, anchor: [0; 32], last: 3, hash };
        let stored = vec![(AUDIT_HEAD_KEY.to_vec(), record::encode(&head))];
        let stale = vec![(AUDIT_HEAD_KEY.to_vec(), record::encode(&AuditHead { last: 1, ..head }))];
        for (world, losses) in [(stored.clone(), 0), (stale, 1), (Vec::new(), 2)] {
            let mended = mend(world, &mut rows.clone().into_iter(), &mut lost).unwrap();
            assert_eq!(mended.into_iter().collect::<Vec<_>>(), stored);
            assert_eq!(lost.len(), losses, "{lost:?}");
        }
    }

    #[test]
    fn keys_that_the_audit_log_says_are_gone_do_not_come_back() {
        let id = |n: u64| Uuid::from_u128(n.into());
        let key = |n: u64, user: Option<u64>| {
            let user = user.map(|user| UserId(id(user)));
            (
                uuid_key(ApiKey::KEY, id(n)),
                record::encode(&ApiKey { name: n.to_string().into(), user, ..ApiKey::default() }),
            )
        };
        let user = |n: u64| {
            (uuid_key(User::KEY, id(n)), record::encode(&User { name: n.to_string().into(), ..User::default() }))
        };
        let mut hash = [0; 32];
        let mut entry = |at: u64, event_type: &str, details: String| {
            let mut entry = AuditEntry {
                id: at,
                at: Timestamp(1),
                event_type: event_type.into(),
                agent: None,
                actor: "api".into(),
                details: details.into(),
                prev_hash: hash,
                hash: [0; 32],
            };
            let row = (record::audit_entry_key(at), agentsvc_systems::audit::encode(&mut entry));
            hash = entry.hash;
            row
        };
        let of = |field: &str, n: u64| format!("{{\"{field}\":\"{}\"}}", id(n));
        let content = &mut [
            entry(1, "key_created", of("key", 1)),
            entry(2, "key_revoked", of("key", 2)),
            entry(3, "user_deleted", of("user", 9)),
        ]
        .into_iter();
        let mut lost = Vec::new();
        let world = vec![user(8), user(9), key(1, None), key(2, None), key(3, Some(8)), key(4, Some(9))];
        let rows = mend(world, content, &mut lost).unwrap();
        let people: Vec<_> = rows.into_keys().filter(|key| is_person(key)).collect();
        assert_eq!(people, [user(8).0, key(1, None).0, key(3, None).0]);
        assert_eq!(lost.iter().filter(|text| text.contains("revoked or deleted")).count(), 3, "{lost:?}");
    }
}
