//! The keys of entries, and of what leads to them.
//!
//! An entry stands under its agent. Two further rows, without a value, lead to it: by its id, and by the user that it is
//! about. They are written and removed with it, and [`companions`] names them for a sweep of all that an agent had.

use uuid::Uuid;

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;

use crate::kernel::record::key::{bytes, uuid};
use crate::kernel::record::{Error, VERSION, decode, entry_prefix, hex};

/// The kinds of rows that lead to entries.
pub(super) const OWNER: u8 = b'i';
/// Rows that lead from a user to entries.
pub(super) const USER: u8 = b'j';

/// The key of an entry.
#[must_use]
pub fn entry_key(agent: AgentId, id: MemoryEntryId) -> Vec<u8> {
    let mut key = entry_prefix(agent);
    key.extend_from_slice(id.0.as_bytes());
    key
}

/// The agent and the id that the key of an entry names; `None` for any other key.
#[must_use]
pub fn parse_entry_key(key: &[u8]) -> Option<(AgentId, MemoryEntryId)> {
    let (b'e', rest) = key.split_first()? else { return None };
    let (agent, id) = rest.split_at_checked(16)?;
    Some((AgentId(id_of(agent)?), MemoryEntryId(id_of(id)?)))
}

/// The common start of the keys that say whose an entry is.
#[must_use]
pub fn owner_prefix(id: MemoryEntryId) -> Vec<u8> {
    uuid(OWNER, id.0)
}

/// The key that says that an entry is this agent's.
#[must_use]
pub fn owner_key(id: MemoryEntryId, agent: AgentId) -> Vec<u8> {
    let mut key = owner_prefix(id);
    key.extend_from_slice(agent.0.as_bytes());
    key
}

/// The common start of the keys of the entries about a user, whose name has no zero byte.
#[must_use]
pub fn user_prefix(user: &str) -> Vec<u8> {
    let mut key = bytes(USER, user.as_bytes());
    key.push(0);
    key
}

/// The key that says that an entry is about a user.
#[must_use]
pub fn user_key(user: &str, agent: AgentId, id: MemoryEntryId) -> Vec<u8> {
    let mut key = user_prefix(user);
    key.extend_from_slice(agent.0.as_bytes());
    key.extend_from_slice(id.0.as_bytes());
    key
}

/// The agent and the id at the end of a key that leads to an entry; `None` for any other key.
#[must_use]
pub fn parse_lead(key: &[u8]) -> Option<(AgentId, MemoryEntryId)> {
    match key.split_first()? {
        (&OWNER, rest) => {
            let (id, agent) = rest.split_at_checked(16)?;
            Some((AgentId(id_of(agent)?), MemoryEntryId(id_of(id)?)))
        }
        (&USER, rest) => {
            let (rest, id) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
            let (rest, agent) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
            rest.ends_with(&[0]).then_some(())?;
            Some((AgentId(id_of(agent)?), MemoryEntryId(id_of(id)?)))
        }
        _ => None,
    }
}

fn id_of(bytes: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(bytes).ok()
}

/// The keys of the rows that lead to an entry, given its own row; none for other rows, and for one that cannot be read only
/// the one that its key tells.
#[must_use]
pub fn companions(key: &[u8], value: &[u8]) -> Vec<Vec<u8>> {
    let Some((agent, id)) = parse_entry_key(key) else { return Vec::new() };
    let mut keys = vec![owner_key(id, agent)];
    if let Ok(MemoryEntryRecord { user: Some(user), .. }) = decode(key, value) {
        keys.push(user_key(&user, agent, id));
    }
    keys
}

/// A row that leads to an entry can be read.
pub(super) fn is_lead(key: &[u8], value: &[u8]) -> Result<(), Error> {
    let reason = if parse_lead(key).is_none() {
        "not the key of an entry"
    } else if value != [VERSION] {
        "it has a value"
    } else {
        return Ok(());
    };
    Err(Error::Corrupt { key: hex(key), reason: reason.to_owned() })
}
