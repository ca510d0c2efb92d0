//! Checkpoints as the daemon has them.

use agentsvc_components::AgentId;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::files::FilesError;
use crate::http::timestamp::Moment;

/// A part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows before it.
    pub offset: usize,
    /// Rows at most.
    pub limit: usize,
}

/// A directory that has checkpoints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Directory {
    /// Its absolute path.
    pub working_dir: String,
    /// When its newest checkpoint was made; null if that cannot be read.
    pub last_at: Option<Moment>,
}

/// A checkpoint: the files before a change.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Checkpoint {
    /// Id of the Git commit, 40 hex digits.
    pub commit: String,
    /// When it was made.
    pub created_at: Moment,
    /// Tool that was about to change files, or `restore`.
    pub tool: String,
    /// First file that it was about to change, at most 80 characters; ` (+2)` stands for two more files.
    pub path: String,
    /// Agent whose files they are; null if that is not known.
    pub agent_id: Option<Uuid>,
    /// Session of the call; null outside of a conversation.
    pub session_id: Option<Uuid>,
}

/// What a restore did.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Whose workspace it is, if that is known.
    pub agent: Option<AgentId>,
    /// The commit that was restored, in full.
    pub commit: String,
    /// The commit that has the files as they were before the restore.
    pub checkpoint: String,
    /// Files that were written.
    pub restored: usize,
    /// Files that the commit has.
    pub total: usize,
    /// Why others were not; at most 100.
    pub not_restored: Vec<NotRestored>,
}

/// A file that could not be restored.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotRestored {
    /// Its path in the working directory.
    pub path: String,
    /// Why.
    pub error: String,
}

/// The checkpoints of this home. All calls block on the disk.
pub trait Checkpoints: Send + Sync {
    /// Directories that have checkpoints, in an order that stays, and how many there are. Only those of the page are read.
    ///
    /// # Errors
    /// The disk failed.
    fn directories(&self, page: Page) -> Result<(Vec<Directory>, usize), FilesError>;

    /// The checkpoints of a directory, newest first, and how many there are.
    ///
    /// # Errors
    /// Each of a [field](FilesError::Field) of the request: [`FilesError::Wrong`] when the path is not absolute, [`FilesError::NotFound`] without checkpoints, or the disk failed.
    fn checkpoints(&self, working_dir: &str, page: Page) -> Result<(Vec<Checkpoint>, usize), FilesError>;

    /// The agent whose workspace a directory is.
    ///
    /// # Errors
    /// As [`checkpoints`](Self::checkpoints).
    fn owner(&self, working_dir: &str) -> Result<Option<AgentId>, FilesError>;

    /// Writes the files of a checkpoint back, after a checkpoint of what is there now. Files that are newer stay.
    ///
    /// # Errors
    /// As [`checkpoints`](Self::checkpoints); [`FilesError::Wrong`] when `commit` is not 4 to 40 hex digits or fits more than one
    /// commit, [`FilesError::NotFound`] when it fits none, [`FilesError::Conflict`] while a tool writes there,
    /// [`FilesError::Full`] without room.
    fn restore(&self, working_dir: &str, commit: &str) -> Result<Restored, FilesError>;
}
