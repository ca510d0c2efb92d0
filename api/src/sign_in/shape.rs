//! The bodies of sign-in.

use agentsvc_systems::sign_in::{SignInView, SignedIn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::provider::Provider;
use crate::http::crud::shown;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::people::shape::RoleWord;

/// How people can sign in.
#[derive(Serialize, JsonSchema)]
pub(super) struct Providers {
    /// Whether single sign-on is on.
    pub(super) enabled: bool,
    /// Whether users sign in with a name and a password.
    pub(super) password: bool,
    /// The identity providers, the default one first.
    pub(super) providers: Vec<Provider>,
}

/// What identity providers send.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CallbackBody {
    /// The sign-in.
    pub(super) state: Option<String>,
    /// What tokens are given for.
    pub(super) code: Option<String>,
    /// Why there is no code.
    pub(super) error: Option<String>,
    /// The same as a sentence; not shown.
    pub(super) error_description: Option<String>,
    /// The identity provider.
    pub(super) iss: Option<String>,
}

/// A person has signed in. The token is shown this once.
#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    /// The token of the session, for `Authorization: Bearer`. Pages get a cookie instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    /// Always `Bearer`.
    pub(super) token_type: &'static str,
    /// Seconds until the session expires.
    pub(super) expires_in: u64,
    pub(super) session_id: Uuid,
    /// The identity provider; `password` for a password.
    pub(super) provider: Box<str>,
    pub(super) user: Person,
}

/// Who signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct Person {
    /// The user here.
    pub(super) user_id: Option<Uuid>,
    /// The name of the user here.
    pub(super) username: Box<str>,
    pub(super) role: RoleWord,
    /// The person at the provider.
    pub(super) sub: Box<str>,
    pub(super) email: Option<Box<str>>,
    /// The name as people write it.
    pub(super) name: Option<Box<str>>,
    /// The URL of a picture.
    pub(super) picture: Option<Box<str>>,
}

impl From<SignedIn> for Person {
    fn from(SignedIn { session: view, role }: SignedIn) -> Self {
        let profile = view.session.profile;
        Self {
            user_id: view.session.user.map(|user| user.0),
            username: view.user_name,
            role: role.into(),
            sub: profile.subject,
            email: profile.email,
            name: profile.name,
            picture: profile.picture,
        }
    }
}

/// Who asks, as the identity provider described them when they signed in.
#[derive(Serialize, JsonSchema)]
pub(super) struct UserInfo {
    /// `oidc`, `password`, or `api_key` for a key, which has no profile.
    pub(super) auth_method: &'static str,
    /// The identity provider.
    pub(super) provider: Option<Box<str>>,
    /// When the session expires.
    pub(super) expires_at: Option<Moment>,
    #[serde(flatten)]
    pub(super) person: Person,
}

/// A token to look at.
#[derive(Deserialize, JsonSchema)]
pub(super) struct IntrospectBody {
    /// The token of a session or a key of this daemon, or a token of an identity provider.
    pub(super) token: String,
    /// The only provider whose token it can be. Default: all.
    #[serde(default)]
    pub(super) provider: Option<String>,
}

/// What a token is good for (RFC 7662). Tokens of providers have their claims beside these.
#[derive(Serialize, JsonSchema)]
pub(super) struct Introspected {
    /// Whether the token is accepted.
    pub(super) active: bool,
    /// `session` or `api_key`.
    pub(super) token_type: &'static str,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sub: Option<Uuid>,
    /// The name of the user, or of a key without a user.
    pub(super) username: Box<str>,
    /// What it may do, separated by spaces.
    pub(super) scope: String,
    /// When it expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<i64>,
}

/// It is done.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    pub(super) ok: bool,
}

/// A name and a password.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PasswordBody {
    /// The name of a user with a `password_hash` in config.toml.
    pub(super) username: String,
    pub(super) password: String,
    /// A code of the authenticator, where approvals need one too.
    #[serde(default)]
    pub(super) totp_code: Option<String>,
}

/// What a page needs to be used.
#[derive(Serialize, JsonSchema)]
pub(super) struct Mode {
    /// `none`: nothing; `api_key`: an API key; `hybrid`: an API key, or a name and a password.
    pub(super) mode: &'static str,
    /// Whether single sign-on is on.
    pub(super) single_sign_on: bool,
}

shape! {
    /// A session of a person who signed in.
    pub(crate) struct SignInItem from view: SignInView {
        id: Uuid = view.id.0,
        user_id: Option<Uuid> = view.session.user.map(|user| user.0),
        /// The name of the user.
        username: Box<str> = view.user_name,
        /// The identity provider; `password` for a password.
        provider: Box<str> = view.session.profile.provider,
        email: Option<Box<str>> = view.session.profile.email,
        /// The address of the client that began it.
        client: Box<str> = view.session.client,
        created_at: Moment = Moment(view.session.created_at),
        expires_at: Moment = Moment(view.session.expires_at),
        /// When it was last used, to 10 minutes.
        last_used_at: Option<Moment> = view.session.used_at.map(Moment),
    }
}

shown!(SignInItem: SignInView, "the session"; "sessions", |call| Ok(call.principal.limited_to()));
