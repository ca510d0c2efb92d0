//! Single sign-on at identity providers (OpenID Connect), and sign-in with a password.
//!
//! ```text
//! login --> discovery --> the provider: state (signed), nonce, PKCE challenge --> the person agrees
//! callback: state, in its browser --> code and verifier for tokens --> the state is used up --> identity token: signature, issuer, audience, nonce,
//! times --> verified mail address, domain --> the user (`people`) --> a session
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`config`] | `[external_auth]` |
//! | [`provider`] | endpoints and keys of providers |
//! | [`jws`] | signed tokens and keys |
//! | [`claims`] | what an identity token must say |
//! | [`state`] | sign-ins that are under way |
//! | [`flow`] | the steps of a sign-in |
//!
//! Requests go through the egress client: public hosts, and those of `[web.fetch] ssrf_allowed_hosts`; https beyond this machine, no
//! redirects, bounded answers and times.

mod claims;
pub mod config;
mod flow;
mod jws;
mod provider;
mod state;

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::failures::ClientKey;
use agentsvc_api::sign_in::provider::{Answer, Policy, Provider, SignInError, SignIns, Vouched};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Semaphore;

use self::config::ExternalAuth;
use self::flow::Flow;
use crate::kernel::domain::Domain;
use crate::kernel::oauth::Reach;
use crate::people::config::ConfiguredUsers;

/// Bytes of one answer of an identity provider.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Passwords that are checked at once: each takes memory and a core.
const PASSWORDS_MAX: usize = 2;
/// How long one may wait until it is checked.
const PASSWORD_WAIT_MAX: Duration = Duration::from_secs(5);

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "sign_in",
    uses: &["people"],
    open: |opening| {
        let (web, own_port) = (opening.web.clone(), opening.api.settings.listen.port());
        let reach = Reach { web, named: Vec::new(), own_port, answer_bytes_max: ANSWER_BYTES_MAX };
        let flow = Flow::new(opening.settings.clone(), reach);
        opening.provide::<dyn SignIns>(Arc::new(SingleSignOn {
            flow,
            passwords: Arc::new(Semaphore::new(PASSWORDS_MAX)),
        }));
        Ok(())
    },
    ..Domain::EMPTY
};

struct SingleSignOn {
    flow: Flow,
    passwords: Arc<Semaphore>,
}

impl SignIns for SingleSignOn {
    fn policy(&self) -> Policy {
        let external = self.flow.settings.get::<ExternalAuth>();
        let shown = |it: config::ProviderSettings| Provider { id: it.id, display_name: it.display_name };
        Policy {
            providers: external.all().into_iter().map(shown).collect(),
            is_enabled: external.enabled,
            has_passwords: self.flow.settings.get::<ConfiguredUsers>().have_passwords(),
            session_secs: external.session_ttl_secs,
        }
    }

    fn begin(
        self: Arc<Self>,
        client: ClientKey,
        provider: Option<String>,
        base: String,
        binding: Option<String>,
    ) -> BoxFuture<'static, Result<String, SignInError>> {
        Box::pin(async move { self.flow.begin(client, provider.as_deref(), &base, binding.as_deref()).await })
    }

    fn finish(self: Arc<Self>, answer: Answer) -> BoxFuture<'static, Result<Vouched, SignInError>> {
        Box::pin(async move { self.flow.finish(answer).await })
    }

    fn introspect(
        self: Arc<Self>,
        client: ClientKey,
        token: String,
        provider: Option<String>,
    ) -> BoxFuture<'static, Result<Value, SignInError>> {
        Box::pin(async move { self.flow.introspect(client, &token, provider.as_deref()).await })
    }

    fn check_password(
        self: Arc<Self>,
        name: String,
        password: String,
    ) -> BoxFuture<'static, Result<bool, SignInError>> {
        Box::pin(async move {
            let turn = tokio::time::timeout(PASSWORD_WAIT_MAX, Arc::clone(&self.passwords).acquire_owned()).await;
            let Ok(Ok(turn)) = turn else { return Err(SignInError::Busy) };
            let users = self.flow.settings.get::<ConfiguredUsers>();
            let checked = tokio::task::spawn_blocking(move || {
                // The computation goes on when the client is gone, and so does its turn.
                let _turn = turn;
                users.is_password(&name, &password)
            });
            let checked = checked.await;
            checked.map_err(|_| SignInError::Busy)
        })
    }
}
