//! The OpenAI-compatible endpoints.

pub(crate) mod answer;
pub(crate) mod image;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod stream;
