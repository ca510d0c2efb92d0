//! The peers whose keys are known: `trusted_peers.json` in the data directory. The first key of a node is pinned; another one is
//! refused until an operator forgets the node.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agentsvc_components::Timestamp;
use agentsvc_systems::peer::limits::{PEERS_PINNED_PER_HOUR_MAX, PEERS_TRUSTED_MAX};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::crypto::fingerprint;
use crate::kernel::disk;

/// The name of the file.
pub(crate) const FILE: &str = "trusted_peers.json";
/// Milliseconds after which the file says anew when a peer was last verified.
const VERIFIED_MS: u64 = HOUR_MS;
const HOUR_MS: u64 = 60 * 60 * 1_000;

/// A peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    pub(crate) node_id: String,
    #[serde(default)]
    pub(crate) node_name: String,
    /// Has it a key?
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) public_key: Option<String>,
    pub(crate) first_seen: Timestamp,
    /// To the hour.
    pub(crate) last_verified: Timestamp,
    #[serde(default)]
    pub(crate) fingerprint: Option<String>,
    #[serde(default)]
    pub(crate) address: String,
}

agentsvc_components::enum_words! {
    /// How a peer proves who it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Mode [as_str] {
        /// By the shared secret alone.
        Legacy = "legacy",
        /// By its key, too.
        Secure = "secure",
    }
}

/// Why a peer is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Distrust {
    #[error("the node has another key than the one that is pinned")]
    OtherKey,
    #[error("the node has a pinned key and did not sign")]
    NoKey,
    #[error("too many nodes are trusted")]
    Full,
    #[error("too many new nodes within an hour")]
    TooFast,
    #[error("the node could not be stored")]
    NotStored,
}

/// What is known of a peer when it has proved itself.
pub(crate) struct Proven<'a> {
    pub(crate) node_id: &'a str,
    pub(crate) node_name: &'a str,
    pub(crate) public_key: Option<&'a str>,
    pub(crate) address: &'a str,
    pub(crate) now: Timestamp,
}

/// Which file it is: each change makes a new one, and so does the restore of a backup.
type FileId = (u64, i64, i64);

/// The trusted peers.
pub(crate) struct TrustStore {
    path: PathBuf,
    rows: Mutex<BTreeMap<String, Trusted>>,
    /// Which file the rows are those of. Held by the one that changes them; they are readable while it waits for the disk.
    file: Mutex<Option<FileId>>,
}

