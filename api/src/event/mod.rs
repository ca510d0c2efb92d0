//! The route that publishes custom events.

pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("event").routes(&[routes::ROUTES]);
