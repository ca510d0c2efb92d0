//! Places for what may run a bounded number of times at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many places, of which some are taken. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// One place; free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// Takes a place; `None` when there is none.
    pub(crate) fn take(&self) -> Option<Place> {
        let take = |taken: usize| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        Some(Place(Arc::clone(&self.taken)))
    }

    /// Places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// All places.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let places = Places::new(2);
        let (one, two) = (places.take(), places.take());
        assert!(one.is_some() && two.is_some() && places.take().is_none());
        drop(one);
        assert_eq!((places.taken(), places.most()), (1, 2));
        assert!(places.take().is_some());
    }
}
