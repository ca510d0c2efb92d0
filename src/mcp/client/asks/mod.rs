//! What a server asks of us while one of its tools is called: input of a person (elicitation) and answers of a model
//! (sampling). Everything that it says is untrusted.

pub(super) mod elicitation;
pub(super) mod host;
pub(super) mod questions;
pub(super) mod sampler;
pub(super) mod sampling;

use std::sync::Arc;

use agentsvc_components::mcp::StoredSampling;
use agentsvc_systems::mcp::limits::MCP_SAMPLINGS_AT_ONCE_MAX;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::config::{McpClient, SamplingRule};
use elicitation::Elicitation;
use sampling::Sampling;

/// A request that is not valid, or that asks for what is not offered.
pub(super) const INVALID: i32 = -32_602;
/// The code of JSON-RPC for what is not offered.
pub(super) const NO_METHOD: i32 = -32_601;
/// What cannot be answered now.
pub(super) const UNAVAILABLE: i32 = -32_000;
/// A person said no.
pub(super) const REJECTED: i32 = -1;

/// Why a request of a server is refused: for the server, in our words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RpcError {
    pub(super) code: i32,
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID, message)
    }

    pub(super) fn no_method() -> Self {
        Self::new(NO_METHOD, "method not found")
    }

    /// As the answer to a request.
    pub(super) fn answer(&self, id: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": self.code, "message": self.message } })
    }
}

/// What a server may ask of us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offers {
    /// Input of a person.
    pub(super) elicitation: bool,
    /// Answers of a model.
    pub(super) sampling: bool,
}

/// What the configuration lets a server ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    elicitation: bool,
    sampling: SamplingRule,
    /// Tokens of the answers of models in one call.
    sampling_max_tokens: u32,
}

impl Rules {
    pub(super) const fn of(config: &McpClient) -> Self {
        let &McpClient { elicitation, sampling, sampling_max_tokens, .. } = config;
        Self { elicitation, sampling, sampling_max_tokens }
    }

    /// With what clients stored of sampling.
    pub(super) fn with_sampling(self, stored: StoredSampling) -> Self {
        let sampling_max_tokens = stored.max_tokens.unwrap_or(self.sampling_max_tokens);
        Self { sampling: stored.rule, sampling_max_tokens, ..self }
    }

    /// The word for its rule of sampling.
    pub(super) fn sampling_word(self) -> &'static str {
        self.sampling.as_str()
    }

    /// What follows for the connection.
    pub(super) fn offers(self) -> Offers {
        Offers { elicitation: self.elicitation, sampling: self.sampling != SamplingRule::Off }
    }
}

/// The places for model calls of one server.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MCP_SAMPLINGS_AT_ONCE_MAX)))
    }
}

/// What a server asks.
#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// Input of a person.
    Person(Elicitation),
    /// An answer of a model.
    Model(Sampling),
}

impl Asked {
    /// Reads a request; `urls`: the version knows URLs to open.
    ///
    /// # Errors
    /// It is of no method that is offered, or not valid.
    pub(super) fn read(method: &str, params: &Value, offers: Offers, urls: bool) -> Result<Self, RpcError> {
        match method {
            "elicitation/create" if offers.elicitation => Elicitation::read(params, urls).map(Self::Person),
            "sampling/createMessage" if offers.sampling => Sampling::read(params).map(Self::Model),
            _ => Err(RpcError::no_method()),
        }
    }

    /// What the server gets when nothing answers.
    pub(super) fn unanswered(&self) -> Result<Value, RpcError> {
        match self {
            Self::Person(_) => Ok(elicitation::cancelled()),
            Self::Model(_) => Err(RpcError::new(UNAVAILABLE, "the call that this was asked in has ended")),
        }
    }
}

/// Answers what a server asks in one call.
pub(super) trait Answers: Send + Sync {
    /// The result, or why there is none. Dropped, nothing waits for it any more.
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, RpcError>>;
}
