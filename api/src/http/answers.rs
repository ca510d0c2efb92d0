//! Memory of answers that wait until their clients take them. A client that asks for much and reads nothing holds no more
//! than its share; what is beyond is refused with 503 `answers_full`, and a streamed answer breaks off.
//!
//! Bytes count from the moment an answer is made until the last of them has left for the socket, wherever they wait in
//! between. Where a route may answer much, its worst case counts before it runs ([`Answers::reserve`]), and what it made
//! instead of that afterwards; a streamed answer does so piece by piece. Answers of up to [`limit::ANSWER_SMALL_BYTES`] do not
//! count, nor do those that the daemon keeps anyway, such as the files of the page: they take no memory for each client.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_components::kernel::limit;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::http::error::Error;
use crate::http::error_codes;
use crate::http::peer::Holder;
use crate::http::reply::{Body, BrokenOff, Pieces};

/// Seconds after which one for whose answer there was no room may try again: by then what nobody reads is given up.
const RETRY_SECS: u32 = limit::STALL_CROWDED_SECS_MAX as u32;
/// What one client may have of the whole is this part.
const CLIENTS: usize = 4;

/// How long a request waits for memory that answers which are being made will give back.
const WAIT: Duration = Duration::from_secs(2);
/// How long an answer that has begun waits for its next piece's.
const PIECE_WAIT: Duration = Duration::from_secs(60);
/// Requests that wait so at once, and a quarter of them of one client; more are refused.
const WAITING_MAX: usize = 256;

/// The memory that large answers may take.
pub(crate) struct Answers {
    max: usize,
    taken: Mutex<Taken>,
    /// Told when an answer is made.
    made: Notify,
    /// Requests that wait for that.
    waiting: Mutex<HashMap<Holder, usize>>,
    /// Streamed answers that broke off since the start because there was no room for more of them.
    broken_off: AtomicU64,
}

#[derive(Default)]
struct Taken {
    all: Part,
    /// Clients that have some.
    clients: HashMap<Holder, Part>,
}

/// Bytes that are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// In all.
    bytes: usize,
    /// Those of them for answers that are being made.
    reserved: usize,
}

impl Part {
    /// Those that wait for clients.
    const fn unread(self) -> usize {
        self.bytes.saturating_sub(self.reserved)
    }
}

impl Answers {
    /// So many bytes in all.
    pub(crate) fn new(max: usize) -> Self {
        let (taken, waiting) = (Mutex::default(), Mutex::default());
        Self { max, taken, made: Notify::new(), waiting, broken_off: AtomicU64::new(0) }
    }

    /// Streamed answers that broke off since the start.
    pub(crate) fn broken_off(&self) -> u64 {
        self.broken_off.load(Ordering::Relaxed)
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.taken.lock().all.bytes
    }

    /// Refuses a request that does something, before it does, while there is no room for answers to `client`.
    ///
    /// # Errors
    /// 503.
    pub(crate) fn admit(&self, client: Holder) -> Result<(), Error> {
        let taken = self.taken.lock();
        let own = taken.own(client);
        let (all, share) = self.room(client);
        if taken.all.unread() >= all || own.unread() >= share { Err(full()) } else { Ok(()) }
    }

    /// Takes memory for an answer to `client`, or a piece of one, before it is made. Waits a moment for answers that are being
    /// made; not for those that nobody reads.
    ///
    /// # Errors
    /// 503 when there is no room.
    pub(crate) async fn reserve(self: &Arc<Self>, client: Holder, bytes: usize) -> Result<Reserved, Error> {
        match self.try_reserve(client, bytes) {
            Ok(reserved) => return Ok(reserved),
            Err(Room::OfReaders) => return Err(full()),
            Err(Room::OfOthers) => {}
        }
        let _waits = Waits::begin(&self.waiting, client).ok_or_else(full)?;
        self.reserve_within(WAIT, client, bytes).await
    }

