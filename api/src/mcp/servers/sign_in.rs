//! What signs in at MCP servers that ask for it (OAuth 2.1), and keeps their tokens.

use std::sync::Arc;

use agentsvc_components::{Refusal, Timestamp};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::http::error::Error;
use crate::http::error_codes::VAULT_UNAVAILABLE;
use crate::http::timestamp::Moment;
use crate::mcp::error_codes;

/// How a server is signed in to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SignInStatus {
    /// `not_required`: the server has not asked for a sign-in; `needs_auth`; `pending_auth`: a sign-in waits for the user,
    /// or its response is being checked;
    /// `authorized`; `expired`: the token has expired and cannot be refreshed; `error`: the last sign-in or refresh failed.
    pub state: &'static str,
    /// Where the user signs in; only while one waits for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    /// Why the state is `needs_auth` or `error`, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The scopes that were granted, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// When the token expires; it is refreshed before, if the server allows it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "moment")]
    #[schemars(with = "Option<Moment>")]
    pub expires_at: Option<Timestamp>,
    /// The sign-in that a user completed last, with or without success, since the server was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sign_in: Option<EndedSignIn>,
}

/// A sign-in that a user completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EndedSignIn {
    /// `sign_in_id` of its start.
    pub id: String,
    /// Why it failed; null if it succeeded.
    pub error: Option<String>,
}

#[allow(clippy::ref_option, reason = "serde passes the field")]
fn moment<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Moment).serialize(serializer)
}

/// A sign-in that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInStarted {
    /// Tells it apart from other ones at this server.
    pub id: String,
    /// Where the user signs in.
    pub auth_url: String,
    /// Seconds until it must be complete.
    pub expires_in: u64,
}

/// What the authorization server sends through the user's browser.
#[derive(Clone, Default)]
pub struct SignInAnswer {
    /// The sign-in that it answers.
    pub state: String,
    /// What tokens are given for.
    pub code: Option<String>,
    /// Why there is no code: a word of RFC 6749.
    pub error: Option<String>,
    /// The authorization server (RFC 9207).
    pub iss: Option<String>,
}

/// Why a sign-in was not started, completed or removed. No token, code or secret is in the texts.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SignInError {
    /// There is no such server (404).
    #[error("MCP server not found: {0}")]
    Unknown(String),
    /// The server has no sign-in (409).
    #[error("{0}")]
    Unsupported(String),
    /// The state is of no sign-in (400).
    #[error("the sign-in is unknown, was completed before, or has expired; start it again")]
    State,
    /// The user or the authorization server declined (400).
    #[error("{0}")]
    Declined(String),
    /// The server or its authorization server failed (502).
    #[error("{0}")]
    Failed(String),
    /// The vault cannot be used (500).
    #[error("the vault is unavailable")]
    Vault,
    /// The world refused.
    #[error("{}", .0.message)]
    World(Refusal),
}

impl From<SignInError> for Error {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Unknown(_) => Self::not_found(text),
            SignInError::Unsupported(_) => Self::of(error_codes::MCP_SIGN_IN_UNSUPPORTED, text),
            SignInError::State => Self::of(error_codes::MCP_SIGN_IN_STATE, text),
            SignInError::Declined(_) => Self::of(error_codes::MCP_SIGN_IN_DECLINED, text),
            SignInError::Failed(_) => Self::of(error_codes::MCP_SIGN_IN_FAILED, text),
            SignInError::Vault => Self::of(VAULT_UNAVAILABLE, text),
            SignInError::World(refusal) => Self::from(refusal),
        }
    }
}

/// Signs in at servers. The daemon provides it.
pub trait ServerSignIns: Send + Sync + 'static {
    /// How a server is signed in to; `None` when there is no such server.
    fn status(self: Arc<Self>, server: String) -> BoxFuture<'static, Option<SignInStatus>>;

    /// Starts a sign-in that must be complete within `wait_secs`. `base` is where the user's browser reaches the daemon.
    fn start(
        self: Arc<Self>,
        server: String,
        base: String,
        wait_secs: u64,
    ) -> BoxFuture<'static, Result<SignInStarted, SignInError>>;

    /// Completes a sign-in and connects the server.
    fn finish(self: Arc<Self>, server: String, answer: SignInAnswer) -> BoxFuture<'static, Result<(), SignInError>>;

    /// Removes the sign-in: at the authorization server where it allows that, and here in any case. Gives whether there was
    /// one.
    fn revoke(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<bool, SignInError>>;

    /// The same for a server that was removed and does not run any more.
    fn forget(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<(), SignInError>>;
}
