//! Searches the segments and the tail of an index.

use std::borrow::Cow;
use std::collections::{BinaryHeap, HashMap};
use std::io;

use super::index::State;
use super::rank::{Corpus, Query};
use super::segment::{Doc, FoundTerm, Key, Postings, Segment, words_of};
use super::tail::Tail;

/// Terms of a query that are looked up in an index; the rest is left out.
const TERMS_MAX: usize = 128;
/// Postings that are read for one query. Those of the rarest terms are read first, those of the very rarest in any case.
const POSTINGS_MAX: u64 = 3_000_000;
/// Entries from which on terms that very many have are left out.
const MANY_DOCS: u64 = 4_096;
/// One in so many entries has a term that very many have.
const COMMON_SHARE: u64 = 4;
/// One in so many entries of a part has a posting: from there on each entry has a place.
const DENSE_SHARE: u64 = 16;

/// Which entries are searched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Within {
    /// Only those of this agent.
    pub(super) agent: Option<[u8; 16]>,
    /// Only those that have this term.
    pub(super) must: Option<u64>,
}

/// An entry that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// What the index knows of it.
    pub(super) doc: Doc,
    /// How well it matches.
    pub(super) score: f32,
}

/// A segment or the tail.
#[derive(Clone, Copy)]
enum Part<'s> {
    Segment(&'s Segment),
    Tail(&'s Tail),
}

impl<'s> Part<'s> {
    fn docs(self) -> u32 {
        match self {
            Self::Segment(segment) => segment.docs(),
            Self::Tail(tail) => tail.docs(),
        }
    }

    fn words(self) -> u64 {
        match self {
            Self::Segment(segment) => segment.words(),
            Self::Tail(tail) => tail.words(),
        }
    }

    fn length(self, number: u32) -> u8 {
        match self {
            Self::Segment(segment) => segment.lengths().get(number as usize).copied().unwrap_or(0),
            Self::Tail(tail) => tail.length(number),
        }
    }

    fn doc(self, number: u32) -> io::Result<Option<Doc>> {
        match self {
            Self::Segment(segment) => segment.doc(number).map(Some),
            Self::Tail(tail) => Ok(tail.doc(number)),
        }
    }

    /// A term, without its postings.
    fn find(self, hash: u64) -> io::Result<Option<Place<'s>>> {
        match self {
            Self::Segment(segment) => Ok(segment.find(hash)?.map(|found| Place::Segment(segment, found))),
            Self::Tail(tail) => Ok(tail.postings(hash).map(|(bytes, count)| Place::Tail(bytes, count))),
        }
    }

    fn postings(self, hash: u64) -> io::Result<Option<(Cow<'s, [u8]>, u32)>> {
        self.find(hash)?.map(Place::read).transpose()
    }

    /// Is an entry of the [range](Self::range) of an agent the agent's?
    fn is_of(self, agent: Option<[u8; 16]>, number: u32) -> bool {
        match (self, agent) {
            (Self::Tail(tail), Some(agent)) => tail.doc(number).is_some_and(|doc| doc.key.starts_with(&agent)),
            _ => true,
        }
    }

    /// Where the entries of an agent are: in a segment they stand together.
    fn range(self, agent: Option<[u8; 16]>) -> io::Result<(u32, u32)> {
        match (self, agent) {
            (Self::Segment(segment), Some(agent)) => {
                let (mut first, mut last): (Key, Key) = ([0; 32], [0xff; 32]);
                first[..16].copy_from_slice(&agent);
                last[..16].copy_from_slice(&agent);
                let end = segment.first_from(&last)?;
                Ok((segment.first_from(&first)?, end))
            }
            _ => Ok((0, self.docs())),
        }
    }
}

/// Where the postings of a term are.
#[derive(Clone, Copy)]
enum Place<'s> {
    Segment(&'s Segment, FoundTerm),
    Tail(&'s [u8], u32),
}

impl<'s> Place<'s> {
    /// How many entries have the term.
    fn count(self) -> u32 {
        match self {
            Self::Segment(_, found) => found.count(),
            Self::Tail(_, count) => count,
        }
    }

    fn read(self) -> io::Result<(Cow<'s, [u8]>, u32)> {
        let bytes = match self {
            Self::Segment(segment, found) => Cow::Owned(segment.read(found)?),
            Self::Tail(bytes, _) => Cow::Borrowed(bytes),
        };
        Ok((bytes, self.count()))
    }
}

/// A term of the query, and where it is in each part.
struct Looked<'s> {
    weight: f32,
    count: u64,
    parts: Vec<Option<Place<'s>>>,
}

/// A term of the query, with what was found of it in each part.
struct Found<'s> {
    weight: f32,
    count: u64,
    parts: Vec<Option<(Cow<'s, [u8]>, u32)>>,
}

/// Entries that match the query best, the best first; `most` of each part.
pub(super) fn candidates(state: &State, query: &Query, within: &Within, most: usize) -> io::Result<Vec<Candidate>> {
    let segments = state.segments.iter().map(|segment| Part::Segment(segment));
    let sealed = state.sealed.iter().map(|tail| Part::Tail(tail));
    let parts: Vec<Part<'_>> = segments.chain(sealed).chain([Part::Tail(&state.tail)]).collect();
    let docs: u64 = parts.iter().map(|part| u64::from(part.docs())).sum();
    let words: u64 = parts.iter().map(|part| part.words()).sum();
    let corpus = Corpus { texts: docs as f32, words: words as f32 / docs.max(1) as f32 };
    let terms = lookup(&parts, query, docs)?;
    let mut best = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let mut scores =
            Scores::new(*part, terms.iter().filter_map(|term| term.parts[at].as_ref()).map(|found| found.1));
        for term in &terms {
            let Some((bytes, _)) = &term.parts[at] else { continue };
            let weight = term.weight * corpus.rarity(u32::try_from(term.count).unwrap_or(u32::MAX));
            for (doc, times) in Postings::new(bytes) {
                scores.add(doc, weight * corpus.frequency(times.into(), words_of(part.length(doc))));
            }
        }
        best.extend(scores.best(*part, within, most)?);
    }
    best.sort_by(|one: &Candidate, other| other.score.total_cmp(&one.score).then(one.doc.key.cmp(&other.doc.key)));
    Ok(best)
}

