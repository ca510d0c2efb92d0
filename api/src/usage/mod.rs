//! The routes of token usage and its cost.

pub(crate) mod days;
pub(crate) mod export;
pub(crate) mod routes;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("usage").uses(&["budget"]).routes(&[routes::ROUTES, export::ROUTES]);
