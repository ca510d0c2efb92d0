//! Sums and signatures of plugins: `[integrity]` of the manifest, and `plugin.toml.sig` beside it.

use std::collections::BTreeMap;

use agentsvc_systems::kernel::record::hex;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::manifest;
use crate::kernel::vault::Vault;
use crate::skill_source::staging::FileSum;

/// The signature of the manifest.
pub(crate) const FILE: &str = "plugin.toml.sig";
/// The key of the daemon, in its vault.
const KEY: &str = "plugin_signing_key";
/// Bytes of its seed.
const SEED_BYTES: usize = 32;
/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 64;

/// So many bytes in hex or base64.
pub(super) fn decode(text: &str, bytes: usize) -> Option<Vec<u8>> {
    let text = text.trim();
    let digits = |at: usize| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok();
    let read: Option<Vec<u8>> = match text.len() == bytes * 2 {
        true => (0..bytes).map(digits).collect(),
        false => STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok(),
    };
    read.filter(|read| read.len() == bytes)
}

/// The key that signs; made with the first signature.
pub(crate) struct Signer(Ed25519KeyPair);

impl Signer {
    /// The key of the vault; `None` where there is none and `make` is false. Blocks on the disk.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn of(vault: &Vault, make: bool) -> Result<Option<Self>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("the key that signs plugins cannot be used: {error}");
        let seed = vault.get(KEY).map_err(|error| failed(&error))?;
        let seed = match seed {
            Some(seed) => seed.to_vec(),
            None if !make => return Ok(None),
            None => {
                let mut seed = vec![0; SEED_BYTES];
                getrandom::fill(&mut seed).map_err(|error| failed(&error))?;
                vault.put(KEY, &seed).map_err(|error| failed(&error))?;
                seed
            }
        };
        Ed25519KeyPair::from_seed_unchecked(&seed).map(|key| Some(Self(key))).map_err(|error| failed(&error))
    }

    /// The public key in hex.
    pub(crate) fn public_key(&self) -> String {
        hex(self.0.public_key().as_ref())
    }

    /// The text of the file with the signature.
    pub(crate) fn sign(&self, manifest: &[u8]) -> String {
        STANDARD.encode(self.0.sign(manifest))
    }

    pub(super) fn key(&self) -> Vec<u8> {
        self.0.public_key().as_ref().to_vec()
    }
}

/// Checks the signature of a manifest.
///
/// # Errors
/// A sentence: it is none of these keys.
pub(super) fn check(manifest: &[u8], signature: &str, keys: &[Vec<u8>]) -> Result<(), String> {
    let bytes = decode(signature, SIGNATURE_BYTES).ok_or_else(|| format!("{FILE}: not an Ed25519 signature"))?;
    let is_by = |key: &Vec<u8>| UnparsedPublicKey::new(&ED25519, key).verify(manifest, &bytes).is_ok();
    if keys.iter().any(is_by) {
        return Ok(());
    }
    Err(format!("{FILE}: not a signature of this plugin.toml by the daemon or a key of [context_engine] signing_keys"))
}

/// Compares files with their sums. `is_whole`: there may be no others.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn compare(files: &[FileSum], sums: &BTreeMap<String, String>, is_whole: bool) -> Result<(), String> {
    let found: BTreeMap<&str, &str> = files.iter().map(|file| (&*file.path, &*file.sha256)).collect();
    for (path, sum) in sums {
        match found.get(path.strip_prefix("./").unwrap_or(path)) {
            None => return Err(format!("integrity: {path} is missing")),
            Some(is) if *is != sum => return Err(format!("integrity: {path} has changed; its SHA-256 is {is}")),
            Some(_) => {}
        }
    }
    let other = found.keys().find(|path| is_whole && !sums.contains_key(**path));
    other.map_or(Ok(()), |path| Err(format!("integrity: {path} was added")))
}

/// A signature is of the manifest and, by its sums, of all other files.
///
/// # Errors
/// A sentence that names a file that has no sum, or another one.
pub(super) fn covers(files: &[FileSum], sums: &BTreeMap<String, String>) -> Result<(), String> {
    let others: Vec<_> =
        files.iter().filter(|file| file.path != manifest::FILE && file.path != FILE).cloned().collect();
    let plain = |(path, sum): (&String, &String)| (path.strip_prefix("./").unwrap_or(path).to_owned(), sum.clone());
    compare(&others, &sums.iter().map(plain).collect(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_keys_and_this_text_count() {
        let signer = |seed: u8| Signer(Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap());
        let signature = signer(1).sign(b"text");
        assert_eq!(check(b"text", &signature, &[signer(2).key(), signer(1).key()]), Ok(()));
        assert!(check(b"other", &signature, &[signer(1).key()]).is_err());
        assert!(check(b"text", &signature, &[signer(2).key()]).is_err());
        assert!(check(b"text", &signature, &[]).is_err());
        assert!(check(b"text", "x", &[signer(1).key()]).unwrap_err().contains("not an Ed25519 signature"));
        assert_eq!(decode(&signer(3).public_key(), 32), Some(signer(3).key()));
    }

    #[test]
    fn a_file_that_changed_went_or_came_is_named() {
        let file = |path: &str, sum: &str| FileSum { path: path.to_owned(), bytes: 1, sha256: sum.to_owned() };
        let sums = |list: &[(&str, &str)]| list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let files = [file("a.py", "1"), file("b.py", "2")];
        assert_eq!(compare(&files, &sums(&[("a.py", "1")]), false), Ok(()));
        assert_eq!(compare(&files, &sums(&[("./a.py", "1")]), false), Ok(()));
        assert!(compare(&files, &sums(&[("a.py", "2")]), false).unwrap_err().contains("a.py has changed"));
        assert!(compare(&files, &sums(&[("c.py", "2")]), false).unwrap_err().contains("c.py is missing"));
        assert!(compare(&files, &sums(&[("a.py", "1")]), true).unwrap_err().contains("b.py was added"));
        let signed = [files.to_vec(), vec![file(FILE, "3"), file(manifest::FILE, "4")]].concat();
        assert_eq!(covers(&signed, &sums(&[("./a.py", "1"), ("b.py", "2")])), Ok(()));
        assert!(covers(&signed, &sums(&[("a.py", "1")])).unwrap_err().contains("b.py was added"));
    }
}
