//! What routes see of the browsers of agents.

pub mod browsers;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("browser").admin_changes();
