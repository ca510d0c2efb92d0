//! The routes of auto-dream.

pub(crate) mod routes;
pub mod settings;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("auto_dream").routes(&[routes::ROUTES]);
