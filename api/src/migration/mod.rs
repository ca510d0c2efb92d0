//! The routes that import the homes of other programs.

pub(crate) mod routes;
pub mod source;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain =
    HttpDomain::new("migration").admin().uses(&["agent", "manifest", "session", "snapshot"]).routes(&[routes::ROUTES]);
