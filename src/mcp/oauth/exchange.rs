//! The steps of a sign-in: start, exchange of the code, refresh, revocation.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::sign_in::{SignInAnswer, SignInError, SignInStarted};
use agentsvc_systems::mcp::limits::MCP_SIGN_INS_MAX;
use reqwest::Url;
use serde_json::json;
use tokio::time::Instant;

use super::discover::{Looking, Plan};
use super::metadata::{canonical, is_same_issuer};
use super::pending::Pending;
use super::sign_in::{Problem, SignIn};
use super::stored::{Client, Method, Stored, Tokens, now_ms};
use crate::kernel::config::Secret;
use crate::kernel::oauth::{Answer, host, is_word};

/// The name of the daemon as a client.
const CLIENT_NAME: &str = "agentsvc";
/// Time before the end of a registration at which another one is made.
const REGISTRATION_MARGIN_MS: u64 = 600_000;
/// Errors by which a server says that a refresh token is good no more, or that its client is not (RFC 6749, 5.2).
const ENDED: &[&str] = &["invalid_grant", "invalid_client", "unauthorized_client", "invalid_target", "invalid_scope"];

fn failed(why: impl Into<String>) -> SignInError {
    SignInError::Failed(why.into())
}

impl SignIn {
    /// Starts a sign-in. Answers of the authorization server go to `redirect_uri`.
    ///
    /// # Errors
    /// The server, its authorization server or the settings do not allow it.
    pub(crate) async fn start(&self, redirect_uri: String, wait: Duration) -> Result<SignInStarted, SignInError> {
        let stored = self.stored().await?;
        let challenge = self.state.lock().challenge.clone();
        let granted = stored.as_ref().and_then(|stored| stored.tokens.as_ref()?.scope.clone());
        let looking = Looking {
            reach: &self.reach,
            server: &self.server,
            settings: &self.settings,
            challenge: challenge.as_ref(),
            granted: granted.as_deref(),
        };
        let plan = looking.plan().await?;
        let client = self.client(&plan, &redirect_uri).await?;
        // Said now, not when the user has signed in.
        self.secret_for(&client, &plan.token_endpoint).map_err(failed)?;
        let begun = Pending::new(plan, client, redirect_uri, Instant::now() + wait);
        let begun = begun.map_err(|_| failed("the system's random number generator failed"))?;
        let (id, auth_url) = (begun.id.clone(), begun.auth_url.clone());
        let mut state = self.state.lock();
        state.end_pending();
        if state.pending.len() >= MCP_SIGN_INS_MAX {
            state.pending.remove(0);
        }
        state.pending.push(begun);
        Ok(SignInStarted { id, auth_url, expires_in: wait.as_secs() })
    }

    /// The client that signs in: the configured one, the one that was registered before, or a new one.
    async fn client(&self, plan: &Plan, redirect_uri: &str) -> Result<Client, SignInError> {
        let methods = plan.methods.as_deref();
        if let Some(id) = &self.settings.client_id {
            let wanted: &[Method] =
                if self.secret.is_some() { &[Method::Basic, Method::Post] } else { &[Method::None] };
            // A server that lists no public clients may take them all the same.
            let method = Method::choose(wanted, methods).or_else(|| self.secret.is_none().then_some(Method::None));
            let method = method.ok_or_else(|| failed("the authorization server does not accept a client secret"))?;
            return Ok(Client { id: id.clone(), secret: None, method, redirect_uri: None, expires_at: None });
        }
        let _alone = self.turn.lock().await;
        let stored = self.state.lock().stored();
        let is_known = |stored: &Arc<Stored>| {
            let is_same = stored.issuer == plan.issuer && stored.client.redirect_uri.as_deref() == Some(redirect_uri);
            let is_over = |end: u64| now_ms().saturating_add(REGISTRATION_MARGIN_MS) >= end;
            is_same && !stored.client.expires_at.is_some_and(is_over)
        };
        if let Some(known) = stored.as_ref().filter(|stored| is_known(stored)) {
            return Ok(known.client.clone());
        }
        let client = self.register(plan, redirect_uri).await?;
        // A sign-in that works is not lost to one that is only started; it has its own client.
        if stored.as_ref().is_none_or(|stored| stored.tokens.is_none()) {
            self.store(Some(self.record(plan, client.clone(), None))).await?;
        }
        Ok(client)
    }

