//! The routes of prompt versions and experiments.

mod diff;
mod metrics;
pub(crate) mod routes;
mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("prompt").routes(&[&routes::ROUTES, &routes::LITERAL]);