impl TrustStore {
    /// Those of the file.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: then no peer is trusted.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let path = data.join(FILE);
        let (rows, file) = (Mutex::new(read(&path)?), Mutex::new(file_id(&path)?));
        Ok(Self { path, rows, file })
    }

    /// May the node be what it says? Changes nothing.
    pub(crate) fn check(&self, node_id: &str, public_key: Option<&str>) -> Result<(), Distrust> {
        let rows = self.rows.lock();
        match rows.get(node_id) {
            None if rows.len() >= PEERS_TRUSTED_MAX => Err(Distrust::Full),
            None => Ok(()),
            Some(row) => match (row.public_key.as_deref(), public_key) {
                (Some(pinned), Some(given)) if pinned != given => Err(Distrust::OtherKey),
                (Some(_), None) => Err(Distrust::NoKey),
                _ => Ok(()),
            },
        }
    }

    /// Is this the pinned key of the node?
    pub(crate) fn is_pinned(&self, node_id: &str, public_key: Option<&str>) -> bool {
        self.rows.lock().get(node_id).is_some_and(|row| row.public_key.as_deref() == public_key)
    }

    /// Pins the node, or notes that it was verified; says whether its key is new. May wait for the disk: what is pinned is
    /// stored when it returns.
    pub(crate) fn pin(&self, proven: &Proven<'_>) -> Result<bool, Distrust> {
        let mut file = self.file.lock();
        let unstored = |error: io::Error| {
            tracing::error!(%error, "{FILE} could not be read or written");
            Distrust::NotStored
        };
        self.refresh(&mut file).map_err(unstored)?;
        // Two that come at once with different keys are judged one after the other.
        self.check(proven.node_id, proven.public_key)?;
        let mut rows = self.all_by_id();
        let before = rows.get(proven.node_id).cloned();
        if before.is_none() {
            let is_recent = |row: &&Trusted| proven.now.ms_since(row.first_seen) < HOUR_MS;
            if rows.values().filter(is_recent).count() >= PEERS_PINNED_PER_HOUR_MAX {
                return Err(Distrust::TooFast);
            }
        }
        let public_key = proven.public_key.map(ToOwned::to_owned);
        let is_new = before.as_ref().is_none_or(|before| before.public_key != public_key);
        let is_due = before.as_ref().is_none_or(|before| proven.now.ms_since(before.last_verified) >= VERIFIED_MS);
        if !is_new && !is_due {
            return Ok(false);
        }
        let row = Trusted {
            node_id: proven.node_id.to_owned(),
            node_name: proven.node_name.to_owned(),
            mode: if public_key.is_some() { Mode::Secure } else { Mode::Legacy },
            fingerprint: public_key.as_deref().map(fingerprint),
            public_key,
            first_seen: before.map_or(proven.now, |before| before.first_seen),
            last_verified: proven.now,
            address: proven.address.to_owned(),
        };
        rows.insert(row.node_id.clone(), row);
        self.change(rows, &mut file).map_err(unstored)?;
        Ok(is_new)
    }

    /// Forgets a node, so that its next key is pinned. May wait for the disk.
    ///
    /// # Errors
    /// The file cannot be written; the node stays.
    pub(crate) fn forget(&self, node_id: &str) -> io::Result<bool> {
        let mut file = self.file.lock();
        self.refresh(&mut file)?;
        let mut rows = self.all_by_id();
        if rows.remove(node_id).is_none() {
            return Ok(false);
        }
        self.change(rows, &mut file)?;
        Ok(true)
    }

    fn all_by_id(&self) -> BTreeMap<String, Trusted> {
        self.rows.lock().clone()
    }

    /// Reads the file again if it is another one, such as that of a backup.
    fn refresh(&self, file: &mut Option<FileId>) -> io::Result<()> {
        let present = file_id(&self.path)?;
        if present != *file {
            *self.rows.lock() = read(&self.path)?;
            *file = present;
        }
        Ok(())
    }

    /// Stores the rows; they count when they are stored.
    fn change(&self, rows: BTreeMap<String, Trusted>, file: &mut Option<FileId>) -> io::Result<()> {
        disk::replace(&self.path, &serde_json::to_vec_pretty(&rows.values().collect::<Vec<_>>())?)?;
        *file = file_id(&self.path)?;
        *self.rows.lock() = rows;
        Ok(())
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Trusted> {
        self.rows.lock().values().cloned().collect()
    }
}

fn file_id(path: &Path) -> io::Result<Option<FileId>> {
    let metadata = disk::there(std::fs::metadata(path))?;
    Ok(metadata.map(|file| (file.ino(), file.mtime(), file.mtime_nsec())))
}