    /// Registers the daemon (RFC 7591).
    async fn register(&self, plan: &Plan, redirect_uri: &str) -> Result<Client, SignInError> {
        let missing = "the authorization server does not register clients; set client_id";
        let endpoint = plan.registration_endpoint.as_ref().ok_or_else(|| failed(missing))?;
        let method = Method::choose(&[Method::None, Method::Post, Method::Basic], plan.methods.as_deref());
        let method = method.ok_or_else(|| {
            failed("the authorization server does not support public clients or client secrets; set client_id")
        })?;
        let is_near = Url::parse(redirect_uri).is_ok_and(|url| crate::kernel::host::is_loopback(&host(&url)));
        let mut body = json!({
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
            "application_type": if is_near { "native" } else { "web" },
        });
        if !plan.scopes.is_empty() {
            body["scope"] = plan.scopes.join(" ").into();
        }
        let answer = self.reach.json(endpoint, &body).await.map_err(failed)?;
        let with_host = |why: String| failed(format!("client registration failed: {} {why}", host(endpoint)));
        if !answer.is_success() {
            return Err(with_host(answer.failure()));
        }
        Client::registered(&answer.body, method, redirect_uri).map_err(with_host)
    }

    fn record(&self, plan: &Plan, client: Client, tokens: Option<Tokens>) -> Stored {
        Stored {
            server: canonical(&self.server),
            resource: plan.resource.clone(),
            issuer: plan.issuer.clone(),
            token_endpoint: plan.token_endpoint.clone(),
            revocation_endpoint: plan.revocation_endpoint.clone(),
            client,
            tokens,
        }
    }

    /// Takes the answer of the authorization server, once, and turns its code into tokens. They are not stored yet.
    ///
    /// # Errors
    /// The answer is of no sign-in that waits, is not of the authorization server, declines, or its code is not accepted.
    pub(crate) async fn exchange(&self, answer: SignInAnswer) -> Result<Granted, SignInError> {
        let pending = {
            let mut state = self.state.lock();
            let pending = state.take_pending(&answer.state).ok_or(SignInError::State)?;
            state.completing.push(pending.id.clone());
            pending
        };
        match self.exchange_pending(&pending, answer).await {
            Ok(stored) => Ok(Granted { id: pending.id, stored }),
            Err(error) => {
                self.note_failed(pending.id, &error);
                Err(error)
            }
        }
    }

    /// A sign-in that the user completed has failed. One that works is not troubled by it.
    pub(crate) fn note_failed(&self, id: String, error: &SignInError) {
        let (mut state, error) = (self.state.lock(), error.to_string());
        if !state.has_token(now_ms()) {
            state.problem = Some(Problem::Error(error.clone()));
        }
        state.note_end(id, Some(error));
    }

