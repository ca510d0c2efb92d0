//! What events are about.

use super::{Event, EventKind};
use crate::kernel::id::{AgentId, TurnId};

impl Event {
    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::AgentSpawned { .. } => EventKind::AgentSpawned,
            Self::AgentStarted { .. } => EventKind::AgentStarted,
            Self::AgentStopped { .. } => EventKind::AgentStopped,
            Self::AgentUpdated { .. } => EventKind::AgentUpdated,
            Self::AgentTerminated { .. } => EventKind::AgentTerminated,
            Self::MessageReceived { .. } => EventKind::MessageReceived,
            Self::TurnStarted { .. } => EventKind::TurnStarted,
            Self::TurnCompleted { .. } => EventKind::TurnCompleted,
            Self::TurnFailed { .. } => EventKind::TurnFailed,
            Self::SessionCompacted { .. } => EventKind::SessionCompacted,
            Self::ToolCalled { .. } => EventKind::ToolCalled,
            Self::ToolRefused { .. } => EventKind::ToolRefused,
            Self::ToolUnknown { .. } => EventKind::ToolUnknown,
            Self::TaskPosted { .. } => EventKind::TaskPosted,
            Self::TaskClaimed { .. } => EventKind::TaskClaimed,
            Self::TaskCompleted { .. } => EventKind::TaskCompleted,
            Self::TaskFailed { .. } => EventKind::TaskFailed,
            Self::ScheduleFired { .. } => EventKind::ScheduleFired,
            Self::CronFired { .. } => EventKind::CronFired,
            Self::WorkflowStarted { .. } => EventKind::WorkflowStarted,
            Self::WorkflowCompleted { .. } => EventKind::WorkflowCompleted,
            Self::WorkflowFailed { .. } => EventKind::WorkflowFailed,
            Self::ApprovalRequested { .. } => EventKind::ApprovalRequested,
            Self::ApprovalResolved { .. } => EventKind::ApprovalResolved,
            Self::BudgetWarning { .. } => EventKind::BudgetWarning,
            Self::BudgetExceeded { .. } => EventKind::BudgetExceeded,
            Self::MemoryUpdated { .. } => EventKind::MemoryUpdated,
            Self::KnowledgeUpdated { .. } => EventKind::KnowledgeUpdated,
            Self::Custom { .. } => EventKind::Custom,
        }
    }

    /// The agent that it is about, or that did it.
    #[must_use]
    pub const fn agent(&self) -> Option<AgentId> {
        match self {
            Self::AgentSpawned { agent, .. }
            | Self::AgentStarted { agent, .. }
            | Self::AgentStopped { agent, .. }
            | Self::AgentUpdated { agent, .. }
            | Self::AgentTerminated { agent, .. }
            | Self::MessageReceived { agent, .. }
            | Self::TurnStarted { agent, .. }
            | Self::TurnCompleted { agent, .. }
            | Self::TurnFailed { agent, .. }
            | Self::SessionCompacted { agent, .. }
            | Self::ToolCalled { agent, .. }
            | Self::ToolRefused { agent, .. }
            | Self::ToolUnknown { agent, .. }
            | Self::TaskClaimed { agent, .. }
            | Self::ScheduleFired { agent, .. }
            | Self::CronFired { agent, .. }
            | Self::ApprovalRequested { agent, .. }
            | Self::ApprovalResolved { agent, .. }
            | Self::MemoryUpdated { agent, .. }
            | Self::KnowledgeUpdated { agent, .. } => Some(*agent),
            Self::TaskCompleted { agent, .. }
            | Self::TaskFailed { agent, .. }
            | Self::BudgetWarning { agent, .. }
            | Self::BudgetExceeded { agent, .. }
            | Self::Custom { agent, .. } => *agent,
            Self::TaskPosted { .. }
            | Self::WorkflowStarted { .. }
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. } => None,
        }
    }

    /// The turn that did it.
    #[must_use]
    pub const fn turn(&self) -> Option<TurnId> {
        match self {
            Self::MessageReceived { turn, .. }
            | Self::TurnStarted { turn, .. }
            | Self::TurnCompleted { turn, .. }
            | Self::TurnFailed { turn, .. }
            | Self::ToolCalled { turn, .. }
            | Self::ToolRefused { turn, .. }
            | Self::ToolUnknown { turn, .. } => Some(*turn),
            Self::ApprovalRequested { turn, .. } | Self::ApprovalResolved { turn, .. } => *turn,
            Self::AgentSpawned { by, .. }
            | Self::MemoryUpdated { by, .. }
            | Self::KnowledgeUpdated { by, .. }
            | Self::AgentTerminated { by, .. }
            | Self::TaskPosted { by, .. }
            | Self::TaskClaimed { by, .. }
            | Self::TaskCompleted { by, .. }
            | Self::TaskFailed { by, .. }
            | Self::WorkflowStarted { by, .. }
            | Self::WorkflowCompleted { by, .. }
            | Self::WorkflowFailed { by, .. }
            | Self::Custom { by, .. } => *by,
            Self::AgentStarted { .. }
            | Self::AgentStopped { .. }
            | Self::AgentUpdated { .. }
            | Self::SessionCompacted { .. }
            | Self::ScheduleFired { .. }
            | Self::CronFired { .. }
            | Self::BudgetWarning { .. }
            | Self::BudgetExceeded { .. } => None,
        }
    }

    /// What it says in words, for `content_match`.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        Some(match self {
            Self::MessageReceived { text, .. } => text,
            Self::TurnCompleted { text, .. } => text,
            Self::TurnFailed { error, .. } | Self::WorkflowFailed { error, .. } => error,
            Self::TaskPosted { description, title, .. } => {
                if description.is_empty() {
                    title
                } else {
                    description
                }
            }
            Self::TaskClaimed { title, .. } => title,
            Self::TaskCompleted { result, .. } => result,
            Self::TaskFailed { error, .. } => error,
            Self::WorkflowCompleted { output, .. } => output,
            Self::Custom { payload, .. } => payload,
            _ => return None,
        })
    }
}
