//! The catalog that this release was built with: readable TOML files beside this one, compiled in.
//!
//! Whoever adds a model edits `models/<provider>.toml`, and [`VERSION`]; a new provider also has an entry in
//! `providers.toml` and a line in [`FILES`]. What is not known for sure is left out.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::model::{Model, Origin};
use super::row::Row;
use super::table::Base;
use crate::model::provider::DriverKind;

/// The day that the data are of. A catalog that is fetched must be newer.
pub(crate) const VERSION: &str = "2026-01-15";

/// What is known of a provider. The facts alone: whether it can be asked is the business of
/// [`Providers`](crate::model::provider::Providers).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// Name used in manifests and routes.
    pub name: Box<str>,
    /// Display name.
    pub display_name: Box<str>,
    /// Who speaks with it, as [`DriverKind::as_str`].
    pub driver: Box<str>,
    /// Its endpoint, up to and including the version; empty where every account has its own.
    pub base_url: Box<str>,
    /// The environment variable of its key; `None` when it needs no key.
    #[serde(default)]
    pub env_var: Option<Box<str>>,
    /// Variables that its protocol needs or takes beside the key.
    #[serde(default)]
    pub further_env_vars: Box<[Box<str>]>,
    /// The model to ask when only the provider is named. Without one it is never chosen by its key alone.
    #[serde(default)]
    pub default_model: Box<str>,
    /// Tokens of the context of models that the catalog does not know; for a local runtime also the most of those it knows.
    #[serde(default)]
    pub context_tokens: Option<u32>,
    /// Where its documentation is.
    #[serde(default)]
    pub docs_url: Option<Box<str>>,
    /// A local model runtime.
    #[serde(default)]
    pub local: bool,
    /// Its key comes from a device flow.
    #[serde(default)]
    pub device_flow: bool,
    /// It wants the bound of an answer as `max_completion_tokens`.
    #[serde(default)]
    pub bounds_completion: bool,
}

impl ProviderEntry {
    /// Who speaks with it. A test checks the word.
    pub fn driver_kind(&self) -> DriverKind {
        DriverKind::parse(&self.driver).unwrap_or(DriverKind::OpenAi)
    }
}

/// Name and text of a file of models.
type File = (&'static str, &'static str);

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("models/", $name, ".toml")))
    };
}

/// One file for each provider, in the order of `providers.toml`.
const FILES: &[File] = &[
    file!("builtin"),
    file!("openai"),
    file!("anthropic"),
    file!("gemini"),
    file!("openrouter"),
    file!("groq"),
    file!("deepseek"),
    file!("mistral"),
    file!("together"),
    file!("fireworks"),
    file!("xai"),
    file!("openai-responses"),
    file!("cohere"),
    file!("perplexity"),
    file!("cerebras"),
    file!("sambanova"),
    file!("nvidia"),
    file!("deepinfra"),
    file!("hyperbolic"),
    file!("novita"),
    file!("nebius"),
    file!("siliconflow"),
    file!("moonshot"),
    file!("zai"),
    file!("dashscope"),
    file!("minimax"),
    file!("qianfan"),
    file!("volcengine"),
    file!("hunyuan"),
    file!("stepfun"),
    file!("ai21"),
    file!("upstage"),
    file!("venice"),
    file!("chutes"),
    file!("friendli"),
    file!("baseten"),
    file!("inception"),
    file!("vercel"),
    file!("scaleway"),
    file!("huggingface"),
    file!("github-models"),
    file!("github-copilot"),
    file!("azure"),
    file!("bedrock"),
    file!("cloudflare"),
    file!("ollama"),
    file!("lmstudio"),
    file!("vllm"),
    file!("llamacpp"),
];

/// `providers.toml`.
#[derive(Deserialize)]
struct ProvidersFile {
    providers: Box<[ProviderEntry]>,
}

/// A file of models.
#[derive(Deserialize)]
struct ModelsFile {
    models: Vec<Row>,
}

/// Every provider, in the order of the file: the order in which a key in the environment decides the default model.
pub fn providers() -> &'static [ProviderEntry] {
    static PROVIDERS: LazyLock<Box<[ProviderEntry]>> = LazyLock::new(|| read_providers().unwrap_or_default());
    &PROVIDERS
}

/// The provider called `name`.
pub fn provider(name: &str) -> Option<&'static ProviderEntry> {
    providers().iter().find(|provider| *provider.name == *name)
}

/// The models, read when they are first asked for.
pub(super) fn base() -> Arc<Base> {
    static BASE: LazyLock<Arc<Base>> = LazyLock::new(|| {
        // A test reads every file, so that nothing is left out here.
        let files = FILES.iter().filter_map(|file| read_models(file).ok());
        Arc::new(Base { version: VERSION.into(), models: files.flatten().map(Arc::new).collect() })
    });
    Arc::clone(&BASE)
}

fn read_providers() -> Result<Box<[ProviderEntry]>, String> {
    let file: ProvidersFile = toml::from_str(include_str!("providers.toml")).map_err(|error| error.to_string())?;
    Ok(file.providers)
}

/// The models of one file. Each file is read by itself, so that little memory is in use at once.
fn read_models((provider, text): &File) -> Result<Vec<Model>, String> {
    let known: BTreeSet<&str> = [*provider].into();
    let file: ModelsFile = toml::from_str(text).map_err(|error| format!("{provider}: {error}"))?;
    let models = file.models.into_iter().map(|row| {
        let id = row.id.clone();
        let row = Row { provider: Some((*provider).to_owned()), ..row };
        row.into_model(Origin::BuiltIn, |name| known.contains(name))
            .map_err(|wrong| format!("{provider}: {id}: {wrong}"))
    });
    models.collect()
}

#[cfg(test)]
#[path = "embedded_tests.rs"]
mod tests;
