//! What is kept after its end. Where too much is kept, the holder that keeps most gives up its oldest first, so that the results of
//! one user or family never push out those of all others. What nobody's share takes counts as one holder's.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::holder::Holder;

/// What ended, by whose share it takes. Those who keep nothing have no entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept<I> {
    of: BTreeMap<Option<Holder>, Own<I>>,
    by_count: BTreeSet<(usize, Option<Holder>)>,
    by_bytes: BTreeSet<(usize, Option<Holder>)>,
}

/// What one of them keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own<I> {
    ended: BTreeSet<(Timestamp, I)>,
    bytes: usize,
}

impl<I> Default for Kept<I> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), by_count: BTreeSet::new(), by_bytes: BTreeSet::new() }
    }
}

impl<I: Ord + Copy> Kept<I> {
    /// Something of a holder ended at `at` and is kept.
    pub(crate) fn insert(&mut self, holder: Option<Holder>, at: Timestamp, id: I, bytes: usize) {
        self.change(holder, |own| {
            own.ended.insert((at, id));
            own.bytes += bytes;
        });
    }

    /// It goes, or is not at its end any more.
    pub(crate) fn remove(&mut self, holder: Option<Holder>, at: Timestamp, id: I, bytes: usize) {
        self.change(holder, |own| {
            if own.ended.remove(&(at, id)) {
                own.bytes = own.bytes.saturating_sub(bytes);
            }
        });
    }

    /// It is kept, or goes.
    pub(crate) fn put(&mut self, holder: Option<Holder>, at: Timestamp, id: I, bytes: usize, is_in: bool) {
        if is_in {
            self.insert(holder, at, id, bytes);
        } else {
            self.remove(holder, at, id, bytes);
        }
    }

    fn change(&mut self, holder: Option<Holder>, change: impl FnOnce(&mut Own<I>)) {
        let own = self.of.entry(holder).or_insert_with(|| Own { ended: BTreeSet::new(), bytes: 0 });
        self.by_count.remove(&(own.ended.len(), holder));
        self.by_bytes.remove(&(own.bytes, holder));
        change(own);
        if own.ended.is_empty() {
            self.of.remove(&holder);
        } else {
            self.by_count.insert((own.ended.len(), holder));
            self.by_bytes.insert((own.bytes, holder));
        }
    }

    /// What goes first where there are too many: of the holder that keeps most, the oldest first; then of the next one.
    pub(crate) fn by_count(&self) -> impl Iterator<Item = I> + '_ {
        self.by_count.iter().rev().flat_map(|(_, holder)| self.of_holder(*holder))
    }

    /// What goes first where it takes too many bytes, likewise.
    pub(crate) fn by_bytes(&self) -> impl Iterator<Item = I> + '_ {
        self.by_bytes.iter().rev().flat_map(|(_, holder)| self.of_holder(*holder))
    }

    /// The oldest of one holder.
    pub(crate) fn oldest_of(&self, holder: Holder) -> Option<I> {
        self.of_holder(Some(holder)).next()
    }

    fn of_holder(&self, holder: Option<Holder>) -> impl Iterator<Item = I> + '_ {
        self.of.get(&holder).into_iter().flat_map(|own| own.ended.iter().map(|(_, id)| *id))
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::id::UserId;
    use uuid::Uuid;

    use super::*;

    const ANN: Option<Holder> = Some(Holder::User(UserId(Uuid::from_u128(1))));
    const BOB: Option<Holder> = Some(Holder::User(UserId(Uuid::from_u128(2))));

    #[test]
    fn the_holder_that_keeps_most_gives_up_its_oldest_first() {
        let mut kept = Kept::default();
        for (holder, at, id, bytes) in
            [(None, 1, 1, 5), (ANN, 9, 2, 1), (ANN, 3, 3, 1), (ANN, 4, 4, 1), (BOB, 2, 5, 9), (BOB, 5, 6, 1)]
        {
            kept.insert(holder, Timestamp(at), id, bytes);
        }
        assert_eq!(kept.by_count().collect::<Vec<_>>(), [3, 4, 2, 5, 6, 1]);
        assert_eq!(kept.by_bytes().collect::<Vec<_>>(), [5, 6, 1, 3, 4, 2]);
        assert_eq!(ANN.and_then(|ann| kept.oldest_of(ann)), Some(3));
        let before = kept.clone();
        kept.remove(BOB, Timestamp(2), 5, 9);
        assert_eq!(kept.by_bytes().next(), Some(1));
        kept.insert(BOB, Timestamp(2), 5, 9);
        assert_eq!(kept, before);
        for (holder, at, id, bytes) in
            [(None, 1, 1, 5), (ANN, 9, 2, 1), (ANN, 3, 3, 1), (ANN, 4, 4, 1), (BOB, 2, 5, 9), (BOB, 5, 6, 1)]
        {
            kept.remove(holder, Timestamp(at), id, bytes);
        }
        assert_eq!(kept, Kept::default());
    }
}
