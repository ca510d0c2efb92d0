//! What listens and what is asked: the API's port, the model's provider.

use std::net::TcpListener;
use std::time::Duration;

use reqwest::{Response, StatusCode, Url, header};
use tokio::time::timeout;

use super::{Finding, Patient, StoreOwner};
use crate::kernel::cli::Error;
use crate::kernel::cli::client::Client;
use crate::kernel::cli::context::runtime;
use crate::kernel::cli::output::field;
use crate::kernel::percent::encoded;
use crate::model::http::{Clients, Timeouts};
use crate::model::provider::{DriverKind, Target};

/// How long an answer may take.
const WAIT: Duration = Duration::from_secs(10);
/// What mends a missing key.
const SET_KEY: &str =
    "set the key with `agentsvc providers set-key` or in the daemon's environment, or correct [default_model]";
/// What mends a provider that does not answer.
const UNREACHABLE: &str = "check the network, HTTPS_PROXY and the provider's base_url";
/// How far our clock may be from the provider's: signed requests and tokens expire by it.
const SKEW_SECS_MAX: i64 = 60;

/// A daemon answers where it says, or the port is free for one.
pub(super) fn listen(patient: &Patient) -> Finding {
    let listen = patient.config().api_listen;
    match &patient.keeper {
        StoreOwner::Daemon(address) => {
            let url =
                address.as_ref().map_or_else(|| crate::kernel::home::url_of(listen), crate::kernel::home::Address::url);
            match answers(&format!("{url}/api/health")) {
                Ok(status) if status.is_success() => Finding::pass(format!("the daemon responds at {url}")),
                Ok(status) => Finding::warn(format!("{url}/api/health returned {status}"), "check the daemon's log"),
                Err(why) => Finding::fail(
                    format!("a daemon is using the home, but does not respond at {url}: {why}"),
                    "wait until it has started, check its log, or stop its process",
                ),
            }
        }
        _ => match TcpListener::bind(listen) {
            Ok(_) => Finding::pass(format!("{listen} is free")),
            Err(error) => Finding::fail(
                format!("cannot listen on {listen}: {error}"),
                "stop the program that listens there (`ss -ltnp` shows it), or change api_listen",
            ),
        },
    }
}

/// Where the default model is asked, or why it cannot be.
fn target(patient: &Patient) -> Result<Target, String> {
    let config = patient.config();
    let (providers, _) = config.models().map_err(|error| error.to_string())?;
    let providers = providers.with_overrides(crate::provider::kept(&patient.home, config.data_dir.as_deref()));
    providers.target(&config.default_of(&providers)).map_err(|error| error.message)
}

/// The provider of the default model as the running daemon has it, whose environment may hold keys that this one does not.
struct Known {
    provider: String,
    model: String,
    base_url: String,
    /// `configured`, `no_key_needed` or `not_configured`.
    auth: String,
}

/// What the running daemon says of its default model; `None` without a daemon, or if it does not say.
fn known(patient: &Patient) -> Option<Known> {
    let StoreOwner::Daemon(address) = &patient.keeper else { return None };
    let config = patient.config();
    let url = address
        .as_ref()
        .map_or_else(|| crate::kernel::home::url_of(config.api_listen), crate::kernel::home::Address::url);
    let key = config.api_key.is_set().then(|| config.api_key.expose().to_owned());
    let client = Client::new(&url, key).ok()?;
    let asked = async {
        let status = client.get("/api/status", &[]).await?;
        let (provider, model) = (field(&status, "/default_provider"), field(&status, "/default_model"));
        let detail = client.get(&format!("/api/providers/{}", encoded(&provider)), &[]).await?;
        let (base_url, auth) = (field(&detail, "/base_url"), field(&detail, "/auth_status"));
        Ok::<_, Error>(Known { provider, model, base_url, auth })
    };
    runtime().ok()?.block_on(async { timeout(WAIT, asked).await.ok()?.ok() })
}

/// Is it the offline model, with which no provider is asked?
fn is_builtin(provider: &str) -> bool {
    provider == crate::model::provider::BUILTIN
}

/// The provider of the default model has its key.
pub(super) fn provider_key(patient: &Patient) -> Finding {
    if let Some(Known { provider, model, auth, .. }) = known(patient).filter(|known| !is_builtin(&known.provider)) {
        return match auth.as_str() {
            "configured" => Finding::pass(format!("{model} of {provider}: the daemon has the key")),
            "no_key_needed" => Finding::pass(format!("{model} of {provider}: no key is required")),
            _ => Finding::fail(format!("the daemon has no key for provider {provider}"), SET_KEY),
        };
    }
    match target(patient) {
        Ok(target) if target.driver == DriverKind::Builtin => Finding::warn(
            "no provider has a key; agents without their own model use the built-in offline model",
            "set a key with `agentsvc providers set-key`, set OPENAI_API_KEY in the daemon's environment, or set \
             [default_model]",
        ),
        Ok(Target { provider, model, key, .. }) => {
            let key = if key.is_some() { "the key is set" } else { "no key is required" };
            Finding::pass(format!("{model} of {provider}: {key}"))
        }
        Err(message) => Finding::fail(message, SET_KEY),
    }
}

