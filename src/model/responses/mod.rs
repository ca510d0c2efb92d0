//! The protocol of OpenAI's Responses, streamed or whole.
//!
//! Nothing is stored at the provider: the whole conversation goes along each time, and what a model thought comes and
//! goes sealed (`reasoning.encrypted_content`).

mod answer;
mod request;

use reqwest::header;

use super::Request;
use super::draft::Draft;
use super::error::CallError;
use super::frames::Frame;
use super::provider::Target;
use super::wire::{Post, Progress, Wire, endpoint};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Responses;

impl Wire for Responses {
    type State = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target, &["responses"])?;
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
