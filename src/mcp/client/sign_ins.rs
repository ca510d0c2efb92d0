//! The sign-ins at the servers that run, as the API starts and ends them.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::sign_in::{ServerSignIns, SignInAnswer, SignInError, SignInStarted, SignInStatus};
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::mcp::{McpOauth, McpTransport, audit_kinds};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::definition::{Definition, Source};
use super::registry::Registry;
use super::server::Server;
use crate::kernel::config::Secret;
use crate::kernel::percent::encoded;
use crate::mcp::oauth::{Granted, Of, SignIn};

/// In place of the URL of a server that no request goes to.
const NOWHERE: &str = "https://invalid";

/// The state of a server that has no sign-in.
pub(super) fn not_required() -> SignInStatus {
    SignInStatus { state: "not_required", ..SignInStatus::default() }
}

impl Definition {
    /// Takes the secret of the client that its settings name.
    pub(super) fn take_client_secret(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        let Some(name) = self.oauth.as_ref().and_then(|oauth| oauth.client_secret_env.as_deref()) else { return };
        self.client_secret = variable(name).map(Secret::new);
        if self.client_secret.is_none() {
            self.fault = Some(format!("the environment has no variable {name}, which client_secret_env names"));
        }
    }

    /// Where it may ask for a sign-in. `None`: it is no server over HTTP, or has a header that stands for one.
    fn signed_in_at(&self) -> Option<&str> {
        let is_signed = self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        match &self.transport {
            Some(McpTransport::Http { url } | McpTransport::Sse { url }) if !is_signed => Some(url),
            _ => None,
        }
    }
}

impl Registry {
    /// The sign-in at a server that may ask for one.
    pub(super) fn sign_in(&self, definition: &Definition) -> Option<Arc<SignIn>> {
        SignIn::new(Of {
            name: definition.name.clone(),
            url: definition.signed_in_at()?.to_owned(),
            trusted: definition.trusted,
            configured: definition.source == Source::Config,
            settings: definition.oauth.clone().unwrap_or_default(),
            secret: definition.client_secret.clone(),
            own_port: self.api.settings.listen.port(),
            web: self.means.web.clone(),
            vault: self.vault.clone(),
        })
    }

    /// What is left of a sign-in at a server that has none any more, because it is reached in another way now or is removed. It
    /// can be ended, and nothing else.
    fn left(&self, name: &str) -> Option<Arc<SignIn>> {
        SignIn::new(Of {
            name: name.into(),
            url: NOWHERE.to_owned(),
            trusted: false,
            configured: false,
            settings: McpOauth::default(),
            secret: None,
            own_port: self.api.settings.listen.port(),
            web: self.means.web.clone(),
            vault: self.vault.clone(),
        })
    }

    /// Ends a sign-in. Gives whether there were tokens; `None` when there was nothing to end.
    async fn end_sign_in(&self, name: &str, sign_in: &SignIn) -> Result<Option<bool>, SignInError> {
        if !sign_in.has_something().await {
            return Ok(None);
        }
        self.note_sign_in(audit_kinds::MCP_SERVER_SIGNED_OUT, json!({ "name": name })).await?;
        sign_in.revoke().await.map(Some)
    }

    /// Uses what a user granted, unless the server was changed or removed meanwhile.
    async fn take_granted(&self, server: &Server, sign_in: &Arc<SignIn>, granted: Granted) -> Result<(), SignInError> {
        let is_current = || self.signing(server.name()).is_ok_and(|(_, now)| Arc::ptr_eq(&now, sign_in));
        if !is_current() {
            return Err(SignInError::State);
        }
        let (issuer, scope) = granted.details();
        let details = json!({ "name": server.name(), "issuer": issuer, "scope": scope });
        self.note_sign_in(audit_kinds::MCP_SERVER_SIGNED_IN, details).await?;
        sign_in.accept(granted).await?;
        // A removal that came between has seen no tokens.
        if !is_current() {
            sign_in.revoke().await?;
            return Err(SignInError::State);
        }
        server.reconnect();
        Ok(())
    }

    fn signing(&self, name: &str) -> Result<(Arc<Server>, Arc<SignIn>), SignInError> {
        let server = self.server(name).ok_or_else(|| SignInError::Unknown(name.to_owned()))?;
        let none = "only servers over http or sse without an Authorization header support sign-in";
        let sign_in = server.sign_in().cloned().ok_or_else(|| SignInError::Unsupported(none.to_owned()))?;
        Ok((server, sign_in))
    }

    async fn note_sign_in(&self, kind: AuditKind, details: Value) -> Result<(), SignInError> {
        let entry = NoteAction { kind, agent: None, details };
        self.api.bridge.ask(entry).await.map_err(SignInError::World)
    }
}

impl ServerSignIns for Registry {
    fn status(self: Arc<Self>, server: String) -> BoxFuture<'static, Option<SignInStatus>> {
        Box::pin(async move {
            let server = self.server(&server)?;
            match server.sign_in() {
                Some(sign_in) => Some(sign_in.status().await),
                None => Some(not_required()),
            }
        })
    }

    fn start(
        self: Arc<Self>,
        server: String,
        base: String,
        wait_secs: u64,
    ) -> BoxFuture<'static, Result<SignInStarted, SignInError>> {
        Box::pin(async move {
            let (server, sign_in) = self.signing(&server)?;
            let redirect_uri = format!("{base}/api/mcp/servers/{}/auth/callback", encoded(server.name()));
            sign_in.start(redirect_uri, Duration::from_secs(wait_secs)).await
        })
    }

    fn finish(self: Arc<Self>, server: String, answer: SignInAnswer) -> BoxFuture<'static, Result<(), SignInError>> {
        Box::pin(async move {
            // The address of the callback is public: it says nothing of which servers there are.
            let (server, sign_in) = self.signing(&server).map_err(|_| SignInError::State)?;
            let granted = sign_in.exchange(answer).await?;
            let id = granted.id.clone();
            let taken = self.take_granted(&server, &sign_in, granted).await;
            if let Err(error) = &taken {
                sign_in.note_failed(id, error);
            }
            taken
        })
    }

    fn revoke(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<bool, SignInError>> {
        Box::pin(async move {
            let server = self.server(&server).ok_or(SignInError::Unknown(server))?;
            let Some(sign_in) = server.sign_in().cloned().or_else(|| self.left(server.name())) else {
                return Ok(false);
            };
            let ended = self.end_sign_in(server.name(), &sign_in).await?;
            if ended.is_some() && server.sign_in().is_some() {
                server.reconnect();
            }
            Ok(ended == Some(true))
        })
    }

    fn forget(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<(), SignInError>> {
        Box::pin(async move {
            let Some(left) = self.left(&server) else { return Ok(()) };
            self.end_sign_in(&server, &left).await.map(drop)
        })
    }
}
