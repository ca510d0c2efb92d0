//! The kinds of events, as words.

use crate::kernel::words::enum_words;
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

enum_words! { pub EventKind [ALL, as_str, parse] {
    AgentSpawned = "agent_spawned", AgentStarted = "agent_started", AgentStopped = "agent_stopped",
    AgentUpdated = "agent_updated", AgentTerminated = "agent_terminated", MessageReceived = "message_received",
    TurnStarted = "turn_started", TurnCompleted = "turn_completed", TurnFailed = "turn_failed",
    SessionCompacted = "session_compacted", ToolCalled = "tool_called", ToolRefused = "tool_refused",
    ToolUnknown = "tool_unknown", TaskPosted = "task_posted", TaskClaimed = "task_claimed",
    TaskCompleted = "task_completed", TaskFailed = "task_failed", ScheduleFired = "schedule_fired",
    CronFired = "cron_fired", WorkflowStarted = "workflow_started", WorkflowCompleted = "workflow_completed",
    WorkflowFailed = "workflow_failed", ApprovalRequested = "approval_requested",
    ApprovalResolved = "approval_resolved", BudgetWarning = "budget_warning", BudgetExceeded = "budget_exceeded",
    MemoryUpdated = "memory_updated", KnowledgeUpdated = "knowledge_updated", Custom = "custom",
} }
