//! The sign-in at one server: its tokens, and what is known of them.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::sign_in::{EndedSignIn, SignInError, SignInStatus};
use agentsvc_components::Timestamp;
use agentsvc_systems::mcp::McpOauth;
use agentsvc_systems::mcp::limits::MCP_SIGN_IN_ANSWER_BYTES_MAX;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::Url;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::challenge::Challenge;
use super::metadata::canonical;
use super::pending::Pending;
use super::stored::{Client, Stored, now_ms};
use crate::kernel::config::Secret;
use crate::kernel::egress::Web;
use crate::kernel::logging::known_secrets;
use crate::kernel::oauth::{Reach, host, place};
use crate::kernel::vault::Vault;
use crate::mcp::client::wire::Authorize;

/// After a refresh that failed for no reason of the token, the next one waits so long.
const PAUSE: Duration = Duration::from_secs(10);
/// Why there is no token when the vault cannot be read.
const NO_VAULT: &str = "the vault is unavailable";
/// Why a sign-in is needed beside one that works.
const NEEDS_MORE: &str = "the server needs more permissions than were granted";

/// What a sign-in needs of a server and of the daemon.
pub(crate) struct Of {
    /// The name of the server.
    pub(crate) name: Box<str>,
    /// Where it is.
    pub(crate) url: String,
    /// It may be on a private host, and so may the servers that sign in there, at its port or one of the settings.
    pub(crate) trusted: bool,
    /// The operator wrote the settings.
    pub(crate) configured: bool,
    pub(crate) settings: McpOauth,
    /// The secret of the configured client.
    pub(crate) secret: Option<Secret>,
    /// The port of the daemon's API.
    pub(crate) own_port: u16,
    pub(crate) web: Web,
    pub(crate) vault: Vault,
}

/// The sign-in at one server.
pub(crate) struct SignIn {
    pub(super) server: Url,
    pub(super) settings: McpOauth,
    /// The secret of the configured client.
    pub(super) secret: Option<Secret>,
    pub(super) reach: Reach,
    vault: Vault,
    /// The name of its secret in the vault.
    vault_name: String,
    /// One change of what is stored at a time, so that a refresh token is turned in once.
    pub(super) turn: tokio::sync::Mutex<()>,
    pub(super) state: Mutex<State>,
}

/// What is known now.
#[derive(Default)]
pub(super) struct State {
    kept: Kept,
    /// The server asks for a sign-in: how.
    pub(super) challenge: Option<Challenge>,
    /// Sign-ins that wait for the user, the oldest first.
    pub(super) pending: Vec<Pending>,
    pub(super) problem: Option<Problem>,
    /// The sign-in that a user completed last.
    pub(super) last: Option<EndedSignIn>,
    /// The sign-ins whose answers came and are being looked at.
    pub(super) completing: Vec<String>,
    /// No refresh is tried before.
    pub(super) paused_until: Option<Instant>,
    /// The token that came when the one before was refused, until the server takes it. If it does not, another one is of no
    /// use.
    renewed: Option<Secret>,
}

/// What the vault has.
#[derive(Default)]
enum Kept {
    /// It was not looked at yet.
    #[default]
    Unread,
    Read(Option<Arc<Stored>>),
}

/// Why there is no token that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The user has to sign in.
    NeedsAuth(String),
    /// The token is good, but not for all that was tried with it.
    NeedsMore,
    /// Something failed, which may go away.
    Error(String),
}

impl SignIn {
    /// The sign-in at a server. `None` when its URL is none.
    pub(crate) fn new(of: Of) -> Option<Arc<Self>> {
        let Of { name, url, trusted, configured, settings, secret, own_port, web, vault } = of;
        let server = Url::parse(&url).ok()?;
        let set = [&settings.auth_url, &settings.token_url].into_iter().flatten().filter(|_| configured);
        let set = set.filter_map(|url| Url::parse(url).ok());
        let named = set.chain([server.clone()]).filter(|_| trusted).filter_map(|url| place(&url)).collect();
        let reach = Reach { web, named, own_port, answer_bytes_max: MCP_SIGN_IN_ANSWER_BYTES_MAX };
        // No two servers have names that differ in these ways only.
        let vault_name = format!("mcp-oauth-{}", name.to_ascii_lowercase().replace('-', "_"));
        let (turn, state) = (tokio::sync::Mutex::default(), Mutex::default());
        Some(Arc::new(Self { server, settings, secret, reach, vault, vault_name, turn, state }))
    }

