//! A long list in pieces: it grows, is joined with another and is read away without its items being copied.

/// Bytes of one piece. Small, so that the allocator has a piece's memory again when it is read away.
const CHUNK_BYTES: usize = 64 << 10;

/// A list of records of which a world may have a million. Behaves like a vector that can only grow at its end.
#[derive(Debug)]
pub struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    /// Items of one piece.
    const ITEMS: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        if CHUNK_BYTES / size == 0 { 1 } else { CHUNK_BYTES / size }
    };

    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        self.len += 1;
        match self.chunks.last_mut() {
            Some(last) if last.len() < last.capacity() => last.push(item),
            _ => {
                let mut chunk = Vec::with_capacity(Self::ITEMS);
                chunk.push(item);
                self.chunks.push(chunk);
            }
        }
    }

    /// Adds all items of `other` behind the last one, and leaves it empty.
    pub fn append(&mut self, other: &mut Self) {
        self.len += std::mem::take(&mut other.len);
        self.chunks.append(&mut other.chunks);
    }

    /// How many items there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Is there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// The items in their order, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// Puts the items in the order of `key`. Costs one look at each when they are in that order already.
    pub(crate) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        if self.iter().is_sorted_by_key(&key) {
            return;
        }
        let mut all: Vec<T> = std::mem::take(self).into_iter().collect();
        all.sort_by_key(key);
        *self = all.into_iter().collect();
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut chunks = Self::default();
        items.into_iter().for_each(|item| chunks.push(item));
        chunks
    }
}

impl<'a, T> IntoIterator for &'a Chunks<T> {
    type Item = &'a T;
    type IntoIter = std::iter::Flatten<std::slice::Iter<'a, Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.iter().flatten()
    }
}

impl<T> IntoIterator for Chunks<T> {
    type Item = T;
    type IntoIter = ChunksIter<T>;

    fn into_iter(self) -> ChunksIter<T> {
        ChunksIter { items: self.chunks.into_iter().flatten(), left: self.len }
    }
}

/// Reads [`Chunks`] away: a piece is freed when its last item is out.
pub struct ChunksIter<T> {
    items: std::iter::Flatten<std::vec::IntoIter<Vec<T>>>,
    left: usize,
}

impl<T> Iterator for ChunksIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let item = self.items.next()?;
        self.left -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for ChunksIter<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_lists_are_read_in_their_order_and_counted() {
        let mut list: Chunks<u64> = (0..20_000).collect();
        let mut more: Chunks<u64> = (20_000..20_003).collect();
        list.append(&mut more);
        list.append(&mut Chunks::default());
        list.push(20_003);
        assert!(more.is_empty() && more.iter().next().is_none());
        assert_eq!(list.len(), 20_004);
        assert!(list.iter().copied().eq(0..20_004));
        assert!((&list).into_iter().copied().eq(0..20_004));
        let mut away = list.into_iter();
        assert_eq!((away.len(), away.next(), away.len()), (20_004, Some(0), 20_003));
        assert!(away.eq(1..20_004));
    }

    #[test]
    fn items_in_disorder_are_sorted_and_equal_ones_stay_as_they_were() {
        let mut list: Chunks<(u32, u32)> = (0..10_000).map(|n| (n % 7, n)).collect();
        list.sort_by_key(|(key, _)| *key);
        assert_eq!(list.len(), 10_000);
        assert!(list.iter().is_sorted());
        let before: Vec<_> = list.iter().copied().collect();
        list.sort_by_key(|(key, _)| *key);
        assert!(list.iter().eq(&before));
    }
}
