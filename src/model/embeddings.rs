//! Asks models for vectors of texts.
//!
//! | form | request | answer |
//! |---|---|---|
//! | OpenAI, also of Mistral, Together, Fireworks, Ollama, vLLM and LM Studio | `POST {base}/embeddings {model, input}` | `data[].embedding` by `index` |
//! | Cohere | `POST {host}/v2/embed {model, texts, input_type, embedding_types}` | `embeddings.float` |
//! | Titan of Bedrock, one text at a time | `POST {base}/model/{model}/invoke {inputText}` | `embedding` |
//!
//! An answer is taken whole or not at all: a vector for each text, all of the same length and of finite numbers.

use agentsvc_components::turn::outcome::FailureCode;
use reqwest::header::{self, HeaderMap};
use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::bedrock::Bedrock;
use super::error::CallError;
use super::failure;
use super::http::{Clients, Timeouts};
use super::provider::{DriverKind, Target, extra_headers};
use super::wire::{Post, endpoint};

/// Parts of a vector at most.
pub(crate) const DIMENSIONS_MAX: usize = 8_192;
/// Bytes of an answer for each number of its vectors, with the separator.
const NUMBER_BYTES_MAX: usize = 26;
/// Bytes of an answer beside its vectors.
const ANSWER_BYTES_FREE: usize = 64 << 10;

/// How a provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// OpenAI's.
    OpenAi,
    /// Cohere's.
    Cohere,
    /// That of Titan models behind Bedrock.
    Titan,
}

impl Form {
    /// Texts of one request at most.
    pub(crate) const fn texts_max(self) -> usize {
        match self {
            Self::OpenAi | Self::Cohere => 64,
            Self::Titan => 1,
        }
    }
}

/// What is to be embedded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The texts; at most [`Form::texts_max`].
    pub(crate) texts: &'a [String],
    /// They are searched for, not found.
    pub(crate) is_query: bool,
    /// Parts of each vector, where the model is to be told.
    pub(crate) dimensions: Option<u32>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Embedded {
    /// A vector for each text, in their order.
    pub(crate) vectors: Vec<Vec<f32>>,
    /// Tokens of the texts, where the provider says it.
    pub(crate) tokens: Option<u64>,
}

/// Asks providers.
#[derive(Debug)]
pub(crate) struct Embeddings {
    clients: Clients,
    bedrock: Bedrock,
}

impl Embeddings {
    /// Nothing is opened yet.
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        Self { clients: Clients::new(timeouts), bedrock: Bedrock::default() }
    }

    /// Asks once.
    ///
    /// # Errors
    /// As of other calls; `ProviderProtocol` for an answer that is not what was asked for.
    pub(crate) async fn ask(&self, form: Form, target: &Target, asked: Asked<'_>) -> Result<Embedded, CallError> {
        let Post { url, headers, body } = self.post(form, target, asked)?;
        let response = self.send(target, url, headers, body).await?;
        let most = ANSWER_BYTES_FREE + asked.texts.len() * DIMENSIONS_MAX * NUMBER_BYTES_MAX;
        let body = whole(target, response, most).await?;
        let wrong = |why: String| failure::protocol(target, &why);
        let embedded = read(form, &body).map_err(wrong)?;
        check(&embedded, asked).map_err(wrong)?;
        Ok(embedded)
    }

    fn post(&self, form: Form, target: &Target, asked: Asked<'_>) -> Result<Post, CallError> {
        let body = body(form, &target.model, asked);
        match form {
            Form::OpenAi => Post::new(open_ai_url(target)?, body).key(target, header::AUTHORIZATION, "Bearer "),
            Form::Cohere => Post::new(cohere_url(target)?, body).key(target, header::AUTHORIZATION, "Bearer "),
            Form::Titan => self.bedrock.to(target, "invoke", body),
        }
    }

    async fn send(&self, target: &Target, url: Url, headers: HeaderMap, body: Vec<u8>) -> Result<Response, CallError> {
        let post = self.clients.get(&url)?.post(url).header(header::CONTENT_TYPE, "application/json");
        let more = extra_headers(&target.provider).iter();
        let post = more.fold(post, |post, (name, value)| post.header(*name, *value));
        let sent = post.headers(headers).body(body).send().await;
        let response = sent.map_err(|error| failure::transport(target, &error, false))?;
        if response.status().is_success() { Ok(response) } else { Err(failure::status(target, response).await) }
    }
}

fn open_ai_url(target: &Target) -> Result<Url, CallError> {
    let has_version = target.base_url.trim_end_matches('/').ends_with("/v1");
    // Ollama's own API is beside the one that speaks like OpenAI's.
    let is_beside = target.driver == DriverKind::Ollama && !has_version;
    endpoint(target, if is_beside { &["v1", "embeddings"] } else { &["embeddings"] })
}

