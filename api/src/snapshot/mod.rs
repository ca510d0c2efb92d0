//! The routes of snapshots of the world.

pub(crate) mod routes;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("snapshot").routes(&[routes::ROUTES]);
