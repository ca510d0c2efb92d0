//! Stored log lines as the route reads them. Implemented where the files are known.

use std::io;

/// Lines of the log files, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredLines {
    /// Each is a JSON object, unless something else wrote into the file.
    pub lines: Vec<String>,
    /// Leads to the lines before these; `None` at the beginning of the oldest file.
    pub next: Option<String>,
}

/// Reads the log files. Blocks: on a tokio worker use `spawn_blocking`.
pub trait LogFiles: Send + Sync + 'static {
    /// At most `limit` lines before a cursor that an earlier call gave, or the newest; `None` for a cursor that is not valid.
    ///
    /// # Errors
    /// A file cannot be read.
    fn before(&self, cursor: Option<&str>, limit: usize) -> io::Result<Option<StoredLines>>;
}
