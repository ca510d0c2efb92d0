//! Names on the disk: removed if they are there, and made durable.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Removes a file, if it is there.
///
/// # Errors
/// The disk failed, or it is a directory.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    unless_missing(fs::remove_file(path))
}

/// Removes a directory with all that is in it, if it is there.
///
/// # Errors
/// The disk failed.
pub(crate) fn remove_dir(path: &Path) -> io::Result<()> {
    unless_missing(fs::remove_dir_all(path))
}

fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes the names in a directory durable.
///
/// # Errors
/// The disk failed.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_needs_no_removing() {
        let dir = tempfile::tempdir().unwrap();
        let (file, tree) = (dir.path().join("file"), dir.path().join("tree"));
        fs::write(&file, "x").unwrap();
        fs::create_dir_all(tree.join("below")).unwrap();
        remove_file(&tree).unwrap_err();
        for _ in 0..2 {
            remove_file(&file).unwrap();
            remove_dir(&tree).unwrap();
            sync_dir(dir.path()).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        sync_dir(&tree).unwrap_err();
    }
}