    async fn reserve_within(self: &Arc<Self>, wait: Duration, client: Holder, bytes: usize) -> Result<Reserved, Error> {
        let deadline = Instant::now() + wait;
        loop {
            let mut made = std::pin::pin!(self.made.notified());
            // From here on none is missed.
            made.as_mut().enable();
            match self.try_reserve(client, bytes) {
                Ok(reserved) => return Ok(reserved),
                Err(Room::OfReaders) => return Err(full()),
                Err(Room::OfOthers) => timeout_at(deadline, made).await.map_err(|_| full())?,
            }
        }
    }

    fn try_reserve(self: &Arc<Self>, client: Holder, bytes: usize) -> Result<Reserved, Room> {
        let (all, share) = self.room(client);
        let mut taken = self.taken.lock();
        for (part, max) in [(taken.own(client), share), (taken.all, all)] {
            if !fits(part.bytes, bytes, max) {
                return Err(if part.reserved > 0 { Room::OfOthers } else { Room::OfReaders });
            }
        }
        taken.change(client, |part| {
            part.bytes += bytes;
            part.reserved += bytes;
        });
        drop(taken);
        Ok(Reserved { bytes, client, answers: Arc::clone(self) })
    }

    /// Do answers take more than half of what they may: those of this client, or all together? Then the ones that are not
    /// read have less time, so that there is room for clients that read.
    pub(crate) fn is_crowded(&self, client: Holder) -> bool {
        let taken = self.taken.lock();
        let own = taken.own(client);
        let (all, share) = self.room(client);
        taken.all.unread() > all / 2 || own.unread() > share / 2
    }

    /// Counts the body of an answer to `client`. That of a request which did something is never refused: an error
    /// would ask for doing it again.
    ///
    /// # Errors
    /// 503 when there is no room for it.
    pub(crate) fn count(self: &Arc<Self>, client: Holder, body: Body, is_read: bool) -> Result<Body, Error> {
        match body {
            Body::Full(_) if body.own_bytes() == 0 => Ok(body),
            Body::Full(bytes) => self.hold(client, bytes, is_read).map(Body::Full).ok_or_else(full),
            Body::Stream(pieces) => Ok(Body::Stream(self.counted(client, pieces))),
        }
    }

    /// Counts the body of an answer for which memory was taken: what it takes, in place of what it might have taken.
    pub(crate) fn count_reserved(reserved: Reserved, body: Body) -> Body {
        match body {
            Body::Full(_) if body.own_bytes() == 0 => body,
            Body::Full(bytes) => Body::Full(reserved.hold(bytes)),
            Body::Stream(pieces) => Body::Stream(reserved.counted(pieces)),
        }
    }

    fn counted(self: &Arc<Self>, client: Holder, pieces: Pieces) -> Pieces {
        let answers = Arc::clone(self);
        Box::pin(pieces.map(move |piece| {
            let full = || {
                answers.broken_off.fetch_add(1, Ordering::Relaxed);
                broken_off()
            };
            piece.and_then(|bytes| answers.hold(client, bytes, true).ok_or_else(full))
        }))
    }

    /// The bytes, counted until the last reference to them is gone; `None` when there is no room for them. What is more
    /// than a share passes when nothing else is held, and what must not be refused always.
    fn hold(self: &Arc<Self>, client: Holder, bytes: Bytes, may_refuse: bool) -> Option<Bytes> {
        if bytes.len() <= limit::ANSWER_SMALL_BYTES {
            return Some(bytes);
        }
        let (all, share) = self.room(client);
        let mut taken = self.taken.lock();
        let own = taken.own(client);
        if may_refuse && (!fits(taken.all.bytes, bytes.len(), all) || !fits(own.bytes, bytes.len(), share)) {
            return None;
        }
        taken.change(client, |part| part.bytes += bytes.len());
        drop(taken);
        Some(Bytes::from_owner(Held { bytes, client, answers: Arc::clone(self) }))
    }

    /// What may be held in all for this client to have more, and what it may have of it.
    const fn room(&self, client: Holder) -> (usize, usize) {
        let all = client.part(self.max);
        (all, all / CLIENTS)
    }

    fn give_back(&self, client: Holder, bytes: usize) {
        self.taken.lock().change(client, |part| part.bytes = part.bytes.saturating_sub(bytes));
    }
}

