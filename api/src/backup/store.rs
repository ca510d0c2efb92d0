//! Backups as this room sees them (spec 2, Backup and restore). Implemented where the disk and the store are known.

use crate::backup::error_codes;
use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::error_codes as kernel_codes;
use std::collections::BTreeMap;

use agentsvc_components::Actor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::error::Error;
use crate::http::files::FileReader;

/// A created backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupMade {
    /// File name in the backup directory.
    pub filename: String,
    /// Bytes of it.
    pub size_bytes: u64,
    /// Time of the data in it (RFC 3339).
    pub created_at: String,
    /// Newest step in it; absent if steps are not numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Contents by component.
    pub components: BTreeMap<String, ComponentContent>,
    /// Contents of its world by kind: `agents`, `sessions`, `messages`...
    pub counts: BTreeMap<String, u64>,
    /// Skipped items.
    pub warnings: Vec<String>,
}

/// Contents of a component in a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentContent {
    /// Entries of the archive.
    pub entries: u64,
    /// Rows of the store.
    pub rows: u64,
    /// Bytes, before compression.
    pub bytes: u64,
}

/// A file in the backup directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupLine {
    /// Its name.
    pub filename: String,
    /// Bytes.
    pub size_bytes: u64,
    /// Whether it is a backup that this release can restore.
    pub valid: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Creation time (RFC 3339); of the file if there is no manifest.
    pub created_at: String,
    /// Release that created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Newest step in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Contents by component.
    pub components: BTreeMap<String, ComponentContent>,
    /// Contents of its world by kind.
    pub counts: BTreeMap<String, u64>,
}

/// What a restore is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreWanted {
    /// The backup.
    pub filename: String,
    /// The target keeps its own configuration (rule 1).
    pub keep_config: bool,
    /// The components; `None` is all of them (rule 2).
    pub components: Option<Vec<String>>,
    /// Only say what would change.
    pub dry_run: bool,
}

/// Result of a restore or dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupRestored {
    /// `restored`, or `dry_run`.
    pub status: &'static str,
    /// The backup.
    pub filename: String,
    /// Creation time (RFC 3339).
    pub created_at: String,
    /// Newest step in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Changes by component; `other` belongs to none.
    pub components: BTreeMap<String, ComponentChanges>,
    /// Configuration keys that stay as they are here: the backup has other values for them, but clients may not set them.
    pub config_kept: Vec<String>,
    /// Configuration keys that take effect at the next start.
    pub restart_required: Vec<String>,
    /// Milliseconds without a running world; 0 if it kept running.
    pub pause_ms: u64,
    /// Skipped items.
    pub warnings: Vec<String>,
}

/// Changes of a component by a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComponentChanges {
    /// Rows of the store.
    pub rows: Changes,
    /// Files.
    pub files: Changes,
}

/// Counts of items by change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    /// Only in the archive.
    pub added: u64,
    /// Only in this home.
    pub removed: u64,
    /// Different in the archive and this home.
    pub replaced: u64,
    /// Equal in both.
    pub unchanged: u64,
}

impl std::ops::AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.replaced += other.replaced;
        self.unchanged += other.unchanged;
    }
}

/// Running operation and last scheduled backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupStatus {
    /// `backup`, `restore` or `dry_run`; null if nothing is running.
    pub running: Option<&'static str>,
    /// Phase: `counting`, `packing`, `checking`, `comparing`, `building`, `exchanging` or `idle`.
    pub phase: &'static str,
    /// Processed bytes of this phase.
    pub done_bytes: u64,
    /// Total bytes of this phase; 0 if unknown.
    pub total_bytes: u64,
    /// Seconds since it started.
    pub seconds: u64,
    /// Last scheduled backup.
    pub scheduled: Option<ScheduledBackup>,
    /// Next scheduled time (RFC 3339); null without a schedule.
    pub next_scheduled: Option<String>,
}

/// A scheduled backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScheduledBackup {
    /// Start time (RFC 3339).
    pub at: String,
    /// File name; null if it failed.
    pub filename: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Why it was not done. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// A value of the request is wrong (400).
    #[error("{field}: {message}")]
    Wrong {
        /// Which.
        field: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The archive cannot be restored (400).
    #[error("filename: {message}")]
    Refused {
        /// A stable word.
        code: ErrorCode,
        /// Why.
        message: String,
    },
    /// There is no such backup (404).
    #[error("backup {0:?} does not exist")]
    Unknown(String),
    /// Another one is under way (409).
    #[error("a {0} is already running; try again later")]
    Busy(&'static str),
    /// Somebody else is in the way, such as one who reads the whole world (409).
    #[error("{message}")]
    InTheWay {
        /// A stable word.
        code: ErrorCode,
        /// Who.
        message: String,
    },
    /// There is no room (507).
    #[error("{0}")]
    Full(String),
    /// The world is not there, or takes no commands (503).
    #[error("{0}")]
    NotReady(String),
    /// It failed; the reason is in the log (500).
    #[error("{0}")]
    Failed(String),
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        let text = error.to_string();
        match error {
            BackupError::Wrong { field, .. } => Self::bad_field(field, text),
            BackupError::Refused { code, .. } => Self::bad_field("filename", text).code(code),
            BackupError::Unknown(_) => Self::not_found(text),
            BackupError::Busy(_) => Self::of(error_codes::BACKUP_BUSY, text),
            BackupError::InTheWay { code, .. } => Self::conflict(text).code(code),
            BackupError::Full(_) => Self::of(kernel_codes::STORAGE_FULL, text),
            BackupError::NotReady(_) => Self::unavailable(text, 1),
            BackupError::Failed(_) => Self::internal(text),
        }
    }
}

/// Makes, keeps and restores backups. Every call but `status` waits for the disk: on a tokio worker use `spawn_blocking`.
pub trait Backups: Send + Sync + 'static {
    /// Makes one. Goes on when whoever asked is gone.
    ///
    /// # Errors
    /// [`BackupError`].
    fn create(&self, actor: Actor) -> Result<BackupMade, BackupError>;

    /// What is in the directory of backups, the newest first.
    ///
    /// # Errors
    /// [`BackupError::Failed`].
    fn list(&self) -> Result<Vec<BackupLine>, BackupError>;

    /// Deletes one.
    ///
    /// # Errors
    /// [`BackupError`].
    fn delete(&self, actor: Actor, filename: &str) -> Result<(), BackupError>;

    /// Opens one, to be sent. Gives its bytes and its content.
    ///
    /// # Errors
    /// [`BackupError`].
    fn open(&self, actor: Actor, filename: &str) -> Result<(u64, FileReader), BackupError>;

    /// Restores one, or says what would change.
    ///
    /// # Errors
    /// [`BackupError`].
    fn restore(&self, actor: Actor, wanted: &RestoreWanted) -> Result<BackupRestored, BackupError>;

    /// What is under way.
    fn status(&self) -> BackupStatus;
}
