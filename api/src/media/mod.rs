//! The routes of media (spec 2, Media generation).

pub(crate) mod error_codes;
pub mod host;
pub(crate) mod routes;
pub(crate) mod shape;
pub(crate) mod transcribe;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("media")
    .uses(&["budget", "upload"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, routes::TRANSCRIBE]);
