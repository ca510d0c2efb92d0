//! The uploads room: `{home}/uploads/`.
//!
//! ```text
//! <file id>          the content
//! <file id>.json     what is known of it; an upload is there when this is
//! .<file id>.part    content on its way in; removed at the next start
//! <file id>.gone     it was removed here, and other nodes still have it
//! ```
//!
//! Content and record are written beside their names, synced, renamed, and the directory is synced before anyone is
//! told: a kill at any point leaves a whole upload or none.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use agentsvc_api::http::files::{FileWriter, FilesError};
use agentsvc_api::http::slots::{Slot, Slots};
use agentsvc_api::http::timestamp::timestamp_now;
use agentsvc_api::upload::files::{TEMPORARY, Upload};
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, FileId};
use agentsvc_systems::kernel::record::hex;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::kind::{self, MAGIC_BYTES};
use super::part::{Part, Whole, content_of, failed, private, record_of, remove_quietly};
use super::record::{self, Record};
use super::remote::Remote;
use super::share::{UploadShare, Used, Whose};
use crate::kernel::retention::RetentionClock;
use crate::kernel::{disk, free_space};
use crate::upload::config::Uploads as Settings;

/// How long a recording of a client may wait for its transcription; no job takes as long.
const TEMPORARY_MS_MAX: i64 = 24 * 60 * 60 * 1_000;
/// Bytes of a file's name; file systems take no more.
const NAME_BYTES_MAX: usize = 255;

/// The uploads. Cheap to clone; every call blocks on the disk.
#[derive(Clone)]
pub(crate) struct Uploads {
    pub(super) room: Arc<Room>,
}

pub(super) struct Room {
    pub(super) dir: PathBuf,
    pub(super) settings: ArcSwap<Settings>,
    /// The time by which uploads are old.
    retention: RetentionClock,
    /// Bytes of all uploads, those on their way in included.
    pub(super) used: Mutex<Used>,
    /// Uploads on their way in.
    slots: Arc<Slots>,
    /// How often one was found damaged.
    damaged: AtomicU64,
    /// Those of this process, while the ones of earlier processes are still being counted.
    pub(super) fresh: Mutex<Option<HashSet<FileId>>>,
    /// What other nodes have, too.
    pub(super) remote: Remote,
}

impl Uploads {
    /// The uploads in `dir`, which need not exist yet. Those of earlier processes count when [`sweep`](Self::sweep) has
    /// run.
    pub(crate) fn new(dir: PathBuf, settings: Settings, retention: RetentionClock) -> Self {
        let (settings, fresh) = (ArcSwap::from_pointee(settings), Mutex::new(Some(HashSet::new())));
        let slots = Slots::new(limit::UPLOADS_OPEN_MAX, limit::UPLOADS_OPEN_OF_USER_MAX);
        let (used, damaged) = (Mutex::default(), AtomicU64::new(0));
        let remote = Remote::default();
        Self { room: Arc::new(Room { dir, settings, retention, used, slots, damaged, fresh, remote }) }
    }

