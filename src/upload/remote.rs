//! Uploads that several nodes have together. Each is shared before it is acknowledged, record and content as one; a node that lacks
//! one fetches it when it is first read.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentsvc_api::http::files::FilesError;
use agentsvc_components::{AgentId, FileId};
use agentsvc_systems::kernel::record::hex;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::part::{Part, Whole, failed, private};
use super::record::{self, Record};
use super::share::UploadShare;
use super::uploads::{Room, Uploads};
use crate::kernel::shared_files::{Error, Known, SharedFiles, Sharing};
use crate::kernel::{disk, free_space};

/// What the names of shared uploads begin with.
const FOLDER: &str = "uploads/";
/// What the mark ends with that says that an upload is still to be removed from the others.
const GONE: &str = "gone";
/// Uploads that are fetched at once.
const FETCHES: usize = 4;

/// What is known of other nodes.
#[derive(Default)]
pub(super) struct Remote {
    pub(super) sharing: Sharing,
    /// Whose share the uploads take that other nodes have alone, and how many bytes. They are counted here, too.
    elsewhere: Mutex<HashMap<FileId, (UploadShare, u64)>>,
    /// Who fetches holds one of these, by the id: nothing is fetched twice.
    fetching: [Mutex<()>; FETCHES],
    /// Something is still to be told to the others.
    owes: AtomicBool,
}

impl Remote {
    /// What is elsewhere is counted anew the next time.
    pub(super) fn forget_counts(&self) {
        self.elsewhere.lock().clear();
    }
}

fn name(id: FileId) -> String {
    format!("{FOLDER}{id}")
}

fn unavailable(error: Error) -> FilesError {
    match error {
        Error::Unavailable(why) => {
            tracing::warn!(why, "the uploads that nodes share cannot be reached");
            FilesError::Unavailable("the uploads that the nodes share cannot be reached; try again".to_owned())
        }
        Error::Io(error) => failed("share an upload")(error),
    }
}

impl Room {
    /// Gives the upload `id` to the other nodes: `record` is its record, and `content` a file at any place.
    ///
    /// # Errors
    /// [`FilesError::Unavailable`]; then it is to be removed there, should it have arrived all the same.
    pub(super) fn share(&self, id: FileId, record: &str, content: &mut File) -> Result<(), FilesError> {
        let Some(shared) = self.remote.sharing.get() else { return Ok(()) };
        io::Seek::rewind(content).map_err(failed("read an upload"))?;
        shared.put(&name(id), record, content).map_err(|error| {
            self.owe(id);
            unavailable(error)
        })
    }

    /// Removes an upload from the other nodes; now or, when they cannot be reached, later.
    pub(super) fn unshare(&self, id: FileId) {
        let Some(shared) = self.remote.sharing.get() else { return };
        if let Err(error) = shared.remove(&name(id)) {
            tracing::warn!(%error, upload = %id, "an upload is removed from the other nodes later");
            self.owe(id);
        }
    }

    /// Notes that an upload is still to be removed from the other nodes.
    fn owe(&self, id: FileId) {
        self.remote.owes.store(true, Ordering::Relaxed);
        let mark = self.dir.join(format!("{id}.{GONE}"));
        let marked = std::fs::create_dir_all(&self.dir)
            .and_then(|()| private().write(true).create(true).truncate(true).open(mark));
        if let Err(error) = marked {
            tracing::error!(%error, upload = %id, "it could not be noted that an upload was removed");
        }
    }

    /// What the other nodes know of an upload that this one has not.
    pub(super) fn known(&self, id: FileId) -> Result<Option<Record>, FilesError> {
        let Some(shared) = self.remote.sharing.get() else { return Ok(None) };
        if self.dir.join(format!("{id}.{GONE}")).exists() {
            return Ok(None);
        }
        match shared.known(&name(id)).map_err(unavailable)? {
            Known::There(text) => record::parse(&text, id).map(Some),
            Known::Removed | Known::Never => Ok(None),
        }
    }

