//! Sign-ins that wait for the user (RFC 6749, 4.1; RFC 7636): each has a state that only its start gave out, and is used once.

use agentsvc_api::mcp::servers::sign_in::EndedSignIn;
use agentsvc_systems::kernel::record::hex;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::discover::Plan;
use super::sign_in::State;
use super::stored::Client;
use crate::kernel::config::Secret;

/// Bytes of the hash of a state by which its sign-in is known.
const ID_BYTES: usize = 8;

/// A sign-in that waits for the user. In memory only: after a restart it is started again.
pub(super) struct Pending {
    /// Tells it apart where its state, which is a secret, is not shown.
    pub(super) id: String,
    pub(super) state: String,
    pub(super) verifier: Secret,
    pub(super) plan: Plan,
    pub(super) client: Client,
    pub(super) redirect_uri: String,
    /// Where the user signs in.
    pub(super) auth_url: String,
    pub(super) until: Instant,
}

impl Pending {
    /// A sign-in with a state and a verifier of its own.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(super) fn new(
        plan: Plan,
        client: Client,
        redirect_uri: String,
        until: Instant,
    ) -> Result<Self, getrandom::Error> {
        let (state, verifier) = (random()?.to_string(), random()?);
        let id = hex(&Sha256::digest(&state)[..ID_BYTES]);
        let auth_url = auth_url(&plan, &client.id, &redirect_uri, &state, &challenge(&verifier));
        Ok(Self { id, state, verifier: Secret::new(verifier.as_str()), plan, client, redirect_uri, auth_url, until })
    }
}

impl State {
    /// Takes the sign-in of this state, which must still wait.
    pub(super) fn take_pending(&mut self, state: &str) -> Option<Pending> {
        self.end_pending();
        let is_it = |pending: &Pending| bool::from(pending.state.as_bytes().ct_eq(state.as_bytes()));
        self.pending.iter().position(is_it).map(|at| self.pending.remove(at))
    }

    /// A sign-in that the user completed has ended.
    pub(super) fn note_end(&mut self, id: String, error: Option<String>) {
        self.completing.retain(|other| *other != id);
        self.last = Some(EndedSignIn { id, error });
    }

    /// Lets go of sign-ins whose time is over.
    pub(super) fn end_pending(&mut self) {
        let now = Instant::now();
        self.pending.retain(|pending| now < pending.until);
    }
}

/// 256 random bits as a text.
fn random() -> Result<Zeroizing<String>, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *bytes)?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes)))
}

/// The challenge of a verifier (RFC 7636, 4.2).
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

fn auth_url(plan: &Plan, client: &str, redirect_uri: &str, state: &str, challenge: &str) -> String {
    let mut url: Url = plan.authorization_endpoint.clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", client)
        .append_pair("redirect_uri", redirect_uri)
        .append_pair("state", state)
        .append_pair("code_challenge", challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &plan.resource);
    if !plan.scopes.is_empty() {
        url.query_pairs_mut().append_pair("scope", &plan.scopes.join(" "));
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::stored::Method;
    use super::*;

    fn pending(until: Instant) -> Pending {
        let url = |text: &str| Url::parse(text).unwrap();
        let plan = Plan {
            resource: "https://h/mcp".to_owned(),
            issuer: None,
            authorization_endpoint: url("https://as.example/authorize?tenant=1"),
            token_endpoint: url("https://as.example/token"),
            registration_endpoint: None,
            revocation_endpoint: None,
            scopes: vec!["a".to_owned(), "b&c".to_owned()],
            methods: None,
            names_itself: false,
        };
        let client =
            Client { id: "c d".to_owned(), secret: None, method: Method::None, redirect_uri: None, expires_at: None };
        Pending::new(plan, client, "http://127.0.0.1:1/cb".to_owned(), until).unwrap()
    }

    #[test]
    fn the_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn the_user_is_sent_with_all_that_is_needed() {
        let begun = pending(Instant::now());
        assert_eq!((begun.state.len(), begun.verifier.expose().len()), (43, 43));
        let url = Url::parse(&begun.auth_url).unwrap();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap();
        assert_eq!((value("tenant"), value("client_id"), value("scope")), ("1".into(), "c d".into(), "a b&c".into()));
        assert_eq!(
            (value("state"), value("code_challenge")),
            (begun.state.clone(), challenge(begun.verifier.expose()))
        );
        assert_eq!((value("resource"), value("code_challenge_method")), ("https://h/mcp".into(), "S256".into()));
        assert!(!begun.auth_url.contains(begun.verifier.expose()));
        assert_ne!(begun.state, pending(Instant::now()).state);
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_is_good_once_and_for_its_time() {
        let mut state = State::default();
        let until = Instant::now() + Duration::from_secs(10);
        let names: Vec<String> = (0..3)
            .map(|_| {
                let begun = pending(until);
                let name = begun.state.clone();
                state.pending.push(begun);
                name
            })
            .collect();
        assert!(state.take_pending("").is_none() && state.take_pending(&names[0][..42]).is_none());
        assert!(state.take_pending(&names[1]).is_some() && state.take_pending(&names[1]).is_none());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(state.take_pending(&names[0]).is_none() && state.pending.is_empty());
    }
}
