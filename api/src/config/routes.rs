//! The configuration (spec 2, Configuration).

use crate::http::blocking::spawn_blocking;
use crate::http::error_codes;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::config::configuration::{
    self, ConfigError, ConfigInit, ConfigInitialized, ConfigReloaded, ConfigSet, Configuration, ProviderKeys,
};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::provider::accounts::ProviderError;

/// What a change of the file costs the client's rate budget: it waits for the disk and the world.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/config", "Get the configuration", |call| Box::pin(read(call))).replies(&[Reply::plain(
        200,
        "the configuration with secrets masked",
        "application/json",
    )]),
    Route::get("/api/config/schema", "the JSON Schema", |call| Box::pin(schema(call))).replies(&[Reply::plain(
        200,
        "a JSON Schema (draft 2020-12)",
        "application/json",
    )]),
    Route::get("/api/registry/schema", "Get the JSON Schema of the configuration", |call| Box::pin(schema(call)))
        .replies(&[Reply::plain(200, "a JSON Schema (draft 2020-12)", "application/json")]),
    Route::get("/api/config/export", "Export the configuration in effect", |call| Box::pin(export(call)))
        .large()
        .query::<ExportQuery>()
        .replies(&[Reply::plain(200, "the configuration with secrets masked; JSON or TOML", "application/json")]),
    Route::post("/api/config/set", "Set a configuration key", |call| Box::pin(set(call)))
        .cost(COST)
        .body::<SetBody>()
        .replies(&[
            Reply::json::<ConfigSet>(200, "stored in config.toml"),
            Reply::error(403, "the key is unknown, is a table, or can only be changed in config.toml"),
            Reply::error(409, "config.toml has other errors; correct them first"),
        ]),
    Route::post("/api/config/reload", "Reload the configuration", |call| Box::pin(reload(call)))
        .cost(COST)
        .without_room()
        .replies(&[Reply::json::<ConfigReloaded>(200, "the new configuration is in effect")]),
    Route::post("/api/init", "Initialize the configuration", |call| Box::pin(init(call)))
        .cost(COST)
        .body::<InitBody>()
        .replies(&[
            Reply::json::<ConfigInitialized>(200, "the result"),
            Reply::error(409, "config.toml was edited and `force` is not set"),
            Reply::error(500, "the vault cannot store the key; `initialized` says what was written"),
        ]),
];

async fn read(call: Call) -> Result<Response, Error> {
    reply::ok(
        &configuration::ask(call.api.services.get::<dyn Configuration>(), |configuration| Ok(configuration.shown()))
            .await?,
    )
}

async fn schema(call: Call) -> Result<Response, Error> {
    reply::ok(&call.api.services.get::<dyn Configuration>().ok_or_else(configuration::not_ready)?.schema())
}

/// Format of an export.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ExportQuery {
    /// `json` (the default) or `toml`; `Accept: application/toml` is the same as `toml`.
    format: Option<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Toml,
}

async fn export(call: Call) -> Result<Response, Error> {
    let asked: ExportQuery = call.query()?;
    let accepts = call.headers().get(ACCEPT).is_some_and(|value| value.as_bytes().starts_with(b"application/toml"));
    let configuration = call.api.services.get::<dyn Configuration>();
    if asked.format == Some(Format::Json) || (asked.format.is_none() && !accepts) {
        return reply::ok(&configuration::ask(configuration, |configuration| Ok(configuration.in_force())).await?);
    }
    let text = configuration::ask(configuration, Configuration::in_force_toml).await?;
    Ok(reply::bytes(StatusCode::OK, HeaderValue::from_static("application/toml; charset=utf-8"), text))
}

/// A key and its new value.
#[derive(Deserialize, JsonSchema)]
struct SetBody {
    /// Key path, such as `default_model.model`; at most three segments.
    path: String,
    /// A string, a number, a boolean or a list of strings; null removes the key from the file.
    #[serde(default, deserialize_with = "given")]
    value: Option<Value>,
}

/// A key that is there, null or not.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

async fn set(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    let SetBody { path, value } = call.json()?;
    let value = value.ok_or_else(|| Error::bad_field("value", "value: missing"))?;
    let done =
        configuration::ask(call.api.services.get::<dyn Configuration>(), move |known| known.set(actor, &path, &value));
    reply::ok(&done.await?)
}

async fn reload(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    reply::ok(
        &configuration::ask(call.api.services.get::<dyn Configuration>(), move |known| known.reload(actor)).await?,
    )
}

/// The first configuration. Omitted keys keep their defaults.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct InitBody {
    /// Default provider.
    provider: Option<String>,
    /// Default model. Default: the provider's default model.
    model: Option<String>,
    /// Environment variable of the provider's key.
    api_key_env: Option<String>,
    /// The provider's key, stored in the vault. Requires `provider`.
    api_key: Option<String>,
    /// Also change a file that has been edited; its other keys are unchanged.
    force: bool,
}

/// What is said of a body of another shape.
const INIT_SHAPE: &str = "expected a JSON object; `provider`, `model`, `api_key_env` and `api_key` are strings, \
    `force` is true or false";

async fn init(call: Call) -> Result<Response, Error> {
    let actor = call.actor();
    // What serde says of a wrong value may repeat it, and here it may be the key.
    let body = call.json_or_default().map_err(|error| match error.status() {
        StatusCode::BAD_REQUEST => Error::bad_request(INIT_SHAPE),
        _ => error,
    });
    let InitBody { provider, model, api_key_env, api_key, force } = body?;
    let keys = call.api.services.get::<dyn ProviderKeys>();
    let kept = match (api_key, &provider) {
        (None, _) => None,
        (Some(_), None) => return Err(Error::bad_field("provider", "provider: required with api_key")),
        (Some(key), Some(provider)) => {
            let message = "api_key: this daemon has no vault; set the key in the environment and name the variable in \
                 api_key_env";
            let keys = keys.ok_or_else(|| Error::bad_field("api_key", message))?;
            Some((keys, provider.clone(), key))
        }
    };
    let wanted = ConfigInit { provider, model, api_key_env, force };
    let checked = kept.clone();
    let done = configuration::ask(call.api.services.get::<dyn Configuration>(), move |known| {
        if let Some((keys, provider, key)) = &checked {
            keys.check(provider, key).map_err(|message| ConfigError::Wrong { field: "api_key", message })?;
        }
        known.init(actor, &wanted)
    });
    let mut done = done.await?;
    if let Some((keys, provider, key)) = kept {
        let kept = spawn_blocking(move || keys.keep(&provider, &key)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "storing a provider's key was interrupted");
            let message = "the key was not stored; see the daemon's log for the reason".to_owned();
            Err(ProviderError::NotKept { code: error_codes::NOT_STORED, message })
        });
        // The configuration is written by now, and the answer says so.
        let not_kept = |error: ProviderError| Error::from(error).with("initialized", json!(done));
        kept.map_err(not_kept)?;
        done.key_present = true;
    }
    reply::ok(&done)
}
