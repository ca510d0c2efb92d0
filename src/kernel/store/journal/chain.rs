//! How what a journal holds is read, by every reader alike.

use std::sync::Arc;

use agentsvc_systems::kernel::inputs::wire::Malformed;
use sha2::{Digest, Sha256};

use super::entry::{BODY_BYTES_MAX, Body, Entry, Found, Position};
use super::seal::Seal;
use crate::kernel::store::Error;

/// Reads encoded entries in the order of their numbers. What is void is passed over, and so is what nobody wrote who shares the
/// journal. What was acknowledged and is gone is an error: passed over, too, it would make all entries behind it void, and the
/// reader would wait for ever, or a new owner go on without them.
#[derive(Clone, Debug)]
pub struct Chain {
    newest: Position,
    /// The entry that a store holds as its newest; `None` once the journal was found to hold it, too, or has let go of it.
    held: Option<Position>,
    next: u64,
    /// The pieces that came since the newest entry, of one that is too large for one.
    pieces: Vec<u8>,
    seal: Arc<Seal>,
    /// The first message behind the newest entry that nobody wrote who shares the journal, or that was one and is damaged.
    foreign: Option<u64>,
}

impl Chain {
    /// Begins behind `position`, in a journal whose oldest entry is `first` and whose newest is `last`.
    ///
    /// # Errors
    /// [`Error::Trimmed`] when entries behind it were let go, [`Error::Lost`] when the journal ends before it.
    pub fn behind(position: &Position, (first, last): (u64, u64), seal: &Arc<Seal>) -> Result<Self, Error> {
        if last < position.index {
            return Err(Error::Lost { index: last + 1 });
        }
        if first > position.index + 1 {
            return Err(Error::Trimmed { first });
        }
        let held = (first <= position.index).then_some(*position);
        let next = position.index + u64::from(held.is_none());
        Ok(Self { newest: *position, held, next, pieces: Vec::new(), seal: Arc::clone(seal), foreign: None })
    }

    /// The number of the entry to give next; the first one is that at the position itself, where there still is one.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Takes the entry with this number. `None` when it is void, or the one at the position itself.
    ///
    /// # Errors
    /// [`Error::Lost`] when entries before it are missing, [`Error::Diverged`] when another one than the store holds is at its
    /// position, [`Error::Rows`] when it cannot be read.
    pub fn take(&mut self, number: u64, encoded: &[u8]) -> Result<Option<Entry>, Error> {
        if number != self.next {
            return Err(Error::Lost { index: self.next });
        }
        self.next += 1;
        if let Some(held) = self.held.take() {
            let is_same = held.hash == <[u8; 32]>::from(Sha256::digest(encoded));
            return if is_same { Ok(None) } else { Err(Error::Diverged { index: held.index }) };
        }
        match (self.newest.accept(number, encoded, &self.seal).map_err(unreadable)?, self.foreign) {
            (Found::Valid(entry), _) => return self.together(entry),
            // What it was made behind was acknowledged, and something else is there.
            (Found::Unlinked, Some(index)) => return Err(Error::Lost { index }),
            (Found::Void | Found::Unlinked, _) => self.pieces.clear(),
            (Found::Foreign, _) => {
                self.seal.pass_over(number);
                self.foreign.get_or_insert(number);
            }
        }
        Ok(None)
    }

    /// Puts the pieces of an entry together; one that came whole is given as it is.
    fn together(&mut self, Entry { position, body }: Entry) -> Result<Option<Entry>, Error> {
        let body = match body {
            Body::Part { bytes } | Body::Last { bytes, .. } if self.pieces.len() + bytes.len() > BODY_BYTES_MAX => {
                return Err(unreadable(Malformed::Part {
                    what: "an entry in pieces".to_owned(),
                    reason: "it is too large".to_owned(),
                }));
            }
            Body::Part { bytes } => {
                self.pieces.extend_from_slice(&bytes);
                return Ok(None);
            }
            Body::Last { whole, bytes } => {
                self.pieces.extend_from_slice(&bytes);
                if <[u8; 32]>::from(Sha256::digest(&self.pieces)) != whole {
                    return Err(Error::Lost { index: position.index - 1 });
                }
                Body::from_bytes(&self.pieces).map_err(unreadable)?
            }
            body => body,
        };
        self.pieces.clear();
        (self.newest, self.foreign) = (position, None);
        Ok(Some(Entry { position, body }))
    }

    /// No more is given, and the journal's newest entry is `last`.
    ///
    /// # Errors
    /// [`Error::Lost`] when entries up to it are missing.
    pub fn end(&self, last: u64) -> Result<(), Error> {
        if self.next > last { Ok(()) } else { Err(Error::Lost { index: self.next }) }
    }
}

fn unreadable(error: Malformed) -> Error {
    Error::Rows { source: error.into() }
}
