//! The protocol of OpenAI-compatible chat completions, streamed or whole.

mod answer;
mod completion;
mod dialect;
mod request;

use reqwest::header;

use super::Request;
use super::error::CallError;
use super::wire::{Post, Wire, endpoint};

pub(super) use dialect::{cache_key, is_thinking_family, reasons};
pub(super) use request::body;

/// The protocol.
#[derive(Debug)]
pub(crate) struct OpenAi;

impl Wire for OpenAi {
    type Answer = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target, &["chat", "completions"])?;
        Post::new(url, request::body(request)).key(target, header::AUTHORIZATION, "Bearer ")
    }
}
