//! The tables of the scanner: the files of the folder `phrases`.
//!
//! A phrase is a line with its reason, its weight and how many other words may stand between two of its slots, and below
//! it a line for each slot: ways to fill it, apart by `|`; `*` ends the beginning of a word, and `$name` stands for a list
//! that the file names at its head. Ways are folded like the text, so that they are written as usual.

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::words::words;
use super::{Reason, fold};

const ENGLISH: &str = include_str!("phrases/english.txt");
const LANGUAGES: &str = include_str!("phrases/languages.txt");
/// What letters that stand apart may say without a blank between words, a line each.
pub(super) const SQUASHED: &str = include_str!("phrases/squashed.txt");
/// Signs of templates, in folded text, a line each behind its weight.
pub(super) const SIGNS: &str = include_str!("phrases/signs.txt");
/// What a line may begin with to imitate a role, likewise.
pub(super) const ROLES: &str = include_str!("phrases/roles.txt");
/// What hides the text behind it on a page, a line each.
pub(super) const CLOAKS: &str = include_str!("phrases/cloaks.txt");

/// All phrases.
pub(super) static PHRASES: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let files = [ENGLISH, LANGUAGES];
    files.into_iter().flat_map(read).collect()
});

/// One phrase.
pub(super) struct Phrase {
    pub(super) reason: Reason,
    pub(super) weight: u8,
    /// Words that may stand between two slots.
    pub(super) gap: usize,
    pub(super) slots: Vec<Vec<Way>>,
}

/// One way to fill a slot: words that follow each other; `true` for one that is the beginning of a word.
pub(super) struct Way(pub(super) Vec<(String, bool)>);

impl Way {
    fn read(text: &str) -> Self {
        let folded = fold::fold(text.trim()).text;
        let is_prefix = folded.ends_with('*');
        let words = words(folded.trim_end_matches('*'));
        let last = words.len() - 1;
        Self((0..words.len()).map(|word| (words.get(word).to_owned(), is_prefix && word == last)).collect())
    }
}

/// The phrases of a file.
fn read(file: &str) -> Vec<Phrase> {
    let mut lists: HashMap<&str, &str> = HashMap::new();
    let mut phrases: Vec<Phrase> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, ways)) = line.split_once(" = ") {
            lists.insert(name, ways);
        } else if let Some(slot) = line.strip_prefix("  ") {
            let ways = lists.get(slot).unwrap_or(&slot);
            let phrase = phrases.last_mut().expect("a slot below its phrase");
            phrase.slots.push(ways.split('|').map(Way::read).collect());
        } else {
            phrases.push(Phrase::head(line).unwrap_or_else(|| panic!("no phrase begins with {line:?}")));
        }
    }
    phrases
}

impl Phrase {
    /// A phrase without its slots: `override 4 3`.
    fn head(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (reason, weight, gap) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let reason = REASONS.iter().copied().find(|known| known.as_str() == reason)?;
        Some(Self { reason, weight, gap, slots: Vec::new() })
    }
}

/// What a phrase may be.
const REASONS: &[Reason] = &[
    Reason::Override,
    Reason::Role,
    Reason::PromptLeak,
    Reason::Exfiltration,
    Reason::Secrecy,
    Reason::Address,
    Reason::Action,
];

/// The lines of a table of weights.
pub(super) fn weighed(table: &'static str) -> impl Iterator<Item = (&'static str, u8)> {
    table.lines().map(|line| {
        let (weight, text) = line.split_once(' ').expect("a weight and what it is of");
        (text, weight.parse().expect("a weight"))
    })
}
