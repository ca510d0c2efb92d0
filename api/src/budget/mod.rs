//! The routes of budgets.

pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("budget").uses(&["usage"]).routes(&[routes::ROUTES]);
