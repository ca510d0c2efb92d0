//! Makes terms of texts: the same for entries and for queries.
//!
//! Words are found by the rules of Unicode (UAX 29), folded to lower case without diacritics, and looked up in three forms,
//! so that no language has to be told from another:
//!
//! | form | of what | finds |
//! |---|---|---|
//! | word | the folded word | the word itself |
//! | stem | its beginning, without what is often an ending | inflected forms: `allergy` and `allergic`, `Katze` and `Katzen` |
//! | part | pieces of four letters of long words | compounds and typing errors: `Erdnussallergie` and `Allergie` |
//!
//! Scripts that have no spaces between words (Chinese, Japanese, Thai) are read as pairs of neighbours, the Korean ones within
//! words too, because endings are joined to them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::stop_words;

/// Grows when the same text makes other terms than before: an index of another version is built anew.
pub(crate) const VERSION: u32 = 1;
/// Bytes of a text that are read; what stands behind is not found.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Letters of a word that count. Longer ones are no words.
const WORD_CHARS_MAX: usize = 40;
/// Letters that a stem keeps.
const STEM_CHARS: usize = 5;
/// Letters of a part.
const PART_CHARS: usize = 4;
/// Letters of a word from which on its parts are looked up.
const PARTED_CHARS_MIN: usize = 4;

/// What a match of a word, of its stem, of all of its parts, and of one character of several counts.
const WORD_WEIGHT: f32 = 1.0;
const STEM_WEIGHT: f32 = 0.8;
const PARTS_WEIGHT: f32 = 1.2;
const CHARACTER_WEIGHT: f32 = 0.3;

/// In which form a term stands for a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// The whole word.
    Word,
    /// Its beginning.
    Stem,
    /// A piece of it.
    Part,
    /// A user that entries are about, whole.
    User,
}

/// One term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Term {
    /// Hash of the form and the letters. Two terms with the same hash are taken for one; there are too few terms for that to
    /// matter.
    pub(crate) hash: u64,
    /// What a match counts.
    pub(crate) weight: f32,
}

/// The hash that the entries about a user have, beside those of their words.
pub(crate) fn user_term(user: &str) -> u64 {
    hash(Form::User, user)
}

fn hash(form: Form, letters: &str) -> u64 {
    xxh3_64_with_seed(letters.as_bytes(), form as u64)
}

/// Calls `each` with every term of the text, as often as it occurs. Gives the number of words.
pub(crate) fn terms(text: &str, each: &mut dyn FnMut(Term)) -> u32 {
    let text = cut(text);
    let mut words = Words { each, count: 0, run: Vec::new(), folded: String::new() };
    if text.is_ascii() {
        words.read(text);
    } else {
        words.read(&text.nfkc().collect::<String>());
    }
    words.count
}

/// At most the bytes that are read.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads a text word by word.
struct Words<'a> {
    each: &'a mut dyn FnMut(Term),
    count: u32,
    /// Neighbours of a script without spaces.
    run: Vec<char>,
    folded: String,
}

impl Words<'_> {
    fn read(&mut self, text: &str) {
        let mut behind = 0;
        for (start, word) in text.unicode_word_indices() {
            if start != behind {
                self.end_run();
            }
            behind = start + word.len();
            if word.chars().next().is_some_and(is_without_spaces) {
                self.run.extend(word.chars());
            } else {
                self.end_run();
                self.word(word);
            }
        }
        self.end_run();
    }

    /// The neighbours that were gathered: pairs, and characters that are words of their own.
    fn end_run(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        let mut letters = String::new();
        for (at, first) in run.iter().enumerate() {
            if is_han(*first) {
                letters.clear();
                letters.push(*first);
                let weight = if run.len() == 1 { WORD_WEIGHT } else { CHARACTER_WEIGHT };
                self.add(Form::Part, &letters, weight);
            }
            if let Some(second) = run.get(at + 1) {
                letters.clear();
                letters.extend([*first, *second]);
                // Kana alone are mostly endings and particles.
                let is_word = is_han(*first) || is_han(*second) || is_katakana(*first);
                self.add(Form::Word, &letters, if is_word { WORD_WEIGHT } else { CHARACTER_WEIGHT });
            }
        }
        self.count += run.len().div_ceil(2) as u32;
        run.clear();
        self.run = run;
    }

    /// One word with letters of a script with spaces: `l'hôtel` and `user's` are two.
    fn word(&mut self, word: &str) {
        let mut parts = word.split(['\'', '\u{2019}']).peekable();
        let mut is_first = true;
        while let Some(part) = parts.next() {
            let is_elided = (!is_first || parts.peek().is_some()) && part.len() <= 2;
            is_first = false;
            if !is_elided {
                self.folded.clear();
                fold_into(part, &mut self.folded);
                self.forms();
            }
        }
    }

    /// The forms of the folded word.
    fn forms(&mut self) {
        let folded = std::mem::take(&mut self.folded);
        let letters = folded.chars().count();
        if letters > 0 && letters <= WORD_CHARS_MAX {
            self.count += 1;
            if !stop_words::holds(&folded) {
                self.add(Form::Word, &folded, WORD_WEIGHT);
                if folded.chars().next().is_some_and(is_hangul) {
                    self.pieces(&folded, 2, Form::Stem, STEM_WEIGHT * (letters - 1) as f32);
                } else if letters > 2 && !folded.starts_with(|first: char| first.is_ascii_digit()) {
                    self.add(Form::Stem, stem(&folded), STEM_WEIGHT);
                    if letters >= PARTED_CHARS_MIN {
                        self.pieces(&folded, PART_CHARS, Form::Part, PARTS_WEIGHT);
                    }
                }
            }
        }
        self.folded = folded;
    }

    /// Pieces of so many letters, which together count `weight`.
    fn pieces(&mut self, word: &str, letters: usize, form: Form, weight: f32) {
        let count = (word.chars().count() + 1).saturating_sub(letters).max(1);
        let starts = word.char_indices().map(|(at, _)| at);
        let ends = word.char_indices().map(|(at, letter)| at + letter.len_utf8()).skip(letters - 1);
        for (start, end) in starts.zip(ends) {
            self.add(form, &word[start..end], weight / count as f32);
        }
    }

    fn add(&mut self, form: Form, letters: &str, weight: f32) {
        (self.each)(Term { hash: hash(form, letters), weight });
    }
}

