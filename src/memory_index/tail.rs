//! Entries that are in no segment yet.

use std::collections::HashMap;

use super::analysis::{terms, user_term};
use super::segment::{Doc, Memory, Postings, length_of, push, words_of};

/// An entry with what it is found by.
pub(super) struct Analysed {
    doc: Doc,
    length: u8,
    /// Hashes of its terms, and how often each occurs.
    counts: HashMap<u64, u32>,
}

impl Analysed {
    /// Reads the text.
    pub(super) fn new(doc: Doc, text: &str, user: Option<&str>) -> Self {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        let words = terms(text, &mut |term| *counts.entry(term.hash).or_default() += 1);
        if let Some(user) = user {
            counts.insert(user_term(user), 1);
        }
        Self { doc, length: length_of(words), counts }
    }
}

/// Entries in memory, in the order in which they came. An entry that changed stands there again.
#[derive(Debug, Default)]
pub(super) struct Tail {
    docs: Vec<(Doc, u8)>,
    words: u64,
    terms: HashMap<u64, Listed>,
}

/// The postings of a term.
#[derive(Clone, Debug, Default)]
struct Listed {
    count: u32,
    last: Option<u32>,
    bytes: Vec<u8>,
}

impl Tail {
    /// Adds an entry.
    pub(super) fn add(&mut self, analysed: Analysed) {
        let Analysed { doc, length, counts } = analysed;
        let number = self.docs.len() as u32;
        for (hash, count) in counts {
            let listed = self.terms.entry(hash).or_default();
            push(&mut listed.bytes, listed.last, number, u8::try_from(count).unwrap_or(u8::MAX));
            (listed.last, listed.count) = (Some(number), listed.count + 1);
        }
        self.docs.push((doc, length));
        self.words += u64::from(words_of(length));
    }

    /// All entries, with the postings of some terms only.
    pub(super) fn excerpt(&self, hashes: impl Iterator<Item = u64>) -> Self {
        let terms = hashes.filter_map(|hash| Some((hash, self.terms.get(&hash)?.clone()))).collect();
        Self { docs: self.docs.clone(), words: self.words, terms }
    }

    /// Entries in it.
    pub(super) fn docs(&self) -> u32 {
        self.docs.len() as u32
    }

    /// All entries.
    pub(super) fn all(&self) -> impl Iterator<Item = Doc> + '_ {
        self.docs.iter().map(|(doc, _)| *doc)
    }

    /// Words of all entries.
    pub(super) const fn words(&self) -> u64 {
        self.words
    }

    /// One entry.
    pub(super) fn doc(&self, number: u32) -> Option<Doc> {
        self.docs.get(number as usize).map(|(doc, _)| *doc)
    }

    /// How long an entry is.
    pub(super) fn length(&self, number: u32) -> u8 {
        self.docs.get(number as usize).map_or(0, |(_, length)| *length)
    }

    /// The postings of a term, and how many entries have it; `None` for none.
    pub(super) fn postings(&self, hash: u64) -> Option<(&[u8], u32)> {
        self.terms.get(&hash).map(|listed| (&*listed.bytes, listed.count))
    }

    /// The same in the order of a segment; of an entry that stands there several times the latest.
    pub(super) fn to_memory(&self) -> Memory {
        let mut order: Vec<u32> = (0..self.docs()).collect();
        order.sort_unstable_by_key(|number| (self.docs[*number as usize].0.key, u32::MAX - number));
        let mut docs: Vec<(Doc, u8)> = Vec::with_capacity(order.len());
        let mut numbers = vec![None; order.len()];
        for number in order {
            let (doc, length) = self.docs[number as usize];
            if docs.last().is_none_or(|(last, _)| last.key != doc.key) {
                numbers[number as usize] = Some(docs.len() as u32);
                docs.push((doc, length));
            }
        }
        let mut terms: Vec<(u64, u32, Vec<u8>)> = Vec::with_capacity(self.terms.len());
        let mut list = Vec::new();
        for (hash, listed) in &self.terms {
            list.clear();
            list.extend(Postings::new(&listed.bytes).filter_map(|(doc, times)| Some((numbers[doc as usize]?, times))));
            list.sort_unstable();
            let (mut bytes, mut before) = (Vec::with_capacity(listed.bytes.len()), None);
            for (number, times) in &list {
                push(&mut bytes, before, *number, *times);
                before = Some(*number);
            }
            if !list.is_empty() {
                terms.push((*hash, list.len() as u32, bytes));
            }
        }
        terms.sort_unstable_by_key(|(hash, ..)| *hash);
        Memory { docs, terms }
    }
}
