//! What terminals need of the daemon.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// `[terminal]` in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalPolicy {
    /// Can terminals be opened?
    pub is_enabled: bool,
    /// Also from other machines?
    pub allow_remote: bool,
    /// Origins whose pages may open terminals, beside the page of the daemon.
    pub allowed_origins: Vec<Box<str>>,
    /// A terminal without input for that long ends.
    pub idle_time_max: Duration,
    /// Terminals that are open at once.
    pub sessions_max: usize,
}

/// Columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters of a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A terminal with a shell. What is written is input, what is read is what the screen shows; at the end of the shell there is
/// nothing more to read. Dropped, everything that the shell started is killed.
pub trait Terminal: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Has another size.
    ///
    /// # Errors
    /// The terminal is gone.
    fn resize(&self, size: Size) -> io::Result<()>;

    /// Waits for the end of the shell: its exit code, 128 and the signal's number when a signal ended it; `None` when it was killed
    /// for want of room.
    fn ended(&mut self) -> BoxFuture<'_, Option<i32>>;
}

/// A terminal that was opened.
pub struct Opened {
    /// The terminal.
    pub terminal: Box<dyn Terminal>,
    /// The program of the shell.
    pub shell: String,
    /// The process that the daemon started for it.
    pub pid: Option<u32>,
    /// Does it run as root?
    pub is_root: bool,
}

/// The daemon, as far as terminals need it.
pub trait Terminals: Send + Sync + 'static {
    /// What the configuration in force says.
    fn policy(&self) -> TerminalPolicy;

    /// Opens a terminal.
    ///
    /// The error is a sentence: why it cannot be opened.
    fn open(self: Arc<Self>, size: Size) -> BoxFuture<'static, Result<Opened, String>>;
}