/// The beginning of a word, shorter by what is often an ending: vowels, and letters that make plurals and cases.
fn stem(word: &str) -> &str {
    let mut end = word.char_indices().nth(STEM_CHARS).map_or(word.len(), |(at, _)| at);
    if end < word.len() {
        return &word[..end];
    }
    for _ in 0..2 {
        let mut kept = word[..end].chars();
        let last = kept.next_back();
        let is_ending = last.is_some_and(|last| "aeiouysnаеиоуыяйь".contains(last));
        if !is_ending || kept.clone().count() < 3 {
            break;
        }
        end = kept.as_str().len();
    }
    &word[..end]
}

/// A word in lower case without diacritics.
pub(super) fn fold_word(word: &str) -> String {
    let mut folded = String::with_capacity(word.len());
    fold_into(word, &mut folded);
    folded
}

fn fold_into(word: &str, folded: &mut String) {
    if word.is_ascii() {
        folded.extend(word.chars().map(|letter| letter.to_ascii_lowercase()));
    } else {
        word.chars().flat_map(char::to_lowercase).for_each(|letter| fold(letter, folded));
    }
}

/// Adds a lower-case letter without its diacritics. Those of other scripts than these are letters of their own.
fn fold(letter: char, folded: &mut String) {
    match letter {
        'ß' => folded.push_str("ss"),
        'æ' => folded.push_str("ae"),
        'œ' => folded.push_str("oe"),
        'ø' => folded.push('o'),
        'ł' => folded.push('l'),
        'đ' | 'ð' => folded.push('d'),
        'þ' => folded.push_str("th"),
        'ı' => folded.push('i'),
        'ς' => folded.push('σ'),
        // Points of Hebrew and Arabic, and what only stretches a word.
        '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}' => {}
        'أ' | 'إ' | 'آ' => folded.push('ا'),
        'ى' => folded.push('ي'),
        'ة' => folded.push('ه'),
        // Latin, Greek and Cyrillic.
        '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => {
            decompose_canonical(letter, |part| {
                if !is_combining_mark(part) {
                    folded.push(part);
                }
            });
        }
        _ => folded.push(letter),
    }
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_katakana(letter: char) -> bool {
    matches!(letter, '\u{30a0}'..='\u{30ff}')
}

fn is_hangul(letter: char) -> bool {
    matches!(letter, '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}')
}

/// Does the script have no spaces between words? Chinese, Japanese, Thai, Lao, Burmese, Khmer.
fn is_without_spaces(letter: char) -> bool {
    let is_south_asian = matches!(letter, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}');
    is_han(letter) || matches!(letter, '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}') || is_south_asian
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn set(text: &str) -> HashSet<u64> {
        let mut found = HashSet::new();
        terms(text, &mut |term| {
            found.insert(term.hash);
        });
        found
    }

    fn share(one: &str, other: &str) -> bool {
        !set(one).is_disjoint(&set(other))
    }

    #[test]
    fn case_and_diacritics_do_not_matter() {
        for (one, other) in [
            ("CAFÉ", "cafe"),
            ("Straße", "STRASSE"),
            ("Łódź", "lodz"),
            ("ё", "Е"),
            ("ﬁsh", "fish"),
            ("ｶﾞﾗｽ", "ガラス"),
            ("Ｔｏｋｙｏ", "tokyo"),
            ("ΟΔΟΣ", "οδος"),
        ] {
            assert_eq!(set(one), set(other), "{one} {other}");
        }
        assert_ne!(set("かき"), set("がき"), "these marks make other letters");
    }

    #[test]
    fn inflected_forms_and_compounds_share_terms() {
        for (one, other) in [
            ("allergies", "allergic"),
            ("dogs", "dog"),
            ("Katzen", "Katze"),
            ("Erdnussallergie", "Allergie"),
            ("perros", "perra"),
            ("mieszkam", "mieszka"),
            ("l'hôtel", "hotels"),
            ("user's birthday", "birthdays"),
            ("학교에서", "학교"),
            ("住在上海", "上海人"),
            ("東京に住んでいる", "東京都"),
            ("กรุงเทพ", "อยู่กรุงเทพ"),
        ] {
            assert!(share(one, other), "{one} {other}");
        }
        for (one, other) in [("dog", "cat"), ("the dog", "the cat"), ("北京", "上海"), ("", "x"), ("!?", "!?")] {
            assert!(!share(one, other), "{one} {other}");
        }
    }

    #[test]
    fn words_are_counted_and_long_texts_are_cut() {
        let count = |text: &str| terms(text, &mut |_| {});
        assert_eq!((count("one two, three!"), count("我住在上海"), count("")), (3, 3, 0));
        assert_eq!(count(&"é".repeat(TEXT_BYTES_MAX)), 0, "one word of so many letters is none");
        assert!(count(&"wort ".repeat(TEXT_BYTES_MAX)) <= (TEXT_BYTES_MAX / 5 + 1) as u32);
    }
}
