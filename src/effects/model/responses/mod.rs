//! The protocol of OpenAI's Responses, streamed or whole.
//!
//! Nothing is stored at the provider: the whole conversation goes along each time, and what a model thought comes and
//! goes sealed (`reasoning.encrypted_content`).

mod answer;
mod request;

use reqwest::{Url, header};

use super::Request;
use super::draft::Draft;
use super::error::CallError;
use super::failure;
use super::frames::Frame;
use super::provider::Target;
use super::wire::{Post, Progress, Wire};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Responses;

impl Wire for Responses {
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
        answer::read_event(target, frame, state, draft)
    }

    fn whole(&self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        answer::read_whole(target, body, draft)
    }
}

/// Where responses are asked: `base_url` with `responses` after its path, its query kept.
fn endpoint(base_url: &str) -> Option<Url> {
    let mut url = Url::parse(base_url.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if !url.path().trim_end_matches('/').ends_with("/responses") {
        url.path_segments_mut().ok()?.pop_if_empty().push("responses");
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn endpoints() {
        let at = |base: &str| endpoint(base).map(String::from);
        let whole = Some("https://api.openai.com/v1/responses".to_owned());
        assert_eq!((at("https://api.openai.com/v1"), at("https://api.openai.com/v1/")), (whole.clone(), whole.clone()));
        assert_eq!(at("https://api.openai.com/v1/responses"), whole);
        assert_eq!(at("http://h/x?a=b").as_deref(), Some("http://h/x/responses?a=b"));
        assert_eq!((at("ftp://h"), at("")), (None, None));
    }
}
