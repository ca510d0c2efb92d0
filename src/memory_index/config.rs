//! `[memory]`: how entries of the memory of agents are found.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::embed::{Chunks, Hashed, StaticModel, Vectors};
use crate::kernel::config::text::base_url;
use crate::kernel::config::{Reader, Word, table};
use crate::model::embeddings::Form;

/// Characters of a piece of an entry at least: each piece costs a vector.
const CHUNK_LEAST: u64 = 200;

agentsvc_components::enum_words! {
    /// What makes vectors of entries.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum EmbeddingProvider [as_str, Word] {
        /// The model in `embedding_folder`, where there is one. Never the network.
        #[default]
        Auto = "auto",
        /// The model in `embedding_folder`.
        Static = "static",
        /// Pieces of words.
        Hashed = "hashed",
        /// OpenAI.
        OpenAi = "openai",
        /// Mistral AI.
        Mistral = "mistral",
        /// Together AI.
        Together = "together",
        /// Fireworks AI.
        Fireworks = "fireworks",
        /// Cohere.
        Cohere = "cohere",
        /// Ollama.
        Ollama = "ollama",
        /// vLLM.
        Vllm = "vllm",
        /// LM Studio.
        LmStudio = "lmstudio",
        /// AWS Bedrock.
        Bedrock = "bedrock",
    }
}

impl EmbeddingProvider {
    /// How it is asked, and for which model unless another one is configured; `None` for what needs no network.
    const fn wire(self) -> Option<(Form, Option<&'static str>)> {
        Some(match self {
            Self::Auto | Self::Static | Self::Hashed => return None,
            Self::OpenAi => (Form::OpenAi, Some("text-embedding-3-small")),
            Self::Mistral => (Form::OpenAi, Some("mistral-embed")),
            Self::Together => (Form::OpenAi, Some("intfloat/multilingual-e5-large-instruct")),
            Self::Fireworks => (Form::OpenAi, Some("nomic-ai/nomic-embed-text-v1.5")),
            Self::Cohere => (Form::Cohere, Some("embed-v4.0")),
            Self::Ollama => (Form::OpenAi, Some("nomic-embed-text")),
            Self::Vllm | Self::LmStudio => (Form::OpenAi, None),
            Self::Bedrock => (Form::Titan, Some("amazon.titan-embed-text-v2:0")),
        })
    }
}

table! {
    /// `[memory.chunking]`.
    #[check(Self::note_overlap)]
    pub struct Chunking {
        /// Embed long entries in pieces; the piece that matches best counts.
        enabled: bool => flag().at_restart(),
        /// Most characters of a piece.
        max_chunk_size: u32 = 1_500 => integer(CHUNK_LEAST..=16_384).at_restart(),
        /// Characters that a piece repeats of the one before it; at most half of `max_chunk_size`.
        overlap: u32 = 200 => integer(0..=8_192).at_restart(),
    }
}

impl Chunking {
    fn note_overlap(&self, reader: &mut Reader<'_, '_>) {
        if self.overlap > self.max_chunk_size / 2 {
            reader.problem("overlap", "must be at most half of `max_chunk_size`".to_owned());
        }
    }
}

