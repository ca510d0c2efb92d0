//! What can go wrong on the command line, and the exit code of each.

use std::io;

use crate::kernel::{home, logging, sse};

/// The process's exit codes; documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It failed for a reason that the message names.
    Failure = 1,
    /// The command line itself is wrong.
    Usage = 2,
    /// No daemon answers.
    Unreachable = 3,
    /// There is no such agent, session or file.
    NotFound = 4,
    /// The daemon wants another key, or none may do this.
    Refused = 5,
    /// It contradicts what is there: a name in use, a home in use.
    Conflict = 6,
}

/// Why a command failed; its text is one line (but for the problems of a configuration) for people.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Nobody listens where the daemon should be.
    #[error("no daemon is running at {url}; start it with `agentsvc start`")]
    Unreachable {
        /// Base URL that was checked.
        url: String,
    },
    /// The daemon answered with an error.
    #[error("{message}{}", hint(*status))]
    Answer {
        /// The HTTP status.
        status: u16,
        /// Its `error` text.
        message: String,
    },
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// The connection broke or the answer makes no sense.
    #[error("{0}")]
    Protocol(String),
    /// The command did what it is for, and what came of it is a failure.
    #[error("{0}")]
    Failed(String),
    /// A domain failed.
    #[error("{source}")]
    Domain {
        /// The exit code.
        exit: Exit,
        /// What it says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The log cannot be written.
    #[error(transparent)]
    Logging(#[from] logging::Error),
    /// An event stream cannot be read on.
    #[error(transparent)]
    Stream(#[from] sse::Error),
    /// Something is in use.
    #[error("{0}")]
    Conflict(String),
    /// A file or terminal failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, and on what.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Wraps an I/O error with what was tried.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    /// Wraps a domain's error.
    pub(crate) fn domain(exit: Exit, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Domain { exit, source: source.into() }
    }

    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Domain { exit, .. } => *exit,
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::NotFound(_) | Self::Answer { status: 404, .. } => Exit::NotFound,
            Self::Answer { status: 401 | 403, .. } => Exit::Refused,
            Self::Conflict(_) | Self::Answer { status: 409, .. } | Self::Home(home::Error::Taken { .. }) => {
                Exit::Conflict
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failure,
        }
    }

    /// True when the reader of the output has closed it.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What helps against an answer of this status.
fn hint(status: u16) -> &'static str {
    match status {
        401 => " (pass --api-key or set AGENTSVC_API_KEY)",
        429 | 503 => " (try again in a moment)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Exit};
    use crate::config;
    use crate::kernel::home;

    #[test]
    fn statuses_map_to_exit_codes() {
        let answer = |status| Error::Answer { status, message: "m".to_owned() }.exit();
        assert_eq!(answer(400), Exit::Failure);
        assert_eq!((answer(401), answer(403)), (Exit::Refused, Exit::Refused));
        assert_eq!((answer(404), answer(409)), (Exit::NotFound, Exit::Conflict));
        assert_eq!((answer(429), answer(500)), (Exit::Failure, Exit::Failure));
    }

    #[test]
    fn other_errors_map_to_exit_codes() {
        assert_eq!(Error::Unreachable { url: "u".to_owned() }.exit(), Exit::Unreachable);
        assert_eq!(Error::Home(home::Error::Taken { home: "h".into(), pid: Some(1) }).exit(), Exit::Conflict);
        assert_eq!(Error::from(config::Error::Listen("l".to_owned())).exit(), Exit::Usage);
        assert_eq!(Error::io("read x")(std::io::ErrorKind::NotFound.into()).exit(), Exit::NotFound);
        assert_eq!(Error::Failed("t".to_owned()).exit(), Exit::Failure);
    }

    #[test]
    fn a_401_says_how_to_pass_the_key() {
        let text = Error::Answer { status: 401, message: "invalid key".to_owned() }.to_string();
        assert_eq!(text, "invalid key (pass --api-key or set AGENTSVC_API_KEY)");
    }
}
