//! Marks: small files beside the workspaces that say whose each is. They decide who reads which files, so that a mark counts only
//! if it is a file of its own (no link of any kind), in a folder of its own, and nobody but the daemon's user and root can have
//! written it. Folders and marks are opened from the directory above, so that no rename puts others in their place meanwhile.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::workspace::OWNERS;
use crate::kernel::openat2::{directory, names, no_links};

/// Bytes of a mark, at most.
const BYTES_MAX: u64 = 4 << 10;
/// What is being written. Names of marks never begin with a dot.
const FRESH: &str = ".new";
/// Others than the owner may write.
const SHARED: Mode = Mode::WGRP.union(Mode::WOTH);

/// A folder of marks.
pub(super) struct Marks {
    folder: OwnedFd,
    /// Whose the folder is.
    owner: u32,
}

impl Marks {
    /// The folder `name` of the workspaces at `root`; `None` when there is none. One that others may write is closed to them.
    ///
    /// # Errors
    /// It is a link, or belongs to another user; or the system refused.
    pub(super) fn open(root: &Path, name: &str) -> io::Result<Option<Self>> {
        let opened = File::open(root).and_then(|root| Ok(directory(root.as_fd(), name)?));
        let folder = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let (stat, own) = (rustix::fs::fstat(&folder)?, rustix::process::geteuid().as_raw());
        if stat.st_uid != own && stat.st_uid != rustix::fs::stat(root)?.st_uid && stat.st_uid != 0 {
            return Err(unsafe_mark(&format!("the folder {name} belongs to another user")));
        }
        if mode(&stat).intersects(SHARED) {
            tracing::warn!(
                folder = name,
                "other users could write to the folder that records the owners of workspaces; its permissions are now 0700"
            );
            rustix::fs::fchmod(&folder, Mode::RWXU)?;
        }
        Ok(Some(Self { folder, owner: stat.st_uid }))
    }

    /// The text of a mark; `None` when there is none.
    ///
    /// # Errors
    /// It is no mark, as the head of this module says; or the system refused.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<String>> {
        if name.is_empty() || name.contains('/') {
            return Ok(None);
        }
        let file = match no_links(self.folder.as_fd(), name, OFlags::RDONLY | OFlags::NONBLOCK) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(unsafe_mark("the mark is a symbolic link")),
            opened => File::from(opened?),
        };
        let stat = rustix::fs::fstat(&file)?;
        if !file.metadata()?.is_file() || stat.st_nlink != 1 {
            return Err(unsafe_mark("the mark is not a file of its own"));
        }
        if !self.is_safe(&stat) {
            return Err(unsafe_mark("another user may have written the mark"));
        }
        let mut text = String::new();
        file.take(BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(unsafe_mark("the mark is too long"));
        }
        Ok(Some(text.trim().to_owned()))
    }

    /// Can nobody but the daemon's user and root have written this file?
    fn is_safe(&self, stat: &Stat) -> bool {
        let is_ours = [self.owner, rustix::process::geteuid().as_raw(), 0].contains(&stat.st_uid);
        is_ours && !mode(stat).contains(Mode::WOTH)
    }

    /// A new file that takes the place of none.
    fn fresh(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Writes a mark, whole and durable or not at all. What is in its place is replaced and never written through.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut file = self.fresh(FRESH)?;
        writeln!(file, "{text}")?;
        file.sync_data()?;
        rustix::fs::renameat(&self.folder, FRESH, &self.folder, name)?;
        Ok(rustix::fs::fsync(&self.folder)?)
    }

    /// Removes a mark, if it is there.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The names of all marks, sorted. One that was not written to its end when the daemon was killed is left out.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let all = names(self.folder.as_fd())?.into_iter();
        let mut names: Vec<String> = all.map(|name| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort_unstable();
        Ok(names)
    }
}

/// The text of a mark of the workspaces at `root`; `None` when there is none.
///
/// # Errors
/// As [`Marks::open`] and [`Marks::read`].
pub(super) fn read(root: &Path, folder: &str, name: &str) -> io::Result<Option<String>> {
    Marks::open(root, folder)?.map_or(Ok(None), |marks| marks.read(name))
}

