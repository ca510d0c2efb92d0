//! Memory permits for what clients sent: bodies of requests, messages of WebSockets and the texts of attachments, all together.
//! What streams to disk needs none.
//!
//! | of each body or message                 | counts towards               | no room                             |
//! |-----------------------------------------|------------------------------|-------------------------------------|
//! | the first [`limit::BODY_SMALL_BYTES`]   | [`limit::BODIES_SMALL_BYTES_MAX`] | 503 `bodies_full`, `Retry-After` |
//! | what is beyond                          | [`limit::BODIES_BYTES_MAX`]  | the same                            |
//!
//! A WebSocket is closed with 1013 instead.
//!
//! JSON bodies count as what they take once they are read ([`json::memory_bytes`](crate::http::json::memory_bytes)).
//!
//! Three kinds of clients count apart, so that none is refused because of another: those without the API key, where one is set,
//! have a quarter of both sums together; users and named keys with a limited role have both sums together, and each of them a
//! quarter ([`Parts`]); all others have both sums.
//!
//! So whoever sends much keeps nobody out who sends little. Bytes are taken as they arrive, never as they are announced,
//! and given back when the request has been answered, or what it sent to the world was taken there, whichever is later: a
//! client that leaves does not make room for what it left in the world's queue.

use crate::http::error_codes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use agentsvc_components::kernel::limit;
use hyper::StatusCode;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::http::error::Error;

/// Seconds after which one for whose body there was no room may try again.
const RETRY_SECS: u32 = 1;

tokio::task_local! {
    /// The permit of the request in hand.
    static CURRENT: Arc<Permit>;
}

/// The memory that permits are given for.
pub(crate) struct Permits {
    small: Share,
    large: Share,
    /// What this is a part of: what is taken here is taken there, too.
    whole: Option<Arc<Self>>,
}

impl Permits {
    /// So many bytes of beginnings, and so many of what is beyond them.
    pub(crate) const fn new(small: usize, large: usize) -> Self {
        Self { small: Share::new(small), large: Share::new(large), whole: None }
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.small.taken.load(Ordering::Relaxed) + self.large.taken.load(Ordering::Relaxed)
    }

    /// Takes so many bytes of beginnings, and so many of what is beyond, or none.
    fn take(&self, small: usize, large: usize) -> bool {
        if !self.small.take(small) {
            return false;
        }
        if !self.large.take(large) {
            self.small.give_back(small);
            return false;
        }
        if self.whole.as_ref().is_some_and(|whole| !whole.take(small, large)) {
            self.small.give_back(small);
            self.large.give_back(large);
            return false;
        }
        true
    }

    fn give_back(&self, small: usize, large: usize) {
        self.small.give_back(small);
        self.large.give_back(large);
        if let Some(whole) = &self.whole {
            whole.give_back(small, large);
        }
    }
}

/// What each client may have of one sum is this part.
const PART: usize = 4;
/// Parts that are remembered before those that nobody uses are forgotten.
const PARTS_SWEPT: usize = 1_024;

/// Permits for clients each of whom may have a part of the whole.
pub(crate) struct Parts {
    whole: Arc<Permits>,
    of: Mutex<HashMap<Uuid, Weak<Permits>>>,
}

impl Parts {
    /// Parts of so many bytes of beginnings, and so many of what is beyond them.
    pub(crate) fn new(small: usize, large: usize) -> Self {
        Self { whole: Arc::new(Permits::new(small, large)), of: Mutex::default() }
    }

    /// The part of this client.
    pub(crate) fn part(&self, client: Uuid) -> Arc<Permits> {
        let mut of = self.of.lock();
        if let Some(part) = of.get(&client).and_then(Weak::upgrade) {
            return part;
        }
        if of.len() >= PARTS_SWEPT {
            of.retain(|_, part| part.strong_count() > 0);
        }
        let most = Permits::new(self.whole.small.max / PART, self.whole.large.max / PART);
        let part = Arc::new(Permits { whole: Some(Arc::clone(&self.whole)), ..most });
        of.insert(client, Arc::downgrade(&part));
        part
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.whole.bytes()
    }
}

/// A number of bytes that may be taken.
struct Share {
    taken: AtomicUsize,
    max: usize,
}

impl Share {
    const fn new(max: usize) -> Self {
        Self { taken: AtomicUsize::new(0), max }
    }

    /// Takes so many bytes, or none.
    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.max);
        bytes == 0 || self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The permit for the bytes of one body or message. Dropped, it gives them back.
pub(crate) struct Permit {
    permits: Arc<Permits>,
    bytes: usize,
}

impl Permit {
    /// No bytes yet.
    pub(crate) fn nothing(permits: &Arc<Permits>) -> Self {
        Self { permits: Arc::clone(permits), bytes: 0 }
    }

    /// So many bytes.
    ///
    /// # Errors
    /// 503 when there is no room for them.
    #[cfg(test)]
    pub(crate) fn of(permits: &Arc<Permits>, bytes: usize) -> Result<Self, Error> {
        let mut permit = Self::nothing(permits);
        permit.take(bytes)?;
        Ok(permit)
    }

