//! The newest version of every row, from all data tables and journals.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

use agentsvc_components::kernel::record::Space;

use super::table::Version;
use super::{Salvage, number};
use crate::kernel::store::repair::Pair;

type Versions<'s> = Box<dyn Iterator<Item = io::Result<Version>> + 's>;

impl Salvage {
    /// The rows of a space in the order of keys; the store's own are among them.
    ///
    /// # Errors
    /// A table cannot be opened.
    pub(in crate::kernel::store) fn rows(&self, space: Space) -> io::Result<impl Iterator<Item = io::Result<Pair>>> {
        let number = number(space);
        let tree = &self.trees[usize::from(space == Space::Content)];
        let mut sources: Vec<Versions<'_>> = Vec::with_capacity(tree.tables.len() + 1);
        for table in &tree.tables {
            sources.push(Box::new(table.rows()?));
        }
        sources.push(Box::new(
            self.journaled(number, tree.horizon.as_ref().and_then(|horizon| horizon.last)).into_iter().map(Ok),
        ));
        let mut merged = Merged { next: BinaryHeap::new(), sources, last: None };
        for source in 0..merged.sources.len() {
            merged.advance(source)?;
        }
        Ok(merged)
    }

    /// The newest version of every row in the journals. What is in the tables already is left out: there, rows that were
    /// removed later may be gone without a trace.
    fn journaled(&self, keyspace: u64, in_tables: Option<u64>) -> Vec<Version> {
        let mut rows = BTreeMap::new();
        for journal in &self.journals {
            for batch in journal.batches().filter(|batch| in_tables.is_none() || batch.seqno > in_tables) {
                for item in journal.items(batch).filter(|item| item.keyspace == keyspace) {
                    rows.insert(item.key, (batch.seqno.unwrap_or_default(), item.value));
                }
            }
        }
        let rows = rows.into_iter();
        rows.map(|(key, (seqno, value))| (key.to_vec(), seqno, value.map(Cow::into_owned))).collect()
    }
}

/// A version of a row and its source; the least key and the highest sequence number first.
type Next = Reverse<(Vec<u8>, Reverse<u64>, usize, Option<Vec<u8>>)>;

/// The rows of several sources in one order.
struct Merged<'s> {
    /// The next version of each source.
    next: BinaryHeap<Next>,
    sources: Vec<Versions<'s>>,
    /// The key of the newest version seen last; older ones of it follow.
    last: Option<Vec<u8>>,
}

impl Merged<'_> {
    fn advance(&mut self, source: usize) -> io::Result<()> {
        if let Some((key, seqno, value)) = self.sources[source].next().transpose()? {
            self.next.push(Reverse((key, Reverse(seqno), source, value)));
        }
        Ok(())
    }

    fn newest(&mut self) -> io::Result<Option<Pair>> {
        while let Some(Reverse((key, _, source, value))) = self.next.pop() {
            self.advance(source)?;
            if self.last.as_ref() == Some(&key) {
                continue;
            }
            self.last = Some(key.clone());
            if let Some(value) = value {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }
}

impl Iterator for Merged<'_> {
    type Item = io::Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        self.newest().transpose()
    }
}
