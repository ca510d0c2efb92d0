//! Reads `tokenizer.json`, as far as models with one vector for each token use it: word pieces, and unigrams.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Bytes of the file at most.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Letters of a word that are looked up.
const WORD_CHARS_MAX: usize = 100;
/// Letters of a unigram.
const UNIGRAM_CHARS_MAX: usize = 24;
/// Stands for a space before a word.
const SPACE: char = '\u{2581}';
/// What a letter costs that no unigram has.
const UNKNOWN_SCORE: f64 = -1_000.0;

/// Makes tokens of texts.
pub(super) struct Tokenizer {
    is_lower: bool,
    without_accents: bool,
    model: Model,
}

enum Model {
    WordPiece { vocabulary: HashMap<Box<str>, u32>, prefix: Box<str>, unknown: Option<u32> },
    Unigram { vocabulary: HashMap<Box<str>, (u32, f64)> },
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    normalizer: Value,
    model: ModelFile,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum ModelFile {
    WordPiece {
        vocab: HashMap<Box<str>, u32>,
        #[serde(default = "prefix")]
        continuing_subword_prefix: Box<str>,
        unk_token: Option<Box<str>>,
    },
    Unigram {
        vocab: Vec<(Box<str>, f64)>,
        unk_id: Option<usize>,
    },
}

fn prefix() -> Box<str> {
    "##".into()
}

impl Tokenizer {
    /// Reads the file.
    ///
    /// # Errors
    /// The file is missing or not valid.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let size = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
        if size > FILE_BYTES_MAX {
            return Err(failed(&"too large"));
        }
        let text = std::fs::read(path).map_err(|error| failed(&error))?;
        let file: File = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
        let normalizer = file.normalizer.to_string();
        // By its name in a sequence too. Accents go with the case unless the file says otherwise.
        let is_bert = normalizer.contains("\"BertNormalizer\"") && !normalizer.contains("\"lowercase\":false");
        let is_lower = is_bert || normalizer.contains("\"Lowercase\"");
        let strips = normalizer.contains("\"StripAccents\"") || normalizer.contains("\"strip_accents\":true");
        let without_accents = strips || (is_bert && !normalizer.contains("\"strip_accents\":false"));
        let model = match file.model {
            ModelFile::WordPiece { vocab, continuing_subword_prefix, unk_token } => {
                let unknown = unk_token.and_then(|token| vocab.get(&token).copied());
                Model::WordPiece { vocabulary: vocab, prefix: continuing_subword_prefix, unknown }
            }
            ModelFile::Unigram { vocab, unk_id } => {
                let tokens = vocab.into_iter().enumerate().filter(|(id, _)| Some(*id) != unk_id);
                Model::Unigram { vocabulary: tokens.map(|(id, (token, score))| (token, (id as u32, score))).collect() }
            }
        };
        Ok(Self { is_lower, without_accents, model })
    }

    /// The tokens of a text, at most `most`; what the model does not know is left out.
    pub(super) fn tokens(&self, text: &str, most: usize) -> Vec<u32> {
        let text = self.normal(text);
        let mut tokens = Vec::new();
        match &self.model {
            Model::WordPiece { vocabulary, prefix, unknown } => {
                for word in words(&text) {
                    pieces(word, vocabulary, prefix, *unknown, &mut tokens);
                    if tokens.len() >= most {
                        break;
                    }
                }
            }
            Model::Unigram { vocabulary } => {
                for word in text.split_whitespace() {
                    let word: Vec<char> = std::iter::once(SPACE).chain(word.chars()).collect();
                    word.chunks(WORD_CHARS_MAX).for_each(|word| unigrams(word, vocabulary, &mut tokens));
                    if tokens.len() >= most {
                        break;
                    }
                }
            }
        }
        tokens.truncate(most);
        tokens
    }

    fn normal(&self, text: &str) -> String {
        let text = if self.is_lower { text.to_lowercase() } else { text.to_owned() };
        if self.without_accents {
            text.nfd().filter(|letter| !is_combining_mark(*letter)).collect()
        } else {
            text.nfkc().collect()
        }
    }
}

/// Words, and signs that are words of their own.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for run in text.split_whitespace() {
        let mut start = 0;
        for (at, letter) in run.char_indices() {
            if !letter.is_alphanumeric() || is_ideograph(letter) {
                let end = at + letter.len_utf8();
                words.extend([&run[start..at], &run[at..end]]);
                start = end;
            }
        }
        words.push(&run[start..]);
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_ideograph(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// The longest pieces from the beginning; none when a part has no piece.
fn pieces(word: &str, vocabulary: &HashMap<Box<str>, u32>, prefix: &str, unknown: Option<u32>, tokens: &mut Vec<u32>) {
    if word.chars().count() > WORD_CHARS_MAX {
        return;
    }
    let (before, mut start) = (tokens.len(), 0);
    while start < word.len() {
        let begin = if start == 0 { "" } else { prefix };
        let ends = word[start..].char_indices().rev().map(|(at, letter)| start + at + letter.len_utf8());
        let longest = ends.map(|end| (end, format!("{begin}{}", &word[start..end])));
        let found = longest.filter_map(|(end, piece)| Some((end, *vocabulary.get(&*piece)?))).next();
        let Some((end, token)) = found else { return tokens.truncate(before) };
        if Some(token) != unknown {
            tokens.push(token);
        }
        start = end;
    }
}

/// The unigrams that are most likely together.
fn unigrams(word: &[char], vocabulary: &HashMap<Box<str>, (u32, f64)>, tokens: &mut Vec<u32>) {
    // For each place the best score up to it, where the last unigram begins, and which it is.
    let mut best: Vec<(f64, usize, Option<u32>)> = vec![(f64::NEG_INFINITY, 0, None); word.len() + 1];
    best[0].0 = 0.0;
    let mut letters = String::new();
    for start in 0..word.len() {
        let score = best[start].0;
        letters.clear();
        for (end, letter) in (start + 1..).zip(&word[start..]).take(UNIGRAM_CHARS_MAX) {
            letters.push(*letter);
            let known = vocabulary.get(&*letters).map(|(id, of)| (Some(*id), score + of));
            let of_one = (end == start + 1).then_some((None, score + UNKNOWN_SCORE));
            if let Some((id, score)) = known.or(of_one)
                && score > best[end].0
            {
                best[end] = (score, start, id);
            }
        }
    }
    let (from, mut at) = (tokens.len(), word.len());
    while at > 0 {
        let (_, start, id) = best[at];
        tokens.extend(id);
        at = start;
    }
    tokens[from..].reverse();
}