/// The provider of the default model answers.
pub(super) fn model(patient: &Patient) -> Finding {
    let target = match (target(patient), known(patient).filter(|known| !is_builtin(&known.provider))) {
        (Ok(target), None) => target,
        // The same key, or none.
        (Ok(target), Some(known)) if *target.provider == *known.provider => target,
        (_, Some(known)) => return reached(patient, &known),
        (Err(_), None) => return Finding::warn("not checked: no endpoint is known", "see the check provider_key"),
    };
    if target.driver == DriverKind::Builtin {
        return Finding::pass("the built-in model does not use the network");
    }
    if patient.options.offline {
        return Finding::warn("not checked: offline", "run without --offline");
    }
    let provider = &target.provider;
    match models(&target) {
        Ok((status, skew)) => {
            if let Some(skew) = skew.filter(|skew| skew.abs() > SKEW_SECS_MAX) {
                let message = format!("provider {provider} returned {status}; its clock differs by {skew} s");
                return Finding::warn(message, "set the clock and enable time synchronization");
            }
            match status.as_u16() {
                401 | 403 => {
                    Finding::fail(format!("provider {provider} rejected the key ({status})"), "set a valid key")
                }
                500.. => Finding::warn(
                    format!("provider {provider} answers {status}"),
                    "try again later; check the provider's status page",
                ),
                // What is not known there is answered too.
                _ => Finding::pass(format!("provider {provider} answers ({status})")),
            }
        }
        Err(why) => Finding::fail(format!("provider {provider} is unreachable: {why}"), UNREACHABLE),
    }
}

/// The provider answers, asked without the key, which the daemon alone has.
fn reached(patient: &Patient, known: &Known) -> Finding {
    let Known { provider, base_url, auth, .. } = known;
    if auth == "not_configured" || base_url.is_empty() {
        return Finding::warn("not checked: no endpoint is known", "see the check provider_key");
    }
    if patient.options.offline {
        return Finding::warn("not checked: offline", "run without --offline");
    }
    match answers(base_url) {
        Ok(_) => Finding::pass(format!(
            "provider {provider} answers at {base_url}; `agentsvc providers test {provider}` checks the daemon's key"
        )),
        Err(why) => Finding::fail(format!("provider {provider} is unreachable: {why}"), UNREACHABLE),
    }
}

/// Asks a provider for its list of models, which costs nothing; gives the status and how far its clock is ahead.
fn models(target: &Target) -> Result<(StatusCode, Option<i64>), String> {
    let mut url = Url::parse(&target.base_url).map_err(|error| error.to_string())?;
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().push("models");
    }
    let response = get(url.as_str(), |request| match &target.key {
        // Other protocols carry their key elsewhere, and answer without.
        Some(key) if target.driver == DriverKind::OpenAi => request.bearer_auth(key.expose()),
        Some(key) if target.driver == DriverKind::Anthropic => {
            request.header("x-api-key", key.expose()).header("anthropic-version", "2023-06-01")
        }
        Some(key) if target.driver == DriverKind::Gemini => request.header("x-goog-api-key", key.expose()),
        _ => request,
    })?;
    let has_key = matches!(target.driver, DriverKind::OpenAi | DriverKind::Anthropic | DriverKind::Gemini);
    // Asked without its key, a refusal is an answer too.
    let status = if !has_key && response.status().is_client_error() { StatusCode::OK } else { response.status() };
    Ok((status, skew(&response)))
}

fn skew(response: &Response) -> Option<i64> {
    let date = response.headers().get(header::DATE)?.to_str().ok()?;
    let theirs = chrono::DateTime::parse_from_rfc2822(date).ok()?;
    Some(theirs.timestamp() - agentsvc_api::http::timestamp::now().timestamp())
}

fn answers(url: &str) -> Result<StatusCode, String> {
    get(url, |request| request).map(|response| response.status())
}

/// One GET, on a runtime of its own.
fn get(url: &str, with: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder) -> Result<Response, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let clients = Clients::new(Timeouts::default());
    let client = clients.get(&url).map_err(|error| error.message)?;
    runtime.block_on(async {
        match timeout(WAIT, with(client.get(url)).send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(innermost(&error)),
            Err(_) => Err(format!("no response within {} s", WAIT.as_secs())),
        }
    })
}

/// The innermost cause; the outer ones repeat the URL.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
