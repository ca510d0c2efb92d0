//! The vault: `{home}/vault`, secrets that the daemon keeps, each in a file of its own, encrypted and authenticated.
//!
//! ```text
//! vault.key              the key, unless AGENTSVC_VAULT_KEY holds it: base64 of 32 bytes, readable by the owner only
//! <name>.sealed          one secret: what the form is, a random nonce, AES-256-GCM of the secret with the name bound to it
//! <name>.sealed.new      a secret on its way in; means nothing
//! ```
//!
//! A secret is written beside its name, synced and renamed, and the directory is synced, before anyone is told: a kill at
//! any point leaves the old secret or the new one. A key that does not open what is there never writes over it. Secrets,
//! and a key in a file, are read for each use and wiped behind it; a key in the environment stays there.

mod key;
mod sealed;
mod shared;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::kernel::disk;
use crate::kernel::home::create_private_dir;
use crate::kernel::shared_files::Sharing;
pub use key::{KeySource, VARIABLE};

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 64;
/// The secret of a vault that holds nothing else. With it another key than that of the sealed texts is found out.
const WITNESS: &str = "witness";
/// What the file of a secret ends with.
const SEALED: &str = "sealed";

/// Why the vault cannot be used. What it holds stays as it is; only when the last sync of a write failed, the new secret may
/// be there already.
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
    /// The key is not one.
    #[error("{place} must be 32 bytes in base64, for example the output of `openssl rand -base64 32`")]
    Key {
        /// Base URL that was checked.
        place: String,
    },
    /// Others may read the key.
    #[error("{} is readable by other users; run chmod 600 on it and consider replacing the secrets it protects", path.display())]
    KeyIsOpen {
        /// The file of the key.
        path: PathBuf,
    },
    /// There are secrets, but their key is gone. A new one would open none of them.
    #[error("{} is missing, but the vault contains secrets; restore it or set {VARIABLE}", path.display())]
    KeyIsGone {
        /// The file of the key.
        path: PathBuf,
    },
    /// The file is none of the vault's, or a part of one.
    #[error("{} is damaged: not an encrypted secret", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The key does not open the file.
    #[error("{} cannot be decrypted: {key} is the wrong key, or the file is damaged", path.display())]
    DoesNotOpen {
        /// The file.
        path: PathBuf,
        /// Where the key came from.
        key: String,
    },
    /// The system gave no random bytes.
    #[error("cannot create a vault key: the system's random number generator failed")]
    NoRandomness,
    /// Those with whom secrets are shared do not answer.
    #[error(transparent)]
    Shared(#[from] crate::kernel::shared_files::Error),
    /// A name that is no name of a secret, or a secret that is too long: a fault of the caller.
    #[error("{0:?} cannot be stored in the vault")]
    Unfit(String),
}

/// Names the file and the deed when the system refuses.
fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

/// The secrets of one home. Copies are the same vault.
#[derive(Clone, Debug)]
pub struct Vault {
    dir: PathBuf,
    key: KeySource,
    /// One writer at a time.
    writing: Arc<Mutex<()>>,
    /// With whom secrets are shared.
    sharing: Sharing,
}

impl Vault {
    /// The vault in `dir`, which need not exist: it is made with the first secret.
    pub fn new(dir: PathBuf, key: KeySource) -> Self {
        Self { dir, key, writing: Arc::default(), sharing: Sharing::default() }
    }

    /// The secret `name`; `None` when there is none.
    ///
    /// # Errors
    /// [`Error`]: there is one, and it cannot be opened.
    pub fn get(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let path = self.path(name)?;
        let Some(file) = read(&path)? else { return Ok(None) };
        let key = self.key.read(&self.dir)?.ok_or_else(|| Error::KeyIsGone { path: self.key.path(&self.dir) })?;
        self.open(&key, name, file).map(Some)
    }

    /// Keeps `secret` as `name`, in place of what is there. Durable when it returns.
    ///
    /// # Errors
    /// [`Error`]. Also when the key does not open what the vault holds.
    pub fn put(&self, name: &str, secret: &[u8]) -> Result<(), Error> {
        let path = self.path(name)?;
        if secret.len() > limit::VAULT_SECRET_BYTES_MAX {
            return Err(Error::Unfit(name.to_owned()));
        }
        let _alone = self.writing.lock();
        let key = self.key_to_write(name)?;
        let sealed = sealed::seal(&key, name, secret)?;
        self.give(name, &sealed)?;
        write(&path, &sealed)
    }

