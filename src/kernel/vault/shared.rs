//! Secrets that several daemons have together. They are shared as they are on the disk: sealed, so that the key alone, which all of the
//! daemons have, opens them.

use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::record::hex;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{Error, Vault, create, io, read, sealed, sync_dir, write};
use crate::kernel::disk;
use crate::kernel::shared_files::{Known, SharedFiles};

/// What the names of shared secrets begin with.
const FOLDER: &str = "vault/";

fn digest(sealed: &[u8]) -> String {
    hex(&Sha256::digest(sealed))
}

impl Vault {
    /// From now on other daemons have the secrets, too.
    pub fn share(&self, files: Arc<dyn SharedFiles>) {
        self.sharing.set(files);
    }

    /// Gives a secret to the others, if that is for this daemon to do.
    pub(super) fn give(&self, name: &str, sealed: &[u8]) -> Result<(), Error> {
        match self.sharing.get().filter(|shared| shared.is_leading()) {
            Some(shared) => Ok(shared.put(&format!("{FOLDER}{name}"), &digest(sealed), &mut &*sealed)?),
            None => Ok(()),
        }
    }

    /// Removes a secret from the others, if that is for this daemon to do.
    pub(super) fn take_back(&self, name: &str) -> Result<(), Error> {
        match self.sharing.get().filter(|shared| shared.is_leading()) {
            Some(shared) => Ok(shared.remove(&format!("{FOLDER}{name}"))?),
            None => Ok(()),
        }
    }

    /// Makes the secrets here those that all have: what is shared counts, and the daemon that leads shares what only it has. True when
    /// something is another here than before. A secret that this vault's key does not open stays where it is.
    ///
    /// # Errors
    /// [`Error`]; then some secrets may be the new ones.
    pub fn agree(&self) -> Result<bool, Error> {
        let Some(shared) = self.sharing.get() else { return Ok(false) };
        let _alone = self.writing.lock();
        let listed = shared.list(FOLDER)?.into_iter();
        let listed: BTreeMap<String, String> =
            listed.filter_map(|(name, digest)| Some((name.strip_prefix(FOLDER)?.to_owned(), digest))).collect();
        let mut has_changed = false;
        for (name, digest) in &listed {
            has_changed |= self.take(shared, name, digest)?;
        }
        for name in self.names()?.into_iter().filter(|name| !listed.contains_key(name)) {
            has_changed |= self.agree_on(shared, &name)?;
        }
        Ok(has_changed)
    }

    /// Takes a shared secret unless it is here.
    fn take(&self, shared: &dyn SharedFiles, name: &str, known: &str) -> Result<bool, Error> {
        let Ok(path) = self.path(name) else { return Ok(false) };
        if read(&path)?.is_some_and(|here| digest(&here) == known) {
            return Ok(false);
        }
        let bytes_max = limit::VAULT_SECRET_BYTES_MAX + sealed::AROUND_BYTES;
        let mut taken = Zeroizing::new(vec![0; bytes_max]);
        let mut room = &mut taken[..];
        shared.get(&format!("{FOLDER}{name}"), &mut room)?;
        let bytes = bytes_max - room.len();
        taken.truncate(bytes);
        if !self.opens(name, &taken) {
            tracing::error!(secret = name, "a secret that nodes share does not open: it was sealed with another key");
            return Ok(false);
        }
        create(&self.dir)?;
        write(&path, &taken)?;
        Ok(true)
    }

    /// A secret that is here and was not listed: others removed it, or never had it.
    fn agree_on(&self, shared: &dyn SharedFiles, name: &str) -> Result<bool, Error> {
        let path = self.path(name)?;
        match shared.known(&format!("{FOLDER}{name}"))? {
            Known::Removed => {
                disk::remove_file(&path).map_err(io("remove", &path))?;
                sync_dir(&self.dir).map(|()| true)
            }
            Known::Never => {
                let Some(here) = read(&path)? else { return Ok(false) };
                if self.opens(name, &here) {
                    self.give(name, &here)?;
                }
                Ok(false)
            }
            Known::There(digest) => self.take(shared, name, &digest),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::KeySource;
    use super::*;
    use crate::kernel::shared_files::testing::Shelf;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OTHER_KEY: &str = "HxECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    struct Node {
        vault: Vault,
        _dir: tempfile::TempDir,
    }

    /// A daemon that is alone as yet.
    fn with_key(key: &str) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let key = KeySource::Variable(Zeroizing::new(key.to_owned()));
        Node { vault: Vault::new(dir.path().join("vault"), key), _dir: dir }
    }

