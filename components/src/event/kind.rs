//! The kinds of events, as words.

use serde::{Deserialize, Serialize};

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// `agent_spawned`
    AgentSpawned,
    /// `agent_started`
    AgentStarted,
    /// `agent_stopped`
    AgentStopped,
    /// `agent_updated`
    AgentUpdated,
    /// `agent_terminated`
    AgentTerminated,
    /// `message_received`
    MessageReceived,
    /// `turn_started`
    TurnStarted,
    /// `turn_completed`
    TurnCompleted,
    /// `turn_failed`
    TurnFailed,
    /// `session_compacted`
    SessionCompacted,
    /// `tool_called`
    ToolCalled,
    /// `tool_refused`
    ToolRefused,
    /// `tool_unknown`
    ToolUnknown,
    /// `task_posted`
    TaskPosted,
    /// `task_claimed`
    TaskClaimed,
    /// `task_completed`
    TaskCompleted,
    /// `task_failed`
    TaskFailed,
    /// `schedule_fired`
    ScheduleFired,
    /// `cron_fired`
    CronFired,
    /// `workflow_started`
    WorkflowStarted,
    /// `workflow_completed`
    WorkflowCompleted,
    /// `workflow_failed`
    WorkflowFailed,
    /// `approval_requested`
    ApprovalRequested,
    /// `approval_resolved`
    ApprovalResolved,
    /// `budget_warning`
    BudgetWarning,
    /// `budget_exceeded`
    BudgetExceeded,
    /// `memory_updated`
    MemoryUpdated,
    /// `knowledge_updated`
    KnowledgeUpdated,
    /// `custom`
    Custom,
}

impl EventKind {
    /// Every kind, in the order of their discriminants.
    pub const ALL: [Self; 29] = [
        Self::AgentSpawned,
        Self::AgentStarted,
        Self::AgentStopped,
        Self::AgentUpdated,
        Self::AgentTerminated,
        Self::MessageReceived,
        Self::TurnStarted,
        Self::TurnCompleted,
        Self::TurnFailed,
        Self::SessionCompacted,
        Self::ToolCalled,
        Self::ToolRefused,
        Self::ToolUnknown,
        Self::TaskPosted,
        Self::TaskClaimed,
        Self::TaskCompleted,
        Self::TaskFailed,
        Self::ScheduleFired,
        Self::CronFired,
        Self::WorkflowStarted,
        Self::WorkflowCompleted,
        Self::WorkflowFailed,
        Self::ApprovalRequested,
        Self::ApprovalResolved,
        Self::BudgetWarning,
        Self::BudgetExceeded,
        Self::MemoryUpdated,
        Self::KnowledgeUpdated,
        Self::Custom,
    ];

    /// The word of the JSON form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentSpawned => "agent_spawned",
            Self::AgentStarted => "agent_started",
            Self::AgentStopped => "agent_stopped",
            Self::AgentUpdated => "agent_updated",
            Self::AgentTerminated => "agent_terminated",
            Self::MessageReceived => "message_received",
            Self::TurnStarted => "turn_started",
            Self::TurnCompleted => "turn_completed",
            Self::TurnFailed => "turn_failed",
            Self::SessionCompacted => "session_compacted",
            Self::ToolCalled => "tool_called",
            Self::ToolRefused => "tool_refused",
            Self::ToolUnknown => "tool_unknown",
            Self::TaskPosted => "task_posted",
            Self::TaskClaimed => "task_claimed",
            Self::TaskCompleted => "task_completed",
            Self::TaskFailed => "task_failed",
            Self::ScheduleFired => "schedule_fired",
            Self::CronFired => "cron_fired",
            Self::WorkflowStarted => "workflow_started",
            Self::WorkflowCompleted => "workflow_completed",
            Self::WorkflowFailed => "workflow_failed",
            Self::ApprovalRequested => "approval_requested",
            Self::ApprovalResolved => "approval_resolved",
            Self::BudgetWarning => "budget_warning",
            Self::BudgetExceeded => "budget_exceeded",
            Self::MemoryUpdated => "memory_updated",
            Self::KnowledgeUpdated => "knowledge_updated",
            Self::Custom => "custom",
        }
    }

    /// The kind of this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}
