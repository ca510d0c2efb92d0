//! What knows identity providers and passwords. The daemon provides it.

use std::sync::Arc;

use agentsvc_components::kernel::scope::Role;
use agentsvc_components::sign_in::Profile;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error_codes;
use crate::http::error::Error;
use crate::http::rate::ClientKey;

/// An identity provider at which people sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Provider {
    /// The id in the configuration, for `/api/auth/login/{provider}`.
    pub id: String,
    /// What people know it as.
    pub display_name: String,
}

/// What the configuration says of sign-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The providers, the default one first; none while single sign-on is off.
    pub providers: Vec<Provider>,
    /// Is single sign-on on?
    pub is_enabled: bool,
    /// Has a user a password?
    pub has_passwords: bool,
    /// Seconds that a session lasts.
    pub session_secs: u64,
}

/// What the provider sends through the person's browser.
#[derive(Clone)]
pub struct Answer {
    /// Who brings it.
    pub client: ClientKey,
    /// The sign-in that it answers.
    pub state: String,
    /// What tokens are given for.
    pub code: Option<String>,
    /// Why there is no code: a word of RFC 6749.
    pub error: Option<String>,
    /// The provider (RFC 9207).
    pub iss: Option<String>,
    /// What the browser was given at the start of the sign-in.
    pub binding: Option<String>,
    /// The browser gets a cookie: the sign-in must have been begun there.
    pub must_be_bound: bool,
}

/// A person for whom a provider vouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// The issuer.
    pub issuer: String,
    /// The mail address in lower case, where it may be relied upon.
    pub email: Option<String>,
    /// The role of a new user; `None` where the domain of the address is not allowed.
    pub may_join: Option<Role>,
    /// What the provider said of the person.
    pub profile: Profile,
}

/// Why nobody signed in. No token, code, secret or password is in the texts.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SignInError {
    /// Single sign-on is off (503).
    #[error("single sign-on is off; set `[external_auth]` in config.toml")]
    Off,
    /// There is no such provider (404).
    #[error("identity provider not found: {0}")]
    Unknown(String),
    /// The state is of no sign-in that waits for it in this browser (400).
    #[error(
        "the sign-in is unknown, was completed before, was begun in another browser, or has expired; start it again"
    )]
    State,
    /// The person or the provider declined (401).
    #[error("{0}")]
    Declined(String),
    /// The mail address is missing or not verified (403).
    #[error("{0}")]
    Unverified(String),
    /// What came back is not of the provider, or the provider does not accept it (502).
    #[error("{0}")]
    Refused(String),
    /// The provider failed, or what it says cannot be relied upon (502).
    #[error("{0}")]
    Failed(String),
    /// Too many are under way (503).
    #[error("too many sign-ins are under way; try again later")]
    Busy,
}

impl SignInError {
    /// Is it because of what the client sent, and not because of the provider or this daemon?
    #[must_use]
    pub const fn is_clients(&self) -> bool {
        matches!(self, Self::State | Self::Declined(_) | Self::Unverified(_) | Self::Refused(_))
    }
}

impl From<SignInError> for Error {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Off => Self::of(error_codes::SIGN_IN_OFF, text),
            SignInError::Unknown(_) => Self::not_found(text),
            SignInError::State => Self::of(error_codes::SIGN_IN_STATE, text),
            SignInError::Declined(_) => Self::of(error_codes::SIGN_IN_DECLINED, text),
            SignInError::Unverified(_) => Self::of(error_codes::SIGN_IN_UNVERIFIED, text),
            SignInError::Refused(_) | SignInError::Failed(_) => Self::of(error_codes::SIGN_IN_FAILED, text),
            SignInError::Busy => Self::of(error_codes::SIGN_INS_BUSY, text).retry_after(1),
        }
    }
}

/// Asks identity providers, and checks passwords.
pub trait SignIns: Send + Sync + 'static {
    /// What the configuration says.
    fn policy(&self) -> Policy;

    /// Where a person signs in at a provider, or at the default one. `base` is where their browser reaches the daemon, for
    /// providers without a configured address; only the browser that shows `binding` can complete a sign-in that has one.
    fn begin(
        self: Arc<Self>,
        client: ClientKey,
        provider: Option<String>,
        base: String,
        binding: Option<String>,
    ) -> BoxFuture<'static, Result<String, SignInError>>;

    /// Completes a sign-in, once.
    fn finish(self: Arc<Self>, answer: Answer) -> BoxFuture<'static, Result<Vouched, SignInError>>;

    /// What a token of a provider, or of one of them, is good for (RFC 7662): `active`, and claims.
    fn introspect(
        self: Arc<Self>,
        client: ClientKey,
        token: String,
        provider: Option<String>,
    ) -> BoxFuture<'static, Result<Value, SignInError>>;

    /// Is this the password of the user of the configuration? Takes its time, for unknown users too.
    fn check_password(self: Arc<Self>, name: String, password: String)
    -> BoxFuture<'static, Result<bool, SignInError>>;
}
