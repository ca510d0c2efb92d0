//! The routes of skills: what others have made for agents.

pub mod error_codes;
pub(crate) mod invoke;
pub mod library;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("skill")
    .admin_changes()
    .uses(&["agent", "manifest"])
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES]);
