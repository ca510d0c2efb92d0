//! The data of agentsvc: components, ids, events, effects, outcomes, stored records and limits.
//!
//! This room holds no behaviour. It knows bevy_ecs (for the component derives), serde, uuid and
//! chrono, and nothing of the disk, the network, the clock or the HTTP API.

pub mod agent;
pub mod approval;
pub mod audit;
pub mod compaction;
pub mod effect;
pub mod event;
pub mod goal;
pub mod id;
pub mod limit;
pub mod manifest;
pub mod message;
pub mod money;
pub mod outcome;
pub mod record;
pub mod refusal;
pub mod schedule;
pub mod session;
pub mod stream;
pub mod taint;
pub mod task;
pub mod time;
pub mod trigger;
pub mod turn;
pub mod usage;
pub mod workflow;

pub use id::{
    AgentId, ApprovalId, CompactionId, FileId, GoalId, LogId, RunId, ScheduleId, SessionId, TaskId, TriggerId, TurnId,
    WorkflowId,
};
pub use money::Micros;
pub use refusal::{Refusal, RefusalKind};
pub use time::Timestamp;
