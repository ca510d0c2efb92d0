//! The protocol of OpenAI-compatible chat completions, streamed or whole.

mod answer;
mod completion;
mod dialect;
mod request;

use reqwest::header;

use super::Request;
use super::draft::Draft;
use super::error::CallError;
use super::frames::Frame;
use super::provider::Target;
use super::wire::{Post, Progress, Wire, endpoint};

pub(super) use dialect::{cache_key, is_thinking_family, reasons};
pub(super) use request::body;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAi;

impl Wire for OpenAi {
    type State = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target, &["chat", "completions"])?;
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
