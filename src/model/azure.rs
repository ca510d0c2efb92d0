//! OpenAI's chat completions on Azure: other addresses, another header for the key, the same words.
//!
//! | `base_url` | completions are asked at |
//! |---|---|
//! | `https://name.openai.azure.com` | `.../openai/deployments/{model}/chat/completions?api-version=...` |
//! | `.../openai/deployments/one` | the same, of that deployment |
//! | `.../openai/v1` | `.../openai/v1/chat/completions` |
//! | `.../models` | `.../models/chat/completions?api-version=...` |
//!
//! The version is that of the `base_url`'s query, else the newest stable one that is known here. A filter that
//! stops a prompt answers 400 with what it found; one that stops an answer ends it with `content_filter`.

use reqwest::Url;
use reqwest::header::{self, HeaderName};

use super::Request;
use super::error::CallError;
use super::failure;
use super::openai::{self, OpenAi};
use super::provider::{Secret, Target};
use super::wire::{Post, Wire};

/// The stable version of the API of deployments.
const API_VERSION: &str = "2024-10-21";
/// The version of the API of models that are not OpenAI's.
const MODELS_API_VERSION: &str = "2024-05-01-preview";
/// The key of the version in a query.
const VERSION_KEY: &str = "api-version";
/// The header of the key.
const KEY: HeaderName = HeaderName::from_static("api-key");

/// The protocol.
#[derive(Debug)]
pub(crate) struct Azure;

impl Wire for Azure {
    type Answer = <OpenAi as Wire>::Answer;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target).ok_or_else(|| failure::bad_url(target))?;
        let post = Post::new(url, openai::body(request));
        if target.key.as_ref().is_some_and(is_token) {
            return post.key(target, header::AUTHORIZATION, "Bearer ");
        }
        post.key(target, KEY, "")
    }
}

/// A token of Entra ID, which is a JWT, goes where tokens go.
fn is_token(key: &Secret) -> bool {
    let key = key.expose();
    key.starts_with("eyJ") && key.matches('.').count() == 2
}

/// Where completions are asked; see the table above.
fn endpoint(target: &Target) -> Option<Url> {
    let mut url = Url::parse(target.base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let path = url.path().trim_end_matches('/').trim_end_matches("/chat/completions").to_owned();
    let is_deployment = path.rsplit('/').nth(1) == Some("deployments");
    let version = if path.ends_with("/v1") {
        None
    } else if path.ends_with("/models") {
        Some(MODELS_API_VERSION)
    } else {
        Some(API_VERSION)
    };
    url.set_path(&path);
    {
        let mut segments = url.path_segments_mut().ok()?;
        segments.pop_if_empty();
        if version == Some(API_VERSION) && !is_deployment {
            if !path.ends_with("/openai") {
                segments.push("openai");
            }
            segments.push("deployments").push(&target.model);
        }
        segments.extend(["chat", "completions"]);
    }
    let has_version = url.query_pairs().any(|(key, _)| key == VERSION_KEY);
    if let Some(version) = version.filter(|_| !has_version) {
        url.query_pairs_mut().append_pair(VERSION_KEY, version);
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::text_of;
    use agentsvc_components::turn::outcome::StopReason;

    use super::*;
    use crate::model::provider::DriverKind;
    use crate::model::testing;
    use crate::model::testing::{With, posted};

    fn at(base: &str) -> Option<String> {
        let target = Target { model: "gpt-4o".into(), ..testing::target(DriverKind::Azure, base) };
        endpoint(&target).map(String::from)
    }

    #[test]
    fn endpoints() {
        let own = Some(
            "https://x.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21".to_owned(),
        );
        let root = "https://x.openai.azure.com";
        for base in ["", "/", "/openai", "/openai/deployments/gpt-4o", "/openai/deployments/gpt-4o/chat/completions"] {
            assert_eq!(at(&format!("{root}{base}")), own, "{base}");
        }
        let newer = at(&format!("{root}?api-version=2025-04-01-preview")).unwrap();
        assert!(
            newer.ends_with("/openai/deployments/gpt-4o/chat/completions?api-version=2025-04-01-preview"),
            "{newer}"
        );
        let v1 = Some(format!("{root}/openai/v1/chat/completions"));
        assert_eq!((at(&format!("{root}/openai/v1")), at(&format!("{root}/openai/v1/"))), (v1.clone(), v1));
        let preview = Some(format!("{root}/openai/v1/chat/completions?api-version=preview"));
        assert_eq!(at(&format!("{root}/openai/v1?api-version=preview")), preview);
        let models = "https://x.services.ai.azure.com/models";
        let found = Some(format!("{models}/chat/completions?api-version=2024-05-01-preview"));
        assert_eq!(at(models), found);
        assert_eq!((at("ftp://h"), at("")), (None, None));
    }

    #[test]
    fn a_key_and_a_token_have_their_headers() {
        let target = testing::target(DriverKind::Azure, "https://x.openai.azure.com");
        let sent =
            |target: &Target| posted(&Azure, target, &testing::prompt(Vec::new()), &With::default()).unwrap().0.headers;
        let headers = sent(&target);
        assert_eq!(headers["api-key"], "secret-key");
        assert!(headers["api-key"].is_sensitive() && !headers.contains_key("authorization"));
        let token = Target { key: Some(Secret::new("eyJ.abc.def")), ..target };
        assert_eq!(sent(&token)["authorization"], "Bearer eyJ.abc.def");
        assert!(!sent(&token).contains_key("api-key"));
    }

    #[test]
    fn filter_results_stand_beside_the_answer() {
        let target = testing::target(DriverKind::Azure, "https://h");
        let frames = [
            r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null,"content_filter_results":{}}]}"#,
            r#"{"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":44},"content_filter_results":{}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#,
            "[DONE]",
        ];
        let frames = frames.map(|data| ("", data));
        let answer = testing::streamed(&Azure, &target, &frames).unwrap();
        assert_eq!((text_of(&answer.blocks).as_str(), answer.stop), ("Hi", StopReason::Filtered));
    }
}
