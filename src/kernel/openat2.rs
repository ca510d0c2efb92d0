//! Opening what lies beneath a directory, and nothing else.
//!
//! Two ways, the same promise. Where the kernel has `openat2`, it resolves the whole path itself and refuses to leave
//! (`RESOLVE_BENEATH`, `RESOLVE_NO_MAGICLINKS`): symbolic links that stay inside are followed. Where it has not, and
//! wherever something is written, the path is walked name by name, each opened from its parent with `O_NOFOLLOW`:
//! no symbolic link is followed at all. Both hold while others rename what the path is made of: a name is looked up
//! once, and what was looked up is what is used.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often a resolution that a rename disturbed is tried again.
const TRIES_MAX: u32 = 32;
/// Directories made on the way: for the owner only.
const DIRECTORY_MODE: Mode = Mode::RWXU;

/// Which way paths are resolved for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// The kernel's `openat2`.
    Openat2,
    /// Name by name.
    Walk,
}

impl Resolver {
    /// [`Openat2`](Self::Openat2) when the kernel has it and lets this process use it.
    pub fn probe() -> Self {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let works = rustix::fs::openat2(CWD, "/", flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).is_ok();
        if works { Self::Openat2 } else { Self::Walk }
    }

    /// Opens `path` (names joined by `/`, or nothing for `root` itself) beneath `root` for reading.
    pub(crate) fn open(self, root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let text = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::CLOEXEC;
        match self {
            Self::Walk => no_links(root, text, flags),
            Self::Openat2 => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                for _ in 1..TRIES_MAX {
                    match rustix::fs::openat2(root, text, flags, Mode::empty(), resolve) {
                        Err(Errno::AGAIN | Errno::INTR) => {}
                        result => return result,
                    }
                }
                rustix::fs::openat2(root, text, flags, Mode::empty(), resolve)
            }
        }
    }
}

/// Opens `path` (names joined by `/`) name by name from `root`, following no symbolic link.
pub(crate) fn no_links(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match path.rsplit_once('/') {
        Some((parents, name)) => rustix::fs::openat(walk(root, parents, false)?, name, flags, Mode::empty()),
        None => rustix::fs::openat(root, path, flags, Mode::empty()),
    }
}

/// Opens the directory `path` (names joined by `/`) name by name from `root`, following no symbolic link; with `make`,
/// those that are missing are made, durable when it returns.
pub(crate) fn walk(root: BorrowedFd<'_>, path: &str, make: bool) -> Result<OwnedFd, Errno> {
    let mut here = root.try_clone_to_owned().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        here = step(here.as_fd(), name, make)?;
    }
    Ok(here)
}

/// Opens the directory `name` in `parent`, itself and no symbolic link of that name.
fn step(parent: BorrowedFd<'_>, name: &str, make: bool) -> Result<OwnedFd, Errno> {
    match directory(parent, name) {
        Err(Errno::NOENT) if make => {
            match rustix::fs::mkdirat(parent, name, DIRECTORY_MODE) {
                // A file in it is as durable as its own name.
                Ok(()) => rustix::fs::fsync(parent)?,
                // Someone else made it meanwhile.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            directory(parent, name)
        }
        result => result,
    }
}

/// Opens the directory `name` in `parent`; `name` is one name, and no symbolic link is followed.
pub(crate) fn directory(parent: BorrowedFd<'_>, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// The names in a directory, read as they are taken: there may be millions.
pub(crate) fn each_name(directory: BorrowedFd<'_>) -> Result<impl Iterator<Item = Result<CString, Errno>>, Errno> {
    let names = Dir::read_from(directory)?.map(|item| item.map(|item| item.file_name().to_owned()));
    Ok(names.filter(|name| !name.as_ref().is_ok_and(|name| matches!(name.to_bytes(), b"." | b".."))))
}

/// The names in a directory.
pub(crate) fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    each_name(directory)?.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    use rustix::fs::OFlags;

    use super::{Resolver, walk};

    #[test]
    fn both_ways_stay_beneath() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("in");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        fs::write(inside.join("a/b/file"), "y").unwrap();
        for (name, target) in [
            ("up", "../secret"),
            ("etc", "/etc"),
            ("proc", "/proc/self/root"),
            ("a/up", "../.."),
            ("good", "a/b/file"),
            ("loop", "loop"),
        ] {
            symlink(target, inside.join(name)).unwrap();
        }
        let root = fs::File::open(&inside).unwrap();
        for resolver in [Resolver::probe(), Resolver::Walk] {
            let opens = |path: &str| resolver.open(root.as_fd(), path, OFlags::RDONLY).is_ok();
            for path in ["up", "etc/passwd", "etc", "proc/etc/passwd", "a/up/secret", "loop", "none"] {
                assert!(!opens(path), "{resolver:?} {path}");
            }
            assert!(opens("a/b/file") && opens(""));
            assert_eq!(opens("good"), resolver == Resolver::Openat2);
        }
        assert!(walk(root.as_fd(), "etc", true).is_err() && walk(root.as_fd(), "a/up/new", true).is_err());
        assert!(walk(root.as_fd(), "n/e/w", true).is_ok() && inside.join("n/e/w").is_dir());
        assert!(walk(root.as_fd(), "n/o", false).is_err());
    }
}
