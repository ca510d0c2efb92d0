//! The providers of models as this room sees them: what is known of them, their keys, endpoints and sign-ins (spec 2,
//! Providers). Implemented where providers are known. No key ever comes out of it.

use crate::provider::error_codes;
use agentsvc_components::ErrorCode;
use agentsvc_components::turn::error_codes as turn_codes;
use std::sync::Arc;

use agentsvc_components::Refusal;
use futures_util::future::BoxFuture;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::error::Error;

/// Why something about a provider was not done. The texts are for clients: no key and no path of the machine is in them.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// There is no such provider, or no such sign-in (404).
    #[error("{0}")]
    Unknown(String),
    /// A value is wrong (400).
    #[error("{field}: {message}")]
    Unfit {
        /// The key or parameter.
        field: &'static str,
        /// Reason.
        message: String,
    },
    /// The provider is of another kind than the route is for (400).
    #[error("{0}")]
    NotOfThisKind(String),
    /// Something has to be set first (409).
    #[error("{message}")]
    NotReady {
        /// A word for programs.
        code: ErrorCode,
        /// What.
        message: String,
    },
    /// The provider failed or refused (502).
    #[error("{message}")]
    Failed {
        /// A word for programs, such as `provider_auth`.
        code: ErrorCode,
        /// The provider's words, cleaned.
        message: String,
    },
    /// The provider did not answer in time (504).
    #[error("{0}")]
    Late(String),
    /// Too many of these are under way (429).
    #[error("{0}")]
    TooMany(String),
    /// What was set could not be kept; nothing changed. The reason is in the log (500).
    #[error("{message}")]
    NotKept {
        /// A word for programs: `vault_unavailable` or `not_stored`.
        code: ErrorCode,
        /// What could not be kept.
        message: String,
    },
    /// The world refused.
    #[error("{}", .0.message)]
    World(Refusal),
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        let text = error.to_string();
        match error {
            ProviderError::Unknown(_) => Self::not_found(text),
            ProviderError::Unfit { field, .. } => Self::bad_field(field, text),
            ProviderError::NotOfThisKind(_) => Self::of(error_codes::WRONG_PROVIDER, text),
            ProviderError::NotReady { code, .. } => Self::conflict(text).code(code),
            ProviderError::Failed { code, .. } => Self::new(StatusCode::BAD_GATEWAY, text).code(code),
            ProviderError::Late(_) => Self::new(StatusCode::GATEWAY_TIMEOUT, text).code(turn_codes::PROVIDER_TIMEOUT),
            ProviderError::TooMany(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, text).retry_after(1),
            ProviderError::NotKept { code, .. } => Self::internal(text).code(code),
            ProviderError::World(refusal) => Self::from(refusal),
        }
    }
}

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProviderView {
    /// Name used in manifests and routes.
    pub name: String,
    /// Display name.
    pub display_name: String,
    /// `configured`, `no_key_needed` or `not_configured`.
    pub auth_status: &'static str,
    /// Source of its key: `vault`, `oauth` or `environment`; null if it has none.
    pub key_source: Option<&'static str>,
    /// Environment variable of its key; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_var: Option<String>,
    /// Base URL.
    pub base_url: String,
    /// Number of its models in the catalog.
    pub model_count: usize,
    /// Whether it is a local runtime, which `detect` can find.
    pub local: bool,
    /// Whether it supports sign-in (`oauth/start`).
    pub device_flow: bool,
}

/// A provider in detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProviderDetail {
    /// As in the list.
    #[serde(flatten)]
    pub view: ProviderView,
    /// Driver: `openai`, `anthropic`, ...
    pub driver: &'static str,
    /// Whether calls need a key.
    pub needs_key: bool,
    /// Default model; null if it has none.
    pub default_model: Option<String>,
    /// Context window of models without a known one, in tokens.
    pub context_tokens: u32,
    /// Whether `base_url` was set over the API.
    pub base_url_override: bool,
    /// Why the stored key cannot be used; null if it can.
    pub problem: Option<String>,
}

/// Result of a provider test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProviderTested {
    /// Always `ok`.
    pub status: &'static str,
    /// The provider.
    pub provider: String,
    /// Milliseconds from the request to the end of the response.
    pub latency_ms: u64,
    /// Model.
    pub model_tested: String,
    /// Prompt tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
}

/// A local model runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Detected {
    /// The provider.
    pub provider: String,
    /// Whether it is running.
    pub available: bool,
    /// Base URL that was checked.
    pub base_url: String,
    /// Version, if it reports one.
    pub version: Option<String>,
    /// Its models.
    pub models: Vec<DetectedModel>,
    /// How many.
    pub total: usize,
    /// Why it is not available; null if it is.
    pub reason: Option<String>,
}

/// A model of a local runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DetectedModel {
    /// Name to use in manifests.
    pub id: String,
    /// Context window in tokens; null if not reported.
    pub context_window: Option<u64>,
    /// Bytes on disk; null if not reported.
    pub size_bytes: Option<u64>,
    /// Whether it is loaded in memory; null if not reported.
    pub loaded: Option<bool>,
}

/// A started sign-in (RFC 8628).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoginStarted {
    /// The provider.
    pub provider: String,
    /// URL to poll for the status.
    pub poll_id: Uuid,
    /// Device code of this sign-in.
    pub device_code: String,
    /// User code to enter.
    pub user_code: String,
    /// Where.
    pub verification_uri: String,
    /// Address that includes the code; null if the provider has none.
    pub verification_uri_complete: Option<String>,
    /// Seconds until the codes expire.
    pub expires_in: u64,
    /// Seconds between two polls.
    pub interval: u64,
}

/// Status of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoginState {
    /// `pending`, `authorized`, `expired` or `denied`.
    pub status: &'static str,
    /// The provider.
    pub provider: String,
    /// Seconds until the next poll; null if there is nothing to wait for.
    pub retry_after: Option<u64>,
}

/// What is done about providers. What a call changed is on disk and in force when its future ends well, and was on the audit
/// trail before it was made.
pub trait ProviderCredentials: Send + Sync + 'static {
    /// Every provider, in the order of their names. May wait for the disk.
    fn list(&self) -> Vec<ProviderView>;

    /// One provider; `None` when there is no such one. May wait for the disk.
    fn detail(&self, name: &str) -> Option<ProviderDetail>;

    /// Keeps a key in the vault, in place of the one or the sign-in that is there.
    fn set_key(self: Arc<Self>, name: String, key: String) -> BoxFuture<'static, Result<(), ProviderError>>;

    /// Forgets the key or the sign-in in the vault. False when there was none.
    fn remove_key(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<bool, ProviderError>>;

    /// Asks the provider's default model, or `model`, for next to nothing.
    fn test(
        self: Arc<Self>,
        name: String,
        model: Option<String>,
    ) -> BoxFuture<'static, Result<ProviderTested, ProviderError>>;

    /// Sets where the provider is asked; `None` goes back to the configuration. Gives the URL in force.
    fn set_url(self: Arc<Self>, name: String, url: Option<String>)
    -> BoxFuture<'static, Result<String, ProviderError>>;

    /// Looks for a runtime on this machine.
    fn detect(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<Detected, ProviderError>>;

    /// Begins a sign-in.
    fn start_login(self: Arc<Self>, name: String) -> BoxFuture<'static, Result<LoginStarted, ProviderError>>;

    /// Asks how a sign-in went.
    fn poll_login(
        self: Arc<Self>,
        name: String,
        poll_id: Uuid,
    ) -> BoxFuture<'static, Result<LoginState, ProviderError>>;
}
