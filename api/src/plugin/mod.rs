//! The routes of plugins of the context engine.

pub mod audit_kinds;
pub mod error_codes;
mod one;
pub mod plugins;
pub(crate) mod routes;
mod shapes;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("plugin")
    .admin_changes()
    .uses(&["audit"])
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES, one::ROUTES]);
