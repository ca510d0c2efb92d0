//! Vectors that were made before.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::Embedder;

/// Bytes of the vectors that are kept. Full: all are forgotten.
const BYTES_MAX: usize = 8 << 20;

/// An embedder, and the vectors that it made.
pub(crate) struct Vectors {
    embedder: Box<dyn Embedder>,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    vectors: HashMap<u64, Arc<[f32]>>,
    bytes: usize,
}

impl Vectors {
    /// None yet.
    pub(crate) fn new(embedder: Box<dyn Embedder>) -> Self {
        Self { embedder, made: Mutex::default() }
    }

    /// The embedder's name.
    pub(crate) fn name(&self) -> &str {
        self.embedder.name()
    }

    /// The similarity from which on two texts have something to do with each other.
    pub(crate) fn least(&self) -> f32 {
        self.embedder.least()
    }

    /// The vector of a text.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn of(&self, text: &str) -> Result<Arc<[f32]>, String> {
        let hash = xxh3_64(text.as_bytes());
        if let Some(known) = self.made.lock().vectors.get(&hash) {
            return Ok(Arc::clone(known));
        }
        let vector = self.embedder.embed(text)?;
        let mut made = self.made.lock();
        let bytes = size_of_val(&*vector);
        if made.bytes + bytes > BYTES_MAX {
            *made = Made::default();
        }
        made.bytes += bytes;
        made.vectors.insert(hash, Arc::clone(&vector));
        Ok(vector)
    }
}