table! {
    /// `[memory]`.
    #[check(Self::note)]
    pub struct MemoryConfig {
        /// What makes vectors for the search of memory entries: static (a model in `embedding_folder`), hashed (pieces of
        /// words, without a model), a provider (openai, mistral, together, fireworks, cohere, ollama, vllm, lmstudio or
        /// bedrock), or auto (static if there is a folder, otherwise no vectors; never a provider).
        embedding_provider: EmbeddingProvider => choice(EmbeddingProvider::WORDS).at_restart(),
        /// Model of the provider. Default: one of the provider's; vllm and lmstudio have none.
        embedding_model: Option<Box<str>> => text(model).example("text-embedding-3-small").at_restart(),
        /// Environment variable of the key for embeddings. Default: the key of the provider, in the vault or in its own
        /// variable.
        embedding_api_key_env: Option<Box<str>> => variable().example("OPENAI_API_KEY").at_restart(),
        /// Dimensions of the vectors, if the model supports several. Default: as the model makes them.
        embedding_dimensions: Option<u32> => integer(1..=4_096).example("512").at_restart(),
        /// Folder of a static embedding model in the model2vec form: model.safetensors, tokenizer.json, config.json. An absolute
        /// path.
        embedding_folder: Option<PathBuf> => text(folder).example("/srv/models/potion-multilingual").at_restart(),
        /// Search by words alone.
        fts_only: bool => flag().at_restart(),
        /// Long entries in pieces.
        chunking: Chunking => table(),
        /// Where vectors are kept: beside the index in any case in this release.
        vector_backend: Option<Box<str>> => text(model).example("http").without_effect(),
        /// URL of a remote vector store.
        vector_store_url: Option<Box<str>> => url(base_url).example("http://127.0.0.1:8600").without_effect(),
    }
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if path.is_absolute() { Ok(path.to_owned()) } else { Err("must be an absolute path".to_owned()) }
}

/// The name of a model, or another short word.
fn model(text: &str) -> Result<Box<str>, String> {
    let is_name = !text.trim().is_empty() && text.len() <= 256 && !text.contains(char::is_control);
    if is_name { Ok(text.trim().into()) } else { Err("must be a name of at most 256 bytes".to_owned()) }
}

/// An embedder over HTTP, as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// The provider, as `[providers]` has it.
    pub(super) provider: &'static str,
    /// How it is asked.
    pub(super) form: Form,
    /// The model.
    pub(super) model: Box<str>,
    /// The variable of the key, if it is not the provider's.
    pub(super) api_key_env: Option<Box<str>>,
    /// Parts of a vector; `None` for as many as the model makes.
    pub(super) dimensions: Option<u32>,
    /// How entries are cut.
    pub(super) chunks: Chunks,
}

impl Remote {
    /// What vectors are made by: those of the same name can be compared.
    pub(super) fn name(&self) -> String {
        let dimensions = self.dimensions.map_or_else(|| "default".to_owned(), |dimensions| dimensions.to_string());
        format!("{}/{}/{dimensions}/{}", self.provider, self.model, self.chunks)
    }
}

impl MemoryConfig {
    fn note(&self, reader: &mut Reader<'_, '_>) {
        let provider = self.embedding_provider;
        if provider == EmbeddingProvider::Static && self.embedding_folder.is_none() {
            reader.problem("embedding_provider", "needs `embedding_folder`, the folder of the model".to_owned());
        }
        if matches!(provider.wire(), Some((_, None))) && self.embedding_model.is_none() {
            reader.problem("embedding_provider", "needs `embedding_model`, the name of the model".to_owned());
        }
    }

    fn chunks(&self) -> Chunks {
        let Chunking { enabled, max_chunk_size, overlap } = self.chunking;
        Chunks(enabled.then_some((max_chunk_size as usize, overlap as usize)))
    }

    /// The embedder over HTTP, where one is configured.
    pub(super) fn remote(&self) -> Option<Remote> {
        let (form, default) = self.embedding_provider.wire().filter(|_| !self.fts_only)?;
        Some(Remote {
            provider: self.embedding_provider.as_str(),
            form,
            model: self.embedding_model.as_deref().or(default)?.into(),
            api_key_env: self.embedding_api_key_env.clone().filter(|name| !name.is_empty()),
            dimensions: self.embedding_dimensions,
            chunks: self.chunks(),
        })
    }

    /// Is there a model on this machine, which takes time to open?
    pub(super) fn has_local_model(&self) -> bool {
        let is_local = matches!(self.embedding_provider, EmbeddingProvider::Auto | EmbeddingProvider::Static);
        is_local && !self.fts_only && self.embedding_folder.is_some()
    }

