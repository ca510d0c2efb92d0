//! A workspace while a command runs in it.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::{Quota, Quotas, State};
use crate::kernel::sandbox::bounds::unnamed::unnamed_bytes;
use crate::kernel::sandbox::fullness::{Full, MEASURE_EVERY, until_full};
use crate::kernel::sandbox::measure::measure_at;

/// A workspace in which a command runs. It is measured when this goes.
#[derive(Debug)]
pub struct CommandWorkspace {
    path: PathBuf,
    /// Device and inode of the directory, which another one may take the path of.
    id: Option<(u64, u64)>,
    /// What it held when the command began.
    bytes: u64,
    /// Its number among those that hold files without a name here.
    number: u64,
    quotas: Quotas,
}

impl CommandWorkspace {
    /// A command begins in the workspace at `path`, unless there is too much already.
    pub(in crate::kernel::sandbox) fn begin(path: &Path, root: BorrowedFd<'_>, quotas: &Quotas) -> Result<Self, Quota> {
        let bytes = quotas.begin(path, root)?;
        let id = rustix::fs::fstat(root).ok().map(|found| (found.st_dev, found.st_ino));
        Ok(Self { path: path.to_owned(), id, bytes, number: quotas.next_number(), quotas: quotas.clone() })
    }

    /// What tells it from another directory at its path.
    pub(in crate::kernel::sandbox) fn id(&self) -> Option<(u64, u64)> {
        self.id
    }

    /// Where it is.
    pub(in crate::kernel::sandbox) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that it may hold, and so a file of it.
    pub(in crate::kernel::sandbox) fn bytes_max(&self) -> u64 {
        self.quotas.limits().max_bytes
    }

    /// Waits until the command of this supervisor has filled the disk, the workspace or all of them.
    pub(in crate::kernel::sandbox) async fn until_full(self: &Arc<Self>, supervisor: Option<u32>) -> Full {
        let workspace = Arc::clone(self);
        until_full(&self.path, supervisor, MEASURE_EVERY, move || workspace.full(supervisor)).await
    }

    /// What the command has filled. Blocks until every file of the workspace was looked at, and those that the command has open
    /// without a name.
    ///
    /// # Errors
    /// Those of [`measure_at`] and [`unnamed_bytes`].
    pub(in crate::kernel::sandbox) fn full(&self, supervisor: Option<u32>) -> Result<Option<Full>, Errno> {
        if let (Some(supervisor), Some((device, _))) = (supervisor, self.id) {
            self.quotas.hold_unnamed(&self.path, self.number, unnamed_bytes(supervisor, device)?);
        }
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

impl State {
    /// What commands hold in a workspace in files without a name.
    pub(super) fn unnamed(&self, directory: &Path) -> u64 {
        self.unnamed.get(directory).map_or(0, |held| held.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)))
    }
}

impl Quotas {
    /// A number for a command.
    fn next_number(&self) -> u64 {
        let mut state = self.state.lock();
        state.next += 1;
        state.next
    }

    /// A command holds so many bytes in the workspace in files without a name.
    fn hold_unnamed(&self, directory: &Path, command: u64, bytes: u64) {
        let unnamed = &mut self.state.lock().unnamed;
        if bytes > 0 {
            unnamed.entry(directory.to_owned()).or_default().insert(command, bytes);
        } else if let Some(held) = unnamed.get_mut(directory) {
            held.remove(&command);
            if held.is_empty() {
                unnamed.remove(directory);
            }
        }
    }
}

impl Drop for CommandWorkspace {
    fn drop(&mut self) {
        self.quotas.hold_unnamed(&self.path, self.number, 0);
        self.quotas.end(&self.path);
    }
}
