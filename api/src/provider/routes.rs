//! Providers: what is known of them, their keys and endpoints, and whether they answer (spec 2, Providers).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::json::given;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::provider::accounts::{Detected, ProviderCredentials, ProviderDetail, ProviderTested, ProviderView};
use crate::provider::calls::{ProviderCalls, ProviderHealth, WithCalls};

/// What a request to a provider, or one that waits for the disk, costs the client's rate budget.
pub(crate) const COST: u32 = 10;
/// Bytes of the body that sets a key or a URL.
const BODY_BYTES_MAX: usize = 64 << 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/providers", "List providers and the status of their keys", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<List>(200, "the providers")]),
    Route::get("/api/providers/{name}", "Get a provider", |call| Box::pin(show(call))).replies(&[
        Reply::json::<WithCalls<ProviderDetail>>(200, "the provider"),
        Reply::error(404, "the provider does not exist"),
    ]),
    Route::post("/api/providers/{name}/key", "Set the key of a provider", |call| Box::pin(set_key(call)))
        .cost(COST)
        .body_max(BODY_BYTES_MAX)
        .body::<KeyBody>()
        .replies(&[
            Reply::json::<Done>(200, "stored; the next call uses it"),
            Reply::error(404, "the provider does not exist"),
        ]),
    Route::delete("/api/providers/{name}/key", "Delete the key of a provider", |call| Box::pin(remove_key(call)))
        .cost(COST)
        .replies(&[
            Reply::json::<Done>(200, "deleted"),
            Reply::error(404, "the provider does not exist or has no stored key"),
        ]),
    Route::post("/api/providers/{name}/test", "Test the key of a provider with a minimal model call", |call| {
        Box::pin(test(call))
    })
    .cost(COST)
    .query::<TestQuery>()
    .replies(&[
        Reply::json::<ProviderTested>(200, "the test succeeded"),
        Reply::error(404, "the provider does not exist"),
        Reply::error(409, "no key is set"),
        Reply::error(429, "the global budget is exhausted, or too many tests are running"),
        Reply::error(502, "the provider failed, refused the call or is unreachable"),
        Reply::error(504, "the request timed out"),
    ]),
    Route::put("/api/providers/{name}/url", "Set the base URL of a provider", |call| Box::pin(set_url(call)))
        .cost(COST)
        .body_max(BODY_BYTES_MAX)
        .body::<UrlBody>()
        .replies(&[
            Reply::json::<UrlSet>(200, "the base URL in effect"),
            Reply::error(
                404,
                "the provider does not \
            exist",
            ),
        ]),
    Route::get("/api/providers/{name}/detect", "Detect a local model runtime", |call| Box::pin(detect(call)))
        .cost(COST)
        .replies(&[Reply::json::<Detected>(200, "whether it is running, and its models")]),
];

/// All providers.
#[derive(Serialize, JsonSchema)]
struct List {
    providers: Vec<WithCalls<ProviderView>>,
    /// How many.
    total: usize,
}

/// A key.
#[derive(Deserialize, JsonSchema)]
struct KeyBody {
    /// The key: at most 8 KiB of printable ASCII without spaces. It cannot be read back.
    api_key: String,
}

/// Result.
#[derive(Serialize, JsonSchema)]
struct Done {
    /// `configured` or `removed`.
    status: &'static str,
    provider: String,
}

/// Options of the test.
#[derive(Deserialize, JsonSchema)]
struct TestQuery {
    /// Model. Default: the provider's default model.
    model: Option<String>,
}

/// Base URL of a provider.
#[derive(Deserialize, JsonSchema)]
struct UrlBody {
    /// Base URL of its API; null or empty restores the configured one.
    #[serde(default, deserialize_with = "given")]
    url: Option<Option<String>>,
}

/// Base URL in effect.
#[derive(Serialize, JsonSchema)]
struct UrlSet {
    /// `updated` or `removed`.
    status: &'static str,
    provider: String,
    /// Base URL in effect.
    base_url: String,
}

/// Who knows the providers.
pub(crate) fn accounts(call: &Call) -> Result<Arc<dyn ProviderCredentials>, Error> {
    call.api.services.get::<dyn ProviderCredentials>().ok_or_else(|| {
        Error::unavailable(
            "the providers are still loading; try \
        again in a moment",
            1,
        )
    })
}

/// Looks at the providers on a thread that may wait for the disk.
async fn look<T: Send + 'static>(
    call: &Call,
    look: impl FnOnce(&dyn ProviderCredentials) -> T + Send + 'static,
) -> Result<T, Error> {
    let accounts = accounts(call)?;
    let looked = spawn_blocking(move || look(&*accounts)).await;
    looked.map_err(|_| Error::internal("the providers could not be read"))
}

async fn list(call: Call) -> Result<Response, Error> {
    let providers = look(&call, |accounts| accounts.list()).await?;
    let providers: Vec<_> = providers.into_iter().map(|of| with_calls(&call, of, |of| &of.name)).collect();
    reply::ok(&List { total: providers.len(), providers })
}

async fn show(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let asked = name.clone();
    let found = look(&call, move |accounts| accounts.detail(&asked)).await?;
    let found = found.ok_or_else(|| Error::not_found(format!("provider not found: {name}")))?;
    reply::ok(&with_calls(&call, found, |of| &of.view.name))
}

/// A provider with how its calls go.
fn with_calls<T>(call: &Call, of: T, name: impl Fn(&T) -> &str) -> WithCalls<T> {
    let calls = call.api.services.get::<dyn ProviderCalls>().and_then(|calls| calls.health(name(&of)));
    WithCalls { of, calls: calls.map(ProviderHealth::from) }
}

/// What was known against a provider is of the past.
fn forget_error(call: &Call, name: &str) {
    if let Some(calls) = call.api.services.get::<dyn ProviderCalls>() {
        calls.forget_error(name);
    }
}

async fn set_key(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    // What serde says of a wrong value may repeat it, and here it may be the key.
    let KeyBody { api_key } = call.json().map_err(|error| match error.status().as_u16() {
        400 => Error::bad_field("api_key", "api_key: expected a JSON object whose field `api_key` is a string"),
        _ => error,
    })?;
    accounts(&call)?.set_key(name.clone(), api_key).await?;
    forget_error(&call, &name);
    reply::ok(&Done { status: "configured", provider: name })
}

async fn remove_key(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    if !accounts(&call)?.remove_key(name.clone()).await? {
        return Err(Error::not_found(format!("provider {name} has no stored key")));
    }
    reply::ok(&Done { status: "removed", provider: name })
}

async fn test(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let TestQuery { model } = call.query()?;
    let tested = accounts(&call)?.test(name.clone(), model).await?;
    forget_error(&call, &name);
    reply::ok(&tested)
}

async fn set_url(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let UrlBody { url } = call.json()?;
    let url = url.ok_or_else(|| Error::bad_field("url", "url is missing; null restores the configured one"))?;
    let url = url.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
    let status = if url.is_some() { "updated" } else { "removed" };
    let base_url = accounts(&call)?.set_url(name.clone(), url).await?;
    forget_error(&call, &name);
    reply::ok(&UrlSet { status, provider: name, base_url })
}

async fn detect(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    reply::ok(&accounts(&call)?.detect(name).await?)
}
