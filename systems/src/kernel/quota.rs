//! Room for what the world keeps in memory: so many entities of a kind, and so many bytes of their texts. The index of a kind
//! keeps the sums, and its `check` compares them with a scan.

use agentsvc_components::{ErrorCode, Refusal};

use super::check::Faults;

/// What the entities of a kind take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// How many there are.
    pub(crate) count: usize,
    /// Bytes of their texts.
    pub(crate) bytes: usize,
}

impl Used {
    /// One more, of so many bytes.
    pub(crate) const fn add(&mut self, bytes: usize) {
        (self.count, self.bytes) = (self.count + 1, self.bytes + bytes);
    }

    /// One less.
    pub(crate) const fn remove(&mut self, bytes: usize) {
        (self.count, self.bytes) = (self.count - 1, self.bytes - bytes);
    }
}

/// What the entities of a kind may take at most.
pub(crate) struct Quota {
    /// So many.
    pub(crate) count: usize,
    /// So many bytes of texts.
    pub(crate) bytes: usize,
    /// What a refusal calls them.
    pub(crate) what: &'static str,
    /// The code of a refusal.
    pub(crate) code: ErrorCode,
}

impl Quota {
    /// Refuses `more` of them, with so many bytes more of texts, where there is no room for that. There always is for none,
    /// and for texts that are not longer: what was loaded may have more.
    pub(crate) fn admit(&self, used: Used, more: usize, bytes: usize) -> Result<(), Refusal> {
        let full = |text| Err(Refusal::full(text, self.code));
        if more > 0 && used.count + more > self.count {
            return full(format!("the limit of {} {} is reached; delete some first", self.count, self.what));
        }
        if bytes > 0 && used.bytes.saturating_add(bytes) > self.bytes {
            return full(format!("{} take {} bytes; the limit is {}", self.what, used.bytes, self.bytes));
        }
        Ok(())
    }

    /// Says when there are more bytes than may be.
    pub(crate) fn check(&self, used: Used, faults: &mut Faults) {
        faults.that(used.bytes <= self.bytes, || format!("{} take {} bytes", self.what, used.bytes));
    }
}
