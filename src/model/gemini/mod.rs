//! The protocol of Gemini's generateContent, streamed or whole.
//!
//! What the model signs (`thoughtSignature`, on any part) is kept as a thought before the part it belongs to and goes
//! back on that part while the turn lasts. Its newest models refuse a turn in which a signature is missing.

mod answer;
mod request;
mod schema;

use reqwest::Url;
use reqwest::header::HeaderName;

pub(super) use schema::sent as sent_schema;

use super::Request;
use super::error::CallError;
use super::failure;
use super::provider::Target;
use super::wire::{Post, Wire};

/// The version in the path of a `base_url` that names none.
const VERSION: &str = "v1beta";
/// The header of the key.
const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// The protocol.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Wire for Gemini {
    type Answer = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target, request.streaming).ok_or_else(|| failure::bad_url(target))?;
        Post::new(url, request::body(request)).key(target, KEY, "")
    }
}

/// Where content is generated: the model and the method after the path of `base_url`, its query kept.
fn endpoint(target: &Target, streaming: bool) -> Option<Url> {
    let mut url = Url::parse(target.base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let method = if streaming { "streamGenerateContent" } else { "generateContent" };
    {
        let path = url.path().trim_matches('/');
        // The address of Google's OpenAI-compatible side, one level deeper.
        let is_compatible = path.ends_with("/openai");
        let is_bare = path.is_empty();
        let mut segments = url.path_segments_mut().ok()?;
        segments.pop_if_empty();
        if is_compatible {
            segments.pop();
        }
        if is_bare {
            segments.push(VERSION);
        }
        // A tuned model has its own collection: `tunedModels/x`.
        let (collection, name) = target.model.split_once('/').unwrap_or(("models", &target.model));
        segments.push(collection).push(&format!("{name}:{method}"));
    }
    if streaming {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::DriverKind;
    use crate::model::testing;
    use crate::model::testing::{With, posted};

    fn at(base: &str, model: &str, streaming: bool) -> Option<String> {
        let target = Target { model: model.into(), ..testing::target(DriverKind::Gemini, base) };
        endpoint(&target, streaming).map(String::from)
    }

    #[test]
    fn endpoints() {
        let whole = Some("https://h/v1beta/models/m:generateContent".to_owned());
        assert_eq!(at("https://h", "m", false), whole);
        assert_eq!(at("https://h/v1beta/", "models/m", false), whole);
        assert_eq!(at("https://h/v1beta/openai/", "m", false), whole);
        let streamed = "http://h:1/v1/models/m:streamGenerateContent?alt=sse";
        assert_eq!(at(" http://h:1/v1 ", "m", true).as_deref(), Some(streamed));
        let tuned = "https://h/v1beta/tunedModels/x:streamGenerateContent?k=v&alt=sse";
        assert_eq!(at("https://h/v1beta?k=v", "tunedModels/x", true).as_deref(), Some(tuned));
        assert_eq!(at("https://h/v1", "a?b", false).as_deref(), Some("https://h/v1/models/a%3Fb:generateContent"));
        assert_eq!((at("ftp://h", "m", false), at("", "m", false)), (None, None));
    }

    #[test]
    fn the_key_has_its_own_header() {
        let target = testing::target(DriverKind::Gemini, "https://h");
        let (post, _) = posted(&Gemini, &target, &testing::prompt(Vec::new()), &With::default()).unwrap();
        assert_eq!(post.headers["x-goog-api-key"], "secret-key");
        assert!(post.headers["x-goog-api-key"].is_sensitive() && !post.headers.contains_key("authorization"));
    }
}
