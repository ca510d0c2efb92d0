//! Listings of a workspace: sorted, bounded, following no symbolic link below where they begin.

use std::os::fd::OwnedFd;

use agentsvc_components::kernel::limit::{FILE_LIST_MAX, FILE_SCAN_MAX, PATH_DEPTH_MAX};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::error::Error;
use super::files::{Entry, Kind, Workspace, entry};
use super::path::WorkspacePath;

/// What a listing found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The entries, each directory's in the order of their names, what is in a directory right behind it.
    pub entries: Vec<Entry>,
    /// True when there are more than were asked for, or more than a listing looks at.
    pub more: bool,
}

impl Workspace {
    /// Lists a directory, with `recursive` also what is below; at most `entries_max`, and never more than
    /// [`FILE_LIST_MAX`].
    ///
    /// # Errors
    /// [`Error`]: a wrong path, nothing there, no directory.
    pub fn list(&self, path: &str, recursive: bool, entries_max: usize) -> Result<Listing, Error> {
        let path = WorkspacePath::parse(path)?;
        let refused = |error: Errno| Error::of("list", &path.to_string(), error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let here = self.resolve(&path, flags).map_err(refused)?;
        let depth = if recursive { PATH_DEPTH_MAX } else { 1 };
        let mut pass = Pass { found: Listing::default(), max: entries_max.min(FILE_LIST_MAX), left: FILE_SCAN_MAX };
        pass.directory(&here, path.as_str(), depth).map_err(refused)?;
        Ok(pass.found)
    }
}

/// One pass over a tree.
struct Pass {
    found: Listing,
    max: usize,
    /// Names that may still be looked at.
    left: usize,
}

impl Pass {
    fn directory(&mut self, here: &OwnedFd, path: &str, depth: usize) -> Result<(), Errno> {
        let mut names = Vec::new();
        for item in Dir::read_from(here)? {
            let item = item?;
            if matches!(item.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            if self.left == 0 {
                self.found.more = true;
                break;
            }
            self.left -= 1;
            names.push(item.file_name().to_owned());
        }
        names.sort_unstable();
        for name in names {
            if self.found.entries.len() >= self.max {
                self.found.more = true;
                return Ok(());
            }
            let stat = match rustix::fs::statat(here, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Gone since the directory was read.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            };
            let text = name.to_string_lossy();
            let path = if path.is_empty() { text.into_owned() } else { format!("{path}/{text}") };
            let entry = entry(path.clone(), &stat);
            let below = entry.kind == Kind::Directory && depth > 1;
            self.found.entries.push(entry);
            if below {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match rustix::fs::openat(here, &name, flags, Mode::empty()) {
                    Ok(inner) => self.directory(&inner, &path, depth - 1)?,
                    // Not readable, or no directory any more: named, but not gone into.
                    Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
