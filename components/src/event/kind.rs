//! The kinds of events, as words.

use crate::kernel::words::enum_words;
use serde::{Deserialize, Serialize};

enum_words! {
    /// The kinds of [`Event`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EventKind [ALL, as_str, parse] {
        /// `agent_spawned`
        AgentSpawned = "agent_spawned",
        /// `agent_started`
        AgentStarted = "agent_started",
        /// `agent_stopped`
        AgentStopped = "agent_stopped",
        /// `agent_updated`
        AgentUpdated = "agent_updated",
        /// `agent_terminated`
        AgentTerminated = "agent_terminated",
        /// `message_received`
        MessageReceived = "message_received",
        /// `turn_started`
        TurnStarted = "turn_started",
        /// `turn_completed`
        TurnCompleted = "turn_completed",
        /// `turn_failed`
        TurnFailed = "turn_failed",
        /// `session_compacted`
        SessionCompacted = "session_compacted",
        /// `tool_called`
        ToolCalled = "tool_called",
        /// `tool_refused`
        ToolRefused = "tool_refused",
        /// `tool_unknown`
        ToolUnknown = "tool_unknown",
        /// `task_posted`
        TaskPosted = "task_posted",
        /// `task_claimed`
        TaskClaimed = "task_claimed",
        /// `task_completed`
        TaskCompleted = "task_completed",
        /// `task_failed`
        TaskFailed = "task_failed",
        /// `schedule_fired`
        ScheduleFired = "schedule_fired",
        /// `cron_fired`
        CronFired = "cron_fired",
        /// `workflow_started`
        WorkflowStarted = "workflow_started",
        /// `workflow_completed`
        WorkflowCompleted = "workflow_completed",
        /// `workflow_failed`
        WorkflowFailed = "workflow_failed",
        /// `approval_requested`
        ApprovalRequested = "approval_requested",
        /// `approval_resolved`
        ApprovalResolved = "approval_resolved",
        /// `budget_warning`
        BudgetWarning = "budget_warning",
        /// `budget_exceeded`
        BudgetExceeded = "budget_exceeded",
        /// `memory_updated`
        MemoryUpdated = "memory_updated",
        /// `knowledge_updated`
        KnowledgeUpdated = "knowledge_updated",
        /// `custom`
        Custom = "custom",
    }
}
