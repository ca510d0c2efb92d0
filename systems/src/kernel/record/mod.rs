//! Stored forms to bytes and back. The table of kinds is in `components/src/kernel/record.rs`.
//!
//! A value is one version byte and then the record as MessagePack with named fields. A reader accepts every
//! version up to its own; fields that a later version added are filled by `#[serde(default)]`.

mod burst;
mod content;
mod key;
mod late;
mod stencil;
mod straight;
mod usage;

pub use content::check_content;
pub use key::{
    AUDIT_PREFIX, AuditKey, MessageKey, agent_prefixes, audit_checkpoint_key, audit_entry_key, log_prefix,
    log_prefixes, manifest_text_key, memory_key, memory_prefix, message_key, parse_audit_key, parse_message_key,
    result_key, summary_key, summary_prefix, trace_key, trace_prefix,
};

pub(crate) use burst::{put_burst, put_burst_left, remove_burst, remove_burst_left};
pub use late::Late;
pub use stencil::Stencil;
pub use usage::{active_key, parse_active_key, usage_key, usage_range};
pub(crate) use usage::{
    put_active, put_budget, put_call, put_scope_use, put_usage, put_usage_sum, remove_budget, remove_call,
    remove_scope_use, remove_usage_sum,
};

use serde::Serialize;
use serde::de::DeserializeOwned;

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::approval::record::ApprovalRecord;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::compaction::record::{CompactionRecord, SummaryRecord};
use agentsvc_components::goal::record::GoalRecord;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::manifest::{Manifest, ManifestHash};
use agentsvc_components::memory::record::{MemoryRecord, MemoryUseRecord};
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::task::record::TaskRecord;
use agentsvc_components::trigger::record::{
    BurstLeftRecord, BurstRecord, TriggerRecord, TriggerStateRecord, WaveRecord,
};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::usage::record::{BudgetRecord, CallRecord, ScopeUseRecord};
use agentsvc_components::usage::{Bucket, UsageSum};
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord, WorkflowRecord};
use agentsvc_components::{
    AgentId, ApprovalId, CompactionId, GoalId, LogId, RunId, ScheduleId, SessionId, TaskId, TriggerId, TurnId,
    WorkflowId,
};

/// The version this build writes.
pub const VERSION: u8 = 1;

/// Why a stored record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key is of no known kind or has the wrong length.
    #[error("unknown record key {0}")]
    Key(String),
    /// A newer release wrote it.
    #[error("record {key} has version {found}; this build reads up to {VERSION}")]
    Newer {
        /// The key in hex.
        key: String,
        /// The version found.
        found: u8,
    },
    /// The bytes are not what they should be.
    #[error("record {key} cannot be read: {reason}")]
    Corrupt {
        /// The key in hex.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A record points at another that is not there.
    #[error("record {key} points at a {what} that is not stored")]
    Dangling {
        /// The record's id.
        key: String,
        /// What is missing.
        what: &'static str,
    },
}

/// One decoded record of the world space.
#[derive(Debug)]
pub enum Stored {
    /// `a`
    Agent(AgentRecord),
    /// `m`
    Manifest(ManifestHash, Box<Manifest>),
    /// `s`
    Session(SessionRecord),
    /// `t`
    Turn(TurnRecord),
    /// `c`
    Compaction(CompactionRecord),
    /// `w`, of a log
    Sweep(LogId),
    /// `w`, of an agent
    SweepAgent(AgentId),
    /// `k`
    MemoryUse(MemoryUseRecord),
    /// `b` + `c`
    Call(CallRecord),
    /// `b` + `a` or `g`
    ScopeUse(ScopeUseRecord),
    /// `b` and any other byte
    UsageSum(Bucket, UsageSum),
    /// `l`
    Budget(BudgetRecord),
    /// `z`
    Audit(AuditHead),
    /// `o`
    Goal(GoalRecord),
    /// `j`
    Task(TaskRecord),
    /// `f`
    Workflow(WorkflowRecord),
    /// `n`
    Run(RunRecord),
    /// `p`, of a plan
    RunPlan(RunId, RunPlanRecord),
    /// `p`, of a text
    RunText(RunId, RunPart, RunTextRecord),
    /// `g`
    Trigger(Box<TriggerRecord>),
    /// `h`
    TriggerState(Box<TriggerStateRecord>),
    /// `v`
    Wave(WaveRecord),
    /// `x`
    Burst(BurstRecord),
    /// `x`, of what has left
    BurstLeft(BurstLeftRecord),
    /// `d`
    Schedule(Box<ScheduleRecord>),
    /// `e`
    ScheduleState(ScheduleStateRecord),
    /// `i`
    Approval(Box<ApprovalRecord>),
}

