//! A model with one vector for each token (model2vec): a text's vector is the mean of those of its tokens. The table of vectors
//! stays on the disk.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::safetensors::{Tensor, Tensors};
use super::tokenizer::Tokenizer;
use super::{Embedder, normalise};

/// Tokens of a text that are read.
const TOKENS_MAX: usize = 512;
/// Parts of a vector at most.
const DIMENSIONS_MAX: usize = 4_096;
/// Names that the table of vectors has in files.
const TABLES: [&str; 2] = ["embeddings", "embedding.weight"];

/// A model in a folder: `model.safetensors`, `tokenizer.json` and, where there is one, `config.json`.
pub(crate) struct StaticModel {
    name: String,
    tokenizer: Tokenizer,
    tensors: Tensors,
    table: Tensor,
    /// Row of the table for each token; the token's number where there is none.
    rows: Option<Vec<f32>>,
    /// What each token counts; 1 where there is none.
    weights: Option<Vec<f32>>,
}

#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    model_name: Option<String>,
}

impl StaticModel {
    /// Opens the model in the folder.
    ///
    /// # Errors
    /// The file is missing or not valid.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let tokenizer = Tokenizer::open(&folder.join("tokenizer.json"))?;
        let tensors = Tensors::open(&folder.join("model.safetensors"))?;
        let config: Config = match std::fs::read(folder.join("config.json")) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| format!("config.json: {error}"))?,
            Err(_) => Config::default(),
        };
        let mut table = None;
        for name in TABLES {
            table = table.or(tensors.get(name)?);
        }
        let table = table.ok_or("model.safetensors has no tensor `embeddings`")?;
        if table.width == 0 || table.width > DIMENSIONS_MAX {
            return Err(format!("vectors must have 1 to {DIMENSIONS_MAX} dimensions"));
        }
        let list = |name: &str| tensors.get(name)?.map(|tensor| tensors.all(&tensor)).transpose();
        let (rows, weights) = (list("mapping")?, list("weights")?);
        let folder = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("static/{}/{}", config.model_name.unwrap_or(folder), table.width);
        Ok(Self { name, tokenizer, tensors, table, rows, weights })
    }
}

impl Embedder for StaticModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn embed(&self, text: &str) -> Result<Arc<[f32]>, String> {
        let mut sum = vec![0.0; self.table.width];
        for token in self.tokenizer.tokens(text, TOKENS_MAX) {
            let token = token as usize;
            let row = match &self.rows {
                Some(rows) => rows.get(token).map_or(usize::MAX, |row| *row as usize),
                None => token,
            };
            if row < self.table.rows {
                let weight = self.weights.as_ref().and_then(|weights| weights.get(token)).copied().unwrap_or(1.0);
                self.tensors.add_row(&self.table, row, weight, &mut sum)?;
            }
        }
        normalise(&mut sum);
        Ok(sum.into())
    }

    fn least(&self) -> f32 {
        0.25
    }
}
