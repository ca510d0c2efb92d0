//! Devices are paired with a code, and notified (spec 3, Pairing).

pub mod audit_kinds;
mod codes;
pub mod error_codes;
pub mod host;
mod routes;
mod shape;

use crate::http::domain::HttpDomain;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("pairing")
    .uses(&["audit", "people"])
    .admin_changes()
    .error_codes(error_codes::ALL)
    .audit_kinds(audit_kinds::ALL)
    .routes(&[routes::ROUTES]);