    /// Forgets what it read: the vault's files may be others.
    pub(crate) fn forget_read(&self) {
        let mut state = self.state.lock();
        (state.kept, state.problem, state.renewed, state.paused_until) = (Kept::Unread, None, None, None);
    }

    /// Must the user sign in before the server can be used?
    pub(crate) fn is_needed(&self) -> bool {
        let state = self.state.lock();
        match &state.problem {
            Some(Problem::NeedsAuth(_)) => true,
            Some(Problem::Error(_) | Problem::NeedsMore) => false,
            None => state.challenge.is_some() && !state.has_token(now_ms()),
        }
    }

    /// Is there anything to sign out of: tokens, a registered client, or a sign-in that waits? So is what was stored for another
    /// URL or client of the server, and what cannot be read.
    pub(crate) async fn has_something(&self) -> bool {
        let is_known = {
            let state = self.state.lock();
            state.stored().is_some() || !state.pending.is_empty()
        };
        is_known || !matches!(self.in_vault().await, Ok(None))
    }

    /// How it is signed in to.
    pub(crate) async fn status(&self) -> SignInStatus {
        // What cannot be read is noted in the state.
        let _noted = self.stored().await;
        self.known_status()
    }

    /// The same from memory, without the URL of a sign-in that is pending.
    pub(crate) fn shown(&self) -> SignInStatus {
        SignInStatus { auth_url: None, ..self.known_status() }
    }

    fn known_status(&self) -> SignInStatus {
        let now = now_ms();
        let mut state = self.state.lock();
        state.end_pending();
        let stored = state.stored();
        let tokens = stored.as_ref().and_then(|stored| stored.tokens.as_ref());
        let bare = |name: &'static str| SignInStatus { state: name, ..SignInStatus::default() };
        let mut status = match (state.pending.last(), &state.problem, tokens) {
            (Some(pending), ..) => SignInStatus { auth_url: Some(pending.auth_url.clone()), ..bare("pending_auth") },
            _ if !state.completing.is_empty() => bare("pending_auth"),
            (None, Some(Problem::NeedsAuth(why)), _) => {
                SignInStatus { message: Some(why.clone()), ..bare("needs_auth") }
            }
            (None, Some(Problem::NeedsMore), _) => {
                SignInStatus { message: Some(NEEDS_MORE.to_owned()), ..bare("needs_auth") }
            }
            (None, Some(Problem::Error(why)), _) => SignInStatus { message: Some(why.clone()), ..bare("error") },
            (None, None, Some(tokens)) if tokens.is_over(now) && tokens.refresh.is_none() => bare("expired"),
            (None, None, Some(_)) => bare("authorized"),
            (None, None, None) if state.challenge.is_some() => bare("needs_auth"),
            (None, None, None) => bare("not_required"),
        };
        status.last_sign_in.clone_from(&state.last);
        if let (Some(stored), Some(tokens)) = (&stored, tokens) {
            status.issuer = stored.issuer.clone();
            status.scope = tokens.scope.clone();
            status.expires_at = tokens.expires_at.and_then(|end| i64::try_from(end).ok()).map(Timestamp);
        }
        status
    }

    /// What is stored, read from the vault the first time. Errors are noted.
    pub(super) async fn stored(&self) -> Result<Option<Arc<Stored>>, SignInError> {
        if let Kept::Read(stored) = &self.state.lock().kept {
            return Ok(stored.clone());
        }
        match self.in_vault().await {
            Ok(bytes) => {
                let stored = bytes.and_then(|bytes| Stored::read(&bytes)).filter(|stored| self.fits(stored));
                let stored = stored.map(Arc::new);
                if let Some(stored) = &stored {
                    stored.hide();
                }
                let mut state = self.state.lock();
                // A change that came meanwhile is newer.
                if matches!(state.kept, Kept::Unread) {
                    state.kept = Kept::Read(stored);
                }
                if state.problem == Some(Problem::Error(NO_VAULT.to_owned())) {
                    state.problem = None;
                }
                Ok(state.stored())
            }
            Err(error) => {
                tracing::error!(error, "a sign-in at an MCP server cannot be read from the vault");
                self.state.lock().problem = Some(Problem::Error(NO_VAULT.to_owned()));
                Err(SignInError::Vault)
            }
        }
    }

