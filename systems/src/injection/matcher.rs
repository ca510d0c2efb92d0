//! Finds the phrases of the table among the words of a text.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use hashbrown::HashMap;

use super::phrases::{PHRASES, Phrase, SQUASHED, Way};
use super::words::Words;
use super::{Finding, Reason};

/// All that a phrase may begin with.
struct Beginnings {
    automaton: AhoCorasick,
    /// The phrases that begin with each of its patterns, by their numbers.
    phrases: Vec<Vec<usize>>,
}

static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(|| {
    let mut by_pattern: HashMap<String, usize> = HashMap::new();
    let mut phrases: Vec<Vec<usize>> = Vec::new();
    for (number, phrase) in PHRASES.iter().enumerate() {
        for way in &phrase.slots[0] {
            let at = *by_pattern.entry(way.pattern()).or_insert(phrases.len());
            phrases.resize_with(phrases.len().max(at + 1), Vec::new);
            phrases[at].push(number);
        }
    }
    let mut patterns: Vec<(usize, String)> = by_pattern.into_iter().map(|(pattern, at)| (at, pattern)).collect();
    patterns.sort_unstable();
    let automaton = AhoCorasick::new(patterns.iter().map(|(_, pattern)| pattern));
    Beginnings { automaton: automaton.expect("an automaton of some hundred words"), phrases }
});

impl Way {
    /// It as it stands in [`Words::letters`].
    fn pattern(&self) -> String {
        let word = |(word, is_prefix): &(String, bool)| format!(" {word}{}", if *is_prefix { "" } else { " " });
        self.0.iter().map(word).collect::<String>().replace("  ", " ")
    }

    /// Does it stand at this word?
    fn is_at(&self, words: &Words, at: usize) -> bool {
        self.0.iter().enumerate().all(|(number, (wanted, is_prefix))| {
            let word = words.get(at + number);
            if *is_prefix { word.starts_with(wanted.as_str()) } else { word == wanted }
        })
    }
}

/// Every phrase in the text; places are those of the folded text.
pub(super) fn phrases(text: &str, words: &Words) -> Vec<Finding> {
    let mut found = squashed(words);
    let mut begun: Vec<(usize, usize)> = Vec::new();
    for pattern in BEGINNINGS.automaton.find_overlapping_iter(words.letters()) {
        let at = words.at(pattern.start() + 1);
        begun.extend(BEGINNINGS.phrases[pattern.pattern()].iter().map(|phrase| (at, *phrase)));
    }
    begun.sort_unstable();
    begun.dedup();
    for (at, phrase) in begun {
        let phrase = &PHRASES[phrase];
        let Some(end) = slot(phrase, 0, words, at) else { continue };
        let is_denied = at > 0 && matches!(words.get(at - 1), "not" | "don't" | "never") && !words.is_behind_stop(at);
        let (start, end) = (words.place(at).0, words.place(end - 1).1);
        let is_light = is_denied || is_quoted(text, start, end);
        let weight = if is_light { 1 } else { phrase.weight };
        found.push(Finding { reason: phrase.reason, weight, at: start });
    }
    found
}

/// Words that were written with their letters apart, and say something.
fn squashed(words: &Words) -> Vec<Finding> {
    let apart = (0..words.len()).filter(|at| words.is_apart(*at));
    let says = |at: &usize| SQUASHED.lines().any(|squashed| words.get(*at).contains(squashed));
    apart.filter(says).map(|at| Finding { reason: Reason::Encoded, weight: 4, at: words.place(at).0 }).collect()
}

/// Fills the slot `number` and those behind it from the word `at` on; gives the word behind the last.
fn slot(phrase: &Phrase, number: usize, words: &Words, at: usize) -> Option<usize> {
    let Some(ways) = phrase.slots.get(number) else { return Some(at) };
    let gap = if number == 0 { 0 } else { phrase.gap };
    for word in at..(at + gap + 1).min(words.len()) {
        // Nothing is left out across the end of a sentence.
        if word > at && words.is_behind_stop(word) {
            return None;
        }
        for way in ways.iter().filter(|way| way.is_at(words, word)) {
            if let Some(end) = slot(phrase, number + 1, words, word + way.0.len()) {
                return Some(end);
            }
        }
    }
    None
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
