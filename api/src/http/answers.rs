//! Memory of answers that wait until their clients take them. A client that asks for much and reads nothing holds no more
//! than its share; what is beyond is refused with 503 `answers_full`, and a streamed answer breaks off.
//!
//! Bytes count from the moment an answer is made until the last of them has left for the socket, wherever they wait in
//! between. Answers of up to [`limit::ANSWER_SMALL_BYTES`] do not count, nor do those that the daemon keeps anyway, such as the
//! files of the page: they take no memory for each client.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agentsvc_components::kernel::limit;
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;

use crate::http::error::Error;
use crate::http::error_codes;
use crate::http::peer::Holder;
use crate::http::reply::{Body, BrokenOff, Pieces};

/// Seconds after which one for whose answer there was no room may try again: by then what nobody reads is given up.
const RETRY_SECS: u32 = limit::STALL_CROWDED_SECS_MAX as u32;
/// What one client may have of the whole is this part.
const CLIENTS: usize = 4;

/// The memory that large answers may take.
pub(crate) struct Answers {
    max: usize,
    taken: Mutex<Taken>,
    /// Streamed answers that broke off since the start because there was no room for more of them.
    broken_off: AtomicU64,
}

#[derive(Default)]
struct Taken {
    all: usize,
    /// Clients that have some; each has more than [`limit::ANSWER_SMALL_BYTES`].
    clients: HashMap<Holder, usize>,
}

