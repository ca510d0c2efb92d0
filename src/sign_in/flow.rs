//! The steps of a sign-in: to the provider, and back with a code; and what tokens of providers are good for.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentsvc_api::http::failures::ClientKey;
use agentsvc_api::sign_in::provider::{Answer, SignInError, Vouched};
use agentsvc_components::sign_in::Profile;
use agentsvc_systems::sign_in::limits;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use super::claims::{self, Expected};
use super::config::{ExternalAuth, ProviderSettings};
use super::jws::{Claims, TOKEN_BYTES_MAX};
use super::provider::{Known, Provider};
use super::state::{States, challenge};
use crate::kernel::config::Secret;
use crate::kernel::oauth::{Answer as Answered, Reach, basic, host, is_word};
use crate::kernel::settings::Settings;
use agentsvc_api::http::places::{Place, Places};

/// How long one waits for its turn to ask a provider.
const TURN_WAIT_MAX: Duration = Duration::from_secs(5);
/// What providers answer to a client that they do not know (RFC 6749, 5.2): the configuration is wrong.
const BAD_CLIENT: &str = "invalid_client";
/// Claims of a token that are shown.
const SHOWN: &[&str] = &["iss", "sub", "aud", "azp", "client_id", "scope", "exp", "iat", "nbf", "email", "username"];

/// Signs people in.
pub(super) struct Flow {
    pub(super) settings: Settings,
    pub(super) reach: Reach,
    states: States,
    known: Known,
    asking: Places<ClientKey>,
}

fn failed(provider: &ProviderSettings, why: &str) -> SignInError {
    tracing::warn!(provider = provider.id, why, "a sign-in failed");
    SignInError::Failed(format!("the identity provider {} cannot be used: {why}", provider.display_name))
}

/// What came back is at fault, not the provider.
fn refused(provider: &ProviderSettings, why: &str) -> SignInError {
    tracing::warn!(provider = provider.id, why, "a sign-in was refused");
    SignInError::Refused(format!("the identity provider {} did not sign you in: {why}", provider.display_name))
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or_default()
}

impl Flow {
    pub(super) fn new(settings: Settings, reach: Reach) -> Self {
        let (states, known) = (States::default(), Known::default());
        let asking = Places::new(limits::SIGN_INS_ASKING_MAX, limits::SIGN_INS_ASKING_OF_CLIENT_MAX);
        Self { settings, reach, states, known, asking }
    }

    async fn turn(&self, client: ClientKey) -> Result<Place<ClientKey>, SignInError> {
        self.asking.place_within(client, TURN_WAIT_MAX).await.ok_or(SignInError::Busy)
    }

    /// The provider of this id; without one, the default provider.
    fn chosen(&self, id: Option<&str>) -> Result<ProviderSettings, SignInError> {
        let all = self.settings.get::<ExternalAuth>().all();
        self.known.keep(&all);
        if all.is_empty() {
            return Err(SignInError::Off);
        }
        let found = all.into_iter().find(|it| id.is_none_or(|id| it.id == id));
        found.ok_or_else(|| SignInError::Unknown(id.unwrap_or_default().to_owned()))
    }

    async fn provider(&self, settings: &ProviderSettings) -> Result<Arc<Provider>, SignInError> {
        self.known.get(settings, &self.reach).await.map_err(|why| failed(settings, &why))
    }

    /// Where a person is sent.
    pub(super) async fn begin(
        &self,
        client: ClientKey,
        provider: Option<&str>,
        base: &str,
        binding: Option<&str>,
    ) -> Result<String, SignInError> {
        let _turn = self.turn(client).await?;
        let settings = self.chosen(provider)?;
        let redirect_uri = match &settings.redirect_url {
            Some(url) => url.to_string(),
            None => {
                let url = Url::parse(base).and_then(|base| base.join("/api/auth/callback"));
                url.map_err(|_| failed(&settings, "the request has no usable Host header"))?.into()
            }
        };
        let provider = self.provider(&settings).await?;
        let (pending, state) = self.states.begin(&settings.id, redirect_uri, binding, now())?;
        let verifier = self.states.derived(&pending, "verifier")?;
        let nonce = self.states.derived(&pending, "nonce")?;
        let mut url = provider.endpoints.authorization.clone();
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &pending.redirect_uri)
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge(&verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(url.into())
    }