    /// An upload that only other nodes had is removed: its room is free.
    pub(super) fn forget_elsewhere(&self, id: FileId) {
        if let Some((holder, bytes)) = self.remote.elsewhere.lock().remove(&id) {
            self.used.lock().give_back(Some(holder), bytes);
        }
    }

    /// An upload that only other nodes had is here from now on.
    fn note_fetched(&self, id: FileId, record: &Record) {
        if self.remote.elsewhere.lock().remove(&id).is_none() {
            self.used.lock().add(Some(record.holder()), record.size);
        }
    }

    /// Counts what other nodes have alone.
    fn count_elsewhere(&self, listed: &HashMap<FileId, Record>) {
        let mut elsewhere = self.remote.elsewhere.lock();
        let mut used = self.used.lock();
        elsewhere.retain(|id, (holder, bytes)| {
            let stays = listed.contains_key(id);
            if !stays {
                used.give_back(Some(*holder), *bytes);
            }
            stays
        });
        for (id, record) in listed.iter().filter(|(id, _)| !self.record(**id).exists()) {
            elsewhere.entry(*id).or_insert_with(|| {
                used.add(Some(record.holder()), record.size);
                (record.holder(), record.size)
            });
        }
    }
}

/// What comes from other nodes, on its way to a file: no more of it than is announced.
struct Checked {
    file: File,
    left: u64,
    hash: Sha256,
}

