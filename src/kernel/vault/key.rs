//! The vault's key: from the environment, else in a file that is made with the first secret.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{Error, io, read, write};

/// Environment variable of the key.
pub const VARIABLE: &str = "AGENTSVC_VAULT_KEY";
/// The file that holds it otherwise.
const FILE: &str = "vault.key";

/// Where the key comes from.
#[derive(Clone)]
pub enum KeySource {
    /// The environment: the base64 of 32 bytes.
    Variable(Zeroizing<String>),
    /// The file `vault.key`, made when it is first needed.
    File,
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Variable(_) => "Variable(***)",
            Self::File => "File",
        })
    }
}

impl KeySource {
    /// As the environment says; an empty variable is none.
    pub fn from_environment() -> Self {
        // A value that is no text is a wrong key, not none.
        let value = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        value.map_or(Self::File, |value| Self::Variable(Zeroizing::new(value.to_string_lossy().into_owned())))
    }

    /// Does the environment give the key? False: it is in a file.
    ///
    /// # Errors
    /// [`Error::Key`]: the environment gives something else.
    pub fn check(&self) -> Result<bool, Error> {
        match self {
            Self::Variable(_) => self.read(Path::new("")).map(|_| true),
            Self::File => Ok(false),
        }
    }

    /// The key of the vault in `dir`; `None` when there is no file yet.
    pub(super) fn read(&self, dir: &Path) -> Result<Option<Zeroizing<[u8; 32]>>, Error> {
        let wrong = || Error::Key { place: self.place(dir) };
        match self {
            Self::Variable(text) => decode(text.as_bytes()).map(Some).ok_or_else(wrong),
            Self::File => {
                let path = self.path(dir);
                let Some(text) = read(&path)? else { return Ok(None) };
                let mode = path.metadata().map_err(io("look at", &path))?.permissions().mode();
                if mode & 0o077 != 0 {
                    return Err(Error::KeyIsOpen { path });
                }
                decode(&text).map(Some).ok_or_else(wrong)
            }
        }
    }

    /// What to call it in messages.
    pub(super) fn place(&self, dir: &Path) -> String {
        match self {
            Self::Variable(_) => VARIABLE.to_owned(),
            Self::File => self.path(dir).display().to_string(),
        }
    }

    pub(super) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(FILE)
    }
}

/// Makes the key file of an empty vault; it is durable before anything is sealed with it.
pub(super) fn make(dir: &Path) -> Result<Zeroizing<[u8; 32]>, Error> {
    let mut key = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *key).map_err(|_| Error::NoRandomness)?;
    let mut text = Zeroizing::new(String::with_capacity(64));
    STANDARD.encode_string(*key, &mut text);
    text.push('\n');
    write(&dir.join(FILE), text.as_bytes())?;
    Ok(key)
}

fn decode(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 48]);
    let length = STANDARD.decode_slice(text.trim_ascii(), &mut *bytes).ok()?;
    let key: &[u8; 32] = bytes[..length].try_into().ok()?;
    Some(Zeroizing::new(*key))
}
