//! Providers: what is known of them, their keys and endpoints, and whether they answer (spec 2, Providers).

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::provider::accounts::{Accounts, Detected, ProviderDetail, ProviderTested, ProviderView};

/// What a request to a provider, or one that waits for the disk, costs the client's rate budget.
pub(crate) const COST: u32 = 10;
/// Bytes of the body that sets a key or a URL.
const BODY_BYTES_MAX: usize = 64 << 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/providers", "Every provider and whether there is a key for it", |call| Box::pin(list(call)))
        .replies(&[Reply::json::<List>(200, "the providers")]),
    Route::get("/api/providers/{name}", "One provider", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<ProviderDetail>(200, "the provider"), Reply::error(404, "no such provider")]),
    Route::post("/api/providers/{name}/key", "Keep a key of the provider", |call| Box::pin(set_key(call)))
        .cost(COST)
        .body_max(BODY_BYTES_MAX)
        .body::<KeyBody>()
        .replies(&[
            Reply::json::<Done>(200, "it is used from the next call on"),
            Reply::error(404, "no such provider"),
        ]),
    Route::delete("/api/providers/{name}/key", "Forget the key of the provider", |call| Box::pin(remove_key(call)))
        .cost(COST)
        .replies(&[
            Reply::json::<Done>(200, "it is used no more"),
            Reply::error(404, "no such provider, or no key of it is kept"),
        ]),
    Route::post("/api/providers/{name}/test", "Ask the provider for next to nothing", |call| Box::pin(test(call)))
        .cost(COST)
        .query::<TestQuery>()
        .replies(&[
            Reply::json::<ProviderTested>(200, "it answered"),
            Reply::error(404, "no such provider"),
            Reply::error(409, "there is no key"),
            Reply::error(429, "everybody's budget has no room for it, or too many tests are under way"),
            Reply::error(502, "it failed, refused or cannot be reached"),
            Reply::error(504, "it did not answer in time"),
        ]),
    Route::put("/api/providers/{name}/url", "Set where the provider is asked", |call| Box::pin(set_url(call)))
        .cost(COST)
        .body_max(BODY_BYTES_MAX)
        .body::<UrlBody>()
        .replies(&[Reply::json::<UrlSet>(200, "where it is asked from now on"), Reply::error(404, "no such provider")]),
    Route::get("/api/providers/{name}/detect", "Look for a runtime on this machine", |call| Box::pin(detect(call)))
        .cost(COST)
        .replies(&[Reply::json::<Detected>(200, "whether it runs, and its models")]),
];

/// Every provider.
#[derive(Serialize, JsonSchema)]
struct List {
    providers: Vec<ProviderView>,
    /// How many.
    total: usize,
}

/// A key.
#[derive(Deserialize, JsonSchema)]
struct KeyBody {
    /// The key: at most 8 KiB of printable ASCII without spaces. It is never shown again.
    api_key: String,
}

/// What is done.
#[derive(Serialize, JsonSchema)]
struct Done {
    /// `configured` or `removed`.
    status: &'static str,
    provider: String,
}

/// What to test with.
#[derive(Deserialize, JsonSchema)]
struct TestQuery {
    /// The model to ask; the provider's default one when it is left out.
    model: Option<String>,
}

/// Where a provider is.
#[derive(Deserialize, JsonSchema)]
struct UrlBody {
    /// The root of its API; null or empty goes back to the configuration.
    url: Option<String>,
}

/// Where a provider is asked.
#[derive(Serialize, JsonSchema)]
struct UrlSet {
    /// `updated` or `removed`.
    status: &'static str,
    provider: String,
    /// The URL in force.
    base_url: String,
}

/// Who knows the providers.
pub(crate) fn accounts(call: &Call) -> Result<Arc<dyn Accounts>, Error> {
    call.api.services.get::<dyn Accounts>().ok_or_else(|| Error::unavailable("the providers are not ready yet", 1))
}

/// Looks at the providers on a thread that may wait for the disk.
async fn look<T: Send + 'static>(
    call: &Call,
    look: impl FnOnce(&dyn Accounts) -> T + Send + 'static,
) -> Result<T, Error> {
    let accounts = accounts(call)?;
    let looked = tokio::task::spawn_blocking(move || look(&*accounts)).await;
    looked.map_err(|_| Error::internal("the providers could not be looked at"))
}

async fn list(call: Call) -> Result<Response, Error> {
    let providers = look(&call, |accounts| accounts.list()).await?;
    reply::ok(&List { total: providers.len(), providers })
}

async fn show(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let asked = name.clone();
    let found = look(&call, move |accounts| accounts.detail(&asked)).await?;
    reply::ok(&found.ok_or_else(|| Error::not_found(format!("provider not found: {name}")))?)
}

async fn set_key(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    // What serde says of a wrong value may repeat it, and here it may be the key.
    let KeyBody { api_key } = call.json().map_err(|error| match error.status().as_u16() {
        400 => Error::bad_field("api_key", "api_key: a JSON object with the key as text is expected"),
        _ => error,
    })?;
    accounts(&call)?.set_key(name.clone(), api_key).await?;
    reply::ok(&Done { status: "configured", provider: name })
}

async fn remove_key(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    if !accounts(&call)?.remove_key(name.clone()).await? {
        return Err(Error::not_found(format!("no key of provider {name} is kept")));
    }
    reply::ok(&Done { status: "removed", provider: name })
}

async fn test(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let TestQuery { model } = call.query()?;
    reply::ok(&accounts(&call)?.test(name, model).await?)
}

async fn set_url(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let UrlBody { url } = call.json()?;
    let url = url.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
    let status = if url.is_some() { "updated" } else { "removed" };
    let base_url = accounts(&call)?.set_url(name.clone(), url).await?;
    reply::ok(&UrlSet { status, provider: name, base_url })
}

async fn detect(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    reply::ok(&accounts(&call)?.detect(name).await?)
}
