//! Lists, page by page.

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
