//! What the inbox shows of itself.

use std::path::PathBuf;

/// How the inbox is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxState {
    /// Does the configuration want it?
    pub enabled: bool,
    /// Where files are taken from.
    pub directory: PathBuf,
    /// Seconds between two looks.
    pub poll_interval_secs: u64,
    /// Who reads files that name no agent.
    pub default_agent: Option<String>,
    /// Files that waited at the last look; counted up to the limit of one look.
    pub pending: usize,
    /// Files that became messages since the daemon started.
    pub processed: u64,
    /// Files that were put aside since the daemon started.
    pub failed: u64,
    /// Why the last look failed, or why files wait.
    pub last_error: Option<String>,
}

/// The daemon's inbox.
pub trait Inbox: Send + Sync + 'static {
    /// How it is.
    fn state(&self) -> InboxState;
}
