//! Finds, of many texts, those that a longer text has in it, by looking at few of them.
//!
//! Each text stands under one of its ngram_index, pieces of eight bytes, or of four, three, two or one when it is shorter:
//! under the one that has the fewest texts. A longer text is asked for each of its ngram_index once, and only what stands
//! there is compared. Pieces are that long because texts with numbers in them would share the shorter ones. What stands
//! under a gram is grouped by text, so that many triggers with one text are compared once.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::index::{Member, Set};

/// The lengths that ngram_index have, in bytes.
const LENGTHS: [usize; 5] = [8, 4, 3, 2, 1];

/// Grams of a text that are remembered without a table.
const SEEN_FEW: usize = 8;

/// A piece of a text: its length, and its bytes as a number.
type Gram = (usize, u64);

fn gram(bytes: &[u8]) -> Gram {
    (bytes.len(), bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The ngram_index of this length in a text, in order: each is the one before, moved on by a byte.
fn ngram_index(bytes: &[u8], length: usize) -> impl Iterator<Item = Gram> + '_ {
    let mask = u64::MAX >> (64 - 8 * length);
    let (head, rest) = bytes.split_at_checked(length - 1).unwrap_or((bytes, &[]));
    let mut number = gram(head).1;
    rest.iter().map(move |byte| {
        number = (number << 8 | u64::from(*byte)) & mask;
        (length, number)
    })
}

/// Texts with their triggers. `K` is what a text belongs to, such as the glob that it is a piece of.
pub(super) struct Grams<K> {
    by_gram: HashMap<Gram, BTreeMap<K, Set>>,
    /// Under which gram each stands.
    places: HashMap<K, Gram>,
    /// How many stand under ngram_index of each of [`LENGTHS`].
    of_length: [usize; LENGTHS.len()],
}

// Derived, it would ask for a default of `K`.
impl<K> Default for Grams<K> {
    fn default() -> Self {
        Self { by_gram: HashMap::new(), places: HashMap::new(), of_length: [0; LENGTHS.len()] }
    }
}

impl<K: Clone + Ord + std::hash::Hash> Grams<K> {
    /// Takes in a trigger of `key`, of which `texts` must all be found; false when they are all empty.
    pub(super) fn insert<'t>(&mut self, key: &K, texts: impl Iterator<Item = &'t str>, member: Member) -> bool {
        let place = match self.places.get(key) {
            Some(place) => *place,
            None => match self.place_for(texts) {
                Some(place) => place,
                None => return false,
            },
        };
        let keys = self.by_gram.entry(place).or_default();
        if let Some(set) = keys.get_mut(key) {
            set.insert(member);
            return true;
        }
        keys.entry(key.clone()).or_default().insert(member);
        self.places.insert(key.clone(), place);
        self.of_length[rank(place)] += 1;
        true
    }

    /// The gram of the longest kind that has the fewest texts.
    fn place_for<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Option<Gram> {
        let texts: Vec<&[u8]> = texts.map(str::as_bytes).collect();
        let most = texts.iter().map(|text| text.len()).max()?;
        let longest = LENGTHS.into_iter().find(|length| *length <= most)?;
        let load = |place: &Gram| self.by_gram.get(place).map_or(0, BTreeMap::len);
        let ngram_index = texts.iter().flat_map(|text| ngram_index(text, longest));
        ngram_index.min_by_key(|place| (load(place), *place))
    }

    /// Takes a trigger of `key` out.
    pub(super) fn remove(&mut self, key: &K, member: Member) {
        let Some(place) = self.places.get(key).copied() else { return };
        let Some(keys) = self.by_gram.get_mut(&place) else { return };
        let Some(set) = keys.get_mut(key) else { return };
        set.remove(member);
        if set.is_empty() {
            keys.remove(key);
            self.places.remove(key);
            self.of_length[rank(place)] -= 1;
        }
        if self.by_gram.get(&place).is_some_and(BTreeMap::is_empty) {
            self.by_gram.remove(&place);
        }
    }

    /// Every set of members.
    pub(super) fn sets(&self) -> impl Iterator<Item = &Set> {
        self.by_gram.values().flat_map(BTreeMap::values)
    }

    /// Is there no text at all?
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Shows `found` each key that may be in `text`, once, with its triggers; the caller compares.
    pub(super) fn candidates<'s>(&'s self, text: &str, mut found: impl FnMut(&'s K, &'s Set)) {
        let bytes = text.as_bytes();
        let mut seen = Seen::default();
        for (length, _) in LENGTHS.into_iter().zip(self.of_length).filter(|(_, count)| *count > 0) {
            for place in ngram_index(bytes, length) {
                if let Some(keys) = self.by_gram.get(&place)
                    && seen.insert(place)
                {
                    keys.iter().for_each(|(key, set)| found(key, set));
                }
            }
        }
    }
}