    fn node(shelf: &Arc<Shelf>, leads: bool) -> Node {
        let node = with_key(KEY);
        node.vault.share(shelf.of(leads));
        node
    }

    impl Node {
        fn get(&self, name: &str) -> Option<Vec<u8>> {
            self.vault.get(name).unwrap().map(|secret| secret.to_vec())
        }
    }

    #[test]
    fn what_one_keeps_and_removes_the_next_that_leads_has_and_has_not() {
        let shelf = Arc::new(Shelf::default());
        let (one, other) = (node(&shelf, true), node(&shelf, true));
        one.vault.put("a", b"first").unwrap();
        one.vault.put("b", b"second").unwrap();
        assert!(other.vault.agree().unwrap());
        assert_eq!((other.get("a"), other.get("b")), (Some(b"first".to_vec()), Some(b"second".to_vec())));
        assert!(!other.vault.agree().unwrap(), "there is nothing more to take");
        one.vault.put("a", b"third").unwrap();
        assert!(one.vault.remove("b").unwrap());
        assert!(other.vault.agree().unwrap());
        assert_eq!((other.get("a"), other.get("b")), (Some(b"third".to_vec()), None));
        let sealed = shelf.files.lock()["vault/a"].clone().unwrap().1;
        assert!(!sealed.windows(5).any(|bytes| bytes == b"third"), "nobody reads it without the key");
    }

    #[test]
    fn what_cannot_be_shared_is_not_kept_and_what_cannot_be_removed_stays() {
        let shelf = Arc::new(Shelf::default());
        let one = node(&shelf, true);
        one.vault.put("a", b"first").unwrap();
        shelf.set_down(true);
        assert!(matches!(one.vault.put("a", b"second"), Err(Error::Shared(_))));
        assert!(matches!(one.vault.remove("a"), Err(Error::Shared(_))));
        assert!(matches!(one.vault.agree(), Err(Error::Shared(_))));
        assert_eq!(one.get("a"), Some(b"first".to_vec()));
    }

    #[test]
    fn a_daemon_that_was_alone_gives_what_it_has_and_a_standby_gives_nothing() {
        let shelf = Arc::new(Shelf::default());
        let standby = node(&shelf, false);
        standby.vault.put("own", b"of a standby").unwrap();
        standby.vault.agree().unwrap();
        assert!(shelf.names().is_empty() && standby.get("own").is_some());
        let alone = with_key(KEY);
        alone.vault.put("a", b"first").unwrap();
        alone.vault.share(shelf.of(true));
        assert!(!alone.vault.agree().unwrap());
        assert_eq!(shelf.names(), ["vault/a"]);
        assert!(standby.vault.agree().unwrap());
        assert_eq!(standby.get("a"), Some(b"first".to_vec()));
    }

    #[test]
    fn a_secret_of_another_key_is_neither_taken_nor_given() {
        let shelf = Arc::new(Shelf::default());
        let other = with_key(OTHER_KEY);
        other.vault.share(shelf.of(true));
        other.vault.put("a", b"of another key").unwrap();
        let one = node(&shelf, true);
        one.vault.put("b", b"own").unwrap();
        assert!(!one.vault.agree().unwrap());
        assert_eq!(one.vault.names().unwrap(), BTreeSet::from(["b".to_owned()]));
        assert!(!other.vault.agree().unwrap());
        assert_eq!(other.vault.names().unwrap(), BTreeSet::from(["a".to_owned()]));
    }

    #[test]
    fn more_than_a_secret_may_be_is_not_taken() {
        let shelf = Arc::new(Shelf::default());
        let one = node(&shelf, true);
        let long = vec![0; limit::VAULT_SECRET_BYTES_MAX + sealed::AROUND_BYTES + 1];
        shelf.files.lock().insert("vault/a".to_owned(), Some((String::new(), long)));
        assert!(one.vault.agree().is_err());
        assert!(one.vault.names().unwrap().is_empty());
    }
}
