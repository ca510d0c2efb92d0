//! The files of a skill's folder. They are opened beneath it, name by name, and no symbolic link is followed.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use agentsvc_systems::skill::limits::{
    SKILL_BYTES_MAX, SKILL_DEPTH_MAX, SKILL_FILES_MAX, SKILL_NAME_BYTES_MAX, SKILL_TEXT_BYTES_MAX,
};
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use sha2::{Digest, Sha256};

use super::read::ReadError;
use super::skill::SkillFile;
use crate::kernel::disk;
use crate::kernel::openat2::{directory, names, no_links, walk};

/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes of a path in a skill.
const PATH_BYTES_MAX: usize = 1_024;

/// How the names of the history of a skill begin, at the top of its folder. Only this daemon writes one.
pub(crate) const HISTORY: &str = ".evolution";

/// The folder of a skill.
pub(super) struct Folder(OwnedFd);

/// What stands in a folder, without its contents.
pub(super) struct Listing {
    /// Path and what the system says of it, by path.
    files: Vec<(Box<str>, Stat)>,
    /// Names that are left out because they are links or no ordinary files.
    pub(super) odd: Vec<String>,
}

/// What tells one state of a folder from another without reading its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([u8; 32]);

impl Folder {
    /// Opens the folder at `path`, which is no link itself.
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        directory(rustix::fs::CWD, path).map(Self).map_err(|error| ReadError::Io(error.into()))
    }

    /// Lists its files.
    pub(super) fn list(&self) -> Result<Listing, ReadError> {
        let mut listing = Listing { files: Vec::new(), odd: Vec::new() };
        let mut seen = 0;
        // Names, not descriptors: there may be thousands.
        let mut open = vec![(String::new(), 0)];
        while let Some((prefix, depth)) = open.pop() {
            let dir = walk(self.0.as_fd(), &prefix, false).map_err(io_error)?;
            for name in names(dir.as_fd()).map_err(io_error)? {
                let Ok(text) = name.to_str() else {
                    listing.odd.push(format!("a file in {prefix:?} has a name that is not UTF-8; it is left out"));
                    continue;
                };
                let path = format!("{prefix}{text}");
                if is_left_out(&path) {
                    continue;
                }
                seen += 1;
                if seen > SKILL_FILES_MAX || path.len() > PATH_BYTES_MAX {
                    return Err(ReadError::TooMuch(format!("it has more than {SKILL_FILES_MAX} files")));
                }
                let stat = rustix::fs::statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(io_error)?;
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory if depth >= SKILL_DEPTH_MAX => {
                        return Err(ReadError::TooMuch(format!(
                            "its folders are more than {SKILL_DEPTH_MAX} levels deep"
                        )));
                    }
                    FileType::Directory => open.push((format!("{path}/"), depth + 1)),
                    FileType::RegularFile => listing.files.push((path.into(), stat)),
                    FileType::Symlink => listing.odd.push(format!("{path} is a symbolic link; it is left out")),
                    _ => listing.odd.push(format!("{path} is not a regular file; it is left out")),
                }
            }
        }
        if listing.files.iter().map(|(_, stat)| size(stat)).fold(0, u64::saturating_add) > SKILL_BYTES_MAX {
            return Err(ReadError::TooMuch(format!("its files are larger than {SKILL_BYTES_MAX} bytes together")));
        }
        listing.files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        listing.odd.sort_unstable();
        listing.odd.truncate(20);
        Ok(listing)
    }

    /// The text of a file; `None` when there is none.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, ReadError> {
        let Some(bytes) = disk::there(self.read(path, SKILL_TEXT_BYTES_MAX + 1)).map_err(ReadError::Io)? else {
            return Ok(None);
        };
        if bytes.len() as u64 > SKILL_TEXT_BYTES_MAX {
            return Err(ReadError::TooMuch(format!("{path} is larger than {SKILL_TEXT_BYTES_MAX} bytes")));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| ReadError::Invalid(format!("{path} is not UTF-8 text")))
    }

    /// The first `bytes_max` bytes of a file.
    pub(super) fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(path)?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// An ordinary file.
    fn file(&self, path: &str) -> io::Result<File> {
        let is_plain = |name: &str| !name.is_empty() && name != "." && name != "..";
        if path.len() > PATH_BYTES_MAX || !path.split('/').all(is_plain) || path.contains('\0') {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = no_links(self.0.as_fd(), path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(io::Error::other("it is not a regular file")),
        }
    }

    /// Reads the sums of the listed files, and the sum of all. Hidden files count for that one only: code can use them, and models
    /// are shown none.
    pub(super) fn sums(&self, listing: &Listing) -> Result<(Vec<SkillFile>, Box<str>), ReadError> {
        let mut lines = Sha256::new();
        let mut files = Vec::with_capacity(listing.files.len());
        let (mut buffer, mut total) = (vec![0; READ_BYTES], 0_u64);
        for (path, _) in &listing.files {
            let (mut file, mut sum, mut size) = (self.file(path).map_err(ReadError::Io)?, Sha256::new(), 0_u64);
            loop {
                let count = file.read(&mut buffer).map_err(ReadError::Io)?;
                if count == 0 {
                    break;
                }
                sum.update(&buffer[..count]);
                size += count as u64;
                // It may grow while it is read.
                if total + size > SKILL_BYTES_MAX {
                    return Err(ReadError::TooMuch(format!("its files are larger than {SKILL_BYTES_MAX} bytes")));
                }
            }
            total += size;
            let sha256: [u8; 32] = sum.finalize().into();
            lines.update(format!("{path}:{}\n", agentsvc_systems::kernel::record::hex(&sha256)));
            if !path.split('/').any(|name| name.starts_with('.')) {
                files.push(SkillFile { path: path.clone(), size, sha256 });
            }
        }
        let whole: [u8; 32] = lines.finalize().into();
        Ok((files, agentsvc_systems::kernel::record::hex(&whole).into()))
    }
}

