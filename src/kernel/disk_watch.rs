//! Watches the disk that the store is on. Where it has too little room the daemon serves reads only, and the store gets
//! the room of a reserve file; both end by themselves when there is room again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use agentsvc_components::kernel::limit::{STORE_RESERVE_BYTES, STORE_ROOM_BYTES};
use rustix::fs::FallocateFlags;

use super::home::private_file;
use super::{disk, free_space};

/// The reserve, in the data directory.
pub(crate) const RESERVE: &str = "reserve";
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Bytes that are free before the reserve takes some of them.
pub(crate) const RESERVE_FROM_BYTES: u64 = 2 * free_space::SPARE_BYTES + STORE_RESERVE_BYTES;

/// Gives the reserve of a full disk up, so that a start has room for what it writes.
pub(crate) fn make_room(data: &Path) -> io::Result<()> {
    match disk::there(free_space::free(data))? {
        Some(free) if free < STORE_ROOM_BYTES => disk::remove_file(&data.join(RESERVE)),
        _ => Ok(()),
    }
}

/// Looks after the disk until it is dropped.
pub(crate) struct DiskWatch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DiskWatch {
    /// Watches the disk of the data directory. `waits` says whether something waits for room that could not be written: the
    /// disk is as good as full then. `tell` is told with every look, at once with the first, whether changes are to be
    /// refused.
    pub(crate) fn start(
        data: &Path,
        waits: impl Fn() -> bool + Send + 'static,
        tell: impl Fn(bool) + Send + 'static,
    ) -> io::Result<Self> {
        let mut room = Room::of(data);
        room.look(false);
        tell(room.read_only);
        let (stop, stopped) = channel();
        let watch = move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                room.look(waits());
                tell(room.read_only);
            }
        };
        let thread = std::thread::Builder::new().name("disk-watch".to_owned()).spawn(watch)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the disk watch panicked");
        }
    }
}

/// How the disk was at the last look.
struct Room {
    data: PathBuf,
    reserve: PathBuf,
    read_only: bool,
    /// The last change of the reserve failed, and that was said.
    is_troubled: bool,
    /// There is too little room for a reserve, and that was said.
    is_small: bool,
}

impl Room {
    fn of(data: &Path) -> Self {
        let reserve = data.join(RESERVE);
        // Without a reserve there was no room when somebody looked last, or nobody did: more is wanted.
        let read_only = !reserve.exists();
        Self { data: data.to_owned(), reserve, read_only, is_troubled: false, is_small: false }
    }

    fn look(&mut self, waits: bool) {
        match free_space::free(&self.data) {
            Ok(_) if waits => self.found(0),
            Ok(free) => self.found(free),
            Err(error) => tracing::debug!(%error, "the free space of the disk is not known"),
        }
    }

    /// So many bytes are free.
    fn found(&mut self, free: u64) {
        let was = self.read_only;
        self.read_only = free < if was { STORE_ROOM_BYTES + STORE_RESERVE_BYTES } else { STORE_ROOM_BYTES };
        let changed = match (was, self.read_only) {
            (false, true) => {
                tracing::error!(free, "the disk is full: changes are refused until there is room");
                Ok(())
            }
            // Commands of agents that fill the disk were stopped since the last look: what is given up is the store's.
            (true, true) if free < STORE_ROOM_BYTES => disk::remove_file(&self.reserve),
            (true, true) => Ok(()),
            (_, false) if self.is_whole() => Ok(()),
            (_, false) if free >= RESERVE_FROM_BYTES => self.reserve(),
            (_, false) => return self.warn_of_a_small_disk(free),
        };
        self.is_small = false;
        match changed {
            Err(error) if !self.is_troubled => {
                self.is_troubled = true;
                tracing::warn!(%error, "the reserve of the store could not be changed");
            }
            Err(_) => {}
            Ok(()) => self.is_troubled = false,
        }
    }

    fn warn_of_a_small_disk(&mut self, free: u64) {
        if !self.is_small {
            self.is_small = true;
            tracing::warn!(
                free,
                needed = RESERVE_FROM_BYTES,
                "the disk is too small for the reserve of the store: if it becomes full, nothing can be stored or deleted \
                 until you free space; set data_dir to a directory on a larger disk"
            );
        }
    }

    fn is_whole(&self) -> bool {
        fs::metadata(&self.reserve).is_ok_and(|found| found.len() == STORE_RESERVE_BYTES)
    }

    fn reserve(&self) -> io::Result<()> {
        let file: File = private_file().write(true).create(true).truncate(true).open(&self.reserve)?;
        Ok(rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, STORE_RESERVE_BYTES)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_is_given_up_when_the_disk_stays_full_and_made_when_it_has_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut room = Room::of(dir.path());
        assert!(room.read_only, "nobody has looked");
        let mut look = |free, read_only, reserve| {
            room.found(free);
            assert_eq!((room.read_only, room.is_whole()), (read_only, reserve), "{free} bytes are free");
        };
        look(STORE_ROOM_BYTES, true, false);
        look(STORE_ROOM_BYTES + STORE_RESERVE_BYTES, false, false);
        look(RESERVE_FROM_BYTES, false, true);
        look(STORE_ROOM_BYTES, false, true);
        look(0, true, true);
        look(0, true, false);
        look(STORE_RESERVE_BYTES, true, false);
        look(u64::MAX, false, true);
        // A start on a disk that has room leaves the reserve.
        make_room(dir.path()).unwrap();
        assert!(room.is_whole());
        make_room(&dir.path().join("none")).unwrap();
    }
}
