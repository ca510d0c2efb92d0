//! What shows that something in NATS comes from a node of the cluster: codes made with keys that only nodes have. Others may reach the
//! servers, too, such as commands of agents.

use std::sync::Arc;

use agentsvc_systems::kernel::record::hex;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};

use super::words::Words;
use crate::kernel::store::journal::seal::Seal;

/// The keys, one for each purpose, so that nothing that was said in one place passes for something in another.
pub(crate) struct Seals {
    /// For entries of the journal.
    pub(super) journal: Arc<Seal>,
    /// For what nodes say to one another.
    pub(super) words: Words,
    /// For copies of the world.
    copies: Key,
    /// Shows which secret it is, and nothing of it.
    pub(super) fingerprint: String,
}

impl Seals {
    /// Makes the keys of the secret that the nodes share, for this start of a node.
    pub(super) fn new(secret: &[u8; 32], start: u64) -> Self {
        let journal = Arc::new(Seal::new(&derived(secret, "journal")));
        let copies = Key::new(HMAC_SHA256, &derived(secret, "copies"));
        let fingerprint = hex(&derived(secret, "fingerprint"));
        Self { journal, words: Words::new(&derived(secret, "words"), start), copies, fingerprint }
    }

    /// The seal of a copy of the world that `about` describes.
    pub(super) fn of_copy(&self, about: &[u8]) -> Vec<u8> {
        sign(&self.copies, about).as_ref().to_vec()
    }

    /// Did a node make that seal for what `about` describes?
    pub(super) fn is_of_copy(&self, about: &[u8], seal: &[u8]) -> bool {
        verify(&self.copies, about, seal).is_ok()
    }

    /// What is wrong if there was anything that no node wrote.
    pub(super) fn problem(&self) -> Option<String> {
        let (entries, words) = (self.journal.passed_over(), self.words.foreign());
        (entries + words > 0).then(|| {
            format!(
                "something that is no node of this cluster writes to its NATS servers, or a node has another \
                 AGENTSVC_VAULT_KEY: {entries} messages in the journal and {words} to the nodes were ignored; see \
                 docs/cluster.md"
            )
        })
    }
}

fn derived(secret: &[u8; 32], purpose: &str) -> [u8; 32] {
    let tag = sign(&Key::new(HMAC_SHA256, secret), format!("agentsvc {purpose}").as_bytes());
    let mut key = [0; 32];
    key.copy_from_slice(tag.as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purpose_and_each_secret_has_a_key_of_its_own() {
        let keys = [derived(&[1; 32], "journal"), derived(&[1; 32], "words"), derived(&[2; 32], "journal")];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert_eq!(derived(&[1; 32], "journal"), keys[0]);
        assert_eq!(Seals::new(&[1; 32], 1).problem(), None);
    }
}
