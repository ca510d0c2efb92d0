//! Looking for model runtimes on this machine. Each is asked at its own endpoints, once, within seconds; what it does not
//! answer is left out. One that does not run is an answer too.
//!
//! | runtime | runs if it answers | models | contexts |
//! |---|---|---|---|
//! | Ollama | `/api/tags` | there | `/api/show` of each |
//! | LM Studio | `/api/v0/models`, else `/v1/models` | there | there |
//! | llama.cpp server | `/v1/models` | there | `/props`, what it was started with |
//! | vLLM | `/v1/models` | there | there |

use std::time::Duration;

use agentsvc_api::provider::accounts::{Detected, DetectedModel};
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use reqwest::Url;
use serde_json::{Value, json};

use crate::model::error::provider_words;
use crate::model::http::Clients;

/// Models of one runtime that are told of.
const MODELS_MAX: usize = 200;
/// Models whose contexts are asked for one by one, so many at once.
const SHOWN_MAX: usize = 32;
/// See [`SHOWN_MAX`].
const SHOWN_AT_ONCE: usize = 4;
/// Bytes of one answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// For all questions together.
const TIME_MAX: Duration = Duration::from_secs(5);

/// How a runtime is looked for.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    name: &'static str,
    look: for<'a> fn(Near<'a>) -> BoxFuture<'a, Result<Found, String>>,
}

/// Every runtime, by the name of its provider.
const RUNTIMES: &[Runtime] = &[
    Runtime { name: "ollama", look: |near| Box::pin(ollama(near)) },
    Runtime { name: "lmstudio", look: |near| Box::pin(lmstudio(near)) },
    Runtime { name: "llamacpp", look: |near| Box::pin(llamacpp(near)) },
    Runtime { name: "vllm", look: |near| Box::pin(vllm(near)) },
];

/// The runtime of a provider; `None` for one that is no local runtime.
pub(super) fn runtime(provider: &str) -> Option<Runtime> {
    RUNTIMES.iter().copied().find(|runtime| runtime.name == provider)
}

/// The names of all of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|runtime| runtime.name)
}

/// What a runtime said.
#[derive(Default)]
struct Found {
    version: Option<String>,
    models: Vec<DetectedModel>,
}

/// Where a runtime is asked.
#[derive(Clone, Copy)]
struct Near<'a> {
    clients: &'a Clients,
    /// Without the `/v1` that its OpenAI-compatible side has, or the `/api` of Ollama's own.
    root: &'a str,
}

/// Looks for `runtime` at `base_url`.
pub(super) async fn look(clients: &Clients, runtime: Runtime, provider: &str, base_url: &str) -> Detected {
    // What the driver reads behind it, as `?keep_alive=30m`, is for calls.
    let root = base_url.split('?').next().unwrap_or(base_url).trim_end_matches('/');
    let root = root.strip_suffix("/v1").or_else(|| root.strip_suffix("/api")).unwrap_or(root);
    let looked = tokio::time::timeout(TIME_MAX, (runtime.look)(Near { clients, root })).await;
    let looked = looked.unwrap_or_else(|_| Err("the request timed out".to_owned()));
    let detected = Detected { provider: provider.to_owned(), base_url: base_url.to_owned(), ..Detected::default() };
    match looked {
        Ok(Found { version, mut models }) => {
            let total = models.len();
            models.truncate(MODELS_MAX);
            Detected { available: true, version, models, total, ..detected }
        }
        Err(reason) => Detected { reason: Some(reason), ..detected },
    }
}

impl Near<'_> {
    async fn get(&self, path: &str) -> Result<Value, String> {
        self.ask(path, None).await
    }

    /// Asks for JSON. The error is one sentence without the URL.
    async fn ask(&self, path: &str, body: Option<Value>) -> Result<Value, String> {
        let url = Url::parse(&format!("{}{path}", self.root)).map_err(|_| "the base_url is not a URL".to_owned())?;
        let client = self.clients.get(&url).map_err(|error| error.message)?;
        let request = match body {
            Some(body) => client.post(url).header("content-type", "application/json").body(body.to_string()),
            None => client.get(url),
        };
        let mut response = request.send().await.map_err(|error| {
            if error.is_timeout() {
                "the request timed out".to_owned()
            } else {
                "no program responds at this address".to_owned()
            }
        })?;
        if !response.status().is_success() {
            return Err(format!("{path} returned {}", response.status()));
        }
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|_| "the response ended early".to_owned())? {
            text.extend_from_slice(&piece);
            if text.len() > ANSWER_BYTES_MAX {
                return Err("the response is too long".to_owned());
            }
        }
        serde_json::from_slice(&text)
            .map_err(|_| "the response is not JSON; another program uses this address".to_owned())
    }
}

