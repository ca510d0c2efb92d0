//! The routes of the second factor of approvals.

pub mod factor;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("second_factor").routes(&[routes::ROUTES]);
