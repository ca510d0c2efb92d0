//! The routes of the task queue.

pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("task").uses(&["world"]).routes(&[routes::ROUTES]);