impl Taken {
    fn own(&self, client: Holder) -> Part {
        self.clients.get(&client).copied().unwrap_or_default()
    }

    /// Changes what is taken, in all and by this client.
    fn change(&mut self, client: Holder, change: impl Fn(&mut Part)) {
        change(&mut self.all);
        let own = self.clients.entry(client).or_default();
        change(own);
        if own.bytes == 0 {
            self.clients.remove(&client);
        }
    }
}

/// May `bytes` come on top of what is taken? More than the whole may where nothing is.
const fn fits(taken: usize, bytes: usize, max: usize) -> bool {
    taken == 0 || taken.saturating_add(bytes) <= max
}

/// What takes the room that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Answers that are being made, among others: it will be free soon.
    OfOthers,
    /// Answers that are not read.
    OfReaders,
}

/// A request that waits for room.
struct Waits<'a> {
    waiting: &'a Mutex<HashMap<Holder, usize>>,
    client: Holder,
}

impl<'a> Waits<'a> {
    /// `None` when too many do, of this client or in all.
    fn begin(waiting: &'a Mutex<HashMap<Holder, usize>>, client: Holder) -> Option<Self> {
        let mut clients = waiting.lock();
        let own = clients.get(&client).copied().unwrap_or_default();
        if own >= WAITING_MAX / CLIENTS || clients.values().sum::<usize>() >= client.part(WAITING_MAX) {
            return None;
        }
        clients.insert(client, own + 1);
        Some(Self { waiting, client })
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut clients = self.waiting.lock();
        if let Some(own) = clients.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

/// Memory for an answer, or a piece of one, that is being made.
pub(crate) struct Reserved {
    bytes: usize,
    client: Holder,
    answers: Arc<Answers>,
}

impl Reserved {
    /// The bytes that were made, counted until the last reference to them is gone. They are never refused: the work is done.
    fn hold(self, bytes: Bytes) -> Bytes {
        if bytes.len() <= limit::ANSWER_SMALL_BYTES {
            return bytes;
        }
        let (client, answers) = (self.client, Arc::clone(&self.answers));
        let mut taken = answers.taken.lock();
        taken.change(client, |part| part.bytes += bytes.len());
        drop(taken);
        Bytes::from_owner(Held { bytes, client, answers })
    }

    /// Pieces, for each of which memory is taken before it is made; for the first it is.
    fn counted(self, pieces: Pieces) -> Pieces {
        let (bytes, client, answers) = (self.bytes, self.client, Arc::clone(&self.answers));
        Box::pin(stream::unfold((pieces, Some(self)), move |(mut pieces, mut reserved)| {
            let answers = Arc::clone(&answers);
            async move {
                let room = match reserved.take() {
                    Some(room) => room,
                    None => match answers.reserve_within(PIECE_WAIT, client, bytes).await {
                        Ok(room) => room,
                        Err(_) => {
                            answers.broken_off.fetch_add(1, Ordering::Relaxed);
                            return Some((Err(broken_off()), (pieces, None)));
                        }
                    },
                };
                let piece = pieces.next().await?;
                Some((piece.map(|bytes| room.hold(bytes)), (pieces, None)))
            }
        }))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut taken = self.answers.taken.lock();
        taken.change(self.client, |part| {
            part.bytes = part.bytes.saturating_sub(self.bytes);
            part.reserved = part.reserved.saturating_sub(self.bytes);
        });
        drop(taken);
        self.answers.made.notify_waiters();
    }
}

fn broken_off() -> BrokenOff {
    BrokenOff("too many answers wait to be read".to_owned())
}

/// Counted bytes.
struct Held {
    bytes: Bytes,
    client: Holder,
    answers: Arc<Answers>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.answers.give_back(self.client, self.bytes.len());
    }
}

fn full() -> Error {
    Error::unavailable("too many answers wait to be read; read them or try again later", RETRY_SECS)
        .code(error_codes::ANSWERS_FULL)
}

#[cfg(test)]
mod tests;
