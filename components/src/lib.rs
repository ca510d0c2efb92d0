//! The data of agentsvc: components, ids, events, effects, outcomes, stored records and limits.
//!
//! This crate holds no behaviour. It knows bevy_ecs (for the component derives), serde, uuid and
//! chrono, and nothing of the disk, the network, the clock or the HTTP API.

pub mod a2a;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod auto_dream;
pub mod channel;
pub mod comms;
pub mod compaction;
pub mod delivery;
pub mod event;
pub mod goal;
pub mod hand;
pub mod history;
pub mod hook;
pub mod kernel;
pub mod knowledge;
pub mod manifest;
pub mod mcp;
pub mod media;
pub mod memory;
pub mod pairing;
pub mod people;
pub mod plugin;
pub mod proactive_memory;
pub mod prompt;
pub mod schedule;
pub mod session;
pub mod sign_in;
pub mod task;
pub mod trigger;
pub mod turn;
pub mod usage;
pub mod webhook;
pub mod widget;
pub mod workflow;

use crate::kernel::domain::Domain;

pub use crate::goal::GoalId;
pub use crate::kernel::actor::Actor;
pub use crate::kernel::error_code::ErrorCode;
pub use crate::kernel::id::{
    AgentId, ApprovalId, CompactionId, FileId, LogId, RunId, ScheduleId, SessionId, TaskId, TriggerId, TurnId,
    WorkflowId,
};
pub use crate::kernel::money::Micros;
pub use crate::kernel::refusal::{Refusal, RefusalKind};
pub use crate::kernel::time::Timestamp;

/// All domains, from below: a domain uses those before it only.
pub const DOMAINS: &[Domain] = &[
    a2a::DOMAIN,
    hook::DOMAIN,
    session::DOMAIN,
    usage::DOMAIN,
    history::DOMAIN,
    manifest::DOMAIN,
    agent::DOMAIN,
    channel::DOMAIN,
    delivery::DOMAIN,
    approval::DOMAIN,
    audit::DOMAIN,
    compaction::DOMAIN,
    event::DOMAIN,
    goal::DOMAIN,
    memory::DOMAIN,
    people::DOMAIN,
    knowledge::DOMAIN,
    proactive_memory::DOMAIN,
    prompt::DOMAIN,
    schedule::DOMAIN,
    task::DOMAIN,
    turn::DOMAIN,
    trigger::DOMAIN,
    workflow::DOMAIN,
    webhook::DOMAIN,
    media::DOMAIN,
    mcp::DOMAIN,
    comms::DOMAIN,
    auto_dream::DOMAIN,
    widget::DOMAIN,
    plugin::DOMAIN,
    sign_in::DOMAIN,
    pairing::DOMAIN,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_use_those_before_them() {
        for (at, domain) in DOMAINS.iter().enumerate() {
            let before: Vec<_> = DOMAINS[..at].iter().map(|domain| domain.name).collect();
            assert!(
                !before.contains(&domain.name) && domain.uses.iter().all(|name| before.contains(name)),
                "{domain:?}"
            );
        }
    }
}
