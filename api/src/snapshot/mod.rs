//! The routes of snapshots of the world.

pub mod audit_kinds;
pub mod error_codes;
pub(crate) mod routes;
pub mod store;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("snapshot")
    .admin_changes()
    .audit_kinds(audit_kinds::ALL)
    .error_codes(error_codes::ALL)
    .routes(&[routes::ROUTES]);
