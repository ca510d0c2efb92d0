//! The routes of triggers.

pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("trigger").routes(&[routes::ROUTES]);
