//! The routes of workflows and their runs.

pub(crate) mod routes;
pub(crate) mod runs;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("workflow").routes(&[routes::ROUTES, runs::ROUTES]);
