//! The audit trail's vocabulary: who acted, and what kinds of entries there are (spec 3, Audit and security).

pub mod record;

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[doc = $about:literal])+ $name:ident = $word:literal,)*) => {
        /// What an entry is about. What stands in `details` beside it is listed in `docs/audit.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum AuditKind {
            $($(#[doc = $about])+ $name,)*
        }

        impl AuditKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// `event_type` of the entry.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// When an entry of this kind is written, for the reference.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($about),+),)*
                }
            }
        }
    };
}

kinds! {
    /// The daemon started.
    DaemonStarted = "daemon_started",
    /// A client asked for the daemon's end.
    ShutdownRequested = "shutdown_requested",
    /// The daemon stopped in order.
    DaemonStopped = "daemon_stopped",
    /// Requests came without the key or with a wrong one.
    AuthFailed = "auth_failed",
    /// A backup was made.
    BackupCreated = "backup_created",
    /// A backup that was due could not be made.
    BackupFailed = "backup_failed",
    /// A backup was deleted, or went by age or number.
    BackupDeleted = "backup_deleted",
    /// A backup was sent to a client.
    BackupDownloaded = "backup_downloaded",
    /// A backup was restored.
    BackupRestored = "backup_restored",
    /// An agent was created.
    AgentSpawned = "agent_spawned",
    /// An agent was created as a copy of another; follows its `agent_spawned`.
    AgentCloned = "agent_cloned",
    /// Fields of an agent changed that have no kind of their own.
    AgentUpdated = "agent_updated",
    /// An agent's model or what belongs to it changed.
    AgentModelChanged = "agent_model_changed",
    /// An agent's mode changed.
    AgentModeChanged = "agent_mode_changed",
    /// What tools an agent may call changed.
    AgentToolsChanged = "agent_tools_changed",
    /// An agent's skills changed.
    AgentSkillsChanged = "agent_skills_changed",
    /// An agent was started.
    AgentStarted = "agent_started",
    /// An agent was stopped.
    AgentStopped = "agent_stopped",
    /// An agent was removed.
    AgentTerminated = "agent_terminated",
    /// A session was removed.
    SessionRemoved = "session_removed",
    /// An agent's current session was replaced by a fresh one.
    SessionReset = "session_reset",
    /// A conversation that was held elsewhere became a session.
    SessionImported = "session_imported",
    /// Unused sessions were removed.
    SessionsCleaned = "sessions_cleaned",
    /// The history of an agent's sessions was cleared.
    HistoryCleared = "history_cleared",
    /// Entries of an agent's memory were written or imported.
    MemoryWritten = "memory_written",
    /// Entries of an agent's memory were deleted.
    MemoryDeleted = "memory_deleted",
    /// A file was sent to an agent.
    FileUploaded = "file_uploaded",
    /// A file of an agent's workspace was written.
    FileWritten = "file_written",
    /// A file of an agent's workspace was deleted.
    FileDeleted = "file_deleted",
    /// A tool call goes out.
    ToolCalled = "tool_called",
    /// A tool call was refused: by the loop guard, or because the agent may not call the tool.
    ToolRefused = "tool_refused",
    /// A turn that has read untrusted content makes a sensitive tool call.
    ToolTainted = "tool_tainted",
    /// A manifest came with a wrong signature, or without the one it needs.
    ManifestRefused = "manifest_refused",
    /// A text from outside looks like a prompt injection.
    InjectionFound = "injection_found",
    /// It is not known whether a tool call took effect.
    ToolUnknown = "tool_unknown",
    /// Limits of a budget were set.
    BudgetSet = "budget_set",
    /// A trigger was made.
    TriggerCreated = "trigger_created",
    /// A trigger changed.
    TriggerUpdated = "trigger_updated",
    /// A trigger was deleted.
    TriggerDeleted = "trigger_deleted",
    /// A schedule or cron job was made.
    ScheduleCreated = "schedule_created",
    /// A schedule or cron job changed.
    ScheduleUpdated = "schedule_updated",
    /// A schedule or cron job was deleted.
    ScheduleDeleted = "schedule_deleted",
    /// A schedule or cron job was run by hand.
    ScheduleRun = "schedule_run",
    /// A workflow was made.
    WorkflowCreated = "workflow_created",
    /// A workflow changed.
    WorkflowUpdated = "workflow_updated",
    /// A workflow was deleted.
    WorkflowDeleted = "workflow_deleted",
    /// A run of a workflow was begun.
    WorkflowRunStarted = "workflow_run_started",
    /// A run of a workflow was cancelled.
    WorkflowRunCancelled = "workflow_run_cancelled",
    /// A task was put in the queue.
    TaskPosted = "task_posted",
    /// A task was claimed for an agent.
    TaskClaimed = "task_claimed",
    /// A task was ended as done.
    TaskCompleted = "task_completed",
    /// A task was given up.
    TaskFailed = "task_failed",
    /// A failed task was put in the queue again.
    TaskRetried = "task_retried",
    /// A task was deleted.
    TaskDeleted = "task_deleted",
    /// A goal was set.
    GoalCreated = "goal_created",
    /// A goal changed.
    GoalUpdated = "goal_updated",
    /// A goal was deleted, with those below it.
    GoalDeleted = "goal_deleted",
    /// A custom event was published.
    EventPublished = "event_published",
    /// A client, or a turn whose tool needs one, asked for an approval.
    ApprovalRequested = "approval_requested",
    /// A person decided an approval, or it expired.
    ApprovalDecided = "approval_decided",
    /// A new secret of the second factor was made; it does not count yet.
    TotpSetUp = "totp_set_up",
    /// The new secret of the second factor was confirmed: it counts.
    TotpConfirmed = "totp_confirmed",
    /// The secret of the second factor was forgotten.
    TotpRevoked = "totp_revoked",
    /// A wrong code of the second factor came.
    SecondFactorFailed = "second_factor_failed",
    /// A key of a provider was put in the vault.
    ProviderKeySet = "provider_key_set",
    /// The key or the sign-in of a provider was taken out of the vault.
    ProviderKeyRemoved = "provider_key_removed",
    /// Where a provider is asked was set, or set back.
    ProviderUrlSet = "provider_url_set",
    /// Somebody signed in at a provider; what it gave is in the vault.
    ProviderSignedIn = "provider_signed_in",
    /// A model was added to the catalog.
    ModelAdded = "model_added",
    /// A model that a client had added was removed from the catalog.
    ModelRemoved = "model_removed",
    /// An alias of a model was made.
    ModelAliasAdded = "model_alias_added",
    /// An alias of a model was removed.
    ModelAliasRemoved = "model_alias_removed",
    /// The catalog was replaced by a newer one.
    CatalogUpdated = "catalog_updated",
    /// An agent type was made.
    TemplateCreated = "template_created",
    /// An agent type changed.
    TemplateUpdated = "template_updated",
    /// An agent type was deleted.
    TemplateDeleted = "template_deleted",
    /// A binding of the web chat was added.
    BindingAdded = "binding_added",
    /// A binding of the web chat was removed.
    BindingRemoved = "binding_removed",
    /// A key of the configuration was set over the API.
    ConfigSet = "config_set",
    /// The configuration was read anew and differs.
    ConfigReloaded = "config_reloaded",
    /// The first configuration was written over the API.
    ConfigInitialized = "config_initialized",
    /// A snapshot of the world was taken.
    SnapshotTaken = "snapshot_taken",
    /// A snapshot was deleted, by a client or because of its age or number.
    SnapshotDeleted = "snapshot_deleted",
    /// The world of a snapshot took the place of the present one.
    SnapshotRestored = "snapshot_restored",
    /// Another world was to take the place of the present one, and the present one is back.
    WorldExchangeFailed = "world_exchange_failed",
    /// The oldest entries went because they were older than `[audit] retention_days`.
    AuditTrimmed = "audit_trimmed",
}
