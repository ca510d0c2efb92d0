//! Places for what runs at once, such as what agents run. The agents of a user with a limited role have a share at
//! most together, and so has each other family of agents, which is an agent that a client created and all that descend from it: the
//! others find some, however many agents they have.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::holder::Holder;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The places. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Places<K: Copy + Eq + Hash = Holder>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    all: Arc<Semaphore>,
    /// Places that each may have.
    share: usize,
    /// What each one with places, or that waits for some, has of its share.
    shares: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub struct Place<K: Copy + Eq + Hash = Holder> {
    holder: K,
    places: Places<K>,
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// So many in all, and so many for each who shares them.
    #[must_use]
    pub fn new(all: usize, share: usize) -> Self {
        Self(Arc::new(Inner { all: Arc::new(Semaphore::new(all)), share, shares: Mutex::default() }))
    }

    /// Waits for a place of one's share. `None` never: places are not closed.
    pub async fn place(&self, holder: K) -> Option<Place<K>> {
        let share = {
            let mut shares = self.0.shares.lock();
            Arc::clone(shares.entry(holder).or_insert_with(|| Arc::new(Semaphore::new(self.0.share))))
        };
        // From here on its drop tidies the share away, also when the wait is given up.
        let mut place = Place { holder, places: self.clone(), permits: None };
        let own = share.acquire_owned().await.ok()?;
        place.permits = Some((own, Arc::clone(&self.0.all).acquire_owned().await.ok()?));
        Some(place)
    }

    /// Waits for a place of one's share, at most for `time`; `None` when it is over.
    pub async fn place_within(&self, holder: K, time: Duration) -> Option<Place<K>> {
        timeout(time, self.place(holder)).await.ok().flatten()
    }

    /// Places that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.all.available_permits()
    }
}

impl<K: Copy + Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        self.permits = None;
        let mut shares = self.places.0.shares.lock();
        // Nothing has a place of this share, nor waits for one.
        if shares.get(&self.holder).is_some_and(|share| Arc::strong_count(share) == 1) {
            shares.remove(&self.holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use agentsvc_components::kernel::id::UserId;
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_family_or_user_leaves_places_to_others() {
        let places = Places::new(8, 2);
        let (one, other) = (Holder::User(UserId(Uuid::from_u128(1))), Holder::Family(AgentId(Uuid::from_u128(1))));
        let mut held = vec![places.place(one).await.unwrap(), places.place(one).await.unwrap()];
        assert!(places.place(one).now_or_never().is_none(), "it has its share");
        let others = places.place(other).now_or_never().unwrap().unwrap();
        held.pop();
        held.push(places.place(one).now_or_never().unwrap().unwrap());
        assert_eq!(places.free(), 5);
        drop((held, others));
        assert!(places.0.shares.lock().is_empty());
        assert_eq!(places.free(), 8);
    }
}
