//! Vectors of texts. Only those of one embedder are compared.
//!
//! | embedder | what it needs |
//! |---|---|
//! | [`hashed`] | nothing: pieces of words, which finds other spellings |
//! | [`static_model`] | a folder with a model that has one vector for each token (model2vec), which finds other words |
//! | [`remote`] | a provider, which is asked over HTTP; the vectors of entries are [stored](vector_store) |
//!
//! The first two are so fast that a search makes the vectors it needs ([`cache`]).

mod cache;
mod chunks;
mod circuit;
mod hashed;
mod keeper;
mod remote;
mod safetensors;
mod static_model;
mod tokenizer;
mod vector_store;

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::proactive_memory::search::Embeddings;
use agentsvc_api::proactive_memory::store::EntryRow;
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::change::EntriesChanged;

pub(crate) use cache::Vectors;
pub(crate) use chunks::Chunks;
pub(crate) use hashed::Hashed;
pub(crate) use keeper::{Parts, Stored};
pub(crate) use remote::{Configured, RemoteEmbedder, RemoteParts};
pub(crate) use static_model::StaticModel;

/// What vectors that know meanings count beside words.
const MEANING_SHARE: f32 = 1.5;

/// Makes vectors of texts on this machine.
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

    /// How much its ranking counts beside that by words.
    fn share(&self) -> f32 {
        MEANING_SHARE
    }
}

/// Tells how similar entries are to a query.
pub(crate) trait Similar: Send + Sync {
    /// How similar each row is, 0 where it has nothing to do with the query; `None` when the model knows nothing of the query,
    /// fails, or does not answer within `longest`. A query that a provider is asked for counts as a call of `agent`, where it is
    /// about one agent. Blocks.
    fn similarities(
        &self,
        agent: Option<AgentId>,
        query: &str,
        rows: &[EntryRow],
        longest: Duration,
    ) -> Option<Vec<f32>>;

    /// How much the ranking by similarity counts beside that by words.
    fn share(&self) -> f32 {
        MEANING_SHARE
    }

    /// What it is, and how far it has come. Never blocks.
    fn state(&self) -> Embeddings;

    /// Entries changed. Never blocks.
    fn tell(&self, _changed: &EntriesChanged) {}
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