/// A text of an answer, fit to be shown.
fn text(value: &Value) -> Option<String> {
    value.as_str().map(|text| provider_words(text, None)).filter(|text| !text.is_empty())
}

/// The list under `key`; an error when there is none.
fn list<'a>(answer: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    answer
        .get(key)
        .and_then(Value::as_array)
        .ok_or_else(|| "the response lists no models; another program uses this address".to_owned())
}

async fn ollama(near: Near<'_>) -> Result<Found, String> {
    let tags = near.get("/api/tags").await?;
    let models = list(&tags, "models")?.iter().filter_map(|model| {
        let id = text(&model["name"])?;
        Some(DetectedModel { id, size_bytes: model["size"].as_u64(), ..DetectedModel::default() })
    });
    let mut models: Vec<_> = models.collect();
    // What is loaded, and the version, are good to know; without them the models are still there.
    let version = near.get("/api/version").await.ok().and_then(|answer| text(&answer["version"]));
    if let Ok(running) = near.get("/api/ps").await
        && let Ok(running) = list(&running, "models")
    {
        for model in &mut models {
            model.loaded = Some(running.iter().any(|found| found["name"] == model.id.as_str()));
        }
    }
    let ids: Vec<String> = models.iter().take(SHOWN_MAX).map(|model| model.id.clone()).collect();
    let shown = stream::iter(ids)
        .map(|id| async move { near.ask("/api/show", Some(json!({ "model": id }))).await })
        .buffered(SHOWN_AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    for (model, shown) in models.iter_mut().zip(shown) {
        model.context_window = shown.ok().as_ref().and_then(ollama_context);
    }
    Ok(Found { version, models })
}

/// `model_info` names the context after the model's architecture: `llama.context_length`.
fn ollama_context(shown: &Value) -> Option<u64> {
    let facts = shown["model_info"].as_object()?;
    facts.iter().find(|(key, _)| key.ends_with(".context_length")).and_then(|(_, length)| length.as_u64())
}

async fn lmstudio(near: Near<'_>) -> Result<Found, String> {
    // Older versions have only the OpenAI-compatible list.
    let answer = match near.get("/api/v0/models").await {
        Ok(answer) if list(&answer, "data").is_ok() => answer,
        _ => near.get("/v1/models").await?,
    };
    let models = list(&answer, "data")?.iter().filter(|model| model["type"] != "embeddings").filter_map(|model| {
        let loaded = model["state"].as_str().map(|state| state == "loaded");
        let context = model["loaded_context_length"].as_u64().or_else(|| model["max_context_length"].as_u64());
        Some(DetectedModel { id: text(&model["id"])?, context_window: context, loaded, size_bytes: None })
    });
    Ok(Found { version: None, models: models.collect() })
}

async fn llamacpp(near: Near<'_>) -> Result<Found, String> {
    let answer = near.get("/v1/models").await?;
    let props = near.get("/props").await.unwrap_or_default();
    // It serves the context that it was started with, whatever the model was trained for.
    let served = props["default_generation_settings"]["n_ctx"].as_u64();
    let models = list(&answer, "data")?.iter().filter_map(|model| {
        let context_window = served.or_else(|| model["meta"]["n_ctx_train"].as_u64());
        let size_bytes = model["meta"]["size"].as_u64();
        Some(DetectedModel { id: text(&model["id"])?, context_window, size_bytes, loaded: Some(true) })
    });
    Ok(Found { version: text(&props["build_info"]), models: models.collect() })
}

async fn vllm(near: Near<'_>) -> Result<Found, String> {
    let answer = near.get("/v1/models").await?;
    let models = list(&answer, "data")?.iter().filter_map(|model| {
        let context_window = model["max_model_len"].as_u64();
        Some(DetectedModel { id: text(&model["id"])?, context_window, size_bytes: None, loaded: Some(true) })
    });
    let version = near.get("/version").await.ok().and_then(|answer| text(&answer["version"]));
    Ok(Found { version, models: models.collect() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_context_is_found_whatever_the_architecture() {
        let shown = json!({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}});
        assert_eq!(ollama_context(&shown), Some(40_960));
        assert_eq!(ollama_context(&json!({"details": {}})), None);
    }

    #[tokio::test]
    async fn nobody_there_is_an_answer() {
        // Nobody listens at the port of "discard"; one that was free a moment ago may be another test's by now.
        let base_url = "http://127.0.0.1:9/v1";
        let clients = Clients::new(crate::model::http::Timeouts::default());
        for name in names() {
            let found = look(&clients, runtime(name).unwrap(), name, base_url).await;
            assert!(!found.available && found.models.is_empty(), "{name}");
            assert_eq!(found.reason.as_deref(), Some("no program responds at this address"), "{name}");
        }
        assert!(runtime("openai").is_none());
    }
}
