//! Workspaces as the API reaches them: every path goes through the sandbox, which never leaves the workspace.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use agentsvc_api::http::files::{FileWriter, FilesError};
use agentsvc_api::upload::files::{Entry, EntryKind, Listing, OpenFile, Owner, Written};
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;

use super::kind;
use super::part::failed;
use super::uploads::Spool;
use crate::kernel::sandbox;
use crate::kernel::sandbox::{Error, Kind, Workspace, Workspaces, Write};

/// Names that are tried for a copy before it is given up: `a.txt`, `a-2.txt`...
const NAMES_TRIED_MAX: u32 = 10_000;
/// Bytes of a name that are kept when a number must fit in.
const STEM_BYTES_MAX: usize = 200;

impl From<Error> for FilesError {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::NotFound(_) => Self::NotFound(text),
            Error::Path { .. } | Error::Outside(_) => Self::Wrong(text),
            Error::TooLarge { max, .. } => Self::TooLarge(max),
            Error::Full(_) | Error::Quota { .. } | Error::ShareQuota { .. } | Error::TotalQuota { .. } => {
                Self::Full(text)
            }
            Error::Unowned(_) => Self::Damaged(text),
            Error::Io { .. } => {
                tracing::error!(%error, "a workspace could not be used");
                Self::Failed
            }
            _ => Self::Conflict(text),
        }
    }
}

fn shown(entry: sandbox::Entry) -> Entry {
    let kind = match entry.kind {
        Kind::File => EntryKind::File,
        Kind::Directory => EntryKind::Directory,
        Kind::Link => EntryKind::Link,
        Kind::Special => EntryKind::Special,
    };
    let content_type = if kind == EntryKind::File { kind::of_name(&entry.path) } else { "" };
    let modified_at = Timestamp(entry.modified.timestamp_millis());
    Entry { path: entry.path, kind, size: entry.size, modified_at, content_type }
}

/// The workspace, if there is one; the first file makes it.
fn find(workspaces: &Workspaces, owner: &Owner, path: &str) -> Result<Workspace, FilesError> {
    let found = workspaces.find(owner.agent, &owner.name)?;
    found.ok_or_else(|| FilesError::NotFound(format!("{path:?} does not exist")))
}

pub(super) fn list(workspaces: &Workspaces, owner: &Owner) -> Result<Listing, FilesError> {
    let Some(workspace) = workspaces.find(owner.agent, &owner.name)? else { return Ok(Listing::default()) };
    let listing = workspace.list("", true, limit::FILE_LIST_MAX)?;
    let mut entries: Vec<Entry> = listing.entries.into_iter().map(shown).collect();
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(Listing { entries, truncated: listing.more })
}

pub(super) fn open(workspaces: &Workspaces, owner: &Owner, path: &str) -> Result<OpenFile, FilesError> {
    sandbox::WorkspacePath::parse(path)?;
    let (content, entry) = find(workspaces, owner, path)?.open_file(path)?;
    Ok(OpenFile { entry: shown(entry), content: Box::new(content) })
}

pub(super) fn delete(workspaces: &Workspaces, owner: &Owner, path: &str) -> Result<(), FilesError> {
    sandbox::WorkspacePath::parse(path)?;
    let workspace = find(workspaces, owner, path)?;
    if workspace.metadata(path)?.kind == Kind::Directory {
        return Err(Error::IsDirectory(path.to_owned()).into());
    }
    workspace.remove(path, false)?;
    Ok(())
}

/// A file on its way in; it comes whole before the workspace sees any of it.
struct Incoming {
    workspace: Workspace,
    path: String,
    spool: Spool,
}

pub(super) fn begin(
    workspaces: &Workspaces,
    owner: &Owner,
    path: &str,
    spool: Spool,
) -> Result<Box<dyn FileWriter<Written>>, FilesError> {
    let path = sandbox::WorkspacePath::parse(path)?;
    if path.is_root() {
        return Err(FilesError::Wrong("the path does not name a file".to_owned()));
    }
    let workspace = workspaces.open_for(owner.agent, &owner.name, owner.holder)?;
    Ok(Box::new(Incoming { workspace, path: path.as_str().to_owned(), spool }))
}

impl FileWriter<Written> for Incoming {
    fn write(&mut self, piece: &[u8]) -> Result<(), FilesError> {
        self.spool.write(piece)
    }

    fn finish(self: Box<Self>) -> Result<Written, FilesError> {
        let Self { workspace, path, mut spool } = *self;
        spool.file.seek(SeekFrom::Start(0)).map_err(failed("go back in a file"))?;
        let bytes = spool.bytes();
        let created = workspace.write_from(&path, &mut spool.file, bytes, Write::Overwrite)?;
        Ok(Written { entry: shown(workspace.metadata(&path)?), created })
    }
}

/// Copies an upload into the workspace under a name that is free.
pub(super) fn copy(
    workspaces: &Workspaces,
    owner: &Owner,
    filename: &str,
    content: &mut File,
) -> Result<Written, FilesError> {
    let workspace = workspaces.open_for(owner.agent, &owner.name, owner.holder)?;
    for number in 1..=NAMES_TRIED_MAX {
        let path = numbered(filename, number);
        match workspace.metadata(&path) {
            Ok(_) => continue,
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
        content.seek(SeekFrom::Start(0)).map_err(failed("go back in a file"))?;
        match workspace.write_from(&path, content, u64::MAX, Write::Create) {
            Ok(_) => return Ok(Written { entry: shown(workspace.metadata(&path)?), created: true }),
            Err(Error::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(FilesError::Conflict(format!("the workspace has too many files like {filename:?}")))
}

/// `a.txt` as it is, then `a-2.txt`, `a-3.txt`...
fn numbered(filename: &str, number: u32) -> String {
    if number == 1 {
        return filename.to_owned();
    }
    let (stem, ending) = match filename.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 16 => (stem, format!(".{ending}")),
        _ => (filename, String::new()),
    };
    format!("{}-{number}{ending}", &stem[..stem.floor_char_boundary(STEM_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn taken_names_get_numbers() {
        assert_eq!(numbered("a.txt", 1), "a.txt");
        assert_eq!(numbered("a.tar.gz", 2), "a.tar-2.gz");
        assert_eq!(numbered("Makefile", 3), "Makefile-3");
        assert_eq!(numbered(".env", 2), ".env-2");
        assert!(numbered(&"ä".repeat(127), 10_000).len() < 255);
    }
}
