//! The files that all nodes have together, for those who do not know of nodes.

use std::collections::HashMap;
use std::future::Future;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::members::Members;
use super::nats::{Blocking, Wire};
use crate::kernel::shared_files::{Error, Known, SharedFiles};

/// How long pieces may belong to no file: none is on its way in for longer.
const LOOSE_MAX: Duration = Duration::from_secs(60 * 60);

/// Shared files as one node sees them.
pub(super) struct NodeFiles {
    wire: Arc<Wire>,
    members: Arc<Members>,
    /// The newest epoch that this node opened; 0 before the first.
    opened: AtomicU64,
    /// Since when pieces that belong to no file are known.
    loose: Mutex<HashMap<String, Instant>>,
}

impl NodeFiles {
    pub(super) fn new(wire: &Arc<Wire>, members: &Arc<Members>) -> Self {
        Self {
            wire: Arc::clone(wire),
            members: Arc::clone(members),
            opened: AtomicU64::new(0),
            loose: Mutex::default(),
        }
    }

    /// The world is this node's as of now.
    pub(super) fn note_opened(&self) {
        self.opened.store(self.members.standing.epoch.load(Ordering::Acquire), Ordering::Release);
    }

    /// Waits for `work` on a thread of its own: who asks may be on one that runs futures, and must not wait for another.
    fn wait<T: Send>(&self, work: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        if !self.wire.is_connected() {
            return Err(Error::Unavailable("no NATS server is connected".to_owned()));
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("shared-files".to_owned());
            let waiting = thread.spawn_scoped(scope, || self.wire.wait(work))?;
            waiting.join().unwrap_or_else(|_| Err(Error::Unavailable("the request was broken off".to_owned())))
        })
    }
}

impl SharedFiles for NodeFiles {
    fn is_leading(&self) -> bool {
        let standing = &self.members.standing;
        let opened = self.opened.load(Ordering::Acquire);
        opened > 0 && opened == standing.epoch.load(Ordering::Acquire) && standing.newer().is_none()
    }

    fn put(&self, name: &str, about: &str, content: &mut (dyn Read + Send)) -> Result<(), Error> {
        self.wait(self.wire.put_file(name, about, Blocking::new(content)))
    }

    fn known(&self, name: &str) -> Result<Known, Error> {
        self.wait(self.wire.known_file(name))
    }

    fn get(&self, name: &str, to: &mut (dyn Write + Send)) -> Result<(), Error> {
        self.wait(self.wire.get_file(name, to))
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        self.wait(self.wire.remove_file(name))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, String)>, Error> {
        self.wait(self.wire.list_files(folder))
    }

    fn tidy(&self) -> Result<(), Error> {
        let found = self.wait(self.wire.loose_pieces())?;
        let now = Instant::now();
        let mut loose = self.loose.lock();
        loose.retain(|pieces, _| found.contains(pieces));
        for pieces in found {
            let since = *loose.entry(pieces.clone()).or_insert(now);
            if now.duration_since(since) > LOOSE_MAX {
                self.wait(self.wire.drop_pieces(&pieces))?;
            }
        }
        Ok(())
    }
}
