//! A journal that several machines share: the rules by which one of them owns a world, over any [`Log`].
//!
//! Nothing here trusts the log's compare-and-set. It only puts what arrives into one order and keeps what it acknowledged; both
//! are checked, the second as far as anything still shows it. `tests/cluster_model` checks the rules in every order of events.
//!
//! 1. An entry is stored when it got the number that it was made for.
//! 2. What a reader finds is valid if [`Chain`] says so, for every reader alike.
//! 3. Who takes over appends an opening, and owns the world when all up to it has been read and it is valid.
//! 4. When an answer is lost, what stands at the number is read back: this entry, another's, or nothing yet.
//! 5. Who finds another's entry there is fenced. Who finds a message there that is no entry, of one who does not share the journal,
//!    makes its own anew for the next number. So one is on its way at a time: one behind it would be void.

use std::sync::Arc;

use agentsvc_systems::kernel::inputs::wire::Malformed;
use sha2::{Digest, Sha256};

use super::chain::Chain;
use super::entry::{Body, Found, Position};
use super::seal::Seal;
use super::{Entries, Journal};
use crate::kernel::store::Error;

/// Bytes of an entry; what is larger travels in pieces. Servers take messages of 1 MiB unless they are told otherwise.
const ENTRY_BYTES_MAX: usize = 512 << 10;

/// What a log answers to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is durable under this number.
    Stored(u64),
    /// It was refused, because the number is taken or the one before it is missing, or the answer was lost.
    Unknown,
}

/// Encoded entries with their numbers, as a log gives them.
pub type Numbered<'a> = Box<dyn Iterator<Item = Result<(u64, Vec<u8>), Error>> + 'a>;

/// A log that numbers what it stores from 1 on.
pub trait Log: Send {
    /// What entries are sealed with.
    fn seal(&self) -> &Arc<Seal>;

    /// Sends an encoded entry that is to get `number`, behind all that were sent before, and does not wait.
    ///
    /// # Errors
    /// Those of the log.
    fn send(&mut self, number: u64, encoded: &[u8]) -> Result<(), Error>;

    /// Waits for the answer to the oldest send that was for `number`, as long as one may take.
    ///
    /// # Errors
    /// Those of the log: nothing more can be asked of it.
    fn answer(&mut self, number: u64) -> Result<Answer, Error>;

    /// What is durable under `number`, asked of the server that appends; `None` when nothing is, by now.
    ///
    /// # Errors
    /// Those of the log.
    fn get(&self, number: u64) -> Result<Option<Vec<u8>>, Error>;

    /// The oldest and the newest number. An empty log has a newest one that is less than the oldest.
    ///
    /// # Errors
    /// Those of the log.
    fn bounds(&self) -> Result<(u64, u64), Error>;

    /// What is stored from `number` on, in order: up to the newest that [`bounds`](Self::bounds) gave, or more. What is
    /// missing counts as lost, so a copy that is behind must be waited for, or not be asked.
    ///
    /// # Errors
    /// Those of the log.
    fn read(&self, number: u64) -> Result<Numbered<'_>, Error>;

    /// Lets go of everything before `number`.
    ///
    /// # Errors
    /// Those of the log.
    fn trim(&mut self, number: u64) -> Result<(), Error>;
}

/// The journal of one world in a [`Log`].
pub struct Shared<L> {
    log: L,
    /// What the next entry is made behind.
    newest: Position,
    /// The number of the last entry that was made.
    last: u64,
    /// What was sent and not yet found durable.
    sent: Option<Sent>,
    /// Where an entry was to stand that came to stand elsewhere, and where that is.
    moved: (Position, Position),
}

/// An entry that was sent.
struct Sent {
    /// What it was made behind.
    behind: Position,
    position: Position,
    encoded: Vec<u8>,
    /// It is a piece of an entry, not the end of one.
    is_part: bool,
}

impl<L: Log> Shared<L> {
    /// The journal of the world of `position`, behind which a takeover reads: that of the node's store.
    pub fn new(log: L, position: Position) -> Self {
        Self { log, newest: position, last: 0, sent: None, moved: (position, position) }
    }

    /// The newest entry that was made or, by [`Journal::open`], read.
    pub fn newest(&self) -> &Position {
        &self.newest
    }

    fn send(&mut self, body: &Body<'_>) -> Result<Position, Error> {
        self.settle()?;
        let (position, encoded) = self.newest.encode(self.last + 1, body, self.log.seal()).map_err(unusable)?;
        if encoded.len() <= ENTRY_BYTES_MAX {
            self.hand_over(position, encoded, false)
        } else {
            self.send_in_pieces(&body.to_bytes())
        }
    }

