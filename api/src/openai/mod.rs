//! The OpenAI-compatible endpoints.

pub(crate) mod answer;
pub(crate) mod error;
pub mod error_codes;
pub(crate) mod image;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod routes;
pub(crate) mod stream;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("openai")
    .error_codes(error_codes::ALL)
    .uses(&["agent", "turn", "upload", "session"])
    .routes(&[routes::ROUTES])
    .errors("/v1/", error::for_openai);
