//! The protocol of OpenAI's Responses, streamed or whole.
//!
//! Nothing is stored at the provider: the whole conversation goes along each time, and what a model thought comes and
//! goes sealed (`reasoning.encrypted_content`).

mod answer;
mod request;

use reqwest::header;

use super::Request;
use super::error::CallError;
use super::wire::{Post, Wire, endpoint};

/// The protocol.
#[derive(Debug)]
pub(crate) struct Responses;

impl Wire for Responses {
    type Answer = answer::State;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let target = request.target;
        let url = endpoint(target, &["responses"])?;
        Post::new(url, request::body(request)).key(target, header::AUTHORIZATION, "Bearer ")
    }
}