    async fn exchange_pending(&self, pending: &Pending, answer: SignInAnswer) -> Result<Stored, SignInError> {
        let plan = &pending.plan;
        match (&answer.iss, &plan.issuer) {
            (Some(named), Some(issuer)) if !is_same_issuer(named, issuer) => {
                return Err(failed("the response is from another authorization server"));
            }
            (None, Some(_)) if plan.names_itself => {
                return Err(failed("the response does not name its authorization server"));
            }
            _ => {}
        }
        if let Some(error) = answer.error {
            let word = if is_word(&error) { error } else { "an error".to_owned() };
            return Err(SignInError::Declined(format!("the sign-in was declined: {word}")));
        }
        let code = Secret::new(answer.code.unwrap_or_default());
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &pending.redirect_uri),
            ("code_verifier", pending.verifier.expose()),
            ("resource", &plan.resource),
        ];
        let answer = self.ask_for_tokens(&plan.token_endpoint, &pending.client, &fields).await.map_err(failed)?;
        let with_host = |why: String| failed(format!("{} {why}", host(&plan.token_endpoint)));
        if !answer.is_success() {
            return Err(with_host(answer.failure()));
        }
        let asked = plan.scopes.join(" ");
        let tokens = Tokens::read(&answer.body, (None, Some(&asked)), now_ms()).map_err(with_host)?;
        Ok(self.record(plan, pending.client.clone(), Some(tokens)))
    }

    /// Uses what was granted from now on.
    ///
    /// # Errors
    /// The vault cannot be used: nothing changed.
    pub(crate) async fn accept(&self, Granted { id, stored }: Granted) -> Result<(), SignInError> {
        let _alone = self.turn.lock().await;
        self.store(Some(stored)).await?;
        let mut state = self.state.lock();
        // Others that were started are not needed any more.
        state.pending.clear();
        state.note_end(id, None);
        (state.problem, state.paused_until) = (None, None);
        Ok(())
    }

    /// The next tokens for a refresh token.
    pub(super) async fn renew(&self, stored: &Stored, tokens: &Tokens, refresh: &Secret) -> Result<Tokens, Problem> {
        let fields =
            [("grant_type", "refresh_token"), ("refresh_token", refresh.expose()), ("resource", &stored.resource)];
        let endpoint = &stored.token_endpoint;
        let with_host = |why: String| format!("the token could not be refreshed: {} {why}", host(endpoint));
        let answer = self.ask_for_tokens(endpoint, &stored.client, &fields).await;
        let answer = answer.map_err(|why| Problem::Error(format!("the token could not be refreshed: {why}")))?;
        if !answer.is_success() {
            let is_ended = answer.error().is_some_and(|word| ENDED.contains(&word)) || answer.status == 401;
            let why = with_host(answer.failure());
            return Err(if is_ended { Problem::NeedsAuth(why) } else { Problem::Error(why) });
        }
        let before = (Some(refresh), tokens.scope.as_deref());
        Tokens::read(&answer.body, before, now_ms()).map_err(|why| Problem::Error(with_host(why)))
    }

    /// Ends the sign-in: at the authorization server, where it has a way to, and here. Gives whether there was one.
    ///
    /// # Errors
    /// The vault cannot be used: the sign-in is still there.
    pub(crate) async fn revoke(&self) -> Result<bool, SignInError> {
        let _alone = self.turn.lock().await;
        let stored = self.ending().await;
        let tokens = stored.as_ref().and_then(|stored| Some((stored, stored.tokens.as_ref()?)));
        if let Some((stored, tokens)) = tokens
            && let Some(endpoint) = &stored.revocation_endpoint
        {
            let (token, kind) = match &tokens.refresh {
                Some(refresh) => (refresh, "refresh_token"),
                None => (&tokens.access, "access_token"),
            };
            let fields = [("token", token.expose()), ("token_type_hint", kind)];
            let asked = self.ask_for_tokens(endpoint, &stored.client, &fields).await;
            if let Some(why) = asked.map_or_else(Some, |answer| (!answer.is_success()).then(|| answer.failure())) {
                tracing::warn!(host = host(endpoint), why, "the token of an MCP server could not be revoked there");
            }
        }
        let was_there = tokens.is_some();
        self.store(None).await?;
        let mut state = self.state.lock();
        state.pending.clear();
        (state.problem, state.paused_until) = (None, None);
        Ok(was_there)
    }

    /// Posts a form as the client.
    async fn ask_for_tokens(&self, endpoint: &Url, client: &Client, fields: &[(&str, &str)]) -> Result<Answer, String> {
        let secret = self.secret_for(client, endpoint)?;
        let mut fields = fields.to_vec();
        let basic = client.basic(secret.as_ref());
        if basic.is_none() {
            fields.push(("client_id", &client.id));
        }
        if let Some(secret) = secret.as_ref().filter(|_| client.method == Method::Post) {
            fields.push(("client_secret", secret.expose()));
        }
        self.reach.form(endpoint, &fields, basic).await
    }
}

/// What a user granted, before it is stored.
pub(crate) struct Granted {
    /// By which sign-in.
    pub(crate) id: String,
    stored: Stored,
}

impl Granted {
    /// Who granted what, for the audit log.
    pub(crate) fn details(&self) -> (Option<&str>, Option<&str>) {
        (self.stored.issuer.as_deref(), self.stored.tokens.as_ref().and_then(|tokens| tokens.scope.as_deref()))
    }
}