    /// Bytes that one file may have.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.room.settings.load().max_bytes
    }

    /// Puts other bounds in force; uploads on their way in keep to those of each piece they bring.
    pub(crate) fn set(&self, settings: Settings) {
        self.room.settings.store(Arc::new(settings));
    }

    /// Bytes of all uploads.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.room.used.lock().total
    }

    /// Begins an upload to `agent`, which takes the share of `holder`.
    pub(crate) fn begin(&self, whose: Whose, name: &str, declared: &str) -> Result<Incoming, FilesError> {
        let (agent, holder) = whose;
        let (filename, id) = (plain_name(name)?, mint()?);
        let spool = Spool::new(&self.room, id, Some(holder))?;
        let declared = declared.to_owned();
        let (digest, head) = (Sha256::new(), Vec::with_capacity(MAGIC_BYTES));
        Ok(Incoming { room: Arc::clone(&self.room), id, agent, holder, filename, declared, spool, digest, head })
    }

    /// Begins what is no upload, but comes in the same way and within the same bounds.
    pub(super) fn spool(&self) -> Result<Spool, FilesError> {
        Spool::new(&self.room, mint()?, None)
    }

    /// What is known of an upload.
    pub(crate) fn get(&self, id: FileId) -> Result<Upload, FilesError> {
        match record::read(&self.room.record(id), id) {
            Err(FilesError::NotFound(text)) => {
                self.room.known(id)?.map(|record| record.of(id)).ok_or(FilesError::NotFound(text))
            }
            found => found,
        }
    }

    /// Opens an upload whose content was compared with its checksum.
    pub(crate) fn open(&self, id: FileId) -> Result<(Upload, File), FilesError> {
        let upload = self.get(id)?;
        let mut file = self.open_fresh(id)?;
        if record::is_whole(&mut file, &upload).map_err(failed("read an upload"))? {
            return Ok((upload, file));
        }
        Err(self.note_damaged(&upload))
    }

    /// The content of an upload, read once and compared with its checksum; `None` when it is larger than `bytes_max`.
    pub(crate) fn read(&self, id: FileId, bytes_max: u64) -> Result<Option<Vec<u8>>, FilesError> {
        let upload = self.get(id)?;
        if upload.size > bytes_max {
            return Ok(None);
        }
        let read = record::read_whole(self.open_fresh(id)?, &upload).map_err(failed("read an upload"))?;
        read.map(Some).ok_or_else(|| self.note_damaged(&upload))
    }

    pub(super) fn note_damaged(&self, upload: &Upload) -> FilesError {
        let id = upload.id;
        self.room.damaged.fetch_add(1, Ordering::Relaxed);
        tracing::error!(upload = %id, agent = %upload.agent, "an upload is damaged: it does not match its SHA-256");
        FilesError::Damaged(format!("upload {id} is damaged: it does not match its checksum; upload it again"))
    }

    /// Opens the content of an upload as it is on the disk; one that only other nodes have is fetched first.
    pub(super) fn open_fresh(&self, id: FileId) -> Result<File, FilesError> {
        let opened = || disk::there(disk::open(&self.room.content(id))).map_err(failed("open an upload"));
        let found = match opened()? {
            None if self.fetch(id)? => opened()?,
            found => found,
        };
        found.ok_or_else(|| FilesError::NotFound(format!("upload not found: {id}")))
    }

    /// How often an upload was found damaged since the start.
    pub(crate) fn damaged(&self) -> u64 {
        self.room.damaged.load(Ordering::Relaxed)
    }

    /// Removes an upload, of all nodes; one that is not there is no error.
    pub(crate) fn remove(&self, id: FileId) -> Result<(), FilesError> {
        self.room.unshare(id);
        self.remove_here(id)
    }

    /// Removes what this node has of an upload.
    pub(super) fn remove_here(&self, id: FileId) -> Result<(), FilesError> {
        let holder = self.room.holder(id);
        let bytes = fs::metadata(self.room.content(id)).map_or(0, |found| found.len());
        // The record first: what has none is no upload any more, and takes no room of anyone. Only one of several that remove it
        // at once gives the room back.
        match fs::remove_file(self.room.record(id)) {
            Ok(()) => self.room.used.lock().give_back(holder, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.room.forget_elsewhere(id),
            Err(error) => return Err(failed("remove an upload")(error)),
        }
        match fs::remove_file(self.room.content(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove an upload")(error)),
            _ => Ok(()),
        }
    }

    /// Counts the bytes of what is there; those on their way in are counted when they have come.
    pub(crate) fn recount(&self) -> io::Result<()> {
        let mut used = Used::default();
        for entry in fs::read_dir(&self.room.dir)?.flatten() {
            if let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<FileId>().ok())
                && self.room.record(id).exists()
            {
                used.add(self.room.holder(id), entry.metadata().map_or(0, |found| found.len()));
            }
        }
        self.room.remote.forget_counts();
        *self.room.used.lock() = used;
        Ok(())
    }

    /// Goes over what is there. The first time it removes what earlier processes left half done and counts the rest;
    /// later it removes what is past its retention, and the uploads of `forgotten` agents.
    pub(crate) fn sweep(&self, forgotten: &HashSet<AgentId>) -> io::Result<()> {
        let is_first = self.room.fresh.lock().is_some();
        let Some(entries) = disk::there(fs::read_dir(&self.room.dir))? else {
            *self.room.fresh.lock() = None;
            return Ok(());
        };
        let oldest = self.room.oldest();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let bare = name.trim_start_matches('.').split('.').next().unwrap_or_default();
            let Ok(id) = bare.parse::<FileId>() else { continue };
            if is_first && self.room.fresh.lock().as_ref().is_some_and(|fresh| fresh.contains(&id)) {
                continue;
            }
            if name.starts_with('.') {
                // While this process runs, parts belong to uploads on their way in.
                if is_first {
                    remove_quietly(&entry.path());
                }
                continue;
            }
            if name == bare && is_first {
                self.count(id, &entry);
            } else if name != bare && !is_first {
                self.judge(id, oldest, forgotten);
            }
        }
        *self.room.fresh.lock() = None;
        Ok(())
    }

    /// Counts content of an earlier process; without a record it was never an upload. What was left of work that a kill ended goes.
    fn count(&self, id: FileId, entry: &fs::DirEntry) {
        if !self.room.record(id).exists() {
            return remove_quietly(&entry.path());
        }
        if self.get(id).is_ok_and(|upload| self.room.is_left_behind(&upload)) {
            remove_quietly(&self.room.record(id));
            return remove_quietly(&entry.path());
        }
        let (size, holder) = (entry.metadata().map_or(0, |found| found.len()), self.room.holder(id));
        self.room.used.lock().add(holder, size);
    }

    /// Removes an upload that is too old, whose agent is gone, or whose content is.
    fn judge(&self, id: FileId, oldest: i64, forgotten: &HashSet<AgentId>) {
        if oldest == i64::MIN && forgotten.is_empty() {
            return;
        }
        let Ok(upload) = self.get(id) else { return };
        if upload.created_at.0 >= oldest && !forgotten.contains(&upload.agent) {
            return;
        }
        // What all nodes have is removed by the one that leads.
        let removed = if self.room.remote.sharing.is_leading() { self.remove(id) } else { self.remove_here(id) };
        if let Err(error) = removed {
            tracing::warn!(%error, upload = %id, "an upload could not be removed");
        }
    }
}

