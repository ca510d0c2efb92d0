//! What can go wrong in a workspace. Every text may be shown to a model or a client: it names the path as it was
//! asked for, never where the home is.

use std::io;

/// Why a file operation was refused or failed. Nothing was changed unless a variant says so.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is no path of a workspace.
    #[error("the path {path:?} {reason}")]
    Path {
        /// The path, cut when it is long.
        path: String,
        /// What is wrong with it, to be read after the path.
        reason: &'static str,
    },
    /// A symbolic link on the way leads out of the workspace.
    #[error("{0:?} is outside the workspace")]
    Outside(String),
    /// There is nothing under this name.
    #[error("{0:?} does not exist")]
    NotFound(String),
    /// Something is there and must not be replaced.
    #[error("{0:?} exists already")]
    Exists(String),
    /// A file was wanted.
    #[error("{0:?} is a directory")]
    IsDirectory(String),
    /// A directory was wanted, at the end of the path or on the way.
    #[error("{0:?}, or a part of it, is not a directory")]
    NotDirectory(String),
    /// Only an empty directory is deleted without `recursive`.
    #[error("the directory {0:?} is not empty; use `recursive` to delete everything in it")]
    NotEmpty(String),
    /// A symbolic link where none is followed.
    #[error("{0:?}, or a part of it, is a symbolic link; use the real path")]
    Link(String),
    /// A fifo, a socket or a device.
    #[error("{0:?} is neither a file nor a directory")]
    Special(String),
    /// The file has other names, of which one may be outside of the workspace.
    #[error("{0:?} has several hard links; such files cannot be opened")]
    HardLink(String),
    /// A file would be, or is, larger than files may be.
    #[error("{path:?} would be {bytes} bytes long; the limit is {max}")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size, or the size it would have.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// Directories lie deeper in each other, or hold more, than one operation goes through. What a recursive deletion
    /// removed until then stays removed.
    #[error("{path:?} has more than {max} entries or is nested too deeply; use a subdirectory")]
    TooMany {
        /// The path.
        path: String,
        /// The bound.
        max: usize,
    },
    /// The workspace would hold more than workspaces may.
    #[error(
        "{path:?} exceeds the limit of {max} bytes of this workspace (`[workspaces] max_bytes`); delete files first"
    )]
    Quota {
        /// The path.
        path: String,
        /// The bound.
        max: u64,
    },
    /// The workspaces of one family or user would hold more than they may.
    #[error(
        "{path:?} exceeds the limit of {max} bytes of the workspaces of one user, or of one agent with those spawned below it, \
         deleted agents included (`[workspaces] max_share_bytes`); delete files of these agents first"
    )]
    ShareQuota {
        /// The path.
        path: String,
        /// The bound.
        max: u64,
    },
    /// All workspaces together would hold more than they may.
    #[error(
        "{path:?} exceeds the limit of {max} bytes of all workspaces together (`[workspaces] max_total_bytes`); delete \
         files of any agent first"
    )]
    TotalQuota {
        /// The path.
        path: String,
        /// The bound.
        max: u64,
    },
    /// The mark of the workspace's owner is damaged.
    #[error(
        "the owner of the workspace {0:?} is not known; `workspace_warnings` of GET /api/health/detail says what to do"
    )]
    Unowned(String),
    /// The disk is full.
    #[error("there is no space left for {0:?}")]
    Full(String),
    /// The system refused.
    #[error("cannot {what} {path:?}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path of the workspace.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// What the system's refusal of `what` on `path` means.
    pub(super) fn of(what: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        use rustix::io::Errno;
        let (source, path) = (source.into(), path.to_owned());
        match source.kind() {
            io::ErrorKind::StorageFull => return Self::Full(path),
            io::ErrorKind::InvalidData => return Self::Unowned(path),
            _ => {}
        }
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::NotFound(path),
            Some(Errno::EXIST) => Self::Exists(path),
            Some(Errno::ISDIR) => Self::IsDirectory(path),
            Some(Errno::NOTDIR) => Self::NotDirectory(path),
            Some(Errno::NOTEMPTY) => Self::NotEmpty(path),
            Some(Errno::LOOP) => Self::Link(path),
            Some(Errno::XDEV) => Self::Outside(path),
            Some(Errno::NXIO | Errno::NODEV) => Self::Special(path),
            Some(Errno::NAMETOOLONG) => Self::Path { path, reason: "is too long" },
            Some(Errno::NOSPC | Errno::DQUOT) => Self::Full(path),
            _ => Self::Io { what, path, source },
        }
    }
}
