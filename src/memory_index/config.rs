//! `[memory]`: how entries of the memory of agents are found.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::embed::{Hashed, StaticModel, Vectors};
use crate::kernel::config::{Reader, Word, Words, table};

/// What makes vectors of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProvider {
    /// The model in `embedding_folder`, where there is one.
    #[default]
    Auto,
    /// The model in `embedding_folder`.
    Static,
    /// Pieces of words.
    Hashed,
}

impl Word for EmbeddingProvider {
    const WORDS: Words<Self> = &[("auto", Self::Auto), ("static", Self::Static), ("hashed", Self::Hashed)];
}

table! {
    /// `[memory]`.
    #[check(Self::note_folder)]
    pub struct MemoryConfig {
        /// What makes vectors for the search of memory entries: static (a model in `embedding_folder`), hashed (pieces of
        /// words, without a model) or auto (static if there is a folder, otherwise no vectors).
        embedding_provider: EmbeddingProvider => choice(EmbeddingProvider::WORDS).at_restart(),
        /// Folder of a static embedding model in the model2vec form: model.safetensors, tokenizer.json, config.json. An absolute
        /// path.
        embedding_folder: Option<PathBuf> => text(folder).example("/srv/models/potion-multilingual").at_restart(),
        /// Search by words alone.
        fts_only: bool => flag().at_restart(),
    }
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if path.is_absolute() { Ok(path.to_owned()) } else { Err("must be an absolute path".to_owned()) }
}

impl MemoryConfig {
    fn note_folder(&self, reader: &mut Reader<'_, '_>) {
        if self.embedding_provider == EmbeddingProvider::Static && self.embedding_folder.is_none() {
            reader.problem("embedding_provider", "needs `embedding_folder`, the folder of the model".to_owned());
        }
    }

    /// What makes vectors; `None` for nothing, also where the model cannot be used: entries are found by their words then.
    pub(super) fn vectors(&self) -> Option<Vectors> {
        match (self.embedding_provider, &self.embedding_folder) {
            _ if self.fts_only => None,
            (EmbeddingProvider::Hashed, _) => Some(Vectors::new(Box::new(Hashed))),
            (_, Some(folder)) => match StaticModel::open(folder) {
                Ok(model) => Some(Vectors::new(Box::new(model))),
                Err(error) => {
                    tracing::error!(%error, "the embedding model cannot be used; memory is searched by words alone");
                    None
                }
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EmbeddingProvider, MemoryConfig};
    use crate::kernel::config::read_table;
    use crate::memory_index::embed::tests::write_model;

    #[test]
    fn keys_are_read_and_checked() {
        let parse = |text: &str| read_table::<MemoryConfig>("memory", &format!("[memory]\n{text}\n"));
        assert_eq!(parse("").unwrap().config, MemoryConfig::default());
        let hashed = parse("embedding_provider = \"hashed\"").unwrap().config;
        assert_eq!(hashed.embedding_provider, EmbeddingProvider::Hashed);
        for (line, message) in [
            ("embedding_provider = \"static\"", "memory.embedding_provider: needs `embedding_folder`"),
            ("embedding_folder = \"models\"", "memory.embedding_folder: must be an absolute path"),
            ("embedding_provider = \"hash\"", "did you mean `hashed`?"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_model_that_cannot_be_read_leaves_the_words() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Some(dir.path().to_owned());
        let config = MemoryConfig { embedding_folder: folder, ..MemoryConfig::default() };
        assert!(config.vectors().is_none());
        write_model(dir.path(), false);
        assert!(config.vectors().unwrap().name().ends_with("/3"));
        assert!(MemoryConfig { fts_only: true, ..config }.vectors().is_none());
        let hashed = MemoryConfig { embedding_provider: EmbeddingProvider::Hashed, ..MemoryConfig::default() };
        assert_eq!(hashed.vectors().unwrap().name(), "hashed/512");
        assert!(MemoryConfig::default().vectors().is_none());
    }
}
