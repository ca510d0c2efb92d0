//! The protocol of Anthropic's Messages, streamed or whole.

mod answer;
mod request;

use reqwest::header::HeaderName;

use super::Request;
use super::error::CallError;
use super::wire::{Post, Wire, endpoint};

/// The header with the key.
const KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The header with the version of the protocol.
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// The protocol.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Wire for Anthropic {
    type Answer = answer::Blocks;

    fn post(&self, request: &Request<'_>) -> Result<Post, CallError> {
        let url = endpoint(request.target, &["messages"])?;
        Post::new(url, request::body(request)).header(VERSION, "2023-06-01").key(request.target, KEY, "")
    }
}
