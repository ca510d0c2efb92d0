//! Finds the phrases of the table among the words of a text.

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::phrases::{PHRASES, SQUASHED};
use super::words::{Words, words};
use super::{Finding, Reason, fold};

/// Characters of a word by which phrases are looked up.
const KEY_CHARS: usize = 3;

/// A phrase that is ready to be looked for.
struct Ready {
    reason: Reason,
    weight: u8,
    /// Words that may stand between two slots.
    gap: usize,
    slots: Vec<Vec<Way>>,
}

/// One way to fill a slot: words that follow each other; one that ends in `*` is the beginning of a word.
struct Way(Vec<(String, bool)>);

/// The table, by the first characters of the word that a phrase begins with.
struct Table {
    phrases: Vec<Ready>,
    by_key: HashMap<String, Vec<usize>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { phrases: Vec::new(), by_key: HashMap::new() };
    for phrase in PHRASES {
        let slots: Vec<Vec<Way>> = phrase.slots.iter().map(|slot| slot.split('|').map(Way::read).collect()).collect();
        for way in &slots[0] {
            let phrases = table.by_key.entry(key(&way.0[0].0).to_owned()).or_default();
            if phrases.last() != Some(&table.phrases.len()) {
                phrases.push(table.phrases.len());
            }
        }
        let (reason, weight, gap) = (phrase.reason, phrase.weight, phrase.gap);
        table.phrases.push(Ready { reason, weight, gap, slots });
    }
    table
});

impl Way {
    fn read(text: &str) -> Self {
        let folded = fold::fold(text.trim()).text;
        let is_prefix = folded.ends_with('*');
        let words = words(folded.trim_end_matches('*'));
        let last = words.len() - 1;
        Self((0..words.len()).map(|word| (words.get(word).to_owned(), is_prefix && word == last)).collect())
    }

    /// Does it stand at this word?
    fn is_at(&self, words: &Words, at: usize) -> bool {
        self.0.iter().enumerate().all(|(number, (wanted, is_prefix))| {
            let word = words.get(at + number);
            if *is_prefix { word.starts_with(wanted.as_str()) } else { word == wanted }
        })
    }
}

fn key(word: &str) -> &str {
    word.char_indices().nth(KEY_CHARS).map_or(word, |(end, _)| &word[..end])
}

/// Every phrase in the text; places are those of the folded text.
pub(super) fn phrases(text: &str, words: &Words) -> Vec<Finding> {
    let mut found = Vec::new();
    for at in 0..words.len() {
        if words.is_apart(at) && SQUASHED.iter().any(|squashed| words.get(at).contains(squashed)) {
            found.push(Finding { reason: Reason::Encoded, weight: 4, at: words.place(at).0 });
        }
        let Some(phrases) = TABLE.by_key.get(key(words.get(at))) else { continue };
        for phrase in phrases.iter().map(|phrase| &TABLE.phrases[*phrase]) {
            let Some(end) = slot(phrase, 0, words, at) else { continue };
            let is_denied =
                at > 0 && matches!(words.get(at - 1), "not" | "don't" | "never") && !words.is_behind_stop(at);
            let (start, end) = (words.place(at).0, words.place(end - 1).1);
            let is_light = is_denied || is_quoted(text, start, end);
            let weight = if is_light { 1 } else { phrase.weight };
            found.push(Finding { reason: phrase.reason, weight, at: start });
        }
    }
    found
}

/// Fills the slot `number` and those behind it from the word `at` on; gives the word behind the last.
fn slot(phrase: &Ready, number: usize, words: &Words, at: usize) -> Option<usize> {
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