impl Room {
    pub(super) fn content(&self, id: FileId) -> PathBuf {
        content_of(&self.dir, id)
    }

    pub(super) fn record(&self, id: FileId) -> PathBuf {
        record_of(&self.dir, id)
    }

    /// What came in before this is past its retention; the least number where nothing ever is.
    pub(super) fn oldest(&self) -> i64 {
        let days = i64::from(self.settings.load().retention_days);
        if days == 0 { i64::MIN } else { self.retention.now().0 - days * 86_400_000 }
    }

    /// Was it sent for work that a kill ended?
    pub(super) fn is_left_behind(&self, it: &Upload) -> bool {
        let oldest = self.retention.now().0 - TEMPORARY_MS_MAX;
        it.agent.0.is_nil() && it.filename == TEMPORARY && it.created_at.0 < oldest
    }

    /// Whose share an upload takes; `None` when it is not there, or its record cannot be read.
    fn holder(&self, id: FileId) -> Option<UploadShare> {
        record::read_record(&self.record(id), id).ok().map(|record| record.holder())
    }
}

/// One of the uploads that may be on their way in at once, and the room that it took so far.
struct Taken {
    room: Arc<Room>,
    holder: Option<UploadShare>,
    bytes: u64,
    _slot: Slot,
}

impl Taken {
    fn take(room: &Arc<Room>, holder: Option<UploadShare>) -> Result<Self, FilesError> {
        let slot = room.slots.take().ok_or_else(|| FilesError::Busy("too many concurrent uploads".to_owned()))?;
        Ok(Self { room: Arc::clone(room), holder, bytes: 0, _slot: slot })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.used.lock().give_back(self.holder, self.bytes);
    }
}

