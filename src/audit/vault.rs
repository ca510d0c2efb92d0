//! `{home}/vault`: the key that signs checkpoints of the audit trail, and the newest of them. Readable by the owner only.
//!
//! | file | holds |
//! |------|-------|
//! | `audit.key` | the Ed25519 key: its 32-byte seed in hex |
//! | `audit.checkpoint` | the newest checkpoint in its stored form, in hex |

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_systems::audit::{SIGNATURE_BYTES, encode_checkpoint, message, parse_checkpoint};
use agentsvc_systems::kernel::record::{hex, unhex};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use zeroize::Zeroizing;

use crate::kernel::disk;

/// The file of the key.
const KEY_FILE: &str = "audit.key";
/// Bytes of the key's seed.
const SEED_BYTES: usize = 32;
/// What the signature of an acceptance begins with, before the stored form of the checkpoint.
const ACCEPTANCE: &[u8] = b"agentsvc audit acceptance\n";

/// Why the vault cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key is none.
    #[error("{} does not contain a key; expected {SEED_BYTES} bytes in hex", path.display())]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// Others may read the key.
    #[error("{} is readable by other users (mode {mode:o}); make it readable by its owner only: chmod 600", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// The vault's part for the audit trail.
pub struct Vault {
    dir: PathBuf,
    key: Ed25519KeyPair,
}

impl Vault {
    /// The seed of the key in `dir`, in hex; makes a key when there is none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn seed(dir: &Path) -> Result<Zeroizing<String>, Error> {
        Self::open(dir)?;
        let path = dir.join(KEY_FILE);
        let text = disk::read_small_text(&path).map(Zeroizing::new).map_err(io("read", &path))?;
        Ok(Zeroizing::new(text.trim().to_owned()))
    }

    /// Makes the key in `dir` the one with this seed, in hex. True when it was another.
    ///
    /// # Errors
    /// [`Error`]: it is no seed, or the system refused.
    pub(crate) fn adopt(dir: &Path, seed: &str) -> Result<bool, Error> {
        let path = dir.join(KEY_FILE);
        if disk::read_small_text(&path).is_ok_and(|there| there.trim() == seed) {
            return Ok(false);
        }
        let key = unhex(seed.as_bytes()).and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        key.ok_or_else(|| Error::Key { path: path.clone() })?;
        write(&path, seed).map(|()| true)
    }

    /// Opens the vault in `dir`, which is there; makes a key when there is none.
    ///
    /// # Errors
    /// [`Error`]: a key that is none or that others may read, or the system refused.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Self, Error> {
        let dir = dir.into();
        let path = dir.join(KEY_FILE);
        let key = match key_in(&path)? {
            Some(key) => key,
            None => {
                let mut seed = [0; SEED_BYTES];
                getrandom::fill(&mut seed).map_err(|error| io("make", &path)(std::io::Error::other(error)))?;
                write(&path, &hex(&seed))?;
                Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| Error::Key { path })?
            }
        };
        Ok(Self { dir, key })
    }

    /// Looks at the key of the vault in `dir`, and changes nothing: is there one?
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn has_key(dir: &Path) -> Result<bool, Error> {
        key_in(&dir.join(KEY_FILE)).map(|key| key.is_some())
    }

    /// The public key in hex.
    pub fn public_key(&self) -> String {
        hex(self.key.public_key().as_ref())
    }

    /// Is `signature` this vault's of `message`?
    pub fn is_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.key.public_key()).verify(message, signature).is_ok()
    }

    /// The stored form of a checkpoint, signed.
    pub fn sign(&self, checkpoint: &AuditCheckpoint) -> Vec<u8> {
        let signature = self.key.sign(&message(checkpoint));
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(signature.as_ref());
        encode_checkpoint(checkpoint, &bytes)
    }

    /// The signature that says that an operator accepted the trail with a checkpoint, given in its stored form.
    pub fn sign_acceptance(&self, row: &[u8]) -> Vec<u8> {
        self.key.sign(&[ACCEPTANCE, row].concat()).as_ref().to_vec()
    }

    /// Is `signature` this vault's for the acceptance of a checkpoint, given in its stored form?
    pub fn is_acceptance(&self, row: &[u8], signature: &[u8]) -> bool {
        self.is_signed(&[ACCEPTANCE, row].concat(), signature)
    }

    fn checkpoint_file(&self) -> PathBuf {
        self.dir.join("audit.checkpoint")
    }

    /// The newest checkpoint; `None` when none was ever kept.
    ///
    /// # Errors
    /// A sentence: the file cannot be read, is damaged, or another key signed it.
    pub fn checkpoint(&self) -> Result<Option<AuditCheckpoint>, String> {
        let path = self.checkpoint_file();
        let text = match disk::read_small_text(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("the vault's checkpoint cannot be read: {error}")),
        };
        let parsed = unhex(text.trim().as_bytes())
            .and_then(|row| parse_checkpoint(&row, |message, signature| self.is_signed(message, signature)));
        let wrong = "the vault's checkpoint was changed, or is not signed by the key in the vault";
        parsed.map(Some).ok_or_else(|| wrong.to_owned())
    }

    /// Keeps a signed checkpoint as the newest.
    pub fn keep(&self, row: &[u8]) -> Result<(), Error> {
        write(&self.checkpoint_file(), &hex(row))
    }
}

