//! The route of what happened in the installation.

pub(crate) mod routes;
mod series;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("history").routes(&[routes::ROUTES]);
