//! The files of a folder, opened beneath it name by name: no symbolic link is followed, also not one that takes the place of a
//! file or a folder meanwhile.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::folders::FolderError;
use super::staging::FILES_MAX;
use crate::kernel::openat2::{directory, each_name, walk};

/// Directories within each other.
const DEPTH_MAX: usize = 64;

/// A folder that was opened.
pub(super) struct Tree(OwnedFd);

/// A regular file that a walk has found.
pub(super) struct Found<'a> {
    /// Its path in the folder, with `/` between names.
    pub(super) path: &'a str,
    dir: &'a OwnedFd,
    name: &'a CStr,
}

impl Found<'_> {
    /// Opens it for reading.
    ///
    /// # Errors
    /// [`FolderError::Refused`]: another file is there now, which is a link or special; or the disk failed.
    pub(super) fn open(&self) -> Result<File, FolderError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(self.dir, self.name, flags, Mode::empty()).map_err(|error| failed(self.path, error))?;
        let found = fstat(&file).map_err(|error| failed(self.path, error))?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(special(self.path)),
        }
    }
}

impl Tree {
    /// Opens a folder. Links above it are followed; it is none itself.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for a link, or the disk failed.
    pub(super) fn open(folder: &Path) -> Result<Self, FolderError> {
        directory(CWD, folder).map(Self).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => FolderError::Refused("the folder is a symbolic link, or none".to_owned()),
            error => io::Error::from(error).into(),
        })
    }

    /// The names at its top, and `dist/index.js` if there is one.
    ///
    /// # Errors
    /// As [`walk`](Self::walk).
    pub(super) fn names(&self) -> Result<Vec<String>, FolderError> {
        let mut names = Vec::new();
        for name in sorted(&self.0, "")? {
            names.extend(name.into_string().ok());
        }
        let dist = walk(self.0.as_fd(), "dist", false);
        let package = dist.and_then(|dist| statat(&dist, "index.js", AtFlags::SYMLINK_NOFOLLOW));
        names.extend(package.is_ok().then(|| "dist/index.js".to_owned()));
        Ok(names)
    }

    /// Calls `each` with every file. `.git` at the top is passed over.
    ///
    /// # Errors
    /// [`FolderError::Refused`] for links, special files and names that are not UTF-8, [`FolderError::TooLarge`], what `each`
    /// says, or the disk failed.
    pub(super) fn walk(&self, each: &mut dyn FnMut(&Found<'_>) -> Result<(), FolderError>) -> Result<(), FolderError> {
        // Names, not descriptors: there may be thousands.
        let (mut open, mut seen) = (vec![(String::new(), 0)], 0);
        while let Some((prefix, depth)) = open.pop() {
            let dir = walk(self.0.as_fd(), &prefix, false).map_err(|error| failed(&prefix, error))?;
            for name in sorted(&dir, &prefix)? {
                seen += 1;
                if seen > 2 * FILES_MAX || depth > DEPTH_MAX {
                    return Err(too_large());
                }
                let Ok(text) = name.to_str() else {
                    return Err(FolderError::Refused(format!("a file in {prefix:?} has a name that is not UTF-8")));
                };
                let path = format!("{prefix}{text}");
                if path == ".git" {
                    continue;
                }
                let found = statat(&dir, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(&path, error))?;
                match FileType::from_raw_mode(found.st_mode) {
                    FileType::Directory => open.push((format!("{path}/"), depth + 1)),
                    FileType::RegularFile => each(&Found { path: &path, dir: &dir, name: &name })?,
                    FileType::Symlink => return Err(link(&path)),
                    _ => return Err(special(&path)),
                }
            }
        }
        Ok(())
    }
}

/// The names in a directory.
fn sorted(dir: &OwnedFd, path: &str) -> Result<Vec<CString>, FolderError> {
    let mut names = Vec::new();
    for name in each_name(dir.as_fd()).map_err(|error| failed(path, error))? {
        names.push(name.map_err(|error| failed(path, error))?);
        if names.len() > 2 * FILES_MAX {
            return Err(too_large());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn failed(path: &str, error: Errno) -> FolderError {
    match error {
        // What was looked at is something else now.
        Errno::LOOP | Errno::NOTDIR | Errno::NXIO => link(path.trim_end_matches('/')),
        error => io::Error::from(error).into(),
    }
}

fn link(path: &str) -> FolderError {
    FolderError::Refused(format!("{path:?} is a symbolic link"))
}

fn special(path: &str) -> FolderError {
    FolderError::Refused(format!("{path:?} is not a regular file"))
}

fn too_large() -> FolderError {
    FolderError::TooLarge(format!("the folder has more than {FILES_MAX} files, or too many folders within each other"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;

    use super::*;
    use crate::kernel::testing::{Exchanging, deep};
    use crate::skill_source::folders::Folders;

    /// Reads all files, like an installation does, while an agent exchanges them with links to what is not its own.
    #[test]
    fn no_link_is_followed_that_takes_the_place_of_a_file_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (source, outside) = (dir.path().join("source"), dir.path().join("outside"));
        fs::create_dir_all(&source).unwrap();
        fs::create_dir_all(outside.join("inner")).unwrap();
        ["file", "inner/file"].iter().for_each(|file| fs::write(outside.join(file), "secret").unwrap());
        let folders = Folders::new(dir.path().join("skills"));
        let exchanging = Exchanging::begin(&source, &outside);
        let tree = Tree::open(&source).unwrap();
        let (mut refused, mut read) = (0, 0);
        // On a busy machine the other thread may rest for a while.
        for round in 0..4_000_000 {
            if round >= 4_000 && read > 0 && refused > 0 {
                break;
            }
            let path = format!("f{}", round % 40);
            let name = CString::new(path.clone()).unwrap();
            // Whatever was seen there before.
            match (Found { path: &path, dir: &tree.0, name: &name }).open() {
                Ok(mut file) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "own");
                    read += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("symbolic link"), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(read > 0 && refused > 0, "{read} {refused}");
        for _ in 0..50 {
            let mut staging = folders.stage().unwrap();
            if let Err(error) = staging.copy_tree(&tree) {
                assert!(error.to_string().contains("symbolic link"), "{error}");
            }
            let mut text = String::new();
            let copied = Tree::open(&staging.path()).unwrap();
            copied
                .walk(&mut |found| {
                    found.open()?.read_to_string(&mut text)?;
                    Ok(())
                })
                .unwrap();
            assert!(!text.contains("secret"), "{text}");
        }
        drop(exchanging);
    }

    #[test]
    fn a_folder_that_is_a_link_or_too_deep_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        assert!(matches!(Tree::open(&dir.path().join("link")), Err(FolderError::Refused(_))));
        deep(&dir.path().join("real/deep"), DEPTH_MAX + 2);
        let tree = Tree::open(&dir.path().join("real")).unwrap();
        assert!(matches!(tree.walk(&mut |_| Ok(())), Err(FolderError::TooLarge(_))));
    }
}
