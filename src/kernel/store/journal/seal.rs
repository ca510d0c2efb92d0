//! What shows that an entry comes from one of those who share a journal: a code that only they can make, who have its key. Whoever
//! else can write to the log adds messages that are passed over, by every reader alike.

use std::sync::atomic::{AtomicU64, Ordering};

use ring::hmac::{HMAC_SHA256, Key, sign, verify};

/// Bytes of the code, which stand before what it is for.
const TAG_BYTES: usize = 32;

/// The key of one journal, and what was found there that is not sealed with it.
#[derive(Debug)]
pub struct Seal {
    key: Key,
    /// The newest message that was passed over, and how many were.
    newest: AtomicU64,
    count: AtomicU64,
}

impl Seal {
    /// Seals with `key`, which nobody else may have.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self { key: Key::new(HMAC_SHA256, key), newest: AtomicU64::new(0), count: AtomicU64::new(0) }
    }

    /// `bytes`, sealed.
    pub(super) fn close(&self, bytes: &[u8]) -> Vec<u8> {
        [sign(&self.key, bytes).as_ref(), bytes].concat()
    }

    /// What was sealed; `None` when it was not, or is not what it was.
    pub(super) fn open<'a>(&self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (tag, bytes) = sealed.split_at_checked(TAG_BYTES)?;
        verify(&self.key, bytes, tag).ok().map(|()| bytes)
    }

    /// The message with this number is not sealed. Counts it, unless an earlier reader did.
    pub(super) fn pass_over(&self, number: u64) {
        if self.newest.fetch_max(number, Ordering::AcqRel) < number {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How many messages were passed over.
    pub fn passed_over(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }
}
