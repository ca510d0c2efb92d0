//! Who this node is: `peer_keypair.json` in the data directory, made when the network is first used.

use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::{Zeroize, Zeroizing};

use super::crypto::fingerprint;
use super::handshake::is_id;
use crate::kernel::disk;

/// The name of the file.
pub(crate) const FILE: &str = "peer_keypair.json";
/// Bytes of the seed of a key.
const SEED_BYTES: usize = 32;

/// Who this node is.
pub(crate) struct Identity {
    /// Its id.
    pub(crate) node_id: String,
    /// Its public key, as base64.
    pub(crate) public_key: String,
    keys: Ed25519KeyPair,
}

/// The file.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) public_key: String,
    pub(super) private_key: String,
    pub(super) node_id: String,
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.private_key.zeroize();
    }
}

impl Identity {
    /// That of the file, or a new one, whose file is made.
    ///
    /// # Errors
    /// The file cannot be read or written, or holds no key pair.
    pub(crate) fn open(data: &Path) -> io::Result<Self> {
        let path = data.join(FILE);
        if let Some(text) = disk::there(disk::read(&path))? {
            let text = Zeroizing::new(text);
            // The error names a place and no content.
            let stored = serde_json::from_slice(&text).map_err(|_| invalid("is not valid JSON with a key pair"))?;
            return Self::of(&stored);
        }
        let stored = Stored::new()?;
        let text = Zeroizing::new(serde_json::to_vec_pretty(&stored)?);
        disk::replace(&path, &text)?;
        Self::of(&stored)
    }

    /// That of the file's content.
    ///
    /// # Errors
    /// It holds no key pair.
    pub(super) fn of(stored: &Stored) -> io::Result<Self> {
        let seed = STANDARD.decode(&stored.private_key).map(Zeroizing::new);
        let seed = seed.map_err(|_| invalid("has a private_key that is not base64"))?;
        let public = STANDARD.decode(&stored.public_key).map_err(|_| invalid("has a public_key that is not base64"))?;
        // Some write both halves.
        let seed = seed.get(..SEED_BYTES).ok_or_else(|| invalid("has a private_key that is too short"))?;
        let keys = Ed25519KeyPair::from_seed_and_public_key(seed, &public)
            .map_err(|_| invalid("has keys that do not belong together"))?;
        if !is_id(&stored.node_id) {
            return Err(invalid("has no valid node_id"));
        }
        Ok(Self { node_id: stored.node_id.clone(), public_key: stored.public_key.clone(), keys })
    }

    /// What people compare.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(&self.public_key)
    }

    /// The signature of a text, as base64.
    pub(crate) fn sign(&self, text: &str) -> String {
        STANDARD.encode(self.keys.sign(text.as_bytes()))
    }
}

impl Stored {
    fn new() -> io::Result<Self> {
        let (mut seed, mut id) = (Zeroizing::new([0; SEED_BYTES]), [0; 16]);
        let random = SystemRandom::new();
        let filled = random.fill(&mut *seed).and_then(|()| random.fill(&mut id));
        filled.map_err(|_| io::Error::other("the system gave no random numbers"))?;
        let keys = Ed25519KeyPair::from_seed_unchecked(&*seed).map_err(|_| io::Error::other("a key was not made"))?;
        Ok(Self {
            public_key: STANDARD.encode(keys.public_key()),
            private_key: STANDARD.encode(*seed),
            node_id: uuid::Builder::from_random_bytes(id).into_uuid().to_string(),
        })
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{FILE} {what}"))
}

/// An id for a message.
pub(crate) fn message_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness ids repeat, and the peer refuses them; keys are not made then either.
    let _ = SystemRandom::new().fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The session that the messages of a node for an agent go to: always the same, and no other one's.
pub(crate) fn session_of(agent: Uuid, node: &str) -> Uuid {
    let text = format!("agentsvc/peer-session|{agent}|{node}");
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    // The last bits of an id say where it belongs: with its agent.
    let slot = 0xfff;
    let uuid = uuid::Builder::from_custom_bytes(bytes).into_uuid().as_u128();
    Uuid::from_u128(uuid & !slot | agent.as_u128() & slot)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::peer::crypto::signed_by;

    #[test]
    fn an_identity_is_made_once_and_kept_from_others() {
        let dir = tempfile::tempdir().unwrap();
        let one = Identity::open(dir.path()).unwrap();
        let again = Identity::open(dir.path()).unwrap();
        assert_eq!((&one.node_id, &one.public_key), (&again.node_id, &again.public_key));
        assert!(signed_by(&one.public_key, "x", &again.sign("x")) && !signed_by(&one.public_key, "y", &one.sign("x")));
        let mode = std::fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(Identity::open(other.path()).unwrap().node_id, one.node_id);
    }

    #[test]
    fn a_damaged_file_is_no_identity_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        for text in ["", "{}", "{\"public_key\":\"AAAA\",\"private_key\":\"AAAA\",\"node_id\":\"n\"}"] {
            std::fs::write(&path, text).unwrap();
            assert!(Identity::open(dir.path()).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn each_node_has_a_session_of_its_own_with_each_agent() {
        let (a, b) = (Uuid::from_u128(0x123), Uuid::from_u128(0x456));
        assert_eq!(session_of(a, "n"), session_of(a, "n"));
        let all = [session_of(a, "n"), session_of(a, "m"), session_of(b, "n")];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
        assert_eq!(all[0].as_u128() & 0xfff, 0x123);
    }
}
