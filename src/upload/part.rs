//! Files of the uploads room on their way in: under names that mean nothing until all of it is there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agentsvc_api::http::files::FilesError;
use agentsvc_components::FileId;

use crate::kernel::disk;

/// A file that goes when this does, unless it is kept.
pub(super) struct Part {
    pub(super) path: PathBuf,
}

impl Part {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Gives the file its name. It still goes when what is returned does.
    fn rename(mut self, path: PathBuf) -> io::Result<Self> {
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(self)
    }

    fn keep(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            remove_quietly(&self.path);
        }
    }
}

/// An upload that is on the disk, and needs its names only.
pub(super) struct Whole<'a> {
    dir: &'a Path,
    id: FileId,
    content: Part,
    record: Part,
}

impl<'a> Whole<'a> {
    /// Syncs the content of the upload `id` in `file`, and puts its record beside it.
    pub(super) fn new(
        dir: &'a Path,
        id: FileId,
        (content, file): (Part, &File),
        record: &str,
    ) -> Result<Self, FilesError> {
        file.sync_data().map_err(failed("sync an upload"))?;
        let beside = Part::new(dir.join(format!(".{id}.json.part")));
        let opened = private().write(true).create(true).truncate(true).open(&beside.path);
        let mut file = opened.map_err(failed("record an upload"))?;
        file.write_all(record.as_bytes()).and_then(|()| file.sync_data()).map_err(failed("record an upload"))?;
        Ok(Self { dir, id, content, record: beside })
    }

    /// Gives both their names. Durable when it returns; nothing of it stays when it fails.
    pub(super) fn keep(self) -> Result<(), FilesError> {
        let Self { dir, id, content, record } = self;
        let content = content.rename(content_of(dir, id)).map_err(failed("name an upload"))?;
        let named = record.rename(record_of(dir, id)).map_err(failed("name an upload"))?;
        disk::sync_dir(dir).map_err(failed("sync the uploads"))?;
        content.keep();
        named.keep();
        Ok(())
    }
}

/// Where the content of an upload is.
pub(super) fn content_of(dir: &Path, id: FileId) -> PathBuf {
    dir.join(id.to_string())
}

/// Where its record is.
pub(super) fn record_of(dir: &Path, id: FileId) -> PathBuf {
    dir.join(format!("{id}.json"))
}

/// Files that only the daemon's user reads.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

pub(super) fn remove_quietly(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "a temporary file of an upload could not be removed");
    }
}

/// The client learns that the disk failed or is full; the operator what was tried.
pub(super) fn failed(what: &'static str) -> impl FnOnce(io::Error) -> FilesError {
    move |error| {
        tracing::error!(%error, "cannot {what}");
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FilesError::Full("the disk is full".into()),
            _ => FilesError::Failed,
        }
    }
}
