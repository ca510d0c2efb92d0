//! The peers whose keys are known: `trusted_peers.json` in the data directory. The first key of a node is pinned; another one is
//! refused until an operator forgets the node.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use agentsvc_components::Timestamp;
use agentsvc_systems::peer::limits::PEERS_TRUSTED_MAX;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::crypto::fingerprint;
use crate::kernel::disk;

/// The name of the file.
pub(crate) const FILE: &str = "trusted_peers.json";
/// Milliseconds after which the file says anew when a peer was last verified.
const VERIFIED_MS: u64 = 60 * 60 * 1_000;

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
    pub(crate) last_verified: Timestamp,
    #[serde(default)]
    pub(crate) fingerprint: Option<String>,
    #[serde(default)]
    pub(crate) address: String,
}

/// How a peer proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// By the shared secret alone.
    Legacy,
    /// By its key, too.
    Secure,
}

impl Mode {
    /// The word of the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Secure => "secure",
        }
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

/// The trusted peers.
pub(crate) struct TrustStore {
    path: PathBuf,
    rows: Mutex<BTreeMap<String, Trusted>>,
}

impl TrustStore {
    /// Those of the file.
    ///
    /// # Errors
    /// It cannot be read, or is damaged: then no peer is trusted.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let path = data.join(FILE);
        let rows: Vec<Trusted> = match disk::there(std::fs::read(&path))? {
            None => Vec::new(),
            Some(text) => serde_json::from_slice(&text)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {error}")))?,
        };
        let rows = rows.into_iter().map(|row| (row.node_id.clone(), row)).collect();
        Ok(Self { path, rows: Mutex::new(rows) })
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

    /// Pins the node, or notes that it was verified; says whether its key is new. May wait for the disk: what is pinned is
    /// stored when it returns.
    pub(crate) fn pin(&self, proven: &Proven<'_>) -> Result<bool, Distrust> {
        self.check(proven.node_id, proven.public_key)?;
        let mut rows = self.rows.lock();
        let before = rows.get(proven.node_id).cloned();
        let public_key = proven.public_key.map(ToOwned::to_owned);
        let is_new = before.as_ref().is_none_or(|before| before.public_key != public_key);
        let is_due = before.as_ref().is_none_or(|before| proven.now.ms_since(before.last_verified) >= VERIFIED_MS);
        let row = Trusted {
            node_id: proven.node_id.to_owned(),
            node_name: proven.node_name.to_owned(),
            mode: if public_key.is_some() { Mode::Secure } else { Mode::Legacy },
            fingerprint: public_key.as_deref().map(fingerprint),
            public_key,
            first_seen: before.as_ref().map_or(proven.now, |before| before.first_seen),
            last_verified: proven.now,
            address: proven.address.to_owned(),
        };
        rows.insert(row.node_id.clone(), row);
        if is_new || is_due {
            let stored = self.store(&rows);
            if let Err(error) = stored {
                tracing::error!(%error, "{FILE} could not be written");
                match before {
                    Some(before) => rows.insert(before.node_id.clone(), before),
                    None => rows.remove(proven.node_id),
                };
                return Err(Distrust::NotStored);
            }
        }
        Ok(is_new)
    }

    /// Forgets a node, so that its next key is pinned. May wait for the disk.
    ///
    /// # Errors
    /// The file cannot be written; the node stays.
    pub(crate) fn forget(&self, node_id: &str) -> io::Result<bool> {
        let mut rows = self.rows.lock();
        let Some(row) = rows.remove(node_id) else { return Ok(false) };
        if let Err(error) = self.store(&rows) {
            rows.insert(row.node_id.clone(), row);
            return Err(error);
        }
        Ok(true)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Trusted> {
        self.rows.lock().values().cloned().collect()
    }

    fn store(&self, rows: &BTreeMap<String, Trusted>) -> io::Result<()> {
        let rows: Vec<&Trusted> = rows.values().collect();
        disk::replace(&self.path, &serde_json::to_vec_pretty(&rows)?)
    }
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
