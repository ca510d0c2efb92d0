//! The routes of tools and tool profiles.

pub(crate) mod direct;
pub mod error_codes;
pub(crate) mod profile_routes;
pub(crate) mod routes;
pub mod toolbox;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("tool")
    .admin_changes()
    .uses(&["agent", "approval", "manifest"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, profile_routes::ROUTES]);
