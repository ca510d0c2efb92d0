//! Vectors of pieces of words: no model, no memory. Similar spellings are near to each other.

use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::{Embedder, normalise};
use crate::memory_index::analysis::fold_word;
use crate::memory_index::stop_words;

/// Parts of a vector.
const DIMENSIONS: u64 = 512;
/// Letters of a piece, with the beginning and the end of the word.
const PIECE: usize = 3;
/// Words that are read.
const WORDS_MAX: usize = 1_000;

/// Hashes pieces of words.
pub(crate) struct Hashed;

impl Embedder for Hashed {
    fn name(&self) -> &str {
        "hashed/512"
    }

    fn embed(&self, text: &str) -> Result<Arc<[f32]>, String> {
        let mut vector = vec![0.0; DIMENSIONS as usize];
        for word in text.unicode_words().take(WORDS_MAX).map(fold_word).filter(|word| !stop_words::holds(word)) {
            let letters: Vec<char> = std::iter::once('^').chain(word.chars()).chain(['$']).collect();
            for piece in letters.windows(PIECE) {
                let hash = xxh3_64(piece.iter().collect::<String>().as_bytes());
                let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
                vector[(hash % DIMENSIONS) as usize] += sign / letters.len() as f32;
            }
        }
        normalise(&mut vector);
        Ok(vector.into())
    }

    fn least(&self) -> f32 {
        0.2
    }

    /// It knows spellings only, as the words do.
    fn share(&self) -> f32 {
        0.5
    }
}
