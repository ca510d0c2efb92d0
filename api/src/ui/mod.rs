//! The served web page.

pub(crate) mod assets;
pub(crate) mod routes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("ui").routes(&[routes::ROUTES]);
