//! A workspace while a command runs in it.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{Quota, Quotas};
use crate::kernel::sandbox::command::Full;
use crate::kernel::sandbox::measure::measure_at;

/// A workspace in which a command runs. It is measured when this goes.
#[derive(Debug)]
pub struct CommandWorkspace {
    path: PathBuf,
    /// Device and inode of the directory, which another one may take the path of.
    id: Option<(u64, u64)>,
    /// What it held when the command began.
    bytes: u64,
    quotas: Quotas,
}

impl CommandWorkspace {
    /// A command begins in the workspace at `path`, unless there is too much already.
    pub(in crate::kernel::sandbox) fn begin(path: &Path, root: BorrowedFd<'_>, quotas: &Quotas) -> Result<Self, Quota> {
        let bytes = quotas.begin(path, root)?;
        let id = rustix::fs::fstat(root).ok().map(|found| (found.st_dev, found.st_ino));
        Ok(Self { path: path.to_owned(), id, bytes, quotas: quotas.clone() })
    }

    /// What tells it from another directory at its path.
    pub(in crate::kernel::sandbox) fn id(&self) -> Option<(u64, u64)> {
        self.id
    }

    /// Where it is.
    pub(in crate::kernel::sandbox) fn path(&self) -> &Path {
        &self.path
    }

    /// What the command has filled. Blocks until every file of the workspace was looked at.
    ///
    /// # Errors
    /// Those of [`measure_at`].
    pub(in crate::kernel::sandbox) fn full(&self) -> Result<Option<Full>, Errno> {
        let bytes = self.quotas.measured(&self.path, || measure_at(&self.path))?;
        if bytes > self.quotas.limits().max_bytes {
            return Ok(Some(Full::Workspace));
        }
        // One that does not write may go on.
        if bytes <= self.bytes {
            return Ok(None);
        }
        Ok(match self.quotas.check_sums(&self.path) {
            Err(Quota::Share(_)) => Some(Full::Share),
            Err(_) => Some(Full::Workspaces),
            Ok(()) => None,
        })
    }
}

impl Drop for CommandWorkspace {
    fn drop(&mut self) {
        self.quotas.end(&self.path);
    }
}
