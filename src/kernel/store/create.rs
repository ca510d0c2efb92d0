//! Makes a new store, whole or not at all.
//!
//! The engine creates its files one by one, and a kill in between leaves something it can neither open nor create
//! again. So a new store is made under another name and moved into its place when it is complete.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Error, Store};
use crate::kernel::disk::{remove_dir, sync_dir};

/// The engine's file that a directory has when it is a store.
const MARKER: &str = "version";

/// Makes an empty store at `path` unless there is one already; true when it made one.
///
/// # Errors
/// [`Error::Corrupted`] when `path` holds something else, [`Error::Io`] when the disk fails.
pub(super) fn ensure(path: &Path) -> Result<bool, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    if path.join(MARKER).try_exists().map_err(failed)? {
        return Ok(false);
    }
    if holds_something(path).map_err(failed)? {
        let reason = format!("the directory has files but not '{MARKER}'");
        return Err(Error::Corrupted { path: path.to_owned(), reason });
    }
    whole(path, |store| store.write_format()).map(|()| true)
}

/// Makes a store at `path`, where nothing may be yet, and lets `fill` write into it before it takes its place: whole
/// or not at all.
///
/// # Errors
/// Those of `fill`; [`Error::Corrupted`] when `path` holds something, [`Error::Io`] when the disk fails.
pub(super) fn whole<T>(path: &Path, fill: impl FnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    if holds_something(path).map_err(failed)? {
        return Err(Error::Corrupted { path: path.to_owned(), reason: "the directory is not empty".to_owned() });
    }
    let parent = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    fs::create_dir_all(&parent).map_err(failed)?;
    // Not shared with another process that starts at the same moment; the first of the two moves wins.
    let building = beside(path, &format!("{}{}", prefix(path), std::process::id()));
    remove_dir(&building).map_err(failed)?;
    let filled = Store::open_engine(&building.as_path().into()).and_then(|store| fill(&store));
    let filled = match filled {
        Ok(filled) => filled,
        Err(error) => {
            // What stays behind here is removed with the other leftovers.
            let _ = remove_dir(&building);
            return Err(error);
        }
    };
    match fs::rename(&building, path) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => remove_dir(&building).map_err(failed)?,
        moved => moved.map_err(failed)?,
    }
    // The move itself.
    sync_dir(&parent).map_err(failed)?;
    remove_leftovers(path, &parent).map_err(failed)?;
    Ok(filled)
}

fn holds_something(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().transpose()?.is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the names of unfinished stores begin with.
fn prefix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}.new-")
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(name)
}

/// Removes what kills during earlier first starts have left.
fn remove_leftovers(path: &Path, parent: &Path) -> io::Result<()> {
    let prefix = prefix(path);
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            remove_dir(&entry.path())?;
        }
    }
    Ok(())
}
