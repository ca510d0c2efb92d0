//! The routes of backups.

pub mod audit_kinds;
pub mod error_codes;
pub(crate) mod routes;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("backup")
    .admin()
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES]);