    /// Sends a body in as many entries as it takes. Only the last one is the newest from then on.
    fn send_in_pieces(&mut self, body: &[u8]) -> Result<Position, Error> {
        let whole = Sha256::digest(body).into();
        let mut pieces = body.chunks(ENTRY_BYTES_MAX);
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            let part = Body::Part { bytes: piece.into() };
            let (position, encoded) = self.newest.encode(self.last + 1, &part, self.log.seal()).map_err(unusable)?;
            self.hand_over(position, encoded, true)?;
            self.settle()?;
        }
        let end = Body::Last { whole, bytes: last.into() };
        let (position, encoded) = self.newest.encode(self.last + 1, &end, self.log.seal()).map_err(unusable)?;
        self.hand_over(position, encoded, false)
    }

    fn hand_over(&mut self, position: Position, encoded: Vec<u8>, is_part: bool) -> Result<Position, Error> {
        self.log.send(position.index, &encoded)?;
        self.sent = Some(Sent { behind: self.newest, position, encoded, is_part });
        self.last = position.index;
        if !is_part {
            self.newest = position;
        }
        Ok(position)
    }

    /// Waits until what was sent is durable.
    fn settle(&mut self) -> Result<(), Error> {
        while let Some(Sent { position, encoded, .. }) = &self.sent {
            let number = position.index;
            if self.log.answer(number)? == Answer::Stored(number) {
                break;
            }
            match self.log.get(number)? {
                Some(there) if there == *encoded => break,
                Some(_) => self.move_on()?,
                None => self.log.send(number, encoded)?,
            }
        }
        self.sent = None;
        Ok(())
    }

    /// Makes what was sent anew, for the first number behind messages that are no entries.
    ///
    /// # Errors
    /// [`Error::Fenced`] when there is an entry of another one.
    fn move_on(&mut self) -> Result<(), Error> {
        let Some(Sent { behind, position, encoded, is_part }) = self.sent.take() else { return Ok(()) };
        let (seal, unreadable) = (self.log.seal(), |error: Malformed| Error::Rows { source: error.into() });
        let mut number = position.index;
        while let Some(there) = self.log.get(number)? {
            match behind.accept(number, &there, seal).map_err(unreadable)? {
                Found::Valid(_) | Found::Unlinked => return Err(Error::Fenced { epoch: behind.epoch + 1 }),
                Found::Foreign => seal.pass_over(number),
                Found::Void => {}
            }
            number += 1;
        }
        let Found::Valid(own) = behind.accept(position.index, &encoded, seal).map_err(unreadable)? else {
            return Err(Error::Lost { index: position.index });
        };
        let (new, encoded) = behind.encode(number, &own.body, seal).map_err(unusable)?;
        let made_for = if self.moved.1 == position { self.moved.0 } else { position };
        self.moved = (made_for, new);
        self.newest = behind;
        self.hand_over(new, encoded, is_part).map(drop)
    }

    fn open_behind(&mut self, before: &Position, node: &str) -> Result<(), Error> {
        let bounds = self.log.bounds()?;
        let newest = self.read_within(before, bounds)?.last().transpose()?;
        (self.newest, self.last) = (newest.map_or(*before, |entry| entry.position), bounds.1);
        let behind = self.newest;
        let open = self.send(&Body::Open { node: node.into() })?;
        let open = self.acknowledged(&open)?;
        // Stored is not yet valid: what was read may have been an old copy.
        match self.read(&behind)?.next().transpose()? {
            Some(entry) if entry.position == open => Ok(()),
            _ => Err(Error::Fenced { epoch: open.epoch }),
        }
    }

    /// The valid entries behind `position`, of a log with these oldest and newest numbers.
    fn read_within(&self, position: &Position, bounds: (u64, u64)) -> Result<Entries<'_>, Error> {
        let mut chain = Chain::behind(position, bounds, self.log.seal())?;
        let last = bounds.1;
        let numbered = self.log.read(chain.next())?;
        let mut numbered = numbered.take_while(move |entry| !matches!(entry, Ok((number, _)) if *number > last));
        let mut is_over = false;
        Ok(Box::new(std::iter::from_fn(move || {
            while !is_over {
                let taken = match numbered.next() {
                    Some(entry) => entry.and_then(|(number, encoded)| chain.take(number, &encoded)),
                    None => {
                        is_over = true;
                        chain.end(last).map(|()| None)
                    }
                };
                is_over |= taken.is_err();
                if let Some(entry) = taken.transpose() {
                    return Some(entry);
                }
            }
            None
        })))
    }
}

impl<L: Log> Journal for Shared<L> {
    fn open(&mut self, node: &str) -> Result<(), Error> {
        self.sent = None;
        let before = self.newest;
        let opened = self.open_behind(&before, node);
        if opened.is_err() {
            self.newest = before;
        }
        opened
    }

    fn append(&mut self, body: &Body<'_>) -> Result<Option<Position>, Error> {
        self.send(body).map(Some)
    }

    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error> {
        self.settle()?;
        Ok(if self.moved.0 == *position { self.moved.1 } else { *position })
    }

    fn read(&self, position: &Position) -> Result<Entries<'_>, Error> {
        self.read_within(position, self.log.bounds()?)
    }

    fn trim(&mut self, index: u64) -> Result<(), Error> {
        self.log.trim(index)
    }
}

fn unusable(error: std::io::Error) -> Error {
    Error::Rows { source: error.into() }
}
