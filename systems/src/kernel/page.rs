//! Lists, page by page.

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