    /// What the vault has, whatever it is of.
    async fn in_vault(&self) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
        let (vault, name) = (self.vault.clone(), self.vault_name.clone());
        let read = tokio::task::spawn_blocking(move || vault.get(&name)).await;
        read.map_err(|error| error.to_string()).and_then(|read| read.map_err(|error| error.to_string()))
    }

    /// The sign-in that is to end: the one in use, else what the vault has of the server, such as one at an earlier URL.
    pub(super) async fn ending(&self) -> Option<Arc<Stored>> {
        // What cannot be read can be removed.
        match self.stored().await.unwrap_or_default() {
            Some(stored) => Some(stored),
            None => Stored::read(&self.in_vault().await.ok()??).map(Arc::new),
        }
    }

    /// Is it of this server, as it is reached now, and of the client that is configured now?
    fn fits(&self, stored: &Stored) -> bool {
        let is_client = self.settings.client_id.as_ref().is_none_or(|id| *id == stored.client.id);
        let is_kind = self.settings.client_id.is_some() != stored.client.redirect_uri.is_some();
        stored.server == canonical(&self.server) && is_client && is_kind
    }

    /// The secret of a client, where it may be sent to this endpoint: that of the configured client goes to `token_url`, else
    /// only to the host of the server itself, whatever the server's metadata say.
    pub(super) fn secret_for(&self, client: &Client, endpoint: &Url) -> Result<Option<Secret>, String> {
        if client.redirect_uri.is_some() {
            return Ok(client.secret.clone());
        }
        let Some(secret) = &self.secret else { return Ok(None) };
        let is_set = match &self.settings.token_url {
            Some(url) => Url::parse(url).is_ok_and(|url| url.origin() == endpoint.origin()),
            None => host(endpoint) == host(&self.server),
        };
        if is_set {
            Ok(Some(secret.clone()))
        } else {
            Err(format!("the client secret is not for {}; set token_url", host(endpoint)))
        }
    }

    /// Stores it in place of what is there; `None` removes it. The turn is the caller's.
    ///
    /// # Errors
    /// The vault cannot be used.
    pub(super) async fn store(&self, stored: Option<Stored>) -> Result<(), SignInError> {
        let (vault, name) = (self.vault.clone(), self.vault_name.clone());
        let bytes = stored.as_ref().map(Stored::write);
        let writing = move || match bytes {
            Some(bytes) => vault.put(&name, &bytes),
            None => vault.remove(&name).map(drop),
        };
        let written = tokio::task::spawn_blocking(writing).await;
        let written = written.map_err(|error| error.to_string()).and_then(|it| it.map_err(|error| error.to_string()));
        written.map_err(|error| {
            tracing::error!(error, "a sign-in at an MCP server cannot be stored");
            SignInError::Vault
        })?;
        self.keep(stored);
        Ok(())
    }

    /// Uses it from now on.
    pub(super) fn keep(&self, stored: Option<Stored>) {
        let stored = stored.map(Arc::new);
        let mut state = self.state.lock();
        let before = state.stored();
        for secret in before.iter().flat_map(|before| before.secrets()) {
            known_secrets().forget(secret.expose());
        }
        if let Some(stored) = &stored {
            stored.hide();
        }
        state.kept = Kept::Read(stored);
    }

    /// Notes that the server asks for a sign-in.
    fn note_challenge(&self, challenge: Option<&str>) -> Challenge {
        let challenge = challenge.and_then(Challenge::read).unwrap_or_default();
        self.state.lock().challenge = Some(challenge.clone());
        challenge
    }

    fn needs_auth(&self, why: &str) {
        self.state.lock().problem = Some(Problem::NeedsAuth(why.to_owned()));
    }

    /// The token to send, refreshed when it is about to end.
    async fn token(self: Arc<Self>) -> Option<Secret> {
        let stored = self.stored().await.ok()??;
        let tokens = stored.tokens.as_ref()?;
        let now = now_ms();
        if tokens.refresh.is_none() {
            return (!tokens.is_over(now)).then(|| tokens.access.clone());
        }
        if !tokens.is_stale(now) {
            return Some(tokens.access.clone());
        }
        self.refreshed(tokens.access.clone()).await;
        self.access()
    }

    /// The access token that there is now.
    fn access(&self) -> Option<Secret> {
        self.state.lock().stored()?.tokens.as_ref().map(|tokens| tokens.access.clone())
    }

    /// Refreshes this token, to the end also when the request that needs it is given up: the refresh token is spent by then.
    /// Gives whether there is another token now.
    async fn refreshed(self: &Arc<Self>, token: Secret) -> bool {
        let of = Arc::clone(self);
        tokio::spawn(async move { of.refresh(&token).await }).await.unwrap_or(false)
    }

    async fn refresh(&self, token: &Secret) -> bool {
        let _alone = self.turn.lock().await;
        let Some(stored) = self.state.lock().stored() else { return false };
        let Some(tokens) = &stored.tokens else { return false };
        if tokens.access != *token {
            return true;
        }
        let is_paused = self.state.lock().paused_until.is_some_and(|until| Instant::now() < until);
        let Some(refresh) = tokens.refresh.as_ref().filter(|_| !is_paused) else { return false };
        match self.renew(&stored, tokens, refresh).await {
            Ok(next) => {
                let next = Stored { tokens: Some(next), ..(*stored).clone() };
                if self.store(Some(next.clone())).await.is_err() {
                    // The old refresh token is spent: better a sign-in that ends with the daemon than none.
                    self.keep(Some(next));
                }
                let mut state = self.state.lock();
                state.problem = state.problem.take().filter(|problem| *problem == Problem::NeedsMore);
                true
            }
            Err(Problem::NeedsAuth(why)) => {
                tracing::warn!(server = %self.vault_name, why, "the sign-in at an MCP server has ended");
                // The client goes, too: it may be what the server does not know any more.
                if self.store(None).await.is_err() {
                    self.keep(None);
                }
                self.needs_auth(&why);
                false
            }
            Err(problem @ (Problem::Error(_) | Problem::NeedsMore)) => {
                tracing::warn!(server = %self.vault_name, ?problem, "the token of an MCP server could not be refreshed");
                let mut state = self.state.lock();
                (state.problem, state.paused_until) = (Some(problem), Some(Instant::now() + PAUSE));
                false
            }
        }
    }

    /// The server did not accept this token.
    async fn refused(self: Arc<Self>, token: Option<Secret>, challenge: Option<String>) -> bool {
        let challenge = self.note_challenge(challenge.as_deref());
        let Some(token) = token else { return false };
        if challenge.error.as_deref() == Some("insufficient_scope") {
            self.state.lock().problem = Some(Problem::NeedsMore);
            return false;
        }
        match self.access() {
            Some(now) if now == token => {}
            // Another one came meanwhile, or the sign-in has ended, which is noted already.
            now => return now.is_some(),
        }
        let (can_refresh, was_renewed) = {
            let state = self.state.lock();
            let tokens = state.stored().and_then(|stored| stored.tokens.clone());
            (tokens.is_some_and(|tokens| tokens.refresh.is_some()), state.renewed.as_ref() == Some(&token))
        };
        if !can_refresh || was_renewed {
            self.needs_auth("the server does not accept the token any more");
            return false;
        }
        let is_renewed = self.refreshed(token).await;
        if is_renewed {
            let access = self.access();
            self.state.lock().renewed = access;
        }
        is_renewed
    }
}

