//! Keys: a kind byte and a big-endian id, so that key order is the order of time.

use uuid::Uuid;

use agentsvc_components::{AgentId, LogId, TurnId};

/// Where one message of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageKey {
    /// Which log.
    pub log: LogId,
    /// The turn's place in the session.
    pub ordinal: u32,
    /// The row's place in the turn; 0 is the user's message.
    pub index: u32,
}

pub(crate) fn uuid(kind: u8, id: Uuid) -> Vec<u8> {
    bytes(kind, id.as_bytes())
}

pub(crate) fn bytes(kind: u8, id: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + id.len());
    key.push(kind);
    key.extend_from_slice(id);
    key
}

/// The kinds of content that a log is made of, which go with it: messages, long tool results and summaries.
const LOG_KINDS: [u8; 3] = *b"rqu";

/// The common starts of everything that a log is made of.
pub fn log_prefixes(log: LogId) -> impl Iterator<Item = [u8; 9]> {
    LOG_KINDS.into_iter().map(move |kind| of_log(kind, log))
}

/// The common start of all rows of `log`.
#[must_use]
pub fn log_prefix(log: LogId) -> [u8; 9] {
    of_log(b'r', log)
}

fn of_log(kind: u8, log: LogId) -> [u8; 9] {
    let mut prefix = [kind; 9];
    prefix[1..].copy_from_slice(&log.0.to_be_bytes());
    prefix
}

/// The key of one message.
#[must_use]
pub fn message_key(at: MessageKey) -> Vec<u8> {
    place(log_prefix(at.log), at)
}

/// The key of a tool result that is too long for its row.
#[must_use]
pub fn result_key(at: MessageKey) -> Vec<u8> {
    place(of_log(b'q', at.log), at)
}

fn place(prefix: [u8; 9], at: MessageKey) -> Vec<u8> {
    let mut key = Vec::with_capacity(17);
    key.extend_from_slice(&prefix);
    key.extend_from_slice(&at.ordinal.to_be_bytes());
    key.extend_from_slice(&at.index.to_be_bytes());
    key
}

/// The common start of the summaries of `log`; they stand in the order in which they were written.
#[must_use]
pub fn summary_prefix(log: LogId) -> [u8; 9] {
    of_log(b'u', log)
}

/// The key of the summary of the turns before `upto`.
#[must_use]
pub fn summary_key(log: LogId, upto: u32) -> Vec<u8> {
    let mut key = Vec::with_capacity(13);
    key.extend_from_slice(&summary_prefix(log));
    key.extend_from_slice(&upto.to_be_bytes());
    key
}

/// The common start of the traces of an agent's turns; they stand in the order of time.
#[must_use]
pub fn trace_prefix(agent: AgentId) -> Vec<u8> {
    uuid(b'y', agent.0)
}

/// The key of the trace of one turn.
#[must_use]
pub fn trace_key(agent: AgentId, turn: TurnId) -> Vec<u8> {
    let mut key = trace_prefix(agent);
    key.extend_from_slice(turn.0.as_bytes());
    key
}

/// The common start of the entries of an agent's memory; they stand in the order of their keys.
#[must_use]
pub fn memory_prefix(agent: AgentId) -> Vec<u8> {
    uuid(b'k', agent.0)
}

/// The key of one entry of an agent's memory.
#[must_use]
pub fn memory_key(agent: AgentId, key: &str) -> Vec<u8> {
    let mut bytes = memory_prefix(agent);
    bytes.extend_from_slice(key.as_bytes());
    bytes
}

/// The common start of the rows of an agent's knowledge.
#[must_use]
pub fn knowledge_prefix(agent: AgentId) -> Vec<u8> {
    uuid(b'g', agent.0)
}

/// The common start of the entries of the memory that an agent keeps; they stand in the order of their ids.
#[must_use]
pub fn entry_prefix(agent: AgentId) -> Vec<u8> {
    uuid(b'e', agent.0)
}

/// The common starts of the content that goes with an agent, beside its logs: traces, memory and knowledge.
#[must_use]
pub fn agent_prefixes(agent: AgentId) -> [Vec<u8>; 4] {
    [trace_prefix(agent), memory_prefix(agent), entry_prefix(agent), knowledge_prefix(agent)]
}

/// The place that a message's key names; `None` for any other key.
#[must_use]
pub fn parse_message_key(key: &[u8]) -> Option<MessageKey> {
    let (b'r', rest) = key.split_first()? else { return None };
    let rest: &[u8; 16] = rest.try_into().ok()?;
    let word = |at: usize| u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
    let log = LogId(u64::from(word(0)) << 32 | u64::from(word(4)));
    Some(MessageKey { log, ordinal: word(8), index: word(12) })
}

/// What a row of the audit trail is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditKey {
    /// The entry with this id.
    Entry(u64),
    /// A checkpoint up to this entry; stands right behind it.
    Checkpoint(u64),
}

/// The common start of all rows of the audit trail; they stand in the order of their entries.
pub const AUDIT_PREFIX: [u8; 1] = *b"z";

/// The key of an entry of the audit trail.
#[must_use]
pub fn audit_entry_key(id: u64) -> Vec<u8> {
    bytes(AUDIT_PREFIX[0], &id.to_be_bytes())
}

/// The key of a checkpoint up to an entry.
#[must_use]
pub fn audit_checkpoint_key(id: u64) -> Vec<u8> {
    let mut key = audit_entry_key(id);
    key.push(b'c');
    key
}

/// What a row of the audit trail is; `None` for any other key.
#[must_use]
pub fn parse_audit_key(key: &[u8]) -> Option<AuditKey> {
    let (id, rest) = key.strip_prefix(&AUDIT_PREFIX)?.split_first_chunk::<8>()?;
    let id = u64::from_be_bytes(*id);
    match rest {
        [] => Some(AuditKey::Entry(id)),
        [b'c'] => Some(AuditKey::Checkpoint(id)),
        _ => None,
    }
}

/// The log that the key of an intent to erase names; `None` for any other key.
#[must_use]
pub fn parse_sweep_key(key: &[u8]) -> Option<LogId> {
    let (b'w', log) = key.split_first()? else { return None };
    Some(LogId(u64::from_be_bytes(log.try_into().ok()?)))
}

/// The key of an agent's manifest text.
#[must_use]
pub fn manifest_text_key(agent: AgentId) -> Vec<u8> {
    uuid(b'x', agent.0)
}