impl Write for Checked {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(piece.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other("a shared upload is larger than its record says"))?;
        self.hash.update(piece);
        self.file.write_all(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Uploads {
    /// From now on other nodes have the uploads, too.
    pub(super) fn share(&self, files: Arc<dyn SharedFiles>) {
        self.room.remote.sharing.set(files);
    }

    /// Do other nodes have the uploads, too?
    pub(super) fn is_shared(&self) -> bool {
        self.room.remote.sharing.get().is_some()
    }

    /// Something is to be told to the other nodes.
    pub(super) fn owe(&self) {
        self.room.remote.owes.store(true, Ordering::Relaxed);
    }

    /// Is something still to be told to the other nodes?
    pub(super) fn owes(&self) -> bool {
        self.room.remote.owes.load(Ordering::Relaxed)
    }

    /// Fetches an upload that another node kept; false when none has it.
    ///
    /// # Errors
    /// [`FilesError::Unavailable`], [`FilesError::Damaged`] for content that is not what its record says, or the disk failed or has no
    /// room; then nothing of it stays.
    pub(super) fn fetch(&self, id: FileId) -> Result<bool, FilesError> {
        let room = &*self.room;
        let Some(shared) = room.remote.sharing.get() else { return Ok(false) };
        let _alone = room.remote.fetching[usize::from(id.0.as_bytes()[0]) % FETCHES].lock();
        if room.content(id).exists() {
            return Ok(true);
        }
        let Some(record) = room.known(id)? else { return Ok(false) };
        if record.size > room.settings.load().max_total_bytes {
            return Err(FilesError::Full("the upload is larger than all uploads may be".to_owned()));
        }
        std::fs::create_dir_all(&room.dir).map_err(failed("make the directory of uploads"))?;
        free_space::check(&room.dir, record.size).map_err(failed("fetch an upload"))?;
        // The first look at the room leaves it alone.
        if let Some(fresh) = room.fresh.lock().as_mut() {
            fresh.insert(id);
        }
        let part = Part::new(room.dir.join(format!(".{id}.part")));
        let file = private().write(true).create(true).truncate(true).open(&part.path);
        let file = file.map_err(failed("fetch an upload"))?;
        let mut content = Checked { file, left: record.size, hash: Sha256::new() };
        shared.get(&name(id), &mut content).map_err(unavailable)?;
        if content.left > 0 || hex(&content.hash.finalize()) != record.sha256 {
            return Err(self.note_damaged(&record.of(id)));
        }
        let text = serde_json::to_string(&record).map_err(|_| FilesError::Failed)?;
        Whole::new(&room.dir, id, (part, &content.file), &text)?.keep()?;
        room.note_fetched(id, &record);
        tracing::debug!(upload = %id, bytes = record.size, "an upload was fetched");
        Ok(true)
    }

    /// Fetches all that only other nodes have, save what is damaged there.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub(super) fn gather(&self) -> Result<(), FilesError> {
        if !self.is_shared() {
            return Ok(());
        }
        self.agree(&HashSet::new())?;
        let missing: Vec<FileId> = self.room.remote.elsewhere.lock().keys().copied().collect();
        missing.into_iter().try_for_each(|id| match self.fetch(id) {
            Ok(_) | Err(FilesError::Damaged(_)) => Ok(()),
            Err(error) => Err(error),
        })
    }

    /// Brings what this node has and what all have together: what others removed goes here, too; the node that leads shares what it alone
    /// has, and removes what is past its retention or belongs to one of the agents in `forgotten`.
    ///
    /// # Errors
    /// The others cannot be reached, or the disk failed; then it is still owed.
    pub(super) fn agree(&self, forgotten: &HashSet<AgentId>) -> Result<(), FilesError> {
        let room = &*self.room;
        let Some(shared) = room.remote.sharing.get() else { return Ok(()) };
        room.remote.owes.store(false, Ordering::Relaxed);
        let agreed = self.agree_with(shared, forgotten);
        if agreed.is_err() {
            self.owe();
        }
        agreed
    }

    fn agree_with(&self, shared: &dyn SharedFiles, forgotten: &HashSet<AgentId>) -> Result<(), FilesError> {
        let room = &*self.room;
        let leads = shared.is_leading();
        let listed = shared.list(FOLDER).map_err(unavailable)?;
        let of_entry = |(name, text): (String, String)| {
            let id: FileId = name.strip_prefix(FOLDER)?.parse().ok()?;
            Some((id, record::parse(&text, id).ok()?))
        };
        let mut listed: HashMap<FileId, Record> = listed.into_iter().filter_map(of_entry).collect();
        for path in disk::entries(&room.dir).map_err(failed("list the uploads"))? {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(id) = stem.and_then(|stem| stem.parse::<FileId>().ok()) else { continue };
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(GONE) => {
                    shared.remove(&name(id)).map_err(unavailable)?;
                    disk::remove_file(&path).map_err(failed("forget that an upload was removed"))?;
                    listed.remove(&id);
                }
                Some("json") if !listed.contains_key(&id) => self.agree_on(shared, id, leads)?,
                _ => {}
            }
        }
        room.count_elsewhere(&listed);
        let oldest = room.oldest();
        for (id, record) in listed.into_iter().filter(|_| leads) {
            let upload = record.of(id);
            let is_past = upload.created_at.0 < oldest || forgotten.contains(&upload.agent);
            if is_past || room.is_left_behind(&upload) {
                self.remove(id)?;
            }
        }
        if leads { shared.tidy().map_err(unavailable) } else { Ok(()) }
    }

    /// An upload that is here and was not listed: others removed it, or never had it.
    fn agree_on(&self, shared: &dyn SharedFiles, id: FileId, leads: bool) -> Result<(), FilesError> {
        match shared.known(&name(id)).map_err(unavailable)? {
            Known::Removed => self.remove_here(id),
            Known::Never if leads => {
                let room = &*self.room;
                // Gone meanwhile, or damaged: there is nothing to give.
                let (Ok(record), Ok(mut content)) =
                    (record::read_record(&room.record(id), id), disk::open(&room.content(id)))
                else {
                    return Ok(());
                };
                let text = serde_json::to_string(&record).map_err(|_| FilesError::Failed)?;
                shared.put(&name(id), &text, &mut content).map_err(unavailable)?;
                if !room.record(id).exists() {
                    room.unshare(id);
                }
                Ok(())
            }
            Known::Never | Known::There(_) => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
