//! The protocol of OpenAI-compatible chat completions, streamed or whole.

mod answer;
mod completion;
mod dialect;
mod request;

use reqwest::{Url, header};

use super::Request;
use super::draft::Draft;
use super::error::CallError;
use super::failure;
use super::frames::Frame;
use super::provider::Target;
use super::wire::{Post, Progress, Wire};

pub(super) use dialect::{cache_key, reasons};
pub(super) use request::body;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAi;

impl Wire for OpenAi {
    type State = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(&target.base_url).ok_or_else(|| failure::bad_url(target))?;
        Post::new(url, request::body(request)).key(target, header::AUTHORIZATION, "Bearer ")
    }

    fn frame(
        &self,
        target: &Target,
        frame: Frame<'_>,
        state: &mut answer::State,
        draft: &mut Draft,
    ) -> Result<Progress, CallError> {
        answer::read_event(target, frame.data, state, draft)
    }

    fn whole(&self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        answer::read_whole(target, body, draft)
    }
}

/// Where completions are asked: `base_url` with `chat/completions` after its path, its query kept.
fn endpoint(base_url: &str) -> Option<Url> {
    let mut url = Url::parse(base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if !url.path().trim_end_matches('/').ends_with("/chat/completions") {
        url.path_segments_mut().ok()?.pop_if_empty().extend(["chat", "completions"]);
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn endpoints() {
        let at = |base: &str| endpoint(base).map(String::from);
        let whole = Some("http://h:1/v1/chat/completions".to_owned());
        assert_eq!(at("http://h:1/v1"), whole);
        assert_eq!(at(" http://h:1/v1/ "), whole);
        assert_eq!(at("http://h:1/v1/chat/completions"), whole);
        assert_eq!(at("https://h/x?api-version=1"), Some("https://h/x/chat/completions?api-version=1".to_owned()));
        assert_eq!(at("https://h"), Some("https://h/chat/completions".to_owned()));
        assert_eq!((at("ftp://h"), at("nonsense"), at("")), (None, None, None));
    }
}