    /// `secret` as a text that only this vault's key opens, and only as `name`: for a secret that is kept elsewhere.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn seal(&self, name: &str, secret: &[u8]) -> Result<String, Error> {
        if self.names()?.is_empty() {
            self.put(WITNESS, b"")?;
        }
        let _alone = self.writing.lock();
        let key = self.key_to_write(name)?;
        Ok(BASE64.encode(sealed::seal(&key, name, secret)?))
    }

    /// The secret in a text that [`seal`](Self::seal) made.
    ///
    /// # Errors
    /// [`Error`]: the text or the name is another one, or the key is.
    pub fn unseal(&self, name: &str, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
        let key = self.key.read(&self.dir)?.ok_or_else(|| Error::KeyIsGone { path: self.key.path(&self.dir) })?;
        let sealed = BASE64.decode(sealed).map_err(|_| Error::Damaged { path: self.dir.join(name) })?;
        self.open(&key, name, Zeroizing::new(sealed))
    }

    /// Does this vault's key open `sealed` as the secret `name`? False without a key, too.
    pub fn opens(&self, name: &str, sealed: &[u8]) -> bool {
        let Ok(Some(key)) = self.key.read(&self.dir) else { return false };
        self.open(&key, name, Zeroizing::new(sealed.to_vec())).is_ok()
    }

    /// How many secrets there are; every one of them opens.
    pub fn check(&self) -> Result<usize, Error> {
        let names = self.names()?;
        names.iter().try_for_each(|name| self.get(name).map(drop))?;
        Ok(names.len())
    }

    /// Forgets the secret `name`; false when there is none. Durable when it returns. A secret that does not open can be
    /// forgotten too.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let path = self.path(name)?;
        let _alone = self.writing.lock();
        self.take_back(name)?;
        match disk::there(fs::remove_file(&path)).map_err(io("remove", &path))? {
            Some(()) => sync_dir(&self.dir).map(|()| true),
            None => Ok(false),
        }
    }

    /// The names of all secrets. None of them is opened.
    pub fn names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for path in disk::entries(&self.dir).map_err(io("list", &self.dir))? {
            let is_sealed = path.extension().is_some_and(|extension| extension == SEALED);
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_sealed).map(str::to_owned));
        }
        Ok(names)
    }

    /// The key, once it is known to be that of this vault; a new one for an empty vault.
    fn key_to_write(&self, name: &str) -> Result<Zeroizing<[u8; 32]>, Error> {
        let known = self.one_of_the_secrets(name)?;
        match (self.key.read(&self.dir)?, known) {
            (Some(key), Some(known)) => {
                if let Some(file) = read(&self.path(&known)?)? {
                    drop(self.open(&key, &known, file)?);
                }
                Ok(key)
            }
            (Some(key), None) => {
                create(&self.dir)?;
                Ok(key)
            }
            (None, Some(_)) => Err(Error::KeyIsGone { path: self.key.path(&self.dir) }),
            (None, None) => {
                create(&self.dir)?;
                key::make(&self.dir)
            }
        }
    }

    /// `name` if it is there, else another secret of this vault.
    fn one_of_the_secrets(&self, name: &str) -> Result<Option<String>, Error> {
        if self.path(name)?.exists() {
            return Ok(Some(name.to_owned()));
        }
        Ok(self.names()?.pop_first())
    }

    fn open(&self, key: &[u8; 32], name: &str, file: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Error> {
        let path = self.path(name)?;
        match sealed::open(key, name, file) {
            Ok(secret) => Ok(secret),
            Err(sealed::Failure::Form) => Err(Error::Damaged { path }),
            Err(sealed::Failure::Proof) => Err(Error::DoesNotOpen { path, key: self.key.place(&self.dir) }),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(Error::Unfit(name.to_owned()));
        }
        Ok(self.dir.join(format!("{name}.{SEALED}")))
    }
}

/// A whole file of the vault; `None` when it is not there.
fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    let Some(file) = disk::there(disk::open(path)).map_err(io("open", path))? else { return Ok(None) };
    // Room for all of it at once: a buffer that grows would leave pieces behind.
    let bytes_max = limit::VAULT_SECRET_BYTES_MAX + sealed::AROUND_BYTES;
    let mut bytes = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(io("read", path))?;
    if bytes.len() > bytes_max {
        return Err(Error::Damaged { path: path.to_owned() });
    }
    Ok(Some(bytes))
}

/// Puts `bytes` at `path`, whole or not at all, and makes them durable.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    disk::replace(path, bytes).map_err(io("write", path))
}

fn create(dir: &Path) -> Result<(), Error> {
    create_private_dir(dir).map_err(|error| io("create", dir)(std::io::Error::other(error)))?;
    // The directory's own name must last too.
    dir.parent().map_or(Ok(()), sync_dir)
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    disk::sync_dir(dir).map_err(io("sync", dir))
}

#[cfg(test)]
mod tests;
