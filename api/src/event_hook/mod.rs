//! Programs of the operator that run when something happens, from `{home}/hooks`.

pub mod host;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("event_hook").routes(&[routes::ROUTES]);