/// The key in this file; `None` when there is none.
fn key_in(path: &Path) -> Result<Option<Ed25519KeyPair>, Error> {
    let no_key = || Error::Key { path: path.to_owned() };
    let text = match disk::read_small_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::FileTooLarge) => return Err(no_key()),
        Err(error) => return Err(io("read", path)(error)),
    };
    let mode = fs::metadata(path).map_err(io("look at", path))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Error::Open { path: path.to_owned(), mode });
    }
    let key = unhex(text.trim().as_bytes()).and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
    key.map(Some).ok_or_else(no_key)
}

/// Replaces a file by a line.
fn write(path: &Path, line: &str) -> Result<(), Error> {
    disk::replace(path, format!("{line}\n").as_bytes()).map_err(io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentsvc_components::Timestamp;

    const CHECKPOINT: AuditCheckpoint =
        AuditCheckpoint { sequence: 7, hash: [1; 32], previous: 3, first: 2, anchor: [2; 32], at: Timestamp(5) };

    #[test]
    fn the_key_is_made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(dir.path()).unwrap();
        let path = dir.path().join("audit.key");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Vault::open(dir.path()).unwrap().public_key(), vault.public_key());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Vault::open(dir.path()).err().unwrap();
        assert!(error.to_string().contains("mode 644"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "not a key\n").unwrap();
        assert!(matches!(Vault::open(dir.path()), Err(Error::Key { .. })));
        assert!(matches!(Vault::has_key(dir.path()), Err(Error::Key { .. })));
        fs::remove_file(&path).unwrap();
        assert!(!Vault::has_key(dir.path()).unwrap() && !path.exists(), "a look makes none");
    }

    #[test]
    fn the_key_of_another_home_is_taken_over() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let seed = Vault::seed(one.path()).unwrap();
        let own = Vault::open(other.path()).unwrap().public_key();
        assert!(Vault::adopt(other.path(), &seed).unwrap());
        assert!(!Vault::adopt(other.path(), &seed).unwrap(), "it is there");
        let key = |dir: &tempfile::TempDir| Vault::open(dir.path()).unwrap().public_key();
        assert_eq!(key(&one), key(&other));
        assert_ne!(key(&other), own);
        assert!(matches!(Vault::adopt(other.path(), "no seed"), Err(Error::Key { .. })));
        assert_eq!(key(&one), key(&other));
    }

    #[test]
    fn a_checkpoint_is_kept_and_every_change_of_it_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(dir.path()).unwrap();
        assert_eq!(vault.checkpoint(), Ok(None));
        let row = vault.sign(&CHECKPOINT);
        vault.keep(&row).unwrap();
        assert_eq!(vault.checkpoint(), Ok(Some(CHECKPOINT)));
        for at in 0..row.len() {
            let mut changed = row.clone();
            changed[at] ^= 1;
            vault.keep(&changed).unwrap();
            assert!(vault.checkpoint().is_err(), "byte {at}");
        }
        vault.keep(&row).unwrap();
        fs::remove_file(dir.path().join("audit.key")).unwrap();
        assert!(Vault::open(dir.path()).unwrap().checkpoint().is_err(), "another key");
    }
}
