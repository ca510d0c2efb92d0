//! The inbox: files in a directory become messages of agents (spec 3).

pub mod host;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("inbox").routes(&[routes::ROUTES]);
