//! Vectors that are made on this machine when a search needs them, and those that were made before.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::proactive_memory::search::Embeddings;
use agentsvc_api::proactive_memory::store::EntryRow;
use agentsvc_components::AgentId;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::{Chunks, Embedder, Similar, similarity};

/// Bytes of the vectors that are kept. Full: all are forgotten.
const BYTES_MAX: usize = 8 << 20;

/// Vectors by the hash of their texts, within [`BYTES_MAX`].
#[derive(Default)]
pub(super) struct Cache {
    vectors: HashMap<u64, Arc<[f32]>>,
    bytes: usize,
}

impl Cache {
    /// The vector of a text.
    pub(super) fn get(&self, text: &str) -> Option<Arc<[f32]>> {
        self.vectors.get(&xxh3_64(text.as_bytes())).cloned()
    }

    /// Keeps the vector of a text.
    pub(super) fn put(&mut self, text: &str, vector: Arc<[f32]>) {
        let bytes = size_of_val(&*vector);
        if self.bytes + bytes > BYTES_MAX {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.vectors.insert(xxh3_64(text.as_bytes()), vector);
    }
}

/// An embedder, and the vectors that it made.
pub(crate) struct Vectors {
    embedder: Box<dyn Embedder>,
    chunks: Chunks,
    made: Mutex<Cache>,
}

impl Vectors {
    /// None yet.
    pub(crate) fn new(embedder: Box<dyn Embedder>, chunks: Chunks) -> Self {
        Self { embedder, chunks, made: Mutex::default() }
    }

    /// The embedder's name.
    pub(crate) fn name(&self) -> &str {
        self.embedder.name()
    }

    /// The vector of a text.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn of(&self, text: &str) -> Result<Arc<[f32]>, String> {
        if let Some(known) = self.made.lock().get(text) {
            return Ok(known);
        }
        let vector = self.embedder.embed(text)?;
        self.made.lock().put(text, Arc::clone(&vector));
        Ok(vector)
    }
}

impl Similar for Vectors {
    fn similarities(
        &self,
        _agent: Option<AgentId>,
        query: &str,
        rows: &[EntryRow],
        _longest: Duration,
    ) -> Option<Vec<f32>> {
        let of = |text: &str| {
            let failed = |error: &String| tracing::error!(%error, model = self.name(), "a text could not be embedded");
            self.of(text).inspect_err(failed).ok()
        };
        let asked = of(query).filter(|asked| asked.iter().any(|part| *part != 0.0))?;
        let near = |row: &EntryRow| {
            let pieces = self.chunks.of(&row.record.content).into_iter();
            let near = pieces.map(|piece| Some(similarity(&asked, &of(piece)?)));
            let near = near.collect::<Option<Vec<f32>>>()?.into_iter().fold(0.0, f32::max);
            Some(if near < self.embedder.least() { 0.0 } else { near })
        };
        rows.iter().map(near).collect()
    }

    fn share(&self) -> f32 {
        self.embedder.share()
    }

    fn state(&self) -> Embeddings {
        let (model, dimensions) = self.name().rsplit_once('/').unwrap_or((self.name(), ""));
        Embeddings { model: model.into(), dimensions: dimensions.parse().ok(), ..Embeddings::default() }
    }
}