impl State {
    /// What was read of the vault.
    pub(super) fn stored(&self) -> Option<Arc<Stored>> {
        match &self.kept {
            Kept::Unread => None,
            Kept::Read(stored) => stored.clone(),
        }
    }

    pub(super) fn has_token(&self, now: u64) -> bool {
        let stored = self.stored();
        let tokens = stored.as_ref().and_then(|stored| stored.tokens.as_ref());
        tokens.is_some_and(|tokens| tokens.refresh.is_some() || !tokens.is_over(now))
    }
}

/// Signs the requests to a server.
pub(crate) struct Signing(pub(crate) Arc<SignIn>);

impl Authorize for Signing {
    fn token(&self) -> BoxFuture<'_, Option<Secret>> {
        Box::pin(Arc::clone(&self.0).token())
    }

    fn accepted(&self, token: &Secret) {
        let mut state = self.0.state.lock();
        if state.renewed.as_ref() == Some(token) {
            state.renewed = None;
        }
        // It was refused once, and is accepted again.
        let is_current = state.stored().is_some_and(|it| it.tokens.as_ref().is_some_and(|it| it.access == *token));
        if is_current && matches!(state.problem, Some(Problem::NeedsAuth(_))) {
            state.problem = None;
        }
    }

    fn refused(&self, token: Option<Secret>, challenge: Option<String>) -> BoxFuture<'_, bool> {
        Box::pin(Arc::clone(&self.0).refused(token, challenge))
    }
}
