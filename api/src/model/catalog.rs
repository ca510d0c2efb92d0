//! The model catalog as this room sees it: the models, their aliases, and what changes them (spec 2, Model catalog). Implemented
//! where the models are known.

use std::collections::BTreeMap;

use agentsvc_components::manifest::ModelChoice;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::error::Error;

/// Provider and model of agents that name none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultModel {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
}

impl From<&ModelChoice> for DefaultModel {
    fn from(choice: &ModelChoice) -> Self {
        Self { provider: choice.provider.to_string(), model: choice.model.to_string() }
    }
}

/// One model (spec 2, Model). A price that is not known is null.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelEntry {
    /// As its provider takes it; may contain slashes.
    pub id: String,
    /// Whose it is.
    pub provider: String,
    /// Its name for people.
    pub display_name: String,
    /// `frontier`, `smart` or `fast`; null for a client's model that does not say.
    pub tier: Option<&'static str>,
    /// Tokens of question and answer together.
    pub context_window: u32,
    /// The most tokens of an answer; null when not known.
    pub max_output_tokens: Option<u32>,
    /// Dollars for a million tokens of prompts.
    pub input_cost_per_m: Option<f64>,
    /// Dollars for a million tokens of answers.
    pub output_cost_per_m: Option<f64>,
    /// Dollars for a million tokens of prompts that are in the provider's cache; null costs as much as the others.
    pub cached_input_cost_per_m: Option<f64>,
    /// Dollars for a million tokens of prompts that are written into the cache; null costs as much as the others.
    pub cache_write_cost_per_m: Option<f64>,
    /// It calls tools.
    pub supports_tools: bool,
    /// It takes pictures, or its name lets one think so.
    pub supports_vision: bool,
    /// How that is known: `supported`, `unsupported` or `unknown`. Only `unsupported` keeps pictures from it.
    pub vision_support: &'static str,
    /// It answers piece by piece.
    pub supports_streaming: bool,
    /// It can be asked to think before it answers.
    pub supports_reasoning: bool,
    /// Names that stand for it.
    pub aliases: Vec<String>,
    /// `builtin`, `remote` (a fetched catalog) or `custom`.
    pub source: &'static str,
}

/// A model to add (spec 2, POST /api/models/custom).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NewModel {
    /// As its provider takes it.
    pub id: String,
    /// A known provider.
    pub provider: String,
    /// Its name for people; the id when left out.
    pub display_name: Option<String>,
    /// Tokens of question and answer together, 512 to 20000000.
    pub context_window: u64,
    /// `frontier`, `smart` or `fast`.
    pub tier: Option<String>,
    /// The most tokens of an answer.
    pub max_output_tokens: Option<u64>,
    /// Dollars for a million tokens of prompts, 0 to 1000.
    pub input_cost_per_m: Option<f64>,
    /// Dollars for a million tokens of answers, 0 to 1000.
    pub output_cost_per_m: Option<f64>,
    /// Dollars for a million cached tokens of prompts, 0 to 1000.
    pub cached_input_cost_per_m: Option<f64>,
    /// Dollars for a million tokens of prompts written into the cache, 0 to 1000.
    pub cache_write_cost_per_m: Option<f64>,
    /// True when left out.
    pub supports_tools: Option<bool>,
    /// Guessed from the id when left out.
    pub supports_vision: Option<bool>,
    /// True when left out.
    pub supports_streaming: Option<bool>,
    /// False when left out.
    pub supports_reasoning: Option<bool>,
}

/// How the catalog is (spec 2, GET /api/catalog/status).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CatalogStatus {
    /// The day that its models are of.
    pub version: String,
    /// `builtin` or `remote`: where they come from.
    pub source: &'static str,
    /// When a catalog was fetched that is in use or would be if it were newer; null when never.
    pub last_updated: Option<String>,
    /// Models, those of clients included.
    pub models: usize,
    /// Models of clients.
    pub custom_models: usize,
    /// Aliases.
    pub aliases: usize,
    /// Providers.
    pub providers: usize,
    /// Where newer catalogs come from; null when `[catalog] url` is not set.
    pub url: Option<String>,
    /// How they are proven: `public_key`, `sha256` or `checksum_file`; null without `url`.
    pub proof: Option<&'static str>,
    /// The last look at the remote; null when there was none since the start.
    pub last_check: Option<LastCheck>,
    /// The newer version that the last look found and that is not in use; null when it found none.
    pub available_version: Option<String>,
}

