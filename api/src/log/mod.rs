//! The routes of the log.

pub(crate) mod agent;
pub mod files;
pub mod hub;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("log").uses(&["agent", "turn"]).routes(&[agent::ROUTES, routes::ROUTES]);