/// Does the file system of the workspaces at `root` keep marks? Some, such as a mount of CIFS, give all files the same permissions:
/// where others may write all of them, no mark counts.
///
/// # Errors
/// As [`Marks::open`]; or no file can be made.
pub(crate) fn marks_are_kept(root: &Path) -> io::Result<bool> {
    let marks = match Marks::open(root, OWNERS)? {
        Some(marks) => marks,
        None if !root.exists() => return Ok(true),
        None => {
            let folder = OwnedFd::from(File::open(root)?);
            let owner = rustix::fs::fstat(&folder)?.st_uid;
            Marks { folder, owner }
        }
    };
    // A daemon may be writing a mark meanwhile.
    let name = format!(".probe-{}", std::process::id());
    let stat = rustix::fs::fstat(marks.fresh(&name)?)?;
    marks.remove(&name)?;
    Ok(marks.is_safe(&stat))
}

fn mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode)
}

fn unsafe_mark(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Harness {
        dir: tempfile::TempDir,
        marks: Marks,
    }

    fn harness() -> Harness {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".owners")).unwrap();
        let marks = Marks::open(dir.path(), ".owners").unwrap().unwrap();
        Harness { dir, marks }
    }

    impl Harness {
        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(".owners").join(name)
        }
    }

    #[test]
    fn marks_are_written_whole_read_listed_and_removed() {
        let harness = harness();
        let marks = &harness.marks;
        assert_eq!(marks.read("a").unwrap(), None);
        for text in ["one", "two"] {
            marks.write("a", text).unwrap();
            assert_eq!(marks.read("a").unwrap().as_deref(), Some(text));
        }
        assert_eq!(marks.names().unwrap(), ["a"]);
        marks.remove("a").unwrap();
        marks.remove("a").unwrap();
        assert!(marks.names().unwrap().is_empty() && marks.read("../a").unwrap().is_none());
    }

    #[test]
    fn a_file_system_on_which_others_may_write_every_file_keeps_no_marks() {
        let harness = harness();
        let root = harness.dir.path();
        assert!(marks_are_kept(root).unwrap() && marks_are_kept(&root.join("none")).unwrap());
        assert_eq!(fs::read_dir(root.join(".owners")).unwrap().count(), 0, "nothing is left behind");
        fs::remove_dir(root.join(".owners")).unwrap();
        assert!(marks_are_kept(root).unwrap());
        assert_eq!(fs::read_dir(root).unwrap().count(), 0);
        // As a mount with file_mode=0777 makes it.
        let file = harness.dir.path().join("shared");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!harness.marks.is_safe(&rustix::fs::stat(&file).unwrap()));
    }

    #[test]
    fn a_mark_that_others_can_have_written_does_not_count() {
        let harness = harness();
        let outside = harness.dir.path().join("outside");
        fs::write(&outside, "theirs").unwrap();
        symlink(&outside, harness.path("link")).unwrap();
        fs::hard_link(&outside, harness.path("twice")).unwrap();
        fs::create_dir(harness.path("folder")).unwrap();
        fs::write(harness.path("long"), "x".repeat(5_000)).unwrap();
        fs::write(harness.path("open"), "x").unwrap();
        fs::set_permissions(harness.path("open"), fs::Permissions::from_mode(0o666)).unwrap();
        let fifo = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, harness.path("fifo"), rustix::fs::FileType::Fifo, fifo, 0).unwrap();
        for name in ["link", "twice", "folder", "long", "open", "fifo"] {
            assert_eq!(harness.marks.read(name).unwrap_err().kind(), ErrorKind::InvalidData, "{name}");
        }
        // What is in the way of a new one is not written through.
        symlink(&outside, harness.path(FRESH)).unwrap();
        for name in ["link", "twice"] {
            harness.marks.write(name, "mine").unwrap();
            assert_eq!(harness.marks.read(name).unwrap().as_deref(), Some("mine"));
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
    }

    #[test]
    fn a_folder_is_no_link_and_nobody_else_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, other) = (dir.path().join(".owners"), dir.path().join("other"));
        fs::create_dir(&other).unwrap();
        assert!(Marks::open(dir.path(), ".owners").unwrap().is_none());
        symlink(&other, &folder).unwrap();
        assert!(Marks::open(dir.path(), ".owners").is_err());
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let marks = Marks::open(dir.path(), ".owners").unwrap().unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        // Another folder in its place changes nothing for who has opened it.
        fs::rename(&folder, dir.path().join("aside")).unwrap();
        fs::rename(&other, &folder).unwrap();
        marks.write("a", "mine").unwrap();
        assert!(!folder.join("a").exists() && dir.path().join("aside/a").exists());
    }
}