/// The terms that are in any part, the rarest first, without those that would cost more than they tell.
fn lookup<'s>(parts: &[Part<'s>], query: &Query, docs: u64) -> io::Result<Vec<Found<'s>>> {
    let mut terms = Vec::new();
    for (hash, weight) in query.terms.iter().take(TERMS_MAX) {
        let found: Vec<_> = parts.iter().map(|part| part.find(*hash)).collect::<io::Result<_>>()?;
        let count = found.iter().flatten().map(|place| u64::from(place.count())).sum();
        if count > 0 {
            terms.push(Looked { weight: *weight, count, parts: found });
        }
    }
    terms.sort_by_key(|term| term.count);
    terms.truncate(affordable(terms.iter().map(|term| term.count), docs));
    let read = |Looked { weight, count, parts }: Looked<'s>| {
        let parts = parts.into_iter().map(|place| place.map(Place::read).transpose()).collect::<io::Result<_>>()?;
        Ok(Found { weight, count, parts })
    };
    terms.into_iter().map(read).collect()
}

/// How many of these terms, the rarest first, are read.
fn affordable(counts: impl Iterator<Item = u64>, docs: u64) -> usize {
    let (mut read, mut taken) = (0, 0);
    for count in counts {
        let is_common = docs >= MANY_DOCS && count > docs / COMMON_SHARE;
        read += count;
        if taken > 0 && (is_common || read > POSTINGS_MAX) {
            break;
        }
        taken += 1;
    }
    taken
}

/// The scores of the entries of a part.
enum Scores {
    Dense(Vec<f32>),
    Sparse(HashMap<u32, f32>),
}

impl Scores {
    fn new(part: Part<'_>, counts: impl Iterator<Item = u32>) -> Self {
        let postings: u64 = counts.map(u64::from).sum();
        if postings * DENSE_SHARE >= u64::from(part.docs()) {
            Self::Dense(vec![0.0; part.docs() as usize])
        } else {
            Self::Sparse(HashMap::with_capacity(postings as usize))
        }
    }

    fn add(&mut self, doc: u32, score: f32) {
        match self {
            Self::Dense(scores) => {
                if let Some(sum) = scores.get_mut(doc as usize) {
                    *sum += score;
                }
            }
            Self::Sparse(scores) => *scores.entry(doc).or_default() += score,
        }
    }

    fn get(&self, doc: u32) -> f32 {
        match self {
            Self::Dense(scores) => scores.get(doc as usize).copied().unwrap_or(0.0),
            Self::Sparse(scores) => scores.get(&doc).copied().unwrap_or(0.0),
        }
    }

    /// The best entries within what is searched.
    fn best(&self, part: Part<'_>, within: &Within, most: usize) -> io::Result<Vec<Candidate>> {
        let (first, end) = part.range(within.agent)?;
        let mut best = Best { heap: BinaryHeap::new(), most };
        let mut offer = |doc: u32, score: f32| {
            if score > 0.0 && (first..end).contains(&doc) && part.is_of(within.agent, doc) {
                best.offer(doc, score);
            }
        };
        match (within.must, self) {
            (Some(must), _) => {
                if let Some((bytes, _)) = part.postings(must)? {
                    Postings::new(&bytes).for_each(|(doc, _)| offer(doc, self.get(doc)));
                }
            }
            (None, Self::Dense(scores)) => (0..).zip(scores).for_each(|(doc, score)| offer(doc, *score)),
            (None, Self::Sparse(scores)) => scores.iter().for_each(|(doc, score)| offer(*doc, *score)),
        }
        let mut found = Vec::with_capacity(best.heap.len());
        for Ranked { score, doc } in best.heap {
            found.extend(part.doc(doc)?.map(|doc| Candidate { doc, score }));
        }
        Ok(found)
    }
}

/// The best of those that were offered.
struct Best {
    /// The worst of them on top.
    heap: BinaryHeap<Ranked>,
    most: usize,
}

impl Best {
    fn offer(&mut self, doc: u32, score: f32) {
        let offered = Ranked { score, doc };
        if self.heap.len() < self.most {
            self.heap.push(offered);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && offered < *worst
        {
            *worst = offered;
        }
    }
}

/// Orders the better one before the worse one.
struct Ranked {
    score: f32,
    doc: u32,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(self.doc.cmp(&other.doc))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_until_they_cost_too_much() {
        let affordable = |counts: &[u64], docs| affordable(counts.iter().copied(), docs);
        assert_eq!(affordable(&[10, 20, 30], 100), 3);
        assert_eq!(affordable(&[10, MANY_DOCS / COMMON_SHARE + 1], MANY_DOCS), 1, "a common one");
        assert_eq!(affordable(&[MANY_DOCS; 2], MANY_DOCS), 1, "the rarest in any case");
        let half = POSTINGS_MAX / 2;
        assert_eq!(affordable(&[half, half, half], u64::MAX), 2);
        assert_eq!(affordable(&[], 100), 0);
    }
}