    /// What makes vectors on this machine; `None` for nothing, also where the model cannot be used: entries are found by their
    /// words then.
    pub(super) fn vectors(&self) -> Option<Vectors> {
        match (self.embedding_provider, &self.embedding_folder) {
            _ if self.fts_only => None,
            (EmbeddingProvider::Hashed, _) => Some(Vectors::new(Box::new(Hashed), self.chunks())),
            (EmbeddingProvider::Auto | EmbeddingProvider::Static, Some(folder)) => match StaticModel::open(folder) {
                Ok(model) => Some(Vectors::new(Box::new(model), self.chunks())),
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
    use super::*;
    use crate::kernel::config::read_table;
    use crate::memory_index::embed::tests::write_model;

    fn parse(text: &str) -> Result<MemoryConfig, String> {
        let read = read_table::<MemoryConfig>("memory", &format!("[memory]\n{text}\n"));
        read.map(|read| read.config).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_read_and_checked() {
        assert_eq!(parse("").unwrap(), MemoryConfig::default());
        let hashed = parse("embedding_provider = \"hashed\"").unwrap();
        assert_eq!(hashed.embedding_provider, EmbeddingProvider::Hashed);
        for (line, message) in [
            ("embedding_provider = \"static\"", "memory.embedding_provider: needs `embedding_folder`"),
            ("embedding_provider = \"vllm\"", "memory.embedding_provider: needs `embedding_model`"),
            ("embedding_folder = \"models\"", "memory.embedding_folder: must be an absolute path"),
            ("embedding_provider = \"hash\"", "did you mean `hashed`?"),
            ("embedding_provider = \"groq\"", "memory.embedding_provider"),
            ("embedding_model = \" \"", "memory.embedding_model: must be a name"),
            ("embedding_api_key_env = \"sk-123\"", "must be the name of an environment variable"),
            ("embedding_dimensions = 0", "memory.embedding_dimensions"),
            ("vector_store_url = \"ftp://store\"", "memory.vector_store_url"),
            ("[memory.chunking]\nmax_chunk_size = 100", "memory.chunking.max_chunk_size"),
            ("[memory.chunking]\nmax_chunk_size = 300\noverlap = 151", "memory.chunking.overlap: must be at most half"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_whole_file_of_keys_is_understood() {
        let config = parse(
            "embedding_provider = \"openai\"\nembedding_model = \"text-embedding-3-small\"\n\
             embedding_api_key_env = \"OPENAI_API_KEY\"\nembedding_dimensions = 512\nfts_only = false\n\
             vector_backend = \"http\"\nvector_store_url = \"http://127.0.0.1:8600\"\n\
             [memory.chunking]\nenabled = true\nmax_chunk_size = 1500\noverlap = 200",
        );
        let remote = config.unwrap().remote().unwrap();
        assert_eq!((remote.provider, remote.form, remote.dimensions), ("openai", Form::OpenAi, Some(512)));
        assert_eq!(remote.name(), "openai/text-embedding-3-small/512/1500-200");
    }

    #[test]
    fn each_provider_has_a_form_and_none_is_asked_unless_it_is_named() {
        for (name, provider) in EmbeddingProvider::WORDS {
            let config =
                parse(&format!("embedding_provider = \"{name}\"\nembedding_model = \"m\"\nembedding_folder = \"/f\""));
            let config = config.unwrap();
            let is_here = matches!(name, &"auto" | &"static" | &"hashed");
            assert_eq!(config.remote().map(|remote| remote.provider), (!is_here).then_some(*name));
            assert!(MemoryConfig { fts_only: true, ..config }.remote().is_none());
            assert_eq!(provider.as_str(), *name);
        }
        let cohere = parse("embedding_provider = \"cohere\"").unwrap().remote().unwrap();
        assert_eq!((cohere.form, cohere.name().as_str()), (Form::Cohere, "cohere/embed-v4.0/default/whole"));
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
