//! Finds the phrases of the table among the words of a text.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use hashbrown::HashMap;

use super::phrases::{PHRASES, SQUASHED, Way};
use super::words::Words;
use super::{Finding, Reason};

/// All ways to fill slots of phrases, each once by its number, and where they stand in the phrases.
struct Ways {
    automaton: AhoCorasick,
    /// How many words each has.
    words: Vec<usize>,
    /// The phrases that begin with each, by their numbers.
    begin: Vec<Vec<usize>>,
    /// The ways of each slot of each phrase, a bit each.
    slots: Vec<Vec<Bits>>,
}

/// Numbers of ways, a bit each.
struct Bits(Vec<u64>);

impl Bits {
    fn of(ways: &[usize]) -> Self {
        let mut bits = Self(Vec::new());
        for way in ways {
            bits.0.resize(bits.0.len().max(way / 64 + 1), 0);
            bits.0[way / 64] |= 1 << (way % 64);
        }
        bits
    }

    fn has(&self, way: usize) -> bool {
        self.0.get(way / 64).is_some_and(|bits| bits >> (way % 64) & 1 == 1)
    }
}

static WAYS: LazyLock<Ways> = LazyLock::new(|| {
    let (mut numbers, mut patterns) = (HashMap::<String, usize>::new(), Vec::new());
    let (mut words, mut begin, mut slots) = (Vec::new(), Vec::<Vec<usize>>::new(), Vec::new());
    for (phrase, read) in PHRASES.iter().enumerate() {
        let mut number = |way: &Way| {
            *numbers.entry(way.pattern()).or_insert_with_key(|pattern| {
                patterns.push(pattern.clone());
                words.push(way.0.len());
                begin.push(Vec::new());
                patterns.len() - 1
            })
        };
        let ways: Vec<Vec<usize>> = read.slots.iter().map(|slot| slot.iter().map(&mut number).collect()).collect();
        ways[0].iter().for_each(|way| begin[*way].push(phrase));
        slots.push(ways.iter().map(|ways| Bits::of(ways)).collect());
    }
    let automaton = AhoCorasick::new(patterns).expect("an automaton of some thousand words");
    Ways { automaton, words, begin, slots }
});

impl Way {
    /// It as it stands in [`Words::letters`].
    fn pattern(&self) -> String {
        let word = |(word, is_prefix): &(String, bool)| format!(" {word}{}", if *is_prefix { "" } else { " " });
        self.0.iter().map(word).collect::<String>().replace("  ", " ")
    }
}

/// The ways that stand in a text: each is looked for once, however many phrases have it.
struct Standing<'a> {
    words: &'a Words,
    /// The word and the way, in this order.
    ways: Vec<(usize, usize)>,
    /// Where those of each word begin.
    from: Vec<usize>,
}

impl<'a> Standing<'a> {
    fn of(words: &'a Words) -> Self {
        let found = WAYS.automaton.find_overlapping_iter(words.letters());
        let mut ways: Vec<(usize, usize)> =
            found.map(|found| (words.at(found.start() + 1), found.pattern().as_usize())).collect();
        ways.sort_unstable();
        let mut from = vec![0; words.len() + 1];
        ways.iter().for_each(|(word, _)| from[word + 1] += 1);
        (0..words.len()).for_each(|word| from[word + 1] += from[word]);
        Self { words, ways, from }
    }

    /// The ways that begin with this word.
    fn at(&self, word: usize) -> impl Iterator<Item = usize> + '_ {
        self.ways[self.from[word]..self.from[word + 1]].iter().map(|(_, way)| *way)
    }

    /// Fills the slot `number` of a phrase and those behind it from the word `at` on; gives the word behind the last.
    fn slot(&self, phrase: usize, number: usize, at: usize) -> Option<usize> {
        let Some(slot) = WAYS.slots[phrase].get(number) else { return Some(at) };
        let gap = if number == 0 { 0 } else { PHRASES[phrase].gap };
        for word in at..(at + gap + 1).min(self.words.len()) {
            // Nothing is left out across the end of a sentence.
            if word > at && self.words.is_behind_stop(word) {
                return None;
            }
            for way in self.at(word).filter(|way| slot.has(*way)) {
                if let Some(end) = self.slot(phrase, number + 1, word + WAYS.words[way]) {
                    return Some(end);
                }
            }
        }
        None
    }
}

/// Every phrase in the text; places are those of the folded text.
pub(super) fn phrases(text: &str, words: &Words) -> Vec<Finding> {
    let (mut found, standing) = (squashed(words), Standing::of(words));
    let mut begun = Vec::new();
    for at in 0..words.len() {
        begun.clear();
        begun.extend(standing.at(at).flat_map(|way| &WAYS.begin[way]));
        begun.sort_unstable();
        begun.dedup();
        for number in &begun {
            let Some(end) = standing.slot(*number, 0, at) else { continue };
            let is_denied =
                at > 0 && matches!(words.get(at - 1), "not" | "don't" | "never") && !words.is_behind_stop(at);
            let (start, end) = (words.place(at).0, words.place(end - 1).1);
            let is_light = is_denied || is_quoted(text, start, end);
            let phrase = &PHRASES[*number];
            let weight = if is_light { 1 } else { phrase.weight };
            found.push(Finding { reason: phrase.reason, weight, at: start });
        }
    }
    found
}

/// Words that were written with their letters apart, and say something.
fn squashed(words: &Words) -> Vec<Finding> {
    let apart = (0..words.len()).filter(|at| words.is_apart(*at));
    let says = |at: &usize| SQUASHED.lines().any(|squashed| words.get(*at).contains(squashed));
    apart.filter(says).map(|at| Finding { reason: Reason::Encoded, weight: 4, at: words.place(at).0 }).collect()
}

/// Is it in quotation marks within a sentence? Then it is talked about. Values of JSON are in quotation marks too, but
/// behind a colon, a comma or a bracket.
fn is_quoted(text: &str, start: usize, end: usize) -> bool {
    let before = &text[..start];
    let Some(outside) = before.strip_suffix(['"', '\'', '`']) else { return false };
    let closes = text[end..].chars().take(4).any(|c| matches!(c, '"' | '\'' | '`'));
    let outside = outside.trim_end_matches(['"', '\'', '`']).trim_end_matches(' ');
    closes && outside.ends_with(|c: char| c.is_alphanumeric() || c == '(')
}

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    /// What a phrase costs is a look at the ways that stand at few words: the ways of a slot may be many.
    #[test]
    fn few_ways_stand_at_a_word_whatever_the_text() {
        let ways = PHRASES.iter().flat_map(|phrase| phrase.slots.iter().flatten());
        let text: String = ways.map(Way::pattern).collect();
        for text in [text, "1gn0re ".repeat(2_000), "send the secret to ".repeat(500)] {
            let words = words(&text);
            let most = Standing::of(&words).from.windows(2).map(|of| of[1] - of[0]).max();
            assert!(words.len() >= 2_000 && most <= Some(8), "{most:?} ways at one of {} words", words.len());
        }
    }
}