/// The stored form of `record`.
pub fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(VERSION);
    let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
    record.serialize(&mut serializer).expect("writing plain values to memory cannot fail");
    bytes
}

/// Reads one stored value; `key` is only for the error's text.
pub fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, Error> {
    match value.split_first() {
        Some((&version, body)) if version <= VERSION && version > 0 => {
            rmp_serde::from_slice(body).map_err(|error| Error::Corrupt { key: hex(key), reason: error.to_string() })
        }
        Some((&found, _)) if found > VERSION => Err(Error::Newer { key: hex(key), found }),
        _ => Err(Error::Corrupt { key: hex(key), reason: "no version byte".to_owned() }),
    }
}

/// Reads one record of the world space.
pub fn decode_world(key: &[u8], value: &[u8]) -> Result<Stored, Error> {
    let unknown = || Error::Key(hex(key));
    let (kind, id) = key.split_first().ok_or_else(unknown)?;
    Ok(match kind {
        b'a' => Stored::Agent(straight::agent(value).map_or_else(|| decode(key, value), Ok)?),
        b's' => Stored::Session(straight::session(value).map_or_else(|| decode(key, value), Ok)?),
        b't' => Stored::Turn(decode(key, value)?),
        b'c' => Stored::Compaction(decode(key, value)?),
        b'm' => {
            let hash = ManifestHash(id.try_into().map_err(|_| unknown())?);
            Stored::Manifest(hash, Box::new(decode(key, value)?))
        }
        b'k' => Stored::MemoryUse(decode(key, value)?),
        b'b' => match id.first() {
            Some(b'c') => Stored::Call(decode(key, value)?),
            Some(b'a' | b'g') => Stored::ScopeUse(decode(key, value)?),
            _ => Stored::UsageSum(usage::parse_bucket(id).ok_or_else(unknown)?, decode(key, value)?),
        },
        b'l' => Stored::Budget(decode(key, value)?),
        b'z' if id.is_empty() => Stored::Audit(decode(key, value)?),
        b'o' => Stored::Goal(decode(key, value)?),
        b'j' => Stored::Task(decode(key, value)?),
        b'f' => Stored::Workflow(decode(key, value)?),
        b'n' => Stored::Run(decode(key, value)?),
        b'p' => {
            let (run, part) = key::parse_run_part(id).ok_or_else(unknown)?;
            match part {
                RunPart::Plan => Stored::RunPlan(run, decode(key, value)?),
                part => Stored::RunText(run, part, decode(key, value)?),
            }
        }
        b'g' => Stored::Trigger(decode(key, value)?),
        b'h' => Stored::TriggerState(decode(key, value)?),
        b'v' => Stored::Wave(decode(key, value)?),
        b'x' => burst::decode_burst(key, id, value).ok_or_else(unknown)??,
        b'd' => Stored::Schedule(Box::new(decode(key, value)?)),
        b'e' => Stored::ScheduleState(decode(key, value)?),
        b'i' => Stored::Approval(Box::new(decode(key, value)?)),
        b'w' if id.len() == 16 => Stored::SweepAgent(AgentId(uuid::Uuid::from_slice(id).map_err(|_| unknown())?)),
        b'w' => Stored::Sweep(LogId(u64::from_be_bytes(id.try_into().map_err(|_| unknown())?))),
        _ => return Err(unknown()),
    })
}

