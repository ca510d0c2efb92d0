//! The routes of tools and tool profiles.

pub(crate) mod profile_routes;
pub mod profiles;
pub(crate) mod routes;
pub mod toolbox;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("tool").routes(&[routes::ROUTES, profile_routes::ROUTES]);