impl Answers {
    /// So many bytes in all.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, taken: Mutex::default(), broken_off: AtomicU64::new(0) }
    }

    /// Streamed answers that broke off since the start.
    pub(crate) fn broken_off(&self) -> u64 {
        self.broken_off.load(Ordering::Relaxed)
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.taken.lock().all
    }

    /// Refuses a request that does something, before it does, while there is no room for answers to `client`.
    ///
    /// # Errors
    /// 503.
    pub(crate) fn admit(&self, client: Holder) -> Result<(), Error> {
        let taken = self.taken.lock();
        let own = taken.clients.get(&client).copied().unwrap_or(0);
        let (all, share) = self.room(client);
        if taken.all >= all || own >= share { Err(full()) } else { Ok(()) }
    }

    /// Do answers take more than half of what they may: those of this client, or all together? Then the ones that are not
    /// read have less time, so that there is room for clients that read.
    pub(crate) fn is_crowded(&self, client: Holder) -> bool {
        let taken = self.taken.lock();
        let own = taken.clients.get(&client).copied().unwrap_or(0);
        let (all, share) = self.room(client);
        taken.all > all / 2 || own > share / 2
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

    fn counted(self: &Arc<Self>, client: Holder, pieces: Pieces) -> Pieces {
        let answers = Arc::clone(self);
        Box::pin(pieces.map(move |piece| {
            let full = || {
                answers.broken_off.fetch_add(1, Ordering::Relaxed);
                BrokenOff("too many answers wait to be read".to_owned())
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
        let fits = |taken: usize, max: usize| taken == 0 || taken.saturating_add(bytes.len()) <= max;
        let mut taken = self.taken.lock();
        let own = taken.clients.get(&client).copied().unwrap_or(0);
        if may_refuse && (!fits(taken.all, all) || !fits(own, share)) {
            return None;
        }
        taken.all += bytes.len();
        taken.clients.insert(client, own + bytes.len());
        drop(taken);
        Some(Bytes::from_owner(Held { bytes, client, answers: Arc::clone(self) }))
    }

    /// What may be held in all for this client to have more, and what it may have of it. Connections that have shown no
    /// key have half of both, so that they leave some to those of the same address that have.
    const fn room(&self, client: Holder) -> (usize, usize) {
        let all = if client.has_key { self.max } else { self.max / 2 };
        (all, all / CLIENTS)
    }

    fn give_back(&self, client: Holder, bytes: usize) {
        let mut taken = self.taken.lock();
        taken.all = taken.all.saturating_sub(bytes);
        if let Some(own) = taken.clients.get_mut(&client) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                taken.clients.remove(&client);
            }
        }
    }
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
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::http::rate::ClientKey;

    const ONE: Holder = of(127);
    const OTHER: Holder = of(10);
    const LARGE: usize = limit::ANSWER_SMALL_BYTES + 1;

    const fn of(first: u32) -> Holder {
        Holder::of(ClientKey::V4(first), true)
    }

    fn body(bytes: usize) -> Body {
        Body::Full(Bytes::from(vec![b'x'; bytes]))
    }

    #[test]
    fn a_client_has_a_share_and_all_have_the_whole() {
        let answers = Arc::new(Answers::new(8 * LARGE));
        let held: Vec<_> = (0..2).map(|_| answers.count(ONE, body(LARGE), true).unwrap()).collect();
        let Err(refused) = answers.count(ONE, body(LARGE), true) else { panic!("a third one") };
        assert_eq!(refused.into_response().status(), 503);
        assert!(answers.is_crowded(ONE) && !answers.is_crowded(OTHER));
        assert!(answers.count(ONE, body(limit::ANSWER_SMALL_BYTES), true).is_ok(), "small ones do not count");
        let larger = answers.count(OTHER, body(6 * LARGE), true).unwrap();
        assert_eq!(answers.bytes(), 8 * LARGE);
        assert!(answers.is_crowded(of(11)), "all together take more than half");
        let third = of(11);
        assert!(answers.count(third, body(LARGE), true).is_err(), "the whole is taken");
        drop((held, larger));
        assert_eq!((answers.bytes(), answers.taken.lock().clients.len()), (0, 0));
        assert!(answers.count(third, body(LARGE), true).is_ok());
    }

    #[test]
    fn what_is_kept_anyway_does_not_count() {
        static PAGE: [u8; LARGE] = [b'x'; LARGE];
        let answers = Arc::new(Answers::new(4 * LARGE));
        let cached = Bytes::from(vec![b'x'; LARGE]);
        for bytes in [Bytes::from_static(&PAGE), cached.clone()] {
            let held: Vec<_> = (0..10).map(|_| answers.count(ONE, Body::Full(bytes.clone()), true).unwrap()).collect();
            assert_eq!((held.len(), answers.bytes()), (10, 0));
        }
        let own = answers.count(ONE, body(LARGE), true).unwrap();
        assert_eq!(answers.bytes(), LARGE, "what is made for one client counts");
        drop((own, cached));
    }

    #[test]
    fn what_was_done_is_answered_and_more_is_refused_before_it_is_done() {
        let answers = Arc::new(Answers::new(8 * LARGE));
        assert!(answers.admit(ONE).is_ok());
        let held: Vec<_> = (0..3).map(|_| answers.count(ONE, body(LARGE), false).unwrap()).collect();
        assert_eq!(answers.bytes(), 3 * LARGE, "it counts beyond the share, too");
        assert!(answers.admit(ONE).is_err() && answers.admit(OTHER).is_ok());
        drop(held);
        assert!(answers.admit(ONE).is_ok());
    }

    #[test]
    fn clients_without_a_key_leave_room_to_those_with_one() {
        let answers = Arc::new(Answers::new(16 * LARGE));
        let mut held = Vec::new();
        for first in 1..10 {
            let keyless = Holder::of(ClientKey::V4(first), false);
            while let Ok(body) = answers.count(keyless, body(LARGE), true) {
                held.push(body);
            }
            assert!(answers.admit(keyless).is_err());
        }
        assert_eq!(answers.bytes(), 8 * LARGE, "half of the whole");
        for client in [of(1), of(2)] {
            assert!(answers.admit(client).is_ok());
            held.extend((0..4).map(|_| answers.count(client, body(LARGE), true).unwrap()));
            assert!(answers.count(client, body(LARGE), true).is_err());
        }
        drop(held);
        assert_eq!(answers.bytes(), 0);
    }

    #[test]
    fn a_part_of_an_answer_holds_all_of_it() {
        let answers = Arc::new(Answers::new(8 * LARGE));
        let Body::Full(bytes) = answers.count(ONE, body(LARGE), true).unwrap() else { panic!("a whole body") };
        let part = bytes.slice(LARGE - 1..);
        drop(bytes);
        assert_eq!(answers.bytes(), LARGE);
        drop(part);
        assert_eq!(answers.bytes(), 0);
    }

    #[tokio::test]
    async fn pieces_of_a_stream_count_one_by_one() {
        let answers = Arc::new(Answers::new(4 * LARGE));
        let pieces = stream::iter((0..3).map(|_| Ok(Bytes::from(vec![b'x'; LARGE]))));
        let Body::Stream(mut pieces) = answers.count(ONE, Body::Stream(Box::pin(pieces)), true).unwrap() else {
            panic!("a stream")
        };
        let first = pieces.next().await.unwrap().unwrap();
        assert_eq!(answers.bytes(), LARGE);
        assert!(pieces.next().await.unwrap().is_err(), "the first still waits");
        assert_eq!(answers.broken_off(), 1);
        drop(first);
        assert!(pieces.next().await.unwrap().is_ok());
        assert_eq!(answers.bytes(), 0);
    }
}