    /// Who has come back.
    pub(super) async fn finish(&self, answer: Answer) -> Result<Vouched, SignInError> {
        let _turn = self.turn(answer.client).await?;
        let pending = self.states.read(&answer.state, answer.binding.as_deref(), answer.must_be_bound, now())?;
        let settings = self.chosen(Some(&pending.provider))?;
        let provider = self.provider(&settings).await?;
        let fault = |why: &str| failed(&settings, why);
        let endpoints = &provider.endpoints;
        let is_its_own = answer.iss.as_ref().map_or(!endpoints.names_itself, |iss| *iss == endpoints.issuer);
        if !is_its_own {
            return Err(refused(&settings, "the response is of another provider"));
        }
        if let Some(word) = answer.error {
            let word = if is_word(&word) { format!(": {word}") } else { String::new() };
            return Err(SignInError::Declined(format!("{} declined the sign-in{word}", settings.display_name)));
        }
        let verifier = self.states.derived(&pending, "verifier")?;
        let nonce = self.states.derived(&pending, "nonce")?;
        let code = answer.code.unwrap_or_default();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", &*pending.redirect_uri),
            ("code_verifier", &*verifier),
        ];
        let tokens = self.post(&provider, &endpoints.token, &fields).await.map_err(|why| fault(&why))?;
        if !tokens.is_success() {
            let why = format!("{} {}", host(&endpoints.token), tokens.failure());
            let is_bad_code = tokens.status == 400 && tokens.error() != Some(BAD_CLIENT);
            return Err(if is_bad_code { refused(&settings, &why) } else { fault(&why) });
        }
        // Only now: the states that strangers bring back with codes of their own making take no room.
        self.states.use_up(&pending, answer.client, now())?;
        let token = tokens.body["id_token"].as_str().ok_or_else(|| fault("it gave no identity token"))?;
        let read = provider.verify(token, &self.reach).await.map_err(|why| fault(&why))?;
        let mut claims = read.map_err(|it| fault(&format!("the identity token {}", it.words())))?;
        let expected =
            Expected { issuer: &endpoints.issuer, client_id: &settings.client_id, nonce: &nonce, now: now() };
        claims::check(&claims, &expected).map_err(|why| fault(&format!("the identity token {why}")))?;
        if claims::email(&claims).is_none() {
            self.ask_for_more(&provider, &tokens.body, &mut claims).await.map_err(|why| fault(&why))?;
        }
        self.vouched(&provider, &claims)
    }

    /// Posts a form as the client.
    async fn post(&self, provider: &Provider, url: &Url, fields: &[(&str, &str)]) -> Result<Answered, String> {
        let settings = &provider.settings;
        let secret =
            match settings.client_secret_env.as_deref() {
                Some(name) => {
                    let found = self.reach.web.variable(name).map(Secret::new).filter(Secret::is_set);
                    Some(found.ok_or_else(|| {
                        format!("the environment has no variable {name}, which client_secret_env names")
                    })?)
                }
                None => None,
            };
        let mut fields = fields.to_vec();
        let is_posted = provider.endpoints.posts_secret;
        if let Some(secret) = secret.as_ref().filter(|_| !is_posted) {
            return self.reach.form(url, &fields, basic(&settings.client_id, secret)).await;
        }
        fields.push(("client_id", &settings.client_id));
        fields.extend(secret.as_ref().map(|secret| ("client_secret", secret.expose())));
        self.reach.form(url, &fields, None).await
    }

    /// Adds what the userinfo endpoint says of the same person (OpenID Connect Core, 5.3).
    async fn ask_for_more(&self, provider: &Provider, tokens: &Value, claims: &mut Claims) -> Result<(), String> {
        let token = tokens["access_token"].as_str().filter(|token| token.len() <= TOKEN_BYTES_MAX);
        let (Some(url), Some(token)) = (&provider.endpoints.userinfo, token) else { return Ok(()) };
        let wrong = |_| "it gave an access token that no header can carry".to_owned();
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(wrong)?;
        value.set_sensitive(true);
        let answer = self.reach.with_token(url, value).await?;
        if !answer.is_success() {
            return Err(format!("{} {}", host(url), answer.failure()));
        }
        let more = answer.body.as_object().ok_or_else(|| format!("{} returned no profile", host(url)))?;
        if claims::subject(more) != claims::subject(claims) {
            return Err("the profile is of another person".to_owned());
        }
        // An address and whether it is verified come from one place.
        claims.remove("email_verified");
        claims.extend(more.clone());
        Ok(())
    }

    fn vouched(&self, provider: &Provider, claims: &Claims) -> Result<Vouched, SignInError> {
        let (settings, external) = (&provider.settings, self.settings.get::<ExternalAuth>());
        let email = claims::email(claims);
        if external.require_email_verified && !email.as_ref().is_some_and(|(_, is_verified)| *is_verified) {
            let text = format!("{} has no verified mail address of this account", settings.display_name);
            return Err(SignInError::Unverified(text));
        }
        let email = email.map(|(address, _)| address);
        let domain = email.as_deref().and_then(|address| address.rsplit_once('@')).map(|(_, domain)| domain);
        let may_join = domain.is_some_and(|domain| settings.allowed_domains.iter().any(|allowed| **allowed == *domain));
        let text = |name: &str| claims.get(name).and_then(Value::as_str).map(Into::into);
        let profile_email = email.as_deref().map(Into::into);
        Ok(Vouched {
            issuer: provider.endpoints.issuer.clone(),
            // A provider with domains of its own says whose the addresses of these are, and of no others.
            email: email.filter(|_| may_join || !settings.is_limited),
            may_join: may_join.then_some(external.default_role),
            profile: Profile {
                provider: settings.id.as_str().into(),
                subject: claims::subject(claims).unwrap_or_default().into(),
                email: profile_email,
                name: text("name"),
                picture: text("picture"),
            },
        })
    }

    /// What a token of a provider is good for.
    pub(super) async fn introspect(
        &self,
        client: ClientKey,
        token: &str,
        provider: Option<&str>,
    ) -> Result<Value, SignInError> {
        let _turn = self.turn(client).await?;
        let all = match provider {
            Some(id) => vec![self.chosen(Some(id))?],
            None => self.settings.get::<ExternalAuth>().all(),
        };
        // Each would get to know a token of another.
        if all.len() > 1 && token.matches('.').count() != 2 {
            return Ok(json!({ "active": false, "problem": "name the provider of this token in `provider`" }));
        }
        let mut found = json!({ "active": false });
        for settings in all {
            match self.introspect_at(&settings, token).await {
                Ok(Some(active)) => return Ok(active),
                Ok(None) => {}
                Err(error) if provider.is_some() => return Err(error),
                // Whether it is one of that provider is not known.
                Err(error) => found["problem"] = json!(error.to_string()),
            }
        }
        Ok(found)
    }

    async fn introspect_at(&self, settings: &ProviderSettings, token: &str) -> Result<Option<Value>, SignInError> {
        let provider = self.provider(settings).await?;
        let fault = |why: String| failed(settings, &why);
        let claims = if token.matches('.').count() == 2 {
            let read = provider.verify(token, &self.reach).await.map_err(fault)?;
            let is_meant = |claims: &Claims| {
                let wanted = [Some(&*settings.client_id), settings.audience.as_deref()];
                claims::audience(claims).into_iter().any(|audience| wanted.contains(&Some(audience)))
                    && claims::check_times(claims, &provider.endpoints.issuer, now()).is_ok()
            };
            read.ok().filter(is_meant)
        } else {
            match &provider.endpoints.introspection {
                Some(url) if settings.client_secret_env.is_some() => {
                    let answer = self.post(&provider, url, &[("token", token)]).await.map_err(fault)?;
                    let claims = answer.body.as_object().filter(|_| answer.is_success());
                    claims.filter(|claims| claims.get("active") == Some(&Value::Bool(true))).cloned()
                }
                _ => None,
            }
        };
        Ok(claims.map(|claims| {
            let mut shown = json!({ "active": true, "provider": settings.id });
            for name in SHOWN.iter().filter(|name| claims.contains_key(**name)) {
                shown[*name] = claims[*name].clone();
            }
            shown
        }))
    }
}