/// The rows of the file.
fn read(path: &Path) -> io::Result<BTreeMap<String, Trusted>> {
    let rows: Vec<Trusted> = match disk::there(disk::read(path))? {
        None => Vec::new(),
        Some(text) => serde_json::from_slice(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {error}")))?,
    };
    Ok(rows.into_iter().map(|row| (row.node_id.clone(), row)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proven<'a>(node_id: &'a str, public_key: Option<&'a str>, at: i64) -> Proven<'a> {
        Proven { node_id, node_name: "n", public_key, address: "1.2.3.4:5", now: Timestamp(at) }
    }

    #[test]
    fn the_first_key_is_pinned_and_survives() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        assert_eq!(store.pin(&proven("a", Some("AAAA"), 1)), Ok(true));
        assert_eq!(store.pin(&proven("a", Some("AAAA"), 2)), Ok(false));
        let store = TrustStore::open(dir.path()).unwrap();
        assert_eq!(store.pin(&proven("a", Some("BBBB"), 3)), Err(Distrust::OtherKey));
        assert_eq!(store.pin(&proven("a", None, 3)), Err(Distrust::NoKey));
        let row = store.all().remove(0);
        assert_eq!((row.mode, row.first_seen, row.last_verified), (Mode::Secure, Timestamp(1), Timestamp(1)));
        assert_eq!(row.fingerprint, Some(fingerprint("AAAA")));
        assert!(store.forget("a").unwrap() && !store.forget("a").unwrap());
        assert!(TrustStore::open(dir.path()).unwrap().all().is_empty());
        assert_eq!(store.pin(&proven("a", Some("BBBB"), 4)), Ok(true));
    }

    #[test]
    fn a_node_without_a_key_may_get_one_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        assert_eq!(store.pin(&proven("a", None, 1)), Ok(true));
        assert_eq!(store.all()[0].mode, Mode::Legacy);
        assert_eq!(store.pin(&proven("a", Some("AAAA"), 2)), Ok(true));
        assert_eq!(store.pin(&proven("a", None, 3)), Err(Distrust::NoKey));
        assert_eq!(store.all()[0].first_seen, Timestamp(1));
    }

    #[test]
    fn the_file_of_a_backup_counts_at_the_next_handshake() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let restored = TrustStore::open(other.path()).unwrap();
        restored.pin(&proven("a", Some("AAAA"), 1)).unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        store.pin(&proven("b", None, 1)).unwrap();
        std::fs::rename(other.path().join(FILE), dir.path().join(FILE)).unwrap();
        assert_eq!(store.pin(&proven("a", Some("BBBB"), 2)), Err(Distrust::OtherKey));
        assert_eq!(store.pin(&proven("c", None, 2)), Ok(true));
        let stored: Vec<String> =
            TrustStore::open(dir.path()).unwrap().all().into_iter().map(|row| row.node_id).collect();
        assert_eq!(stored, ["a", "c"]);
    }

    #[test]
    fn of_two_keys_that_come_at_once_one_is_pinned() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        for node in 0..20 {
            let (node, start) = (node.to_string(), std::sync::Barrier::new(4));
            let pinned = std::thread::scope(|scope| {
                let pin = |key: &'static str| {
                    let (store, node, start) = (&store, &node, &start);
                    scope.spawn(move || {
                        start.wait();
                        store.pin(&proven(node, Some(key), 1)) == Ok(true)
                    })
                };
                let threads = ["A", "B", "C", "D"].map(pin);
                threads.map(|thread| thread.join().unwrap()).into_iter().filter(|is_pinned| *is_pinned).count()
            });
            assert_eq!(pinned, 1, "node {node}");
        }
    }

    #[test]
    fn few_new_nodes_are_pinned_within_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        for n in 0..PEERS_PINNED_PER_HOUR_MAX {
            assert_eq!(store.pin(&proven(&n.to_string(), None, 1)), Ok(true));
        }
        assert_eq!(store.pin(&proven("x", None, 2)), Err(Distrust::TooFast));
        assert_eq!(store.pin(&proven("7", None, 2)), Ok(false), "one that is known");
        assert_eq!(store.pin(&proven("x", None, 1 + HOUR_MS as i64)), Ok(true));
    }

    #[test]
    fn it_is_bounded_and_a_damaged_file_trusts_none() {
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::open(dir.path()).unwrap();
        let row = |n: usize| Trusted {
            node_id: n.to_string(),
            node_name: String::new(),
            mode: Mode::Legacy,
            public_key: None,
            first_seen: Timestamp(1),
            last_verified: Timestamp(1),
            fingerprint: None,
            address: String::new(),
        };
        *store.rows.lock() = (0..PEERS_TRUSTED_MAX).map(|n| (n.to_string(), row(n))).collect();
        assert_eq!(store.pin(&proven("x", None, 2)), Err(Distrust::Full));
        assert_eq!(store.pin(&proven("7", None, 2)), Ok(false), "one that is known");
        std::fs::write(dir.path().join(FILE), "[{").unwrap();
        assert!(TrustStore::open(dir.path()).is_err());
    }
}