/// Grams that one text has met: few as a rule, so that they need no table.
#[derive(Default)]
struct Seen {
    few: [Gram; SEEN_FEW],
    count: usize,
    many: HashSet<Gram>,
}

impl Seen {
    /// Takes one in; false when it was there.
    fn insert(&mut self, gram: Gram) -> bool {
        let few = &self.few[..self.count];
        if few.contains(&gram) || self.many.contains(&gram) {
            return false;
        }
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = gram;
                self.count += 1;
                true
            }
            None => self.many.insert(gram),
        }
    }
}

/// Where the length of a gram stands in [`LENGTHS`].
fn rank(gram: Gram) -> usize {
    LENGTHS.iter().position(|length| *length == gram.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::TriggerId;
    use bevy_ecs::prelude::Entity;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn grams_of_other_lengths_are_others() {
        let texts = ["a", "\0", "ab", "\0\0", "abc", "\0\0\0", "\0\0\0\0", "abcdefgh", "\0\0\0\0\0\0\0\0"];
        let ngram_index: std::collections::BTreeSet<Gram> = texts.iter().map(|text| gram(text.as_bytes())).collect();
        assert_eq!(ngram_index.len(), texts.len());
        assert!(ngram_index.iter().all(|gram| LENGTHS[rank(*gram)] == gram.0));
    }

    #[test]
    fn a_gram_is_seen_once() {
        let mut seen = Seen::default();
        let numbers = || (0..4 * SEEN_FEW as u64).flat_map(|n| [n, n / 2]);
        let fresh = numbers().filter(|n| seen.insert((8, *n))).count();
        assert_eq!(fresh, 4 * SEEN_FEW);
        assert!(numbers().all(|n| !seen.insert((8, n))) && seen.insert((4, 0)));
    }

    #[test]
    fn the_grams_of_a_text_are_its_windows() {
        for text in ["", "a", "abc", "abcdefgh", "the parcel of order 12 has left the fixture"] {
            for length in LENGTHS {
                let windows: Vec<Gram> = text.as_bytes().windows(length).map(gram).collect();
                assert_eq!(ngram_index(text.as_bytes(), length).collect::<Vec<_>>(), windows, "{text} {length}");
            }
        }
    }

    #[test]
    fn texts_spread_over_their_grams() {
        let mut ngram_index = Grams::<Box<str>>::default();
        for n in 0..1_000_u128 {
            let text = format!("error {n:03}");
            let (id, entity) = (TriggerId(Uuid::from_u128(n)), Entity::from_raw_u32(n as u32).unwrap());
            let member = Member { id, entity, line: None };
            assert!(ngram_index.insert(&text.as_str().into(), [text.as_str()].into_iter(), member));
        }
        let mut looked_at = 0;
        ngram_index.candidates("error 123", |_, _| looked_at += 1);
        assert!(looked_at < 40, "{looked_at}");
        let fullest = ngram_index.by_gram.values().map(BTreeMap::len).max().unwrap();
        assert!(fullest < 10, "{fullest}");
    }
}
