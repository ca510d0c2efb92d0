//! The routes of backups.

pub(crate) mod routes;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("backup").routes(&[routes::ROUTES]);
