//! The routes of goals.

pub(crate) mod routes;
pub(crate) mod templates;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("goal").routes(&[routes::ROUTES]);
