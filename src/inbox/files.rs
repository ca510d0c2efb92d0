//! The files of the inbox. Nothing here follows a link: all is opened name by name from the directory's descriptor.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::kernel::openat2::{directory, each_name, walk};

/// Bytes of one file. Longer ones are put aside.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;
/// Names that one look takes on; the next one goes on behind them, so that files that wait keep no others waiting.
pub(super) const NAMES_MAX: usize = 1_000;
/// Names that one look reads to find them.
const SEEN_MAX: usize = 100_000;
/// Files that change within this time of being looked at are being written.
const STILL: Duration = Duration::from_secs(2);
/// Where files go that became messages.
pub(super) const PROCESSED: &str = "processed";
/// Where files go that could not.
pub(super) const FAILED: &str = "failed";

/// The directory, open.
pub(super) struct Directory(OwnedFd);

/// What tells a file in one state from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
}

impl Identity {
    fn of(stat: &rustix::fs::Stat) -> Self {
        let modified = (stat.st_mtime, stat.st_mtime_nsec);
        Self { device: stat.st_dev, inode: stat.st_ino, size: stat.st_size, modified }
    }
}

/// What a name in the directory is.
pub(super) enum Found {
    /// A file of text that has come to rest, the digest of its name and content, and which file it is.
    Text { text: String, digest: [u8; 32], identity: Identity },
    /// It is put aside: why.
    Bad(String),
    /// It is being written, or is gone.
    NotYet,
}

