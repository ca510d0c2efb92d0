//! The configuration as this room sees it: shown, changed and read anew (spec 2, Configuration). Implemented where the
//! file is known.

use crate::config::error_codes;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::Actor;
use agentsvc_components::Refusal;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::error::Error;
use crate::provider::accounts::ProviderError;

/// A problem in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigProblem {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// Key; empty if the text is not TOML.
    pub key: String,
    /// Description of the problem and the expected value.
    pub message: String,
}

/// Why the configuration was not changed. The texts are for clients: no path of the machine stands in them.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The API does not write this key (403).
    #[error("{0}")]
    Forbidden(String),
    /// A key of the body is wrong (400).
    #[error("{message}")]
    Wrong {
        /// The key of the body.
        field: &'static str,
        /// What it must be.
        message: String,
    },
    /// The file is wrong (400); what is in force stays.
    #[error("{}", said(.0))]
    Invalid(Vec<ConfigProblem>),
    /// The file is wrong already, elsewhere than where it was to be changed (409).
    #[error("config.toml is not valid; correct it first: {}", said(.0))]
    Broken(Vec<ConfigProblem>),
    /// What is there already forbids it (409).
    #[error("{0}")]
    Conflict(String),
    /// The world did not take it (503).
    #[error("{message}: {refusal}")]
    NotTaken {
        /// What is and what is not done.
        message: &'static str,
        /// Why.
        refusal: Refusal,
    },
    /// The file cannot be read or written; the reason is in the log (500).
    #[error("config.toml cannot be read or written; see the daemon's log for the reason")]
    Failed,
}

/// The first problem, and how many there are.
fn said(problems: &[ConfigProblem]) -> String {
    let Some(ConfigProblem { line, column, key, message }) = problems.first() else { return String::new() };
    let colon = if key.is_empty() { "" } else { ": " };
    let more = match problems.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    format!("config.toml:{line}:{column}: {key}{colon}{message}{more}")
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let text = error.to_string();
        match error {
            ConfigError::Forbidden(_) => Self::of(error_codes::CONFIG_FORBIDDEN, text),
            ConfigError::Wrong { field, .. } => Self::bad_field(field, text),
            ConfigError::Invalid(problems) => {
                Self::of(error_codes::CONFIG_INVALID, text).with("problems", json!(problems))
            }
            ConfigError::Broken(problems) => {
                Self::conflict(text).code(error_codes::CONFIG_INVALID).with("problems", json!(problems))
            }
            ConfigError::Conflict(_) => Self::of(error_codes::CONFIG_EXISTS, text),
            ConfigError::NotTaken { refusal, .. } => {
                Self::unavailable(text, refusal.retry_after_secs.unwrap_or(1)).code(error_codes::CONFIG_NOT_TAKEN)
            }
            ConfigError::Failed => Self::of(error_codes::CONFIG_UNAVAILABLE, text),
        }
    }
}

/// Result of setting a key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConfigSet {
    /// `applied`, or `saved` if it takes effect at the next start.
    pub status: &'static str,
    /// The key.
    pub path: String,
    /// New value, as shown by GET /api/config.
    pub value: Value,
    /// Whether it takes effect at the next start.
    pub restart_required: bool,
    /// Other keys that had been edited in the file and took effect as well.
    pub also_changed: Vec<String>,
}

/// Result of a reload.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConfigReloaded {
    /// `reloaded`, or `unchanged`.
    pub status: &'static str,
    /// Keys whose values changed.
    pub changed: Vec<String>,
    /// Changed keys that are in effect.
    pub applied: Vec<String>,
    /// Keys that take effect at the next start, including earlier changes.
    pub restart_required: Vec<String>,
    /// Keys in the file without effect.
    pub warnings: Vec<String>,
}

/// What the first configuration shall hold.
#[derive(Clone, Debug, Default)]
pub struct ConfigInit {
    /// `default_model.provider`.
    pub provider: Option<String>,
    /// `default_model.model`.
    pub model: Option<String>,
    /// `default_model.api_key_env`.
    pub api_key_env: Option<String>,
    /// Change a file that somebody edited, too.
    pub force: bool,
}

/// Result of an initialization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ConfigInitialized {
    /// `initialized`, or `unchanged` if everything was already set.
    pub status: &'static str,
    /// Whether the file was created.
    pub config_created: bool,
    /// Keys that were written.
    pub changed: Vec<String>,
    /// Default provider.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// Whether the provider's key is set or not required.
    pub key_present: bool,
    /// Environment variable of the key; null if not required.
    pub api_key_env: Option<String>,
}

/// Keeps keys of providers where nobody reads them again.
pub trait ProviderKeys: Send + Sync + 'static {
    /// Could `key` be kept for `provider`? Changes nothing.
    ///
    /// # Errors
    /// A sentence for the client.
    fn check(&self, provider: &str, key: &str) -> Result<(), String>;

    /// Keeps `key` for calls to `provider`; in effect at once, and on the audit trail. May block on the disk.
    ///
    /// # Errors
    /// What became of it: [`ProviderError::NotKept`] when the vault cannot be used.
    fn keep(&self, provider: &str, key: &str) -> Result<(), ProviderError>;
}

/// Knows the configuration. The calls that change it block on the disk and on the world: not on a tokio worker.
pub trait Configuration: Send + Sync + 'static {
    /// The file's values, nested as in the file, secrets masked. Must not block.
    fn shown(&self) -> Value;

    /// The values in force: those of [`shown`](Self::shown), save for what waits for a restart. Must not block.
    fn in_force(&self) -> Value;

    /// The same as TOML.
    ///
    /// # Errors
    /// [`ConfigError::Failed`].
    fn in_force_toml(&self) -> Result<String, ConfigError>;

    /// The JSON Schema of the file.
    fn schema(&self) -> Value;

    /// Writes `value` at `path` into the file and puts it in force; null takes the key out.
    ///
    /// # Errors
    /// [`ConfigError`]; but for `NotTaken` nothing is changed.
    fn set(&self, actor: Actor, path: &str, value: &Value) -> Result<ConfigSet, ConfigError>;

    /// Reads the file anew and puts it in force.
    ///
    /// # Errors
    /// [`ConfigError`]; what is in force stays.
    fn reload(&self, actor: Actor) -> Result<ConfigReloaded, ConfigError>;

    /// Makes what is missing of the home, and writes the first configuration.
    ///
    /// # Errors
    /// [`ConfigError`]; but for `NotTaken` nothing is changed.
    fn init(&self, actor: Actor, wanted: &ConfigInit) -> Result<ConfigInitialized, ConfigError>;
}

/// Runs a call that changes the configuration on a thread that may wait.
///
/// # Errors
/// What the client sees of a [`ConfigError`]; 503 while nobody knows the configuration yet.
pub(crate) async fn ask<T: Send + 'static>(
    configuration: Option<Arc<dyn Configuration>>,
    call: impl FnOnce(&dyn Configuration) -> Result<T, ConfigError> + Send + 'static,
) -> Result<T, Error> {
    let Some(configuration) = configuration else { return Err(not_ready()) };
    match spawn_blocking(move || call(&*configuration)).await {
        Ok(answer) => answer.map_err(Error::from),
        Err(error) => {
            tracing::error!(%error, "a configuration change was interrupted");
            Err(ConfigError::Failed.into())
        }
    }
}

/// 503.
pub(crate) fn not_ready() -> Error {
    Error::unavailable("the configuration is still loading; try again in a moment", 1)
}