    /// Takes so many bytes more.
    ///
    /// # Errors
    /// 503 when there is no room for them; what was taken before is held on. 413 when it is more than the client may ever have.
    pub(crate) fn take(&mut self, more: usize) -> Result<(), Error> {
        let (was, now) = (parts(self.bytes), parts(self.bytes.saturating_add(more)));
        if self.permits.whole.is_some() && now.1 > self.permits.large.max {
            return Err(too_large(self.permits.large.max));
        }
        if !self.permits.take(now.0 - was.0, now.1 - was.1) {
            return Err(full());
        }
        self.bytes += more;
        Ok(())
    }

    /// Bytes that it is for.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back what is beyond so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let (was, now) = (parts(self.bytes), parts(self.bytes.min(bytes)));
        self.permits.give_back(was.0 - now.0, was.1 - now.1);
        self.bytes = now.0 + now.1;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// How many of these bytes are the beginning, and how many are beyond it.
fn parts(bytes: usize) -> (usize, usize) {
    let small = bytes.min(limit::BODY_SMALL_BYTES);
    (small, bytes - small)
}

fn too_large(most: usize) -> Error {
    let text = format!(
        "the request takes more than {most} bytes of memory, which is what one user may have; send it in several requests"
    );
    Error::new(StatusCode::PAYLOAD_TOO_LARGE, text).with("limit_bytes", most)
}

fn full() -> Error {
    Error::unavailable("too many request bodies and attachments are in memory; try again later", RETRY_SECS)
        .code(error_codes::BODIES_FULL)
}

/// Does `work` with what its request holds. The commands that it sends hold it on; those of small bodies need not, for
/// there may be few of them.
pub(crate) async fn hold<F: Future>(permit: Option<Permit>, work: F) -> F::Output {
    match permit {
        Some(permit) if permit.bytes > limit::BODY_SMALL_BYTES => CURRENT.scope(Arc::new(permit), work).await,
        permit => {
            let done = work.await;
            drop(permit);
            done
        }
    }
}

/// What the request in hand holds, for who goes on with it.
pub(crate) fn current() -> Option<Arc<Permit>> {
    CURRENT.try_with(Arc::clone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_makes_room() {
        let room = Arc::new(Permits::new(3 * limit::BODY_SMALL_BYTES, 10));
        let mut first = Permit::of(&room, limit::BODY_SMALL_BYTES - 1).unwrap();
        first.take(1 + 4).unwrap();
        let second = Permit::of(&room, limit::BODY_SMALL_BYTES + 6).unwrap();
        assert_eq!(room.bytes(), 2 * limit::BODY_SMALL_BYTES + 10);
        // Nothing of what finds no room is taken.
        let refused = first.take(1).unwrap_err().into_response();
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
        assert!(Permit::of(&room, limit::BODY_SMALL_BYTES + 1).is_err());
        assert_eq!(room.bytes(), 2 * limit::BODY_SMALL_BYTES + 10);
        // Small ones have a share of their own.
        let small = Permit::of(&room, limit::BODY_SMALL_BYTES).unwrap();
        assert!(Permit::of(&room, 1).is_err());
        drop((second, small));
        first.take(6).unwrap();
        first.shrink_to(limit::BODY_SMALL_BYTES + 9);
        assert_eq!(room.bytes(), limit::BODY_SMALL_BYTES + 9);
        first.shrink_to(3);
        first.shrink_to(4);
        assert_eq!((first.bytes(), room.bytes()), (3, 3), "it does not grow");
        drop(first);
        assert_eq!(room.bytes(), 0);
    }

    #[test]
    fn one_user_leaves_room_to_others() {
        let parts = Parts::new(8 * limit::BODY_SMALL_BYTES, 400);
        let [ann, bob] = [1, 2].map(|id| parts.part(Uuid::from_u128(id)));
        let large = |permits: &Arc<Permits>, more| Permit::of(permits, limit::BODY_SMALL_BYTES + more);
        let status = |refused: Result<Permit, Error>| refused.err().map(|error| error.status().as_u16());
        let held = large(&ann, 60).unwrap();
        assert_eq!(status(large(&ann, 60)), Some(503), "it would be more than a quarter");
        assert_eq!(status(large(&ann, 101)), Some(413), "it never has room");
        let again = large(&parts.part(Uuid::from_u128(1)), 40).unwrap();
        assert_eq!(status(Permit::of(&ann, 1)), Some(503), "nor has it more beginnings");
        let other = large(&bob, 100).unwrap();
        assert_eq!(parts.bytes(), 3 * limit::BODY_SMALL_BYTES + 200);
        drop((held, again, other));
        assert_eq!((ann.bytes(), bob.bytes(), parts.bytes()), (0, 0, 0));
        drop((ann, bob));
        (0..2 * PARTS_SWEPT as u128).for_each(|id| drop(parts.part(Uuid::from_u128(id))));
        assert!(parts.of.lock().len() <= PARTS_SWEPT);
    }

    #[tokio::test]
    async fn large_ones_are_carried_along() {
        let room = Arc::new(Permits::new(1 << 20, 1 << 20));
        let seen = |bytes| hold(Permit::of(&room, bytes).ok(), async { current() });
        assert!(seen(limit::BODY_SMALL_BYTES).await.is_none());
        assert_eq!(room.bytes(), 0);
        let kept = seen(limit::BODY_SMALL_BYTES + 1).await;
        assert_eq!(room.bytes(), limit::BODY_SMALL_BYTES + 1, "the work is done, but someone goes on with it");
        drop(kept);
        assert_eq!(room.bytes(), 0);
        assert!(hold(None, async { current() }).await.is_none());
    }
}
