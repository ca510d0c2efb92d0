//! Removes a directory with everything in it, however deep it is and whoever changes it meanwhile.
//!
//! Every name is looked up in the descriptor of its directory, and no symbolic link is followed. Nothing recurses: a
//! directory that is found in a subdirectory is moved up into the directory that is removed, so three descriptors are
//! enough for any depth.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::openat2;

/// How often something may stand in the way that somebody has put there meanwhile.
const DISTURBED_MAX: u32 = 10_000;

/// Why a removal stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// There are more entries than may be removed.
    Bound,
    /// The system refused.
    System(Errno),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

/// Removes the directory at `path` with everything in it, or the symbolic link at `path` itself.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = File::open(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
    let is_link = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_link) {
        return Ok(rustix::fs::unlinkat(&parent, name, AtFlags::empty())?);
    }
    match remove_at(parent.as_fd(), name, &mut usize::MAX.clone()) {
        Ok(()) => Ok(()),
        Err(Stop::System(error)) => Err(error.into()),
        Err(Stop::Bound) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
    }
}

/// Removes the directory `name` of `parent` with everything in it. Every entry that goes takes one of `left`.
pub(crate) fn remove_at(
    parent: BorrowedFd<'_>,
    name: impl rustix::path::Arg + Copy,
    left: &mut usize,
) -> Result<(), Stop> {
    let top = open(parent, name)?;
    let mut removal = Removal { top: top.as_fd(), left, moved: 0, disturbed: 0 };
    while removal.pass()? {}
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

struct Removal<'a> {
    top: BorrowedFd<'a>,
    left: &'a mut usize,
    /// Names that were given to directories that moved up.
    moved: u64,
    disturbed: u32,
}

impl Removal<'_> {
    /// Removes what is in the top, and moves up what is in its directories. False when there was nothing.
    fn pass(&mut self) -> Result<bool, Stop> {
        let mut found = false;
        for item in Dir::read_from(self.top)? {
            let item = item?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            found = true;
            if !self.unlink(self.top, name)? {
                self.directory(name)?;
            }
        }
        Ok(found)
    }

    /// Removes a directory of the top, whose own directories move up.
    fn directory(&mut self, name: &CStr) -> Result<(), Stop> {
        let here = match open(self.top, name) {
            Ok(here) => here,
            // It is something else by now, which the next pass finds.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return self.disturbed(),
            Err(error) => return Err(error.into()),
        };
        for item in Dir::read_from(&here)? {
            let item = item?;
            let inner = item.file_name();
            if !matches!(inner.to_bytes(), b"." | b"..") && !self.unlink(here.as_fd(), inner)? {
                self.move_up(here.as_fd(), inner)?;
            }
        }
        if *self.left == 0 {
            return Err(Stop::Bound);
        }
        match rustix::fs::unlinkat(self.top, name, AtFlags::REMOVEDIR) {
            Ok(()) => {
                *self.left -= 1;
                Ok(())
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => self.disturbed(),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what is no directory. False when it is one.
    fn unlink(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<bool, Stop> {
        if *self.left == 0 {
            return Err(Stop::Bound);
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) => {
                *self.left -= 1;
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(true),
            Err(Errno::ISDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn move_up(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<(), Stop> {
        let mut is_allowed = false;
        loop {
            let free = format!(".removed-{}", self.moved);
            match rustix::fs::renameat(parent, name, self.top, free.as_str()) {
                Ok(()) => {
                    self.moved += 1;
                    return Ok(());
                }
                Err(Errno::NOENT) => return Ok(()),
                // A directory that moves is written to.
                Err(Errno::ACCESS) if !is_allowed => {
                    allow(parent, name)?;
                    is_allowed = true;
                }
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR) => {
                    self.moved += 1;
                    self.disturbed()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn disturbed(&mut self) -> Result<(), Stop> {
        self.disturbed += 1;
        if self.disturbed > DISTURBED_MAX { Err(Errno::NOTEMPTY.into()) } else { Ok(()) }
    }
}

/// Opens a directory, also one that its owner has closed.
pub(crate) fn open_closed(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    match openat2::directory(parent, name) {
        Err(Errno::ACCESS) => {
            allow(parent, name)?;
            openat2::directory(parent, name)
        }
        opened => opened,
    }
}

/// Opens a directory whose entries are to go. Tools make directories that nobody may write into, such as the module cache
/// of Go.
fn open(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let opened = open_closed(parent, name)?;
    if !Mode::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode).contains(Mode::RWXU) {
        rustix::fs::fchmod(&opened, Mode::RWXU)?;
    }
    Ok(opened)
}

/// Lets the owner do everything with a directory.
fn allow(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::kernel::testing::{Exchanging, deep};

    #[test]
    fn a_deep_tree_goes_on_a_small_stack() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        deep(&tree, 20_000);
        let path = tree.clone();
        let thread = std::thread::Builder::new().stack_size(64 << 10);
        thread.spawn(move || remove(&path).unwrap()).unwrap().join().unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn what_is_closed_goes_and_what_links_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
        fs::create_dir_all(tree.join("a/closed/x/y")).unwrap();
        fs::create_dir(tree.join(".removed-0")).unwrap();
        fs::write(tree.join(".removed-0/file"), "x").unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, tree.join("link")).unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        for (path, mode) in [("a/closed/x", 0o555), ("a/closed", 0o000), ("a", 0o500)] {
            fs::set_permissions(tree.join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        remove(&tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
        symlink(&outside, &tree).unwrap();
        remove(&tree).unwrap();
        assert!(tree.symlink_metadata().is_err() && outside.join("kept").exists());
        assert!(remove(&outside.join("kept")).is_err() && outside.join("kept").exists());
        assert_eq!(remove(&tree).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn no_more_goes_than_may() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("tree/a/b")).unwrap();
        fs::write(dir.path().join("tree/a/b/c"), "x").unwrap();
        let parent = File::open(dir.path()).unwrap();
        let mut left = 2;
        assert!(matches!(remove_at(parent.as_fd(), "tree", &mut left), Err(Stop::Bound)));
        let mut left = 9;
        remove_at(parent.as_fd(), "tree", &mut left).unwrap();
        assert!(!dir.path().join("tree").exists());
    }

    #[test]
    fn nothing_outside_goes_while_directories_and_links_are_exchanged() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir_all(outside.join("inner")).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        fs::write(outside.join("inner/file"), "x").unwrap();
        for round in 0..40 {
            let tree = dir.path().join(format!("tree-{round}"));
            let exchanging = Exchanging::begin(&tree, &outside);
            remove(&tree).unwrap();
            drop(exchanging);
            assert!(!tree.exists());
            assert!(outside.join("file").exists() && outside.join("inner/file").exists(), "round {round}");
        }
    }
}