impl Directory {
    /// Opens the directory; makes it, and where files go, when they are not there.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = rustix::fs::open(path, flags, Mode::empty())?;
        for name in [PROCESSED, FAILED] {
            walk(here.as_fd(), name, true)?;
        }
        Ok(Self(here))
    }

    /// The names of what waits, in order, from behind `after`; [`NAMES_MAX`] at most. What begins with a dot is another program's
    /// business: so are files called that are not complete.
    pub(super) fn names(&self, after: Option<&CString>) -> Result<Vec<CString>, Errno> {
        let is_waiting = |name: &CString| {
            let bytes = name.to_bytes();
            !bytes.starts_with(b".") && bytes != PROCESSED.as_bytes() && bytes != FAILED.as_bytes()
        };
        // A descriptor of its own: the place where reading stands belongs to the open directory.
        let again = directory(self.0.as_fd(), ".")?;
        let names = each_name(again.as_fd())?;
        let mut first = BTreeSet::new();
        for name in names.take(SEEN_MAX) {
            let name = name?;
            if is_waiting(&name) && after.is_none_or(|after| name > *after) {
                first.insert(name);
            }
            if first.len() > NAMES_MAX {
                first.pop_last();
            }
        }
        Ok(first.into_iter().collect())
    }

    /// Is there a file of this name?
    pub(super) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Reads what a name is.
    pub(super) fn read(&self, name: &CString, now: SystemTime) -> Result<Found, Errno> {
        // One that is no file must not hold the reader up: a pipe would.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Found::NotYet),
            Err(Errno::LOOP | Errno::MLINK) => return Ok(Found::Bad("it is a symbolic link".to_owned())),
            Err(Errno::ACCESS | Errno::PERM) => {
                return Ok(Found::Bad("it cannot be read: permission denied".to_owned()));
            }
            Err(Errno::NXIO | Errno::NODEV) => return Ok(Found::Bad("it is not a regular file".to_owned())),
            Err(error) => return Err(error),
        };
        let before = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(before.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Found::Bad("it is a directory".to_owned())),
            _ => return Ok(Found::Bad("it is not a regular file".to_owned())),
        }
        if before.st_nlink > 1 {
            return Ok(Found::Bad("it has another name (a hard link)".to_owned()));
        }
        let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(before.st_mtime).unwrap_or(0));
        if now.duration_since(changed).is_ok_and(|age| age < STILL) {
            return Ok(Found::NotYet);
        }
        let mut bytes = Vec::new();
        let read =
            std::fs::File::from(file.try_clone().map_err(errno)?).take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(errno)?;
        let after = rustix::fs::fstat(&file)?;
        let identity = Identity::of(&after);
        if Identity::of(&before) != identity {
            return Ok(Found::NotYet);
        }
        Ok(text_of(name, bytes, identity))
    }

    /// Moves the file that was read to those that became messages. Another one that has its name by now stays where it is, to
    /// become a message of its own.
    pub(super) fn put_processed(&self, name: &CString, read: Identity, now: SystemTime) -> Result<(), Errno> {
        let moved = match self.put(name, PROCESSED, now) {
            // It was deleted or replaced, and the other one is gone as well.
            Err(Errno::NOENT) => return Ok(()),
            moved => moved?,
        };
        let target = directory(self.0.as_fd(), PROCESSED)?;
        let found = rustix::fs::statat(&target, &*moved, AtFlags::SYMLINK_NOFOLLOW)?;
        if Identity::of(&found) == read {
            return Ok(());
        }
        match rustix::fs::renameat_with(&target, &*moved, &self.0, name, RenameFlags::NOREPLACE) {
            // A third one has the name: this one is told under the name that it got here.
            Err(Errno::EXIST) => {
                rustix::fs::renameat_with(&target, &*moved, &self.0, &*moved, RenameFlags::NOREPLACE)?;
            }
            back => back?,
        }
        rustix::fs::fsync(&target)?;
        rustix::fs::fsync(&self.0)
    }

    /// Moves a file aside under a name of its own.
    pub(super) fn put(&self, name: &CString, into: &str, now: SystemTime) -> Result<String, Errno> {
        let target = directory(self.0.as_fd(), into)?;
        let (text, stamp) = (name.to_string_lossy(), now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis());
        let (stem, extension) = match text.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem.to_owned(), format!(".{extension}")),
            _ => (text.clone().into_owned(), String::new()),
        };
        let stem = &stem[..stem.floor_char_boundary(180)];
        let extension = if extension.len() > 40 { "" } else { &extension };
        for serial in 0..1_000 {
            let more = if serial == 0 { String::new() } else { format!("-{serial}") };
            let to = format!("{stem}_{stamp}{more}{extension}");
            match rustix::fs::renameat_with(&self.0, name, &target, &*to, RenameFlags::NOREPLACE) {
                Ok(()) => {
                    rustix::fs::fsync(&target)?;
                    rustix::fs::fsync(&self.0)?;
                    return Ok(to);
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }

    /// Writes why a file was put aside, beside it.
    pub(super) fn note(&self, aside: &str, why: &str) -> Result<(), Errno> {
        let target = directory(self.0.as_fd(), FAILED)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("{aside}.reason");
        let file = rustix::fs::openat(&target, &*name, flags, Mode::RUSR | Mode::WUSR)?;
        std::io::Write::write_all(&mut std::fs::File::from(file), format!("{why}\n").as_bytes()).map_err(errno)
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn text_of(name: &CString, bytes: Vec<u8>, identity: Identity) -> Found {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Found::Bad(format!("it is longer than {FILE_BYTES_MAX} bytes"));
    }
    let mut digest = Sha256::new();
    digest.update((name.to_bytes().len() as u64).to_be_bytes());
    digest.update(name.to_bytes());
    digest.update(&bytes);
    let digest = digest.finalize().into();
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Found::Bad("it is not text: it has NUL bytes".to_owned()),
        Ok(text) if text.trim().is_empty() => Found::Bad("it is empty".to_owned()),
        Ok(text) => Found::Text { text, digest, identity },
        Err(_) => Found::Bad("it is not text in UTF-8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_text_at_rest_are_read_and_links_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = dir.path().join("inbox");
        let opened = Directory::open(&inbox).unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        fs::write(inbox.join("a.txt"), "agent:scout\nhello").unwrap();
        fs::write(inbox.join("b.bin"), [0xff, 0xfe]).unwrap();
        fs::write(inbox.join("c.txt"), "a\0b").unwrap();
        fs::write(inbox.join("d.txt"), "x".repeat(FILE_BYTES_MAX as usize + 1)).unwrap();
        fs::write(inbox.join(".part"), "half").unwrap();
        symlink(&secret, inbox.join("link")).unwrap();
        fs::hard_link(&secret, inbox.join("hard")).unwrap();
        fs::create_dir(inbox.join("dir")).unwrap();
        let names = opened.names(None).unwrap();
        let shown: Vec<_> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        assert_eq!(shown, ["a.txt", "b.bin", "c.txt", "d.txt", "dir", "hard", "link"]);
        let later = SystemTime::now() + Duration::from_secs(10);
        for name in &names {
            let found = opened.read(name, later).unwrap();
            let is_text = name.to_bytes() == b"a.txt";
            assert!(matches!(found, Found::Text { .. }) == is_text, "{name:?}");
            assert!(matches!(found, Found::Bad(_)) != is_text, "{name:?}");
        }
        assert!(matches!(opened.read(&names[0], SystemTime::now()).unwrap(), Found::NotYet), "it was written just now");
        let moved = opened.put(&names[0], PROCESSED, later).unwrap();
        assert!(moved.starts_with("a_") && moved.ends_with(".txt") && inbox.join(PROCESSED).join(&moved).exists());
        assert_eq!(opened.names(Some(&names[4])).unwrap(), names[5..]);
        let aside = opened.put(&names[6], FAILED, later).unwrap();
        opened.note(&aside, "it is a symbolic link").unwrap();
        assert!(
            fs::symlink_metadata(inbox.join(FAILED).join(&aside)).unwrap().is_symlink(),
            "the link moved, not its target"
        );
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    }

    #[test]
    fn a_file_that_takes_the_place_of_one_that_was_read_stays() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = dir.path().join("inbox");
        let (opened, later) = (Directory::open(&inbox).unwrap(), SystemTime::now() + Duration::from_secs(10));
        let (file, name) = (inbox.join("report.txt"), CString::from(c"report.txt"));
        let processed = || fs::read_dir(inbox.join(PROCESSED)).unwrap().count();
        let read = |what: &str| match opened.read(&name, later).unwrap() {
            Found::Text { text, identity, .. } if text == what => identity,
            _ => panic!("{what} is there"),
        };
        let replace = |text: &str| {
            fs::write(inbox.join(".tmp"), text).unwrap();
            fs::rename(inbox.join(".tmp"), &file).unwrap();
        };
        replace("first");
        let first = read("first");
        replace("second");
        opened.put_processed(&name, first, later).unwrap();
        assert_eq!((fs::read_to_string(&file).unwrap().as_str(), processed()), ("second", 0));
        let second = read("second");
        fs::write(&file, "second and more").unwrap();
        opened.put_processed(&name, second, later).unwrap();
        let all = read("second and more");
        opened.put_processed(&name, all, later).unwrap();
        assert_eq!((file.exists(), processed()), (false, 1));
        opened.put_processed(&name, all, later).unwrap();
    }
}