/// Bytes as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn op(space: Space, key: Vec<u8>, value: Option<Vec<u8>>) -> Op {
    Op { space, key, value }
}

pub(crate) fn put_agent(record: &AgentRecord) -> Op {
    op(Space::World, key::uuid(b'a', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_agent(id: AgentId) -> Op {
    op(Space::World, key::uuid(b'a', id.0), None)
}

pub(crate) fn put_session(record: &SessionRecord) -> Op {
    op(Space::World, key::uuid(b's', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_session(id: SessionId) -> Op {
    op(Space::World, key::uuid(b's', id.0), None)
}

pub(crate) fn put_turn(record: &TurnRecord) -> Op {
    op(Space::World, key::uuid(b't', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_turn(id: TurnId) -> Op {
    op(Space::World, key::uuid(b't', id.0), None)
}

pub(crate) fn put_manifest(hash: ManifestHash, manifest: &Manifest) -> Op {
    op(Space::World, key::bytes(b'm', &hash.0), Some(encode(manifest)))
}

pub(crate) fn remove_manifest(hash: ManifestHash) -> Op {
    op(Space::World, key::bytes(b'm', &hash.0), None)
}

pub(crate) fn put_compaction(record: &CompactionRecord) -> Op {
    op(Space::World, key::uuid(b'c', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_compaction(id: CompactionId) -> Op {
    op(Space::World, key::uuid(b'c', id.0), None)
}

pub(crate) fn put_approval(record: &ApprovalRecord) -> Op {
    op(Space::World, key::uuid(b'i', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_approval(id: ApprovalId) -> Op {
    op(Space::World, key::uuid(b'i', id.0), None)
}

pub(crate) fn put_summary(log: LogId, record: &SummaryRecord) -> Op {
    op(Space::Content, summary_key(log, record.upto), Some(encode(record)))
}

pub(crate) fn put_sweep(log: LogId) -> Op {
    op(Space::World, key::bytes(b'w', &log.0.to_be_bytes()), Some(vec![VERSION]))
}

pub(crate) fn remove_sweep(log: LogId) -> Op {
    op(Space::World, key::bytes(b'w', &log.0.to_be_bytes()), None)
}

pub(crate) fn put_agent_sweep(agent: AgentId) -> Op {
    op(Space::World, key::uuid(b'w', agent.0), Some(vec![VERSION]))
}

pub(crate) fn remove_agent_sweep(agent: AgentId) -> Op {
    op(Space::World, key::uuid(b'w', agent.0), None)
}

pub(crate) fn put_memory_use(record: &MemoryUseRecord) -> Op {
    op(Space::World, key::uuid(b'k', record.agent.0), Some(encode(record)))
}

pub(crate) fn remove_memory_use(agent: AgentId) -> Op {
    op(Space::World, key::uuid(b'k', agent.0), None)
}

pub(crate) fn put_goal(record: &GoalRecord) -> Op {
    op(Space::World, key::uuid(b'o', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_goal(id: GoalId) -> Op {
    op(Space::World, key::uuid(b'o', id.0), None)
}

pub(crate) fn put_task(record: &TaskRecord) -> Op {
    op(Space::World, key::uuid(b'j', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_task(id: TaskId) -> Op {
    op(Space::World, key::uuid(b'j', id.0), None)
}

pub(crate) fn put_workflow(record: &WorkflowRecord) -> Op {
    op(Space::World, key::uuid(b'f', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_workflow(id: WorkflowId) -> Op {
    op(Space::World, key::uuid(b'f', id.0), None)
}

pub(crate) fn put_run(record: &RunRecord) -> Op {
    op(Space::World, key::uuid(b'n', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_run(id: RunId) -> Op {
    op(Space::World, key::uuid(b'n', id.0), None)
}

pub(crate) fn put_run_plan(id: RunId, record: &RunPlanRecord) -> Op {
    op(Space::World, key::run_part(id, RunPart::Plan), Some(encode(record)))
}

pub(crate) fn put_run_text(id: RunId, part: RunPart, record: &RunTextRecord) -> Op {
    op(Space::World, key::run_part(id, part), Some(encode(record)))
}

pub(crate) fn remove_run_part(id: RunId, part: RunPart) -> Op {
    op(Space::World, key::run_part(id, part), None)
}

pub(crate) fn put_trigger(record: &TriggerRecord) -> Op {
    op(Space::World, key::uuid(b'g', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_trigger(id: TriggerId) -> Op {
    op(Space::World, key::uuid(b'g', id.0), None)
}

pub(crate) fn put_trigger_state(record: &TriggerStateRecord) -> Op {
    op(Space::World, key::uuid(b'h', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_trigger_state(id: TriggerId) -> Op {
    op(Space::World, key::uuid(b'h', id.0), None)
}

pub(crate) fn put_wave(record: &WaveRecord) -> Op {
    op(Space::World, key::bytes(b'v', &record.number.to_be_bytes()), Some(encode(record)))
}

pub(crate) fn remove_wave(number: u64) -> Op {
    op(Space::World, key::bytes(b'v', &number.to_be_bytes()), None)
}

pub(crate) fn put_schedule(record: &ScheduleRecord) -> Op {
    op(Space::World, key::uuid(b'd', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_schedule(id: ScheduleId) -> Op {
    op(Space::World, key::uuid(b'd', id.0), None)
}

pub(crate) fn put_schedule_state(record: &ScheduleStateRecord) -> Op {
    op(Space::World, key::uuid(b'e', record.id.0), Some(encode(record)))
}

pub(crate) fn remove_schedule_state(id: ScheduleId) -> Op {
    op(Space::World, key::uuid(b'e', id.0), None)
}

pub(crate) fn put_memory(agent: AgentId, key: &str, record: &MemoryRecord) -> Op {
    op(Space::Content, memory_key(agent, key), Some(encode(record)))
}

pub(crate) fn remove_memory(agent: AgentId, key: &str) -> Op {
    op(Space::Content, memory_key(agent, key), None)
}

pub(crate) fn put_message(at: MessageKey, record: &MessageRecord) -> Op {
    op(Space::Content, message_key(at), Some(encode(record)))
}

pub(crate) fn put_trace(agent: AgentId, record: &TraceRecord) -> Op {
    op(Space::Content, trace_key(agent, record.turn), Some(encode(record)))
}

pub(crate) fn put_result(at: MessageKey, whole: &str) -> Op {
    op(Space::Content, result_key(at), Some(whole.as_bytes().to_vec()))
}

pub(crate) fn put_manifest_text(agent: AgentId, text: &str) -> Op {
    op(Space::Content, manifest_text_key(agent), Some(text.as_bytes().to_vec()))
}

pub(crate) fn remove_manifest_text(agent: AgentId) -> Op {
    op(Space::Content, manifest_text_key(agent), None)
}

/// The world's record of the audit trail.
pub const AUDIT_HEAD_KEY: [u8; 1] = *b"z";

pub(crate) fn put_audit_head(head: &AuditHead) -> Op {
    op(Space::World, AUDIT_HEAD_KEY.to_vec(), Some(encode(head)))
}

/// `row` is the entry in the form that was hashed.
pub(crate) fn put_audit_entry(id: u64, row: Vec<u8>) -> Op {
    op(Space::Content, audit_entry_key(id), Some(row))
}

/// The record of a signed checkpoint, which stands behind its entry; `row` is its stored form.
#[must_use]
pub fn put_audit_checkpoint(id: u64, row: Vec<u8>) -> Op {
    op(Space::Content, audit_checkpoint_key(id), Some(row))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod usage_tests;
