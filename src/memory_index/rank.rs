//! BM25 over terms, and the joining of several rankings.

use std::collections::HashMap;

use super::analysis::terms;

/// How soon more occurrences of a term count no more.
const K1: f32 = 1.2;
/// How much long texts are marked down. Little: entries are short.
const B: f32 = 0.4;
/// Terms of a query that are looked up; the rest is left out.
const QUERY_TERMS_MAX: usize = 512;
/// What softens the lead of the first places when rankings are joined. Small: the rankings are short, and the first places of
/// one are worth more than middling places of both.
const RECIPROCAL_K: f32 = 10.0;

/// What is searched for.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// Each hash once, with what a match counts.
    pub(crate) terms: Vec<(u64, f32)>,
    places: HashMap<u64, usize>,
}

impl Query {
    /// The terms of a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut query = Self { terms: Vec::new(), places: HashMap::new() };
        terms(text, &mut |term| {
            let next = query.terms.len();
            if next < QUERY_TERMS_MAX && !query.places.contains_key(&term.hash) {
                query.places.insert(term.hash, next);
                query.terms.push((term.hash, term.weight));
            }
        });
        query
    }
}

/// What is known of the searched texts as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corpus {
    /// How many there are.
    pub(crate) texts: f32,
    /// Their words on average.
    pub(crate) words: f32,
}

impl Corpus {
    /// How much a term tells that so many texts have.
    pub(crate) fn rarity(&self, texts: u32) -> f32 {
        let having = texts as f32;
        (1.0 + (self.texts - having + 0.5).max(0.0) / (having + 0.5)).ln()
    }

    /// How much so many occurrences count in a text of so many words, 0 to [`K1`] + 1.
    pub(crate) fn frequency(&self, occurrences: u32, words: u32) -> f32 {
        let times = occurrences as f32;
        times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * words as f32 / self.words.max(1.0)))
    }
}

/// Ranks texts that are read for this one query.
pub(crate) struct Scan<'q> {
    query: &'q Query,
    /// For each text its words, and where its matches end.
    texts: Vec<(u32, usize)>,
    /// Place of the term in the query and its occurrences, text by text.
    matches: Vec<(u32, u32)>,
    /// Texts that have each term.
    having: Vec<u32>,
    words: u64,
    counts: Vec<u32>,
}

impl<'q> Scan<'q> {
    /// No texts yet.
    pub(crate) fn new(query: &'q Query) -> Self {
        let terms = query.terms.len();
        let (texts, matches) = (Vec::new(), Vec::new());
        Self { query, texts, matches, having: vec![0; terms], words: 0, counts: vec![0; terms] }
    }

    /// Reads one more text.
    pub(crate) fn add(&mut self, text: &str) {
        let (places, counts) = (&self.query.places, &mut self.counts);
        let words = terms(text, &mut |term| {
            if let Some(place) = places.get(&term.hash) {
                counts[*place] += 1;
            }
        });
        for (place, count) in self.counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
            self.matches.push((place as u32, *count));
            self.having[place] += 1;
            *count = 0;
        }
        self.texts.push((words, self.matches.len()));
        self.words += u64::from(words);
    }

    /// The score of each text, in the order in which they were added; 0 for no match.
    pub(crate) fn scores(&self) -> Vec<f32> {
        let texts = self.texts.len() as f32;
        let corpus = Corpus { texts, words: self.words as f32 / texts.max(1.0) };
        let rarity: Vec<f32> = self.having.iter().map(|having| corpus.rarity(*having)).collect();
        let mut start = 0;
        let score = |(words, end): &(u32, usize)| {
            let matches = &self.matches[std::mem::replace(&mut start, *end)..*end];
            let of = |(place, count): &(u32, u32)| {
                let place = *place as usize;
                self.query.terms[place].1 * rarity[place] * corpus.frequency(*count, *words)
            };
            matches.iter().map(of).sum()
        };
        self.texts.iter().map(score).collect()
    }
}

/// Joins rankings by reciprocal rank: for each item what its places in them count. An item with a score of 0 or less has no
/// place. `shares` says how much each ranking counts.
pub(crate) fn join(rankings: &[(&[f32], f32)], items: usize) -> Vec<f32> {
    let mut joined = vec![0.0; items];
    for (scores, share) in rankings {
        for (rank, item) in order(scores).into_iter().enumerate() {
            joined[item] += share / (RECIPROCAL_K + rank as f32 + 1.0);
        }
    }
    joined
}

/// The items with a score above 0, the best first; of equal ones that which stands first.
pub(crate) fn order(scores: &[f32]) -> Vec<usize> {
    let mut items: Vec<usize> = (0..scores.len()).filter(|item| scores[*item] > 0.0).collect();
    items.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(query: &str, texts: &[&str]) -> Vec<usize> {
        let query = Query::new(query);
        let mut scan = Scan::new(&query);
        texts.iter().for_each(|text| scan.add(text));
        order(&scan.scores())
    }

    #[test]
    fn rare_terms_and_short_texts_come_first() {
        let texts = ["the red car", "the blue car of my neighbour in the next street", "the blue car", "a garden"];
        assert_eq!(ranked("blue car", &texts), [2, 1, 0]);
        assert_eq!(ranked("garden", &texts), [3]);
        assert!(ranked("house", &texts).is_empty() && ranked("the of", &texts).is_empty());
        assert!(ranked("car", &[]).is_empty());
    }

    #[test]
    fn joined_rankings_prefer_what_both_find() {
        let (words, vectors) = ([3.0, 2.0, 0.0], [0.0, 0.9, 0.8]);
        assert_eq!(order(&join(&[(&words, 1.0), (&vectors, 1.0)], 3)), [1, 0, 2]);
        assert_eq!(join(&[], 2), [0.0, 0.0]);
    }

    #[test]
    fn long_queries_are_cut() {
        let text: String = (0..2_000).map(|n| format!("word{n} ")).collect();
        assert_eq!(Query::new(&text).terms.len(), QUERY_TERMS_MAX);
    }
}
