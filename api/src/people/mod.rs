//! The routes of users and API keys.

pub mod keys;
pub(crate) mod routes;
pub(crate) mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("people").uses(&["agent"]).admin_changes().routes(&[routes::ROUTES]);