/// A look at the remote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LastCheck {
    /// When.
    pub at: String,
    /// The version that stood there; null when the look failed.
    pub version: Option<String>,
    /// Why it failed; null when it did not.
    pub error: Option<String>,
}

/// What an update did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UpdateReport {
    /// `updated`, `up_to_date`, or `available` for a look that changes nothing.
    pub status: &'static str,
    /// The version in use now.
    pub version: String,
    /// The version in use before.
    pub previous_version: String,
    /// The version that the remote has.
    pub remote_version: String,
    /// Models of the remote's catalog.
    pub models: usize,
    /// Models left out because this release does not know their provider.
    pub skipped: usize,
    /// SHA-256 of the remote's catalog, in hex.
    pub sha256: String,
}

/// Why the catalog was not changed. The texts are for clients: no path of the machine stands in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// A value that cannot be (400).
    #[error("{field}: {message}")]
    Wrong {
        /// The key of the body.
        field: &'static str,
        /// What it must be.
        message: String,
    },
    /// There is no such thing (404).
    #[error("{0}")]
    Unknown(String),
    /// The state of the catalog forbids it (409).
    #[error("{0}")]
    Conflict(String),
    /// There is no room for more (429).
    #[error("{0}")]
    Full(String),
    /// The world does not take commands now (503).
    #[error("{0}")]
    NotReady(&'static str),
    /// The remote did not give a catalog that can be used (502).
    #[error("the catalog cannot be updated: {0}")]
    Remote(String),
    /// The disk did not take it; the reason is in the log (500).
    #[error("the change could not be stored; the reason is in the daemon's log")]
    Unstored,
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Self {
        let text = error.to_string();
        match error {
            CatalogError::Wrong { field, .. } => Self::bad_field(field, text),
            CatalogError::Unknown(_) => Self::not_found(text),
            CatalogError::Conflict(_) => Self::conflict(text),
            CatalogError::Full(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, text).code("catalog_full"),
            CatalogError::NotReady(_) => Self::unavailable(text, 1),
            CatalogError::Remote(_) => Self::new(StatusCode::BAD_GATEWAY, text).code("catalog_update_failed"),
            CatalogError::Unstored => Self::internal(text).code("catalog_unstored"),
        }
    }
}

/// What a change gives.
pub type Changed<T> = BoxFuture<'static, Result<T, CatalogError>>;

/// Knows the models. Reads never block. A change is on disk, and in force for every call that goes out afterwards, when it is
/// answered; it is carried out also when nobody waits for it any more.
pub trait Models: Send + Sync + 'static {
    /// Every model, in the order of the catalog.
    fn models(&self) -> Vec<ModelEntry>;

    /// The model that `text` means: an id, or `<provider>/<id>`.
    fn model(&self, text: &str) -> Option<ModelEntry>;

    /// What each alias stands for.
    fn aliases(&self) -> BTreeMap<String, String>;

    /// The provider and the id that an alias stands for.
    fn alias(&self, alias: &str) -> Option<(String, String)>;

    /// How the catalog is.
    fn status(&self) -> CatalogStatus;

    /// Lets an alias stand for a model; gives the model.
    fn add_alias(&self, alias: String, model: String) -> Changed<ModelEntry>;

    /// Forgets an alias.
    fn remove_alias(&self, alias: String) -> Changed<()>;

    /// Adds a model.
    fn add_model(&self, model: NewModel) -> Changed<ModelEntry>;

    /// Removes a model that a client added, and the aliases that clients gave it; gives them.
    fn remove_model(&self, id: String) -> Changed<Vec<String>>;

    /// Fetches the catalog of the remote; `only_look` changes nothing.
    fn update(&self, only_look: bool) -> Changed<UpdateReport>;
}
