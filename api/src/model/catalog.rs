//! The model catalog as this room sees it: the models, their aliases, and what changes them (spec 2, Model catalog). Implemented
//! where the models are known.

use crate::model::error_codes;
use std::collections::BTreeMap;

use agentsvc_components::Refusal;
use agentsvc_components::manifest::ModelChoice;
use futures_util::future::BoxFuture;
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

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModelEntry {
    /// The provider's id for the model; may contain slashes.
    pub id: String,
    /// Provider.
    pub provider: String,
    /// Display name.
    pub display_name: String,
    /// `frontier`, `smart` or `fast`; null for a custom model without a tier.
    pub tier: Option<&'static str>,
    /// Context window: prompt and output tokens together.
    pub context_window: u32,
    /// Maximum output tokens; null if unknown.
    pub max_output_tokens: Option<u32>,
    /// Price of one million prompt tokens in dollars; 0 if unknown.
    pub input_cost_per_m: f64,
    /// Price of one million output tokens in dollars; 0 if unknown.
    pub output_cost_per_m: f64,
    /// Whether both prices are known.
    pub price_known: bool,
    /// Price of one million cached prompt tokens in dollars; null means the prompt price.
    pub cached_input_cost_per_m: Option<f64>,
    /// Price of one million prompt tokens written to the cache in dollars; null means the prompt price.
    pub cache_write_cost_per_m: Option<f64>,
    /// Whether it supports tool calls.
    pub supports_tools: bool,
    /// Whether it supports images, as declared or guessed from its name.
    pub supports_vision: bool,
    /// `supported`, `unsupported` or `unknown` (guessed from the name). Images are only withheld if `unsupported`.
    pub vision_support: &'static str,
    /// Whether it supports streaming.
    pub supports_streaming: bool,
    /// Whether it supports extended thinking.
    pub supports_reasoning: bool,
    /// Aliases.
    pub aliases: Vec<String>,
    /// `builtin`, `remote` (a fetched catalog) or `custom`.
    pub source: &'static str,
}

/// A custom model to add.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NewModel {
    /// The provider's id for the model.
    pub id: String,
    /// A known provider.
    pub provider: String,
    /// Display name. Default: the id.
    pub display_name: Option<String>,
    /// Context window in tokens, 512 to 20000000.
    pub context_window: u64,
    /// `frontier`, `smart` or `fast`.
    pub tier: Option<String>,
    /// Maximum output tokens.
    pub max_output_tokens: Option<u64>,
    /// Price of one million prompt tokens in dollars, 0 to 1000.
    pub input_cost_per_m: Option<f64>,
    /// Price of one million output tokens in dollars, 0 to 1000.
    pub output_cost_per_m: Option<f64>,
    /// Price of one million cached prompt tokens in dollars, 0 to 1000.
    pub cached_input_cost_per_m: Option<f64>,
    /// Price of one million prompt tokens written to the cache in dollars, 0 to 1000.
    pub cache_write_cost_per_m: Option<f64>,
    /// Default: true.
    pub supports_tools: Option<bool>,
    /// Default: guessed from the id.
    pub supports_vision: Option<bool>,
    /// Default: true.
    pub supports_streaming: Option<bool>,
    /// Default: false.
    pub supports_reasoning: Option<bool>,
}

/// Status of the model catalog.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CatalogStatus {
    /// Version: the date of the models.
    pub version: String,
    /// Source of the models: `builtin` or `remote`.
    pub source: &'static str,
    /// Time of the last successful fetch; null if never.
    pub last_updated: Option<String>,
    /// Number of models, including custom models.
    pub models: usize,
    /// Number of custom models.
    pub custom_models: usize,
    /// Aliases.
    pub aliases: usize,
    /// Providers.
    pub providers: usize,
    /// URL of the remote catalog; null if `[catalog] url` is not set.
    pub url: Option<String>,
    /// Verification method: `public_key`, `sha256` or `checksum_file`; null without `url`.
    pub proof: Option<&'static str>,
    /// Last check of the remote catalog; null if none since the start.
    pub last_check: Option<LastCheck>,
    /// Newer version found by the last check and not in use; null if none.
    pub available_version: Option<String>,
}

/// A check of the remote catalog.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LastCheck {
    /// When.
    pub at: String,
    /// Remote version; null if the check failed.
    pub version: Option<String>,
    /// Reason of the failure; null if it succeeded.
    pub error: Option<String>,
}

/// Result of an update.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct UpdateReport {
    /// `updated`, `up_to_date`, or `available` for a check only.
    pub status: &'static str,
    /// Version in use.
    pub version: String,
    /// Previous version.
    pub previous_version: String,
    /// Remote version.
    pub remote_version: String,
    /// Number of models in the remote catalog.
    pub models: usize,
    /// Number of models skipped because their provider is unknown.
    pub skipped: usize,
    /// SHA-256 of the remote catalog, in hex.
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
    #[error("the change could not be stored; see the daemon's log for the reason")]
    Unstored,
    /// The world did not put the change on record; nothing was changed.
    #[error("{0}")]
    World(Refusal),
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Self {
        let text = error.to_string();
        match error {
            CatalogError::Wrong { field, .. } => Self::bad_field(field, text),
            CatalogError::Unknown(_) => Self::not_found(text),
            CatalogError::Conflict(_) => Self::conflict(text),
            CatalogError::Full(_) => Self::of(error_codes::CATALOG_FULL, text),
            CatalogError::NotReady(_) => Self::unavailable(text, 1),
            CatalogError::Remote(_) => Self::of(error_codes::CATALOG_UPDATE_FAILED, text),
            CatalogError::Unstored => Self::of(error_codes::CATALOG_UNSTORED, text),
            CatalogError::World(refusal) => Self::from(refusal),
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