/// Beside the path that speaks like OpenAI's.
fn cohere_url(target: &Target) -> Result<Url, CallError> {
    let mut url = endpoint(target, &[])?;
    let path = url.path().trim_end_matches('/');
    let path = ["/compatibility/v1", "/v2", "/v1"].iter().find_map(|tail| path.strip_suffix(tail)).unwrap_or(path);
    let path = format!("{path}/v2/embed");
    url.set_path(&path);
    Ok(url)
}

/// The JSON of a request.
fn body(form: Form, model: &str, asked: Asked<'_>) -> Vec<u8> {
    let Asked { texts, is_query, dimensions } = asked;
    let (mut body, name) = match form {
        Form::OpenAi => (json!({ "model": model, "input": texts }), "dimensions"),
        Form::Cohere => {
            let kind = if is_query { "search_query" } else { "search_document" };
            let body = json!({ "model": model, "texts": texts, "input_type": kind, "embedding_types": ["float"] });
            (body, "output_dimension")
        }
        Form::Titan => (json!({ "inputText": texts.first().map_or("", String::as_str) }), "dimensions"),
    };
    if let Some(dimensions) = dimensions {
        body[name] = Value::from(dimensions);
    }
    body.to_string().into_bytes()
}

/// The body of an answer, which must not be longer than this.
async fn whole(target: &Target, mut response: Response, most: usize) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| failure::transport(target, &error, true))? {
        if body.len() + piece.len() > most {
            return Err(failure::protocol(target, "it is too long"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<Item>,
    #[serde(default)]
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct Item {
    embedding: Vec<f32>,
    index: Option<usize>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    prompt_tokens: Option<u64>,
    total_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CohereAnswer {
    embeddings: Floats,
    #[serde(default)]
    meta: Value,
}

#[derive(Deserialize)]
struct Floats {
    float: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TitanAnswer {
    embedding: Vec<f32>,
    input_text_token_count: Option<u64>,
}

/// Reads an answer.
fn read(form: Form, body: &[u8]) -> Result<Embedded, String> {
    // The message of the parser could repeat texts of the answer.
    let not_json = |error: serde_json::Error| format!("it cannot be read at column {}", error.column());
    match form {
        Form::OpenAi => {
            let answer: OpenAiAnswer = serde_json::from_slice(body).map_err(not_json)?;
            let tokens = answer.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens));
            Ok(Embedded { vectors: in_order(answer.data)?, tokens })
        }
        Form::Cohere => {
            let answer: CohereAnswer = serde_json::from_slice(body).map_err(not_json)?;
            let tokens = answer.meta.pointer("/billed_units/input_tokens").and_then(Value::as_f64);
            Ok(Embedded { vectors: answer.embeddings.float, tokens: tokens.map(|tokens| tokens as u64) })
        }
        Form::Titan => {
            let answer: TitanAnswer = serde_json::from_slice(body).map_err(not_json)?;
            Ok(Embedded { vectors: vec![answer.embedding], tokens: answer.input_text_token_count })
        }
    }
}

/// In the order of their numbers, of which each is there once; as they came where none has a number.
fn in_order(items: Vec<Item>) -> Result<Vec<Vec<f32>>, String> {
    if items.iter().all(|item| item.index.is_none()) {
        return Ok(items.into_iter().map(|item| item.embedding).collect());
    }
    let mut places: Vec<Option<Vec<f32>>> = vec![None; items.len()];
    for Item { embedding, index } in items {
        let place = index.and_then(|index| places.get_mut(index)).filter(|place| place.is_none());
        *place.ok_or("an index is missing, repeated or too large")? = Some(embedding);
    }
    Ok(places.into_iter().flatten().collect())
}

/// Is it a vector for each text, and are they what vectors have to be?
fn check(embedded: &Embedded, asked: Asked<'_>) -> Result<(), String> {
    let (count, texts) = (embedded.vectors.len(), asked.texts.len());
    if count != texts {
        return Err(format!("it has {count} vectors for {texts} texts"));
    }
    let wanted = embedded.vectors.first().map_or(0, Vec::len);
    let wanted = asked.dimensions.map_or(wanted, |dimensions| dimensions as usize);
    if wanted == 0 || wanted > DIMENSIONS_MAX {
        return Err(format!("a vector has {wanted} dimensions"));
    }
    for vector in &embedded.vectors {
        if vector.len() != wanted {
            return Err(format!("a vector has {} dimensions instead of {wanted}", vector.len()));
        }
        if !vector.iter().all(|part| part.is_finite()) {
            return Err("a vector holds what is not a number".to_owned());
        }
    }
    Ok(())
}

/// May it be that another text is embedded, and only this one was refused?
pub(crate) fn is_refused(error: &CallError) -> bool {
    error.code == FailureCode::ProviderRefused
}

#[cfg(test)]
#[path = "embeddings_tests.rs"]
mod tests;
