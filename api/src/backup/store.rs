//! Backups as this room sees them (spec 2, Backup and restore). Implemented where the disk and the store are known.

use std::collections::BTreeMap;

use agentsvc_components::audit::Actor;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::error::Error;
use crate::http::files::FileReader;

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupMade {
    /// Its file, in the directory of backups.
    pub filename: String,
    /// Bytes of it.
    pub size_bytes: u64,
    /// When the view was taken that it was made from (RFC 3339).
    pub created_at: String,
    /// The newest step that is in it; absent while steps are not numbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What is in it, by component.
    pub components: BTreeMap<String, ComponentContent>,
    /// What is in its world, by kind: `agents`, `sessions`, `messages`...
    pub counts: BTreeMap<String, u64>,
    /// What was left out.
    pub warnings: Vec<String>,
}

/// What a component has in a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentContent {
    /// Entries of the archive.
    pub entries: u64,
    /// Rows of the store.
    pub rows: u64,
    /// Bytes, before compression.
    pub bytes: u64,
}

/// A file in the directory of backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupLine {
    /// Its name.
    pub filename: String,
    /// Bytes.
    pub size_bytes: u64,
    /// Its manifest can be read: it is a backup that this release may restore.
    pub valid: bool,
    /// Why it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// When it was made (RFC 3339); by the file where there is no manifest.
    pub created_at: String,
    /// The release that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The newest step that is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What is in it, by component.
    pub components: BTreeMap<String, ComponentContent>,
    /// What is in its world, by kind.
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

/// What a restore did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupRestored {
    /// `restored`, or `dry_run`.
    pub status: &'static str,
    /// The backup.
    pub filename: String,
    /// When it was made (RFC 3339).
    pub created_at: String,
    /// The newest step that is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What changes, by component; `other` belongs to none.
    pub components: BTreeMap<String, ComponentChanges>,
    /// Keys of the configuration that take effect with the next start.
    pub restart_required: Vec<String>,
    /// Milliseconds for which no world took commands; 0 when the world went on.
    pub pause_ms: u64,
    /// What was left out.
    pub warnings: Vec<String>,
}

/// What a restore changes of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ComponentChanges {
    /// Rows of the store.
    pub rows: Changes,
    /// Files.
    pub files: Changes,
}

/// What becomes of things that are there, or in the archive, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Changes {
    /// Only in the archive.
    pub added: u64,
    /// Only here.
    pub removed: u64,
    /// Otherwise in the archive than here.
    pub replaced: u64,
    /// The same here and there.
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

/// What is under way, and what was last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupStatus {
    /// `backup`, `restore` or `dry_run`; null when nothing is under way.
    pub running: Option<&'static str>,
    /// What it does: `counting`, `packing`, `checking`, `comparing`, `building`, `exchanging`; `idle`.
    pub phase: &'static str,
    /// Bytes done in this phase.
    pub done_bytes: u64,
    /// Bytes there are in this phase; 0 while nobody knows.
    pub total_bytes: u64,
    /// Seconds since it began.
    pub seconds: u64,
    /// The last backup that was made by itself, or was to be.
    pub scheduled: Option<ScheduledBackup>,
    /// When the next one is due (RFC 3339); null without a schedule.
    pub next_scheduled: Option<String>,
}

/// A backup that was due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScheduledBackup {
    /// When it began (RFC 3339).
    pub at: String,
    /// Its file; null when it failed.
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
        code: &'static str,
        /// Why.
        message: String,
    },
    /// There is no such backup (404).
    #[error("there is no backup {0:?}")]
    Unknown(String),
    /// Another one is under way (409).
    #[error("a {0} is under way")]
    Busy(&'static str),
    /// Somebody else is in the way, such as one who reads the whole world (409).
    #[error("{message}")]
    InTheWay {
        /// A stable word.
        code: String,
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
            BackupError::Busy(_) => Self::conflict(text).code("backup_busy"),
            BackupError::InTheWay { code, .. } => Self::conflict(text).code(&code),
            BackupError::Full(_) => Self::new(StatusCode::INSUFFICIENT_STORAGE, text).code("storage_full"),
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