/// Content on its way in, in a file without a name.
pub(super) struct Spool {
    slot: Taken,
    part: Part,
    pub(super) file: File,
}

impl Spool {
    fn new(room: &Arc<Room>, id: FileId, holder: Option<UploadShare>) -> Result<Self, FilesError> {
        let slot = Taken::take(room, holder)?;
        fs::create_dir_all(&room.dir).map_err(failed("make the directory of uploads"))?;
        let path = room.dir.join(format!(".{id}.part"));
        let opened = private().read(true).write(true).create_new(true).open(&path);
        Ok(Self { file: opened.map_err(failed("create an upload"))?, slot, part: Part::new(path) })
    }

    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), FilesError> {
        let (room, bytes) = (&self.slot.room, piece.len() as u64);
        let settings = room.settings.load();
        if self.slot.bytes + bytes > settings.max_bytes {
            return Err(FilesError::TooLarge(settings.max_bytes));
        }
        free_space::check(&room.dir, bytes).map_err(failed("write an upload"))?;
        room.used.lock().take(self.slot.holder, bytes, &settings)?;
        self.slot.bytes += bytes;
        self.file.write_all(piece).map_err(failed("write an upload"))
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.slot.bytes
    }
}

/// An upload on its way in.
pub(crate) struct Incoming {
    room: Arc<Room>,
    id: FileId,
    agent: AgentId,
    holder: UploadShare,
    filename: String,
    declared: String,
    spool: Spool,
    digest: Sha256,
    /// The first bytes.
    head: Vec<u8>,
}

impl FileWriter<Upload> for Incoming {
    fn write(&mut self, piece: &[u8]) -> Result<(), FilesError> {
        self.spool.write(piece)?;
        self.head.extend(piece.iter().take(MAGIC_BYTES - self.head.len()));
        self.digest.update(piece);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Upload, FilesError> {
        let Self { room, id, agent, holder, filename, declared, spool, digest, head } = *self;
        let Spool { mut slot, part, mut file } = spool;
        let content_type = kind::content_type(&head, &declared, &filename);
        let sha256 = hex(&digest.finalize());
        let size = slot.bytes;
        let holder = Some(holder);
        let record = Record { agent, holder, filename, content_type, size, sha256, created_at: timestamp_now() };
        let text = serde_json::to_string(&record).map_err(|_| FilesError::Failed)?;
        let whole = Whole::new(&room.dir, id, (part, &file), &text)?;
        room.share(id, &text, &mut file)?;
        if let Some(fresh) = room.fresh.lock().as_mut() {
            fresh.insert(id);
        }
        whole.keep().inspect_err(|_| room.unshare(id))?;
        // It stays, and so does the room it takes.
        slot.bytes = 0;
        Ok(record.of(id))
    }
}

/// The last part of a path as any system writes it, without control characters.
fn plain_name(filename: &str) -> Result<String, FilesError> {
    let last = filename.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).collect();
    let name = name.trim();
    if matches!(name, "" | "." | "..") {
        return Err(FilesError::Wrong("file: the name must not be empty, `.` or `..`".to_owned()));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(FilesError::Wrong(format!("file: its name is longer than {NAME_BYTES_MAX} bytes")));
    }
    Ok(name.to_owned())
}

/// A random id (UUID v4).
fn mint() -> Result<FileId, FilesError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        tracing::error!(%error, "cannot create an upload id: the system's random number generator failed");
        FilesError::Failed
    })?;
    Ok(FileId(uuid::Builder::from_random_bytes(random).into_uuid()))
}

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;
