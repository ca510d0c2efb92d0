//! The rows of a damaged world become rows of a world that restores: what cannot be read goes, and what cannot be without
//! it is mended where that is possible and goes where it is not.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::manifest::Manifest;
use agentsvc_components::record::{AgentRecord, SessionRecord};
use agentsvc_components::{LogId, SessionId, Timestamp};
use agentsvc_systems::record::{self, Stored};
use agentsvc_systems::{Engine, Records, Settings};
use uuid::Uuid;

use super::super::Error;
use super::Pair;

/// Rows that may be taken out one after the other, because something they point at is gone. More is no world any more.
const DANGLING_MAX: usize = 10_000;

/// The largest log that can have been given out: they are counted from 1. A larger one is damage, and to count on from it
/// would leave no log for the sessions to come.
const LOG_MAX: u64 = 1 << 56;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Gives the rows that make a world. `content` gives the rows of the content space, which are only looked at.
pub(super) fn mend<I>(world: Vec<Pair>, content: impl Fn() -> I, lost: &mut Vec<String>) -> Result<Rows, String>
where
    I: Iterator<Item = Result<Pair, Error>>,
{
    let mut rows = Rows::new();
    for (key, value) in world {
        match record::decode_world(&key, &value) {
            Ok(stored) if log_of(&stored).is_some_and(|log| log.0 > LOG_MAX) => {
                lost.push(format!("record {}: no log was ever called as it says", record::hex(&key)));
            }
            Ok(_) => drop(rows.insert(key, value)),
            Err(error) => lost.push(error.to_string()),
        }
    }
    let logs = logs(content());
    agents(&mut rows, &logs, lost);
    orphans(&mut rows, &logs);
    for _ in 0..DANGLING_MAX {
        match restored(&rows) {
            Ok(()) => return Ok(rows),
            Err(record::Error::Dangling { key, what }) => {
                lost.push(format!("record {key}: the {what} that it needs is lost"));
                if !take_out(&mut rows, &key) {
                    return Err(format!("record {key} points at a {what} that is lost"));
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!("more than {DANGLING_MAX} records point at what is lost"))
}

/// Does a world come to life from these?
fn restored(rows: &Rows) -> Result<(), record::Error> {
    let mut records = Records::default();
    for (key, value) in rows {
        records.push(record::decode_world(key, value)?);
    }
    Engine::new(Settings::default(), [0; 32]).restore(records, Timestamp(0))
}

/// The log that a record says is taken.
fn log_of(stored: &Stored) -> Option<LogId> {
    match stored {
        Stored::Session(session) => Some(session.log),
        Stored::Sweep(log) => Some(*log),
        _ => None,
    }
}

/// The logs that have messages.
fn logs(content: impl Iterator<Item = Result<Pair, Error>>) -> BTreeSet<LogId> {
    let keys = content.filter_map(|row| row.ok().map(|(key, _)| key));
    let logs = keys.filter_map(|key| record::parse_message_key(&key)).map(|at| at.log);
    logs.filter(|log| log.0 <= LOG_MAX).collect()
}

fn uuid_key(kind: u8, id: Uuid) -> Vec<u8> {
    [&[kind][..], id.as_bytes()].concat()
}

/// An agent whose manifest is lost gets an empty one, and one whose current session is lost another or a new one.
fn agents(rows: &mut Rows, logs: &BTreeSet<LogId>, lost: &mut Vec<String>) {
    let mut sessions: BTreeMap<_, Vec<SessionRecord>> = BTreeMap::new();
    let (mut agents, mut last) = (Vec::new(), logs.last().map_or(0, |log| log.0));
    for (key, value) in &*rows {
        match record::decode_world(key, value) {
            Ok(Stored::Agent(agent)) => agents.push(agent),
            Ok(Stored::Session(session)) => {
                last = last.max(session.log.0);
                sessions.entry(session.agent).or_default().push(session);
            }
            Ok(Stored::Sweep(log)) => last = last.max(log.0),
            _ => {}
        }
    }
    for agent in agents {
        let manifest = [&b"m"[..], &agent.manifest.0].concat();
        rows.entry(manifest).or_insert_with(|| {
            lost.push(format!("the manifest of agent {:?}: it has an empty one now", agent.name));
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
        taint: agentsvc_components::taint::Taint::NONE,
    }
}

/// Messages whose session is lost are swept by the next start, so that no new session gets their log. The old store has
/// them still.
fn orphans(rows: &mut Rows, logs: &BTreeSet<LogId>) {
    let mut orphans = logs.clone();
    for (key, value) in &*rows {
        if let Ok(Stored::Session(session)) = record::decode_world(key, value) {
            orphans.remove(&session.log);
        }
    }
    for log in orphans {
        rows.insert([&b"w"[..], &log.0.to_be_bytes()].concat(), vec![record::VERSION]);
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
    use super::*;

    #[test]
    fn a_log_that_was_never_given_out_is_damage() {
        let sweep = |log: u64| ([&b"w"[..], &log.to_be_bytes()].concat(), vec![record::VERSION]);
        let mut lost = Vec::new();
        let content = || std::iter::empty::<Result<Pair, Error>>();
        let rows = mend(vec![sweep(7), sweep(LOG_MAX), sweep(u64::MAX)], content, &mut lost).unwrap();
        // The next session gets a log behind those of the rows that stay.
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [sweep(7), sweep(LOG_MAX)]);
        assert_eq!(lost, ["record 77ffffffffffffffff: no log was ever called as it says"]);
    }
}