impl Listing {
    /// Is there a file of this path?
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.binary_search_by(|(file, _)| (**file).cmp(path)).is_ok()
    }

    /// The first of `paths` that there is.
    pub(super) fn first<'p>(&self, paths: &[&'p str]) -> Option<&'p str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Paths, sizes, times and inodes: another stamp when a file was changed.
    pub(super) fn stamp(&self) -> Stamp {
        let mut sum = Sha256::new();
        for (path, stat) in &self.files {
            let times = [stat.st_mtime, stat.st_ctime];
            let nanos = [stat.st_mtime_nsec, stat.st_ctime_nsec];
            sum.update(format!("{path}\0{} {times:?} {nanos:?} {}\n", stat.st_size, stat.st_ino));
        }
        Stamp(sum.finalize().into())
    }
}

/// Is this a file of version control, or of the history that the daemon keeps of a skill? Those are no part of it.
pub(crate) fn is_left_out(path: &str) -> bool {
    path.starts_with(HISTORY) || path.split('/').any(|name| name == ".git")
}

/// Names of folders in `dir` that may be skills, sorted: not hidden, which those are that are still being written.
pub(super) fn folders(dir: &Path) -> io::Result<Vec<String>> {
    let Some(dir) = disk::there(directory(rustix::fs::CWD, dir).map_err(io::Error::from))? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for name in names(dir.as_fd()).map_err(io::Error::from)? {
        let Ok(text) = name.to_str() else { continue };
        if text.starts_with('.') || text.len() > SKILL_NAME_BYTES_MAX {
            continue;
        }
        let stat = rustix::fs::statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            found.push(text.to_owned());
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn io_error(error: rustix::io::Errno) -> ReadError {
    ReadError::Io(error.into())
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_the_history_are_left_out_and_hidden_files_count_for_the_hash() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("references/deep")).unwrap();
        fs::write(dir.path().join("SKILL.md"), "x").unwrap();
        fs::write(dir.path().join("references/deep/a.md"), "y").unwrap();
        fs::write(dir.path().join(".evolution.json"), "{}").unwrap();
        symlink("/etc/passwd", dir.path().join("references/up.md")).unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let listing = folder.list().unwrap();
        let (files, hash) = folder.sums(&listing).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["SKILL.md", "references/deep/a.md"]);
        assert_eq!(listing.odd, ["references/up.md is a symbolic link; it is left out"]);
        for path in ["references/up.md", "../x", "references/../SKILL.md", "/etc/passwd", "", "references", "."] {
            assert!(folder.read(path, 10).is_err(), "{path}");
        }
        let before = listing.stamp();
        fs::write(dir.path().join("references/deep/a.md"), "z").unwrap();
        let after = folder.list().unwrap();
        assert_ne!(before, after.stamp());
        let changed = folder.sums(&after).unwrap().1;
        assert_ne!(hash, changed);
        fs::create_dir_all(dir.path().join(".lib/.git")).unwrap();
        fs::write(dir.path().join(".lib/.git/config"), "x").unwrap();
        assert_eq!(folder.list().unwrap().stamp(), after.stamp());
        fs::write(dir.path().join(".lib/x.py"), "x = 1").unwrap();
        let hidden = folder.list().unwrap();
        let (files, with_hidden) = folder.sums(&hidden).unwrap();
        assert!(hidden.stamp() != after.stamp() && with_hidden != changed);
        assert_eq!(files.len(), 2, "no list shows it");
    }

    #[test]
    fn a_folder_that_is_a_link_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("real")).unwrap();
        fs::create_dir_all(dir.path().join(".staging-1")).unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        assert_eq!(folders(dir.path()).unwrap(), ["real"]);
        assert!(Folder::open(&dir.path().join("link")).is_err());
        assert!(folders(&dir.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn a_skill_too_deep_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("d/".repeat(SKILL_DEPTH_MAX + 1))).unwrap();
        assert!(matches!(Folder::open(dir.path()).unwrap().list(), Err(ReadError::TooMuch(_))));
    }
}
