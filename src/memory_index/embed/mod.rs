//! Vectors of texts. Only those of one embedder are compared: the cache forgets what another one made.
//!
//! | embedder | what it needs |
//! |---|---|
//! | [`hashed`] | nothing: pieces of words, which finds other spellings |
//! | [`static_model`] | a folder with a model that has one vector for each token (model2vec), which finds other words |

mod cache;
mod hashed;
mod safetensors;
mod static_model;
mod tokenizer;

use std::sync::Arc;

pub(crate) use cache::Vectors;
pub(crate) use hashed::Hashed;
pub(crate) use static_model::StaticModel;

/// Makes vectors of texts.
pub(crate) trait Embedder: Send + Sync {
    /// The model and the dimensions: vectors with the same name can be compared.
    fn name(&self) -> &str;

    /// The vector of a text, of length 1; all 0 where the text has nothing that the model knows.
    ///
    /// # Errors
    /// Why there is none.
    fn embed(&self, text: &str) -> Result<Arc<[f32]>, String>;

    /// The similarity from which on two texts have something to do with each other.
    fn least(&self) -> f32;
}

/// How similar two texts are, -1 to 1.
pub(crate) fn similarity(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Makes the length 1, unless it is 0.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|part| part * part).sum::<f32>().sqrt();
    if length > 0.0 && length.is_finite() {
        vector.iter_mut().for_each(|part| *part /= length);
    } else {
        vector.fill(0.0);
    }
}

#[cfg(test)]
pub(super) mod tests;
