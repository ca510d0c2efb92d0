//! The routes of the audit log.

pub(crate) mod routes;
pub(crate) mod shared;
pub mod trail;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("audit").routes(&[routes::ROUTES]);
