//! Lists, page by page.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use agentsvc_components::kernel::limit::{PAGE_ITEMS_MAX, PAGE_SCAN_MAX};

/// Some items of a list, in order. `N` says how many there are in all: `usize`, `Option<usize>` where counting may cost too
/// much, `()` where nobody counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T, C, N = usize> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end. A page may be short, even empty, and still have a next one.
    pub next: Option<C>,
    /// How many there are in all.
    pub total: N,
}

impl<T, C, N> Page<T, C, N> {
    /// The items that `show` makes of what was found, each behind its cursor: at most `limit` (cut to [`PAGE_ITEMS_MAX`])
    /// of at most [`PAGE_SCAN_MAX`] that are looked at.
    pub(crate) fn of<E>(
        found: impl Iterator<Item = (C, E)>,
        limit: usize,
        total: N,
        mut show: impl FnMut(E) -> Option<T>,
    ) -> Self {
        let mut page = Self { items: Vec::new(), next: None, total };
        for (looked, (cursor, one)) in found.enumerate() {
            if page.items.len() == limit.clamp(1, PAGE_ITEMS_MAX) || looked == PAGE_SCAN_MAX {
                return page;
            }
            page.next = Some(cursor);
            page.items.extend(show(one));
        }
        page.next = None;
        page
    }
}

/// What all sources give, each in ascending order, in ascending order; what several give comes once. Of no source more is taken than
/// one behind what came.
pub(crate) fn merged<T: Ord + Copy, S: Iterator<Item = T>>(
    sources: impl IntoIterator<Item = S>,
) -> impl Iterator<Item = T> {
    let mut sources: Vec<S> = sources.into_iter().collect();
    let firsts = sources.iter_mut().enumerate().filter_map(|(at, source)| Some(Reverse((source.next()?, at))));
    let mut heads: BinaryHeap<Reverse<(T, usize)>> = firsts.collect();
    let mut last = None;
    std::iter::from_fn(move || {
        loop {
            let mut head = heads.peek_mut()?;
            let Reverse((item, at)) = *head;
            match sources[at].next() {
                Some(next) => *head = Reverse((next, at)),
                None => {
                    PeekMut::pop(head);
                }
            }
            if last.replace(item) != Some(item) {
                return Some(item);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn several_sources_are_merged_and_no_more_of_them_is_looked_at_than_is_taken() {
        let looked = Cell::new(0);
        let count = &looked;
        let source = |step: usize| (0..1_000_000).step_by(step).inspect(move |_| count.set(count.get() + 1));
        let first: Vec<usize> = merged([source(3), source(2), source(5)]).take(7).collect();
        assert_eq!(first, [0, 2, 3, 4, 5, 6, 8]);
        assert!(looked.get() < 7 + 2 * 3 + 3, "{} rows were looked at", looked.get());
        assert_eq!(merged([vec![1, 4].into_iter(), vec![].into_iter()]).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(merged(Vec::<std::vec::IntoIter<u8>>::new()).next(), None);
    }
}
